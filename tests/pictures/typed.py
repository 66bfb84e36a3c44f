"""A chat in a terminal: the real command, an agent that plays a script, and keys that are typed."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cli.terminal import ROWS, in_terminal
from progress.terminal import Terminal

from pictures.terminal_svg import lines_of, terminal_svg
from thinkwell.testing import script

if TYPE_CHECKING:
    from thinkwell.testing import Script

COLUMNS: Final = 90

FOLDER: Final = "/home/ada/market"
"""Where the chat is held, as the picture has it."""

TIME: Final = re.compile(r"\b\d\.\ds\b")
"""What takes a moment takes another one each time."""

TURNS: Final = ("Which tests are slow?", "Can they share something?")
DRAFT: Final = "Then make it a fixture of the ses"


def answers(folder: Path) -> Script:
    """Return what the agent does."""
    return (
        script.uses("Read conftest.py", kind="read", path=folder / "tests" / "conftest.py", text="…")
        .uses("pytest", kind="execute", input={"command": "pytest --durations 3"}, text="24 passed")
        .says("Two of the 24 tests take longer than a second:\n\n")
        .says("- `test_migrations` builds the database anew: 2.1 seconds\n")
        .says("- `test_search` fills it with 10,000 orders: 1.4 seconds\n")
        .stops()
        .says("Yes: both need the **database** only once.")
    )


def chat() -> str:
    """Return a chat after two turns, while the third is typed."""
    folder = Path(tempfile.mkdtemp(dir="/tmp")).resolve()
    try:
        return terminal_svg(_held(folder), "thinkwell chat --agent my-agent")
    finally:
        shutil.rmtree(folder)


def _held(folder: Path) -> Terminal:
    answers(folder).save(folder / "script.json")
    command = [sys.executable, "-m", "thinkwell.testing", str(folder / "script.json")]
    profile = f"[tool.thinkwell.agents.my-agent.program]\ncommand = {json.dumps(command)}\n"
    (folder / "pyproject.toml").write_text(profile, "utf-8")
    homes = dict.fromkeys(("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"), str(folder))
    environment = {**homes, "COLORTERM": ""}
    arguments = ("chat", "--agent", "my-agent", "--no-history")
    with in_terminal(*arguments, columns=COLUMNS, cwd=folder, env=environment) as shown:
        for number, turn in enumerate((*TURNS, DRAFT)):
            shown.wait_until(partial(_is_ready, number), f"prompt {number}")
            shown.type(turn.encode())
            shown.wait_until(partial(_shows, f"> {turn}"), turn)
            if turn != DRAFT:
                shown.type(b"\r")
        return _tidied(_screen(shown.shown), str(folder))


def _screen(written: bytes) -> Terminal:
    """Return a terminal to which this was written."""
    terminal = Terminal(COLUMNS, ROWS)
    terminal.write(written.decode(errors="ignore"))
    return terminal


def _text(terminal: Terminal) -> str:
    return "\n".join(terminal.everything)


def _shows(text: str, written: bytes) -> bool:
    return text in _text(_screen(written))


def _is_ready(turns: int, written: bytes) -> bool:
    """Whether so many turns are over, and the next one can be typed."""
    *over, last = _text(_screen(written)).split("done in")
    return len(over) == turns and re.search(r"^>", last, re.MULTILINE) is not None


def _tidied(terminal: Terminal, folder: str) -> Terminal:
    """Put what is the same each time into the place of what is not."""
    for line in lines_of(terminal):
        row = "".join(line[x].data for x in range(COLUMNS))
        for x, char in enumerate(TIME.sub("0.2s", row.replace(folder, FOLDER.ljust(len(folder))))):
            line[x] = line[x]._replace(data=char)
    return terminal
