"""An agent that wants a login in a terminal, and its login. It knows nothing of thinkwell.

Its arguments say which logins it offers. Those of its login follow behind ``login``.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TOKEN = Path(os.environ["LOGIN_TOKEN"])
BROWSER = [sys.executable, "-IS", str(Path(__file__).with_name("browser.py"))]

METHODS: dict[str, dict[str, Any]] = {
    "console": {
        "id": "console",
        "name": "Console",
        "description": "asks for a key",
        "type": "terminal",
        "args": ["login", "a b"],
        "env": {"LOGIN_KIND": "by hand", "LOGIN_BASE": "overlaid"},
    },
    "browser": {"id": "browser", "name": "Browser"},
    "refused": {"id": "refused", "name": "Refused"},
    "broken": {"id": "broken", "name": "Broken", "type": "terminal", "env": {"a\0b": "c"}},
}


def open_browser(name: str) -> None:
    """Start one, and wait until it is there."""
    window = TOKEN.with_name(name)
    subprocess.run([*BROWSER, str(window)], check=True)
    while not window.exists():
        time.sleep(0.01)


def log_in() -> None:
    """Ask for a key, and do as it says."""
    assert all(os.isatty(fd) for fd in (0, 1, 2))
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python would not heed one that comes just before it reads
    facts = [sys.argv[-1], os.environ["LOGIN_KIND"], os.environ["LOGIN_BASE"], str(Path.cwd())]
    sys.stdout.write(f"{facts}\n")
    sys.stdout.flush()
    while True:
        sys.stdout.write("Key: ")
        sys.stdout.flush()
        match sys.stdin.readline().strip():
            case "wrong":
                sys.exit(3)
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "useless":
                sys.exit(0)
            case "stay":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            case "again":
                pass
            case "open":
                open_browser("window")
            case key:
                TOKEN.write_text(key)
                sys.exit(0)


def answer(request: Any) -> dict[str, Any]:
    match request["method"]:
        case "initialize":
            capabilities = request["params"]["clientCapabilities"]
            TOKEN.with_name("capabilities").write_text(json.dumps(capabilities))
            return {"result": {"protocolVersion": 1, "authMethods": [METHODS[name] for name in sys.argv[1:]]}}
        case "authenticate" if request["params"] == {"methodId": "browser"}:
            if TOKEN.with_name("displayed").exists():
                open_browser("window")
            TOKEN.write_text("by browser")
            return {"result": {}}
        case "session/new" if TOKEN.exists():
            return {"result": {"sessionId": "s1"}}
        case "session/prompt":
            return {"result": {"stopReason": "end_turn"}}
        case _:
            return {"error": {"code": -32000, "message": "Authentication required"}}


if "login" in sys.argv:
    log_in()
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}) + "\n")
        sys.stdout.flush()
