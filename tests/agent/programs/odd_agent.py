"""An agent that behaves as its first argument says. It knows nothing of thinkwell."""

import json
import os
import sys
from pathlib import Path
from typing import Any

MODE = sys.argv[1]


def log(*words: str) -> None:
    sys.stderr.write(" ".join(words) + "\n")


def show(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def read() -> Any:
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(request: Any, result: dict[str, Any]) -> None:
    write({"id": request["id"], "result": result})


def fail(request: Any, code: int, message: str) -> None:
    write({"id": request["id"], "error": {"code": code, "message": message}})


def hello(version: int = 1) -> None:
    answer(
        read(),
        {
            "protocolVersion": version,
            "agentInfo": {"name": "odd", "version": "1"},
            "authMethods": [
                {"id": "browser", "name": "Browser", "description": "opens one"},
                {"id": "console", "name": "Console", "type": "terminal", "args": ["login"]},
            ],
        },
    )


def say(session: str, text: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    write({"method": "session/update", "params": {"sessionId": session, "update": update}})


def serve() -> None:
    """Answer every prompt with some of what this process is."""
    while True:
        request = read()
        if request.get("method") == "session/new":
            answer(request, {"sessionId": "s1"})
        elif request.get("method") == "session/prompt":
            facts = {
                "pid": os.getpid(),
                "cwd": str(Path.cwd()),
                "env": dict(os.environ),
                "args": sys.argv[2:],
            }
            say("s1", json.dumps(facts))
            answer(request, {"stopReason": "end_turn"})


log("odd agent in mode", MODE)
match MODE:
    case "exit":
        log("no key was found")
        sys.exit(3)
    case "killed":
        os.kill(os.getpid(), 9)
    case "garbage":
        show("Usage: odd [--acp]")
        sys.exit(2)
    case "garbage_and_wait":
        show("Welcome to odd! What can I do for you?")
        sys.stdin.buffer.read()  # until it is told to end
    case "silent":
        sys.stdin.buffer.read()  # until it is told to end
    case "closes":
        os.close(1)
        sys.stdin.buffer.read()  # until it is told to end
    case "version":
        hello(7)
        sys.stdin.buffer.read()  # until it is told to end
    case "refuses":
        fail(read(), -32600, "This is not for you")
        sys.stdin.buffer.read()  # until it is told to end
    case "nonsense":
        answer(read(), {"protocolVersion": "one"})
        sys.stdin.buffer.read()  # until it is told to end
    case "login_at_once":
        fail(read(), -32000, "Log in")
        sys.stdin.buffer.read()  # until it is told to end
    case "login":
        hello()
        while True:
            request = read()
            if request.get("method") == "authenticate":
                assert request["params"] == {"methodId": "browser"}
                answer(request, {})
                serve()
            fail(request, -32000, "Authentication required")
    case "dies":
        hello()
        answer(read(), {"sessionId": "s1"})
        read()
        say("s1", "I am")
        log("out of memory")
        sys.exit(70)
    case _:
        hello()
        serve()
