"""An agent with a family: processes that hold its standard output open and do not mind SIGTERM.

Arguments: its manner at its end, which is ``polite`` (leaves at end of input), ``late`` (leaves at SIGTERM),
``deaf`` (does neither) or ``dies`` (leaves in mid turn, and its family stays); and whether it is ``told``
of cancellations or ``stubborn``. Needs nothing but the standard library, so that it starts fast.
"""

import json
import os
import signal
import sys
import time


def idle() -> None:
    while True:
        time.sleep(60)


def note() -> None:
    """Leave a file that says whose group this process belongs to."""
    path = os.path.join(os.environ["FAMILY_FOLDER"], str(os.getpid()))  # noqa: PTH118 - starts faster
    with open(path, "w") as file:  # noqa: PTH123
        file.write(str(os.getpgid(0)))


def have_child() -> None:
    if os.fork():
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    note()
    if os.fork():  # its parent goes on without it
        idle()
    note()
    idle()


def send(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def work(manner: str) -> None:
    have_child()
    content = {"type": "text", "text": "working"}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    send(method="session/update", params={"sessionId": "s", "update": update})
    if manner == "dies":
        have_child()
        os._exit(3)


def main(manner: str, hearing: str) -> None:
    if manner == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note()
    have_child()
    prompt = None
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        if method == "initialize":
            send(id=request["id"], result={"protocolVersion": 1})
        elif method == "session/new":
            send(id=request["id"], result={"sessionId": "s"})
        elif method == "session/prompt":
            prompt = request["id"]
            work(manner)
        elif method == "session/cancel" and hearing == "told":
            have_child()
            send(id=prompt, result={"stopReason": "cancelled"})
    if manner != "polite":
        idle()


main(*sys.argv[1:])
