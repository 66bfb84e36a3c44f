"""An agent: it writes one JSON object a line, and reads its prompts and answers line by line."""

import json
import sys
from pathlib import Path


def say(type_: str, **fields: object) -> None:
    print(json.dumps({"type": type_, **fields}), flush=True)


def ask(type_: str, **fields: object) -> object:
    say(type_, **fields)
    return json.loads(sys.stdin.readline() or sys.exit())["value"]


for _prompt in sys.stdin:  # one after another, until there are no more
    say("progress", message="Looking around", percent=10)
    title = ask("question", question="What is the list called?", options=["Contents", "Files"])
    written = ask("approval", description="Write CONTENTS.md", risk_level="low") is True
    if written:
        files = sorted(path.name for path in Path().glob("*.*"))
        lines = [f"# {title}", "", *(f"- {name}" for name in files)]
        Path("CONTENTS.md").write_text("\n".join(lines) + "\n", "utf-8")
    say("result", text="CONTENTS.md is written." if written else "Nothing is written.", written=written)
