"""An agent that is well but for what its first argument says. It knows nothing of thinkwell.

It takes no tools of ours, and says so, unless it is ``blind``: then it does not fetch them.
"""

import json
import os
import signal
import sys
from typing import Any

MODE = sys.argv[1]
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eevil\n\u2028ok       login"


def write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def hello() -> dict[str, Any]:
    name = HOSTILE if MODE == "hostile" else "sick"
    info = {"agentInfo": {"name": name, "version": HOSTILE if MODE == "hostile" else "1.0"}}
    methods = [{"id": HOSTILE, "name": HOSTILE}] if MODE == "hostile" else []
    return {"protocolVersion": 1, "authMethods": methods, **({} if MODE == "nameless" else info)}


def session() -> dict[str, Any]:
    if MODE != "hostile":
        return {"sessionId": "s1"}
    mode = {"id": HOSTILE, "name": HOSTILE}
    return {"sessionId": HOSTILE, "modes": {"currentModeId": HOSTILE, "availableModes": [mode]}}


if MODE == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if MODE == "noisy":
    sys.stdout.write("Welcome! \x1b[31mWhat can I do for you?\n")
for line in sys.stdin.buffer:
    request = json.loads(line)
    match request.get("method"):
        case "initialize" if MODE == "interrupts":
            os.kill(os.getppid(), signal.SIGINT)
        case "initialize":
            write({"id": request["id"], "result": hello()})
            if MODE == "exits":
                sys.stderr.write(
                    "a license\n\x1b[2Jis missing, ANTHROPIC_API_KEY=sk-ant-abcdefghijklmnop123456\n"
                )
                sys.exit(3)
        case "session/new":
            if MODE == "hangs":
                continue
            if MODE == "refuses":
                error = {"code": -32603, "message": "no\nroom", "data": {"left": 0}}
                write({"id": request["id"], "error": error})
            elif MODE not in ("blind", "dies") and any(
                server["name"].startswith("thinkwell") for server in request["params"]["mcpServers"]
            ):
                write({"id": request["id"], "error": {"code": -32602, "message": "no tools"}})
            else:
                write({"id": request["id"], "result": session()})
                if MODE == "dies" and request["params"]["mcpServers"]:
                    os._exit(4)
        case _:
            assert "id" not in request, request
if MODE in ("deaf", "stubborn"):
    while True:
        signal.pause()
