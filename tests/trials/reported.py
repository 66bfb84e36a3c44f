"""Trials that have ended, made up."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import msgspec

from thinkwell.trials import Changes, Spent, Trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.trials import Status

PATCH = """\
diff --git a/src/parser.py b/src/parser.py
index 1111111..2222222 100644
--- a/src/parser.py
+++ b/src/parser.py
@@ -10,5 +10,7 @@ class Parser:
     def parse(self, text):
-        return text.split(",")
+        if not text:
+            return []
+        return [part.strip() for part in text.split(",")]

     def close(self):
         pass
diff --git a/tests/test_parser.py b/tests/test_parser.py
new file mode 100644
--- /dev/null
+++ b/tests/test_parser.py
@@ -0,0 +1,2 @@
+def test_empty():
+    assert Parser().parse("") == []
"""


def changes(patch: str = PATCH, *, files: int = 2, insertions: int = 5, deletions: int = 1) -> Changes:
    """Return changes, as a store has them."""
    stat = {"files": files, "insertions": insertions, "deletions": deletions}
    part = {"root": "/api", "place": "", "commit": "1" * 40, "before": "", "diff": patch, "stat": stat}
    return msgspec.convert({"repository": "/api", "_parts": [part]}, Changes)


def many_trials(
    inputs: int = 8, agents: Sequence[str] = ("claude", "codex", "opencode"), repeat: int = 5, **more: Any
) -> list[Trial]:
    """Return trials of each agent on each input; the last agent does not say what it costs."""
    chance = random.Random(3)
    trials = list[Trial]()
    for number in range(inputs):
        for skill, agent in enumerate(agents):
            for n in range(1, repeat + 1):
                drawn = chance.random() + skill / 5
                status: Status = "passed" if drawn < 0.8 else "failed" if drawn < 1.25 else "error"
                fields = more | _come_to(status, chance)
                spent = Spent(
                    tool_calls=chance.randint(3, 40),
                    tokens=chance.randint(9_000, 90_000),
                    cost=None if agent == agents[-1] else chance.lognormvariate(-2, 0.6),
                )
                seconds = chance.lognormvariate(4, 0.5)
                key = f"issue-{7 * number + 3}"
                trials.append(
                    Trial(
                        input=key,
                        agent=agent,
                        repeat=n,
                        status=status,
                        spent=spent,
                        seconds=seconds,
                        **fields,
                    )
                )
    return trials


def _come_to(status: Status, chance: random.Random) -> dict[str, Any]:
    if status == "error":
        return {"error": "The agent has exited with code 1.", "attempts": 3}
    result = {"summary": "Empty fields are kept.", "files": ["src/parser.py", "tests/test_parser.py"]}
    told = "12 passed in 0.31s" if status == "passed" else "[exit code 1]\n1 failed, 11 passed"
    score = round(chance.random(), 2) if status == "passed" else None
    return {"result": result, "detail": told, "score": score, "changes": changes(), "attempts": 1}
