"""A plugin of pytest that records what each case costs, and which case a process belongs to.

``_mutation_probe.hit`` (written into a copy of the sources) asks the environment of its process for the
case, and a file named after the first of its ancestors that has one where the environment was not passed
on.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

FOLDER: Final = Path(os.environ.get("MUTATION_RECORDS", "."))

PROBE: Final = '''
"""Record the cases that come by a mutated place."""
import os
from pathlib import Path

FOLDER = Path({folder!r})
_seen = set()


def _case():
    name = os.environ.get("PYTEST_CURRENT_TEST")
    if name is None:
        process = os.getpid()
        while process > 1 and name is None:
            path = FOLDER / f"case-{{process}}"
            if path.exists():
                name = path.read_text()
            process = int(Path(f"/proc/{{process}}/stat").read_text().rpartition(")")[2].split()[1])
    return (name or "?").rpartition(" (")[0] or name or "?"


def hit(mutant):
    key = mutant, os.environ.get("PYTEST_CURRENT_TEST")
    if key not in _seen:
        _seen.add(key)
        try:
            with open(FOLDER / f"hits-{{os.getpid()}}", "a") as file:
                file.write(f"{{mutant}}\\t{{_case()}}\\n")
        except OSError:
            pass
    return False
'''


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note the case that is on, and what it has cost at its end."""
    (FOLDER / f"case-{os.getpid()}").write_text(item.nodeid, encoding="utf-8", errors="backslashreplace")
    before, begun = os.times(), time.monotonic()
    result = yield
    after = os.times()
    cost = {
        "id": item.nodeid,
        "wall": round(time.monotonic() - begun, 4),
        "cpu": round(after.user - before.user + after.system - before.system, 3),
        "children": round(
            after.children_user - before.children_user + after.children_system - before.children_system, 3
        ),
    }
    with (FOLDER / f"costs-{os.getpid()}.jsonl").open(
        "a", encoding="utf-8", errors="backslashreplace"
    ) as file:
        file.write(json.dumps(cost) + "\n")
    return result
