"""The doctor's findings, as text in columns, safe for any text of an agent."""

from __future__ import annotations

import shlex
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from thinkwell._display.cells import cells, cut
from thinkwell.doctor._check import is_of_servers, is_open

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TextIO

    from thinkwell.agents import Quirk
    from thinkwell.doctor._check import Check

ROOM: Final = 100
"""Columns of a table, if the width is unknown."""

NAME: Final = 16
"""Columns of a check's name: enough for all but those with a name of the caller."""

FOLDED: Final = 3
"""Fewest checks in a row, skipped for one reason, that become one line."""

MARKS: Final = {"failed": "FAILED"}
"""How a status is shown, if not by its name."""

INDENT: Final = 7 + 2 + NAME + 2 + 8 + 2
"""The column where the details begin: after mark, name and time."""

HINT: Final = 7 + 2
"""The column where a hint begins: below the name."""

NARROWEST: Final = 20
"""Fewest columns of the details."""

LONGEST: Final = 200
"""Most columns of a word. A path that is longer than a line is easier to copy whole."""

LINES: Final = 12
"""Most lines of one check's details: an agent may send any amount."""

STDERR_LINES: Final = 8
"""Lines of standard error that are shown, the last ones."""


class Table:
    """Writes the checks of one agent as they come.

    Args:
        out: Where to write. In a terminal it also shows which check follows.
        width: Returns the number of columns.
        order: The checks that will come, by name.
    """

    def __init__(self, out: TextIO, width: Callable[[], int], order: Sequence[str] = ()) -> None:
        self._out = out
        self._width = width
        self._next = dict(pairwise(order)) if out.isatty() else {}
        self._waiting = ""
        self._skipped: list[Check] = []
        """Not shown yet: more may be skipped for the same reason."""

    def begin(self, agent: str, title: str, command: Iterable[str]) -> None:
        """Write the lines above the checks."""
        name = f"{title} ({agent})" if title else agent
        line = shlex.join(command)
        self._write([plain(name), *([plain(line)] if line else []), ""])

    def check(self, check: Check) -> None:
        """Write a check; those that are skipped for one reason as one."""
        if self._skipped and (check.status, check.detail) != ("skipped", self._skipped[0].detail):
            self._write_skipped()
        if check.status == "skipped":
            self._skipped.append(check)
        else:
            self._write(rows(check, self._width()))
        if check.name in self._next:
            self._write([])
            self._waiting = f"…        {self._next[check.name]}"
            self._out.write(self._waiting)
            self._out.flush()

    def end(self, agent: str, checks: Sequence[Check], known: Sequence[Quirk]) -> None:
        """Write the lines below the checks."""
        self._write_skipped()
        self._write([*quirks(known, self._width()), "", verdict(agent, checks)])

    def _write_skipped(self) -> None:
        skipped, self._skipped = self._skipped, []
        if len(skipped) >= FOLDED:
            skipped = [replace(skipped[0], name=f"{len(skipped)} more checks")]
        for check in skipped:
            self._write(rows(check, self._width()))

    def _write(self, lines: Iterable[str]) -> None:
        if self._waiting:
            self._out.write("\r" + " " * len(self._waiting) + "\r")
            self._waiting = ""
        self._out.write("".join(f"{line}\n" for line in lines))
        self._out.flush()


def rows(check: Check, width: int) -> list[str]:
    """Return the lines of one check."""
    time = "" if check.seconds is None else f"{check.seconds:.2f} s"
    name = plain(check.name)
    above, mark = [], MARKS.get(check.status, check.status)
    if cells(name) > NAME:
        above, name = [f"{mark:7}  {name}"], ""
    head = f"{'' if above else mark:7}  {name}{' ' * (NAME - cells(name))}  {time:>8}  "
    first, *rest = _wrapped(check.detail, width - INDENT) or [""]
    below = [
        *_hint(check.hint, width - HINT),
        *(f"| {plain(line)}" for line in check.stderr.splitlines()[-STDERR_LINES:]),
    ]
    return [
        *above,
        (head + first).rstrip(),
        *(" " * INDENT + line for line in rest),
        *(" " * HINT + line for line in below),
    ]


def quirks(known: Sequence[Quirk], width: int) -> list[str]:
    """Return the agent's known peculiarities."""
    if not known:
        return []
    lines = ["", "Known of it:"]
    for quirk in known:
        text = f"{quirk.about} (seen with {quirk.version}, {quirk.seen.isoformat()})"
        first, *rest = _wrapped(text, width - 2)  # there is always something: the version and the date
        lines += [f"- {first}", *(f"  {line}" for line in rest)]
    return lines


def verdict(agent: str, checks: Sequence[Check]) -> str:
    """Return the last line."""
    failed = [check.name for check in checks if check.status == "failed"]
    servers = [name for name in failed if is_of_servers(name)]
    warned = sum(check.status == "warning" for check in checks)
    others = [name for name in failed if name not in servers]
    unknown = is_open(checks)
    text = f"{plain(agent)} {_agent_verdict(others, warned, unknown=unknown)}"
    return (
        f"{text} Not all of your MCP servers work with it: {plain(', '.join(servers))}." if servers else text
    )


def _agent_verdict(failed: list[str], warned: int, *, unknown: bool) -> str:
    warnings = f", with {warned} warning{'s' if warned > 1 else ''}" if warned else ""
    if failed == ["login"]:
        return "wants a login; whether it works cannot be known before that."
    if failed and all(name.startswith(("tools over ", "typed result")) for name in failed):
        text = "does not work" if unknown else "works for text, but not"
        return f"{text} for typed results or tools: {', '.join(failed)}."
    if failed:
        return f"does not work: {', '.join(failed)}."
    if unknown:
        return f"starts and opens a session{warnings}. Whether it works cannot be known without a prompt."
    return f"works{warnings}."


def plain(text: str) -> str:
    """Return a text that cannot control a terminal: invisible characters become escapes."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _hint(hint: str, room: int) -> Iterator[str]:
    for line in hint.splitlines():
        if line.startswith("$ "):
            yield plain(line)  # not wrapped, so that it can be copied
        else:
            first, *rest = _wrapped(line, room - 3) or [""]
            yield f"-> {first}"
            yield from (f"   {more}" for more in rest)


def _wrapped(text: str, room: int) -> list[str]:
    room = max(room, NARROWEST)
    lines = [line for part in text.splitlines() if part.strip() for line in _broken(plain(part), room)]
    return lines if len(lines) <= LINES else [*lines[: LINES - 1], "…"]


def _broken(text: str, room: int) -> Iterator[str]:
    """Break a line at ends of words."""
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if cells(longer) <= room:
            line = longer
            continue
        if line:
            yield line
        *full, line = cut(word, max(room, LONGEST))
        yield from full
    yield line
