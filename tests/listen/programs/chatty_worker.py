"""A program that speaks lines and says something of every type, also a secret of its environment."""

import json
import os
import sys


def say(type_: str, **fields: object) -> None:
    sys.stdout.write(json.dumps({"type": type_, **fields}, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def ask(type_: str, **fields: object) -> object:
    say(type_, **fields)
    return json.loads(sys.stdin.readline())["value"]


secret = os.environ.get("MY_TOKEN", "nothing")
hidden: dict[str, object] = {"token": secret, "api_key": "sk-not-to-be-seen-1234567890"}
if secret == "nothing":
    hidden = {}
for prompt in sys.stdin:
    sys.stderr.write(f"stderr: {secret}\n")
    sys.stderr.flush()
    say("progress", message="Looking around", stage="look", percent=10)
    say("progress", message=f"Seen {secret}", stage="look", percent=50)
    say("log", level="warn", message=f"A remark: {secret}")
    say("log", level="debug", message="A detail")
    title = ask("question", question="What is the list called?", options=["Contents", "Files"], id=[1, "x"])
    name = ask("question", question=f"And the file, {secret}?", context="It is new.")
    written = ask("approval", description="Write the list", risk_level="low", **hidden)
    hint = ask("hint", about={"said": secret, "depth": [1, 2.5, None, True]})
    say("cost_report", usd=0.25, **hidden)
    for sign in f"Said {secret}. ":
        say("partial", text=sign)
    if "fail" in prompt:
        say("error", message=f"No disk for {secret}", code=7, disk="/dev/sda")
    else:
        say("result", text=f"{title} {name} {written} {hint}", files=3, **hidden)
