"""A host that uses only the standard library, and drives any agent through the middleware.

    python examples/middleware/plain_host.py            # an agent that plays cleaner.json
    python examples/middleware/plain_host.py claude     # or any other

It only writes lines and reads lines, so it can be in any language.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

CLEANER = shlex.join(
    [sys.executable, "-m", "thinkwell.testing", str(Path(__file__).with_name("cleaner.json"))]
)
"""An agent that speaks ACP and plays a script."""


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return the answer, if the message needs one."""
    match message["type"]:
        case "progress":
            print(f"[{message['stage']}] {message['message']}")
        case "question":
            choice = (message.get("options") or ["as you like"])[0]
            print(f"{message['question']} {choice}.")
            return {"in_reply_to": "question", "value": choice}
        case "approval":
            harmless = message.get("command") == "rm -rf build"
            print(f"May I run {message.get('command')}?", "Yes." if harmless else "No.")
            return {"in_reply_to": "approval", "value": harmless}
        case "log" if message.get("level") == "error" and "id" in message:
            print(message["message"], file=sys.stderr)  # the answer did not fit, so there is none
            return {"in_reply_to": "question", "value": None}
        case "result":
            print(message["text"])
        case "error":
            print(f"It did not work: {message['message']}")
        case _:
            pass  # partial, log, and future types
    return None


def main() -> None:
    agent = sys.argv[1:] or ["--command", CLEANER]
    command = [sys.executable, "-m", "thinkwell", "middleware", *agent]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as middleware:
        assert middleware.stdin is not None
        assert middleware.stdout is not None
        print("Clean up this project.", file=middleware.stdin, flush=True)
        for line in middleware.stdout:
            message = json.loads(line)
            response = answer(message)
            if response is not None:
                response = {"type": "response", **response, "id": message["id"]}
                print(json.dumps(response), file=middleware.stdin, flush=True)
            if message["type"] in ("result", "error"):
                middleware.stdin.close()  # no more prompts


if __name__ == "__main__":
    main()
