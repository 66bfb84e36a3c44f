"""``python -m tests.simulation.mutants``: does the simulation notice when thinkwell is broken?

Each mutant is one deliberate bug, put into a copy of the sources. The simulation, or else the tests that it
names, have to fail on every one of them; the exit status is 1 where one gets through.
"""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ("acp", "thinkwell")
COPIED: Final = (*SOURCES, "tests", "pyproject.toml")


class Mutant(NamedTuple):
    """A deliberate bug: a text that the sources have in one place, and what stands there instead."""

    name: str
    before: str
    after: str
    tests: str = ""
    """The tests of `WORKTREES` that have to find it, as for pytest's ``-k``; by default the simulation."""


WORKTREES: Final = "tests/trials"

MUTANTS: Final = (
    Mutant(
        "requests begin in the order of their tasks",
        "await self._serve(self._waiting.popleft())",
        "await self._serve(self._waiting.pop())",
    ),
    Mutant(
        "a byte order mark is a part of its line",
        "    line = line.removeprefix(BOM_UTF8)\n",
        "",
    ),
    Mutant(
        "an agent may be used in any thread",
        "if self._loop_here() is self._home.loop and not self.forked:",
        "if not self.forked:",
    ),
    Mutant(
        "the last update of a large batch is dropped",
        "        self.mapper.extend(batch)\n",
        "        self.mapper.extend(batch[:-1] if len(batch) > 3 else batch)\n",
    ),
    Mutant(
        "updates of one session are delivered in reverse where they come with those of another",
        "self._route(session_id, group)",
        "self._route(session_id, group[::-1])",
    ),
    Mutant(
        "the answer to the prompt overtakes the updates before it",
        "        for message in messages:\n            if isinstance(message, list):",
        "        for message in sorted(messages, key=lambda m: isinstance(m, list)):\n"
        "            if isinstance(message, list):",
    ),
    Mutant(
        "updates before the session is there are lost",
        "            self._early.extend(batch)\n",
        "            pass\n",
    ),
    Mutant(
        "a session goes on with the run that is over, so that late updates are its own",
        "        if self.occupant is record:\n            self.occupant = None\n",
        "        pass\n",
    ),
    Mutant(
        "a result is settled again by the next valid value",
        "        if self._outcome.done():\n",
        "        if self._outcome.value:\n"
        "            self._outcome.value[:] = [self._output.accept(arguments, wrapped=self._wrapped)]\n"
        "        if self._outcome.done():\n",
    ),
    Mutant(
        "a result that is there becomes an error",
        "        if self.done():\n            return\n        # A traceback",
        "        # A traceback",
    ),
    Mutant(
        "the agent is told that a wrong value is accepted",
        'f"The result is invalid:{wrong}\\nCorrect it and call {RESULT_TOOL} again.", is_error=True',
        '"The result was accepted. You can end your turn."',
    ),
    Mutant(
        "cancelling does not tell the agent",
        "            self._client.cancel(self._session_id)\n",
        "            pass\n",
    ),
    Mutant(
        "nothing bounds the wait for the end of a cancelled turn",
        "with anyio.move_on_after(self._patience.seconds) as self._waiting:",
        "with anyio.CancelScope() as self._waiting:",
    ),
    Mutant(
        "a limit of time is not kept",
        "with anyio.move_on_after(self._plan.options.timeout) as limit, self._scope:",
        "with anyio.move_on_after(None) as limit, self._scope:",
    ),
    Mutant(
        "turns of a session do not wait for each other",
        "                await called.wait()\n",
        "                pass\n",
    ),
    Mutant(
        "readers are not woken at the end",
        "        self.plain = None\n        self.publish()\n",
        "        self.plain = None\n",
    ),
    Mutant(
        "a reader sees an event again where others were merged",
        "            reader.move(place)\n",
        "            reader.move(max(place - 1, 0))\n",
    ),
    Mutant(
        "text is merged across the place of a reader",
        "                and last.seq not in places\n",
        "",
    ),
    Mutant(
        "dropped text is miscounted",
        "            count = 1\n            dropped += 1\n",
        "            count = 2\n            dropped += 1\n",
    ),
    Mutant(
        "one line of noise ends the connection",
        "            case rpc.Malformed():  # pragma: no branch - the last of the union\n",
        "            case rpc.Malformed():\n                self.end(ConnectionBroken())\n",
    ),
    Mutant(
        "an answer with an unknown id ends the connection",
        "                    return None\n                return rpc.Malformed(",
        "                    return None\n                raise KeyError(",
    ),
    Mutant(
        "who waits for an answer hears nothing of the connection's end",
        "            _tell(settle, copy.copy(reason))\n",
        "            pass\n",
    ),
    Mutant(
        "standard error is not read",
        "                    tasks.start_soon(self._drain_stderr)\n",
        "",
    ),
    Mutant(
        "a run that was steered ends with the answer to its prompt",
        "            self._plan.options.background_wait and record.after_work.expected and",
        "            not self._plan.options.background_wait and record.after_work.expected and",
    ),
    Mutant(
        "the end of a prompt's work ends a command in the background",
        "        if origin != HUMAN and self._tools:\n",
        "        if self._tools:\n",
    ),
    Mutant(
        "what an agent refuses is taken for taken",
        "    return response.reason or response.outcome\n",
        "    return None\n",
    ),
    Mutant(
        "an agent that ignores SIGTERM is not killed",
        '    signal("kill")  # also kills the rest of its group\n'
        "    return ending if await set_within(exited, graces.kill) else None\n",
        "    return ending if exited.is_set() else None\n",
    ),
    Mutant(
        "changes that are not staged do not come along to a worktree",
        '            self._own("add", "--update")\n            now',
        "            now",
        "dirty or taken_along",
    ),
    Mutant(
        "a worktree uses the index of the user's repository",
        'self._index = self._store / "index"',
        'self._index = self._common / "index"',
        "taken_along or own",
    ),
    Mutant(
        "git may fetch for a worktree",
        '"GIT_ALLOW_PROTOCOL": "none",',
        "",
        "nothing_is_fetched",
    ),
    Mutant(
        "git still lists a worktree that was removed",
        "                _remove_tree(known.parent)\n",
        "                pass\n",
        "gone_after or dead_processes",
    ),
    Mutant(
        "what dead processes have left stays",
        "        _marks.sweep(self._common)\n",
        "",
        "dead_processes",
    ),
    Mutant(
        "another program's worktree is removed, too",
        ".is_relative_to(folder):",
        ".is_relative_to(folder.parent):",
        "dead_processes",
    ),
    Mutant(
        "files that git does not track are copied unasked",
        "            if taken.untracked or taken.ignored:\n",
        "            if True:\n",
        "by_choice",
    ),
    Mutant(
        "a patch has no binary files",
        '("--patch", "--binary", "--full-index"',
        '("--patch", "--full-index"',
        "can_be_applied",
    ),
    Mutant(
        "changes that do not fit are half applied",
        '*words, "apply", "--whitespace=nowarn"',
        '*words, "apply", "--reject", "--whitespace=nowarn"',
        "do_not_fit",
    ),
)


