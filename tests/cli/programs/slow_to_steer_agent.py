"""An agent that can be steered, but takes nothing. It says so when its turn is cancelled, or ``at-once``."""

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
    write(id=id_, result=result)


def write(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method in ANSWERS:
        answer(message["id"], ANSWERS[method])
    elif method == "session/cancel":
        answer(open_requests["session/prompt"], {"stopReason": "cancelled"})
        if "_session/steering" in open_requests:
            answer(open_requests["_session/steering"], {"outcome": "failed"})
    elif method == "_session/steering" and "at-once" in sys.argv:
        answer(message["id"], {"outcome": "failed"})
        said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Not now."}}
        write(method="session/update", params={"sessionId": "s", "update": said})
    elif "id" in message:
        open_requests[method] = message["id"]
