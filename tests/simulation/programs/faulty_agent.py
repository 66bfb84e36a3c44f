"""An agent that goes wrong at a step.

Arguments: what goes wrong, and where. ``exit``: it ends with 7. ``kill``: it kills itself. ``close``: it
closes its output and lives on. ``flood``: it writes 3 MB to standard error, and goes on. ``deaf``: it does
not mind SIGTERM, nor does its grandchild, which holds its output open; and it hangs. The steps: 0 is
``initialize``, 1 ``session/new``, 2 and 3 are in the turn, 4 is the end of its input. Needs nothing but the
standard library, so that it starts fast.
"""

import json
import os
import signal
import sys
import time

FLOOD = 3 * 1024 * 1024


def idle() -> None:
    while True:
        time.sleep(60)


def send(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def go_wrong(how: str) -> None:
    sys.stderr.write("last words\n")
    sys.stderr.flush()
    if how == "exit":
        os._exit(7)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "close":
        os.close(1)
        idle()
    if how == "flood":
        for _ in range(FLOOD // 1024):
            sys.stderr.write("x" * 1023 + "\n")
        sys.stderr.write("last words\n")
        sys.stderr.flush()
    if how == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if not os.fork():
            os.fork()
            idle()
        idle()


def main(how: str, step: int) -> None:
    def reached(place: int) -> None:
        if place == step:
            go_wrong(how)

    for line in sys.stdin:
        message = json.loads(line)
        method, id_ = message.get("method"), message.get("id")
        if method == "initialize":
            reached(0)
            send(id=id_, result={"protocolVersion": 1})
        elif method == "session/new":
            reached(1)
            send(id=id_, result={"sessionId": "s"})
        elif method == "session/prompt":
            reached(2)
            content = {"type": "text", "text": "said"}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
            send(method="session/update", params={"sessionId": "s", "update": update})
            reached(3)
            send(id=id_, result={"stopReason": "end_turn"})
    reached(4)


main(sys.argv[1], int(sys.argv[2]))
