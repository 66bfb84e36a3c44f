"""The task and the check of `plan.toml`. Workers find them by their names."""

from thinkwell import ThinkBuilder, think
from thinkwell.trials import Candidate, Verdict


def question(given: dict[str, str]) -> ThinkBuilder[int]:
    """Return the task for an input."""
    return think(int).text(f"How many {given['unit']} have the files {given['pattern']} here?")


def is_right(candidate: Candidate) -> Verdict:
    """Say whether the answer is at least possible."""
    answer = candidate.result
    if not isinstance(answer, int):
        return Verdict(passed=False, detail="that is no number")
    return Verdict(passed=answer >= 0, score=1.0 if answer else 0.5, detail=f"the answer is {answer}")
