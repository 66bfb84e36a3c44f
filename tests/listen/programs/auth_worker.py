"""A program that speaks lines: it moves auth to JWT, and asks on the way. It knows nothing of thinkwell."""

import json
import sys


def say(type_: str, **fields: object) -> None:
    sys.stdout.write(json.dumps({"type": type_, **fields}) + "\n")
    sys.stdout.flush()


def ask(type_: str, **fields: object) -> object:
    say(type_, **fields)
    answer = json.loads(sys.stdin.readline())
    assert answer["in_reply_to"] == type_
    return answer["value"]


for _prompt in sys.stdin:
    say("progress", message="Reading 12 files", stage="read", percent=10)
    algorithm = ask("question", question="RS256 or HS256?", options=["RS256", "HS256"], context="JWT signing")
    minutes = ask("question", question="How many minutes is a token valid?")
    deleted = ask("approval", description="Delete auth/session.py", risk_level="high")
    say("progress", message="Writing tests", stage="write", percent=60)
    first = ask("question", question="Which test comes first?")
    tested = ask("approval", description="Run make test", risk_level="low")
    say("partial", text="Auth is moved ")
    say("partial", text="to JWT.")
    told = [algorithm, minutes, deleted, first, tested]
    say("log", message=json.dumps(told), level="debug")
    say("result", summary="Auth is moved to JWT.", files=["auth/token.py"])