def place(mutant: Mutant, tree: Path) -> Path:
    """Return the file that a bug is put into.

    Raises:
        ValueError: Its place is not there, or more than once: the sources have changed.
    """
    files = (file for folder in SOURCES for file in sorted((tree / folder).rglob("*.py")))
    found = [file for file in files for _ in range(file.read_text("utf-8").count(mutant.before))]
    if len(found) != 1:
        raise ValueError(f"{mutant.name}: its place is there {len(found)} times: {[*map(str, found)]}")
    return found[0]


def mutate(mutant: Mutant, tree: Path) -> None:
    """Put the bug into a tree.

    Raises:
        ValueError: Its place is not there, or more than once.
    """
    path = place(mutant, tree)
    path.write_text(path.read_text("utf-8").replace(mutant.before, mutant.after), "utf-8")


def survives(mutant: Mutant, seeds: int) -> str | None:
    """Return what the simulation says where it does not notice the bug."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
            else:
                shutil.copy(source, tree / name)
        mutate(mutant, tree)
        command = [sys.executable, "-m", "tests.simulation", "--seeds", str(seeds), "--processes", "24"]
        if mutant.tests:
            command = [sys.executable, "-m", "pytest", "-q", "-x", WORKTREES, "-k", mutant.tests]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([f"{tree / 'acp'}", f"{tree / 'thinkwell'}"]),
        }
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=900
        )
        return None if done.returncode else done.stdout


def main() -> int:
    """Try all, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=150, help="how many worlds each is tried in")
    parser.add_argument("names", nargs="*", help="those whose names contain one of these; all by default")
    options = parser.parse_args()
    chosen = [
        mutant for mutant in MUTANTS if not options.names or any(n in mutant.name for n in options.names)
    ]
    missed = 0
    for mutant in chosen:
        began = time.monotonic()
        said = survives(mutant, options.seeds)
        missed += said is not None
        verdict = "caught" if said is None else "NOT CAUGHT"
        print(f"{verdict:10} {mutant.name} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
