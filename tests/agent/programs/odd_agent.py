"""An agent that behaves as its first argument says. It knows nothing of thinkwell."""

import json
import os
import sys

MODE = sys.argv[1]


def read():
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def write(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(request, result):
    write({"id": request["id"], "result": result})


def fail(request, code, message):
    write({"id": request["id"], "error": {"code": code, "message": message}})


def hello(version=1):
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


def say(session, text):
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    write({"method": "session/update", "params": {"sessionId": session, "update": update}})


def serve():
    """Answer every prompt with some of what this process is."""
    while True:
        request = read()
        if request.get("method") == "session/new":
            answer(request, {"sessionId": "s1"})
        elif request.get("method") == "session/prompt":
            facts = {"pid": os.getpid(), "cwd": os.getcwd(), "env": dict(os.environ), "args": sys.argv[2:]}
            say("s1", json.dumps(facts))
            answer(request, {"stopReason": "end_turn"})


print("odd agent in mode", MODE, file=sys.stderr, flush=True)
match MODE:
    case "exit":
        print("no key was found", file=sys.stderr, flush=True)
        sys.exit(3)
    case "killed":
        os.kill(os.getpid(), 9)
    case "garbage":
        print("Usage: odd [--acp]", flush=True)
        sys.exit(2)
    case "garbage_and_wait":
        print("Welcome to odd! What can I do for you?", flush=True)
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
        print("out of memory", file=sys.stderr, flush=True)
        sys.exit(70)
    case "works":
        hello()
        serve()
