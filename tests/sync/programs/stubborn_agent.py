"""An agent that ends no turn, and leaves neither at the end of its input nor when it is asked to.

    python stubborn_agent.py PID_FILE [mute]

It makes a file when it is prompted, and one when its turn is cancelled. With `mute` it does not even
answer the first request. It knows nothing of thinkwell.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any


def tell(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


signal.signal(signal.SIGTERM, signal.SIG_IGN)
Path(sys.argv[1]).write_text(str(os.getpid()))
RESULTS = {"initialize": {"protocolVersion": 1}, "session/new": {"sessionId": "s"}}
for line in sys.stdin.buffer:
    request = json.loads(line)
    result = RESULTS.get(request["method"])
    if result is not None and "mute" not in sys.argv:
        tell({"id": request["id"], "result": result})
    elif request["method"] == "session/prompt":
        content = {"type": "text", "text": "Hm."}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        tell({"method": "session/update", "params": {"sessionId": "s", "update": update}})
        Path(f"{sys.argv[1]}-prompted").touch()
    elif request["method"] == "session/cancel":
        Path(f"{sys.argv[1]}-cancelled").touch()
while True:
    time.sleep(60)
