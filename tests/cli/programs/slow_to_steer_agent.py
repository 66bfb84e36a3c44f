"""An agent that can be steered, but says that it takes nothing, and only when its turn is cancelled."""

from __future__ import annotations

import json
import sys
from typing import Any

ANSWERS: dict[str, Any] = {
    "initialize": {"protocolVersion": 1, "_meta": {"steering": {"supported": True}}},
    "session/new": {"sessionId": "s"},
}
open_requests: dict[str, Any] = {}


def answer(id_: Any, result: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method in ANSWERS:
        answer(message["id"], ANSWERS[method])
    elif method == "session/cancel":
        answer(open_requests["session/prompt"], {"stopReason": "cancelled"})
        answer(open_requests["_session/steering"], {"outcome": "failed"})
    elif "id" in message:
        open_requests[method] = message["id"]
