"""Plays a coding agent, so that it asks the same each time: it uses NDJSON, and changes nothing.

It reports its progress, asks three questions and for two approvals, and returns the decisions. Any agent can
take its place: ``open_agent("claude", permissions="ask")``.
"""

import json
import sys

QUESTIONS = (
    ("Which algorithm signs the tokens?", ["RS256", "HS256"]),
    ("Security: how long is a token valid?", ["15 minutes", "30 days"]),
    ("Which tests come first?", ["expired tokens", "the happy path"]),
)
APPROVALS = (("Run make test", "low"), ("Delete auth/session.py", "high"))


def say(type_: str, **fields: object) -> None:
    print(json.dumps({"type": type_, **fields}), flush=True)


def ask(type_: str, **fields: object) -> object:
    say(type_, **fields)
    return json.loads(sys.stdin.readline() or sys.exit())["value"]


for prompt in sys.stdin:
    task = prompt.split(":")[0].strip().rstrip(".")
    say("progress", message=task, stage="plan", percent=0)
    decisions = {question: ask("question", question=question, options=o) for question, o in QUESTIONS}
    say("progress", message="Doing it", stage="work", percent=50)
    done = [what for what, risk in APPROVALS if ask("approval", description=what, risk_level=risk) is True]
    say("result", text=f"{task}: {', '.join(done) or 'nothing'} done.", decisions=decisions, done=done)
