"""``python -m tests.simulation.mutants``: does the simulation notice when thinkwell is broken?

Each mutant is one deliberate bug, put into a copy of the sources. The simulation has to fail on every one of
them; the exit status is 1 where one gets through.
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
COPIED: Final = ("acp", "thinkwell", "tests", "pyproject.toml")


class Mutant(NamedTuple):
    """A deliberate bug."""

    name: str
    file: str
    before: str
    after: str


_RUN: Final = "thinkwell/thinkwell/_run.py"
_LOG: Final = "thinkwell/thinkwell/_log.py"
_LINK: Final = "thinkwell/thinkwell/_link.py"
_WIRE: Final = "thinkwell/thinkwell/_wire_session.py"
_SHRINK: Final = "thinkwell/thinkwell/_shrink.py"
_CONNECTION: Final = "acp/thinkwell_acp/connection.py"
_STDIO: Final = "acp/thinkwell_acp/stdio.py"

MUTANTS: Final = (
    Mutant(
        "the last update of a large batch is dropped",
        _WIRE,
        "        self.mapper.extend(batch)\n",
        "        self.mapper.extend(batch[:-1] if len(batch) > 3 else batch)\n",
    ),
    Mutant(
        "updates of one session are delivered in reverse where they come with those of another",
        _LINK,
        "self._route(session_id, list(group))",
        "self._route(session_id, list(group)[::-1])",
    ),
    Mutant(
        "the answer to the prompt overtakes the updates before it",
        _CONNECTION,
        "        for message in messages:\n            if isinstance(message, list):",
        "        for message in sorted(messages, key=lambda m: isinstance(m, list)):\n"
        "            if isinstance(message, list):",
    ),
    Mutant(
        "updates before the session is there are lost",
        _LINK,
        "            self._early.extend(batch)\n",
        "            pass\n",
    ),
    Mutant(
        "a session goes on with the run that is over, so that late updates are its own",
        _RUN,
        "        if self._session.occupant is self:\n            self._session.occupant = None\n"
        "        self._cancel",
        "        self._cancel",
    ),
    Mutant(
        "a result is settled again by the next valid value",
        "thinkwell/thinkwell/_results.py",
        "        if self._outcome.done():\n",
        "        if self._outcome.value:\n"
        "            self._outcome.value[:] = [self._output.accept(arguments, wrapped=self._wrapped)]\n"
        "        if self._outcome.done():\n",
    ),
    Mutant(
        "a result that is there becomes an error",
        "thinkwell/thinkwell/_stream.py",
        "        if self.done():\n            return\n        # A traceback",
        "        # A traceback",
    ),
    Mutant(
        "the agent is told that a wrong value is accepted",
        "thinkwell/thinkwell/_results.py",
        'f"The result is invalid:{wrong}\\nCorrect it and call {RESULT_TOOL} again.", is_error=True',
        '"The result was accepted. You can end your turn."',
    ),
    Mutant(
        "cancelling does not tell the agent",
        _RUN,
        "            self._link.client.cancel(self._session.id)\n",
        "            pass\n",
    ),
    Mutant(
        "nothing bounds the wait for the end of a cancelled turn",
        _RUN,
        "with anyio.move_on_after(CANCEL_TIMEOUT) as self._patience:",
        "with anyio.CancelScope() as self._patience:",
    ),
    Mutant(
        "a limit of time is not kept",
        _RUN,
        "with anyio.move_on_after(self._options.timeout) as limit, self._scope:",
        "with anyio.move_on_after(None) as limit, self._scope:",
    ),
    Mutant(
        "turns of a session do not wait for each other",
        "thinkwell/thinkwell/_turns.py",
        "                await called.wait()\n",
        "                pass\n",
    ),
    Mutant(
        "readers are not woken at the end",
        _LOG,
        "        self._include = NOTHING\n        self.publish()\n",
        "        self._include = NOTHING\n",
    ),
    Mutant(
        "a reader sees an event again where others were merged",
        _LOG,
        "            reader.move(place)\n",
        "            reader.move(max(place - 1, 0))\n",
    ),
    Mutant(
        "text is merged across the place of a reader",
        _SHRINK,
        "                and last.seq not in places\n",
        "",
    ),
    Mutant(
        "dropped text is miscounted",
        _SHRINK,
        "            count = 1\n            dropped += 1\n",
        "            count = 2\n            dropped += 1\n",
    ),
    Mutant(
        "one line of noise ends the connection",
        _CONNECTION,
        "            case rpc.Malformed():  # pragma: no branch - the last of the union\n",
        "            case rpc.Malformed():\n                self.end(ConnectionBroken())\n",
    ),
    Mutant(
        "an answer with an unknown id ends the connection",
        "acp/thinkwell_acp/_peer.py",
        "                    return None\n                return rpc.Malformed(",
        "                    return None\n                raise KeyError(",
    ),
    Mutant(
        "who waits for an answer hears nothing of the connection's end",
        _CONNECTION,
        "            _tell(settle, copy.copy(reason))\n",
        "            pass\n",
    ),
    Mutant(
        "standard error is not read",
        _STDIO,
        "                    tasks.start_soon(self._drain_stderr)\n",
        "",
    ),
    Mutant(
        "an agent that ignores SIGTERM is not killed",
        _STDIO,
        '        if not await self._signal("kill", self._graces.kill):\n',
        "        if not self._exited.is_set():\n",
    ),
)


def mutate(mutant: Mutant, tree: Path) -> None:
    """Put the bug into a tree.

    Raises:
        ValueError: Its place is not there, or more than once: the sources have changed.
    """
    path = tree / mutant.file
    source = path.read_text("utf-8")
    if source.count(mutant.before) != 1:
        raise ValueError(
            f"{mutant.name}: its place in {mutant.file} is there {source.count(mutant.before)} times"
        )
    path.write_text(source.replace(mutant.before, mutant.after), "utf-8")


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
