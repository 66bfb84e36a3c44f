"""An agent of the standard library only, whose turns are `die` or `family`, as its first argument says."""

import json
import subprocess
import sys


def send(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send({"method": "session/update", "params": {"sessionId": "s", "update": update}})


def die() -> None:
    say("before the end")
    sys.stderr.write("out of paper\n")
    sys.exit(7)


def family() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    say(str(child.pid))


def main() -> None:
    prompt: dict[str, object] = {}
    for line in sys.stdin:
        request = json.loads(line)
        match request.get("method"):
            case "initialize":
                send({"id": request["id"], "result": {"protocolVersion": 1}})
            case "session/new":
                send({"id": request["id"], "result": {"sessionId": "s"}})
            case "session/prompt":
                prompt = request
                {"die": die, "family": family}[sys.argv[1]]()
            case _:  # session/cancel
                send({"id": prompt["id"], "result": {"stopReason": "cancelled"}})


main()
