"""Patches of git as changes of files."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, cast

from thinkwell._display.diffs import WIDTH, DiffLine, FileChange, Hunk
from thinkwell._display.text import clean, line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from thinkwell._display.diffs import Kept, Sign

LONGEST: Final = 400_000
"""Characters of a patch from which on nothing is read."""

_FILE: Final = re.compile("^diff --git ", re.MULTILINE)
_HUNK: Final = re.compile(r"^(?=@@ -)", re.MULTILINE)
_BEGIN: Final = re.compile(r"@@ -(\d{1,9})(?:,\d+)? \+(\d{1,9})(?:,\d+)? @@.*\n")
_ESCAPE: Final = re.compile(rb'\\([0-3][0-7]{2}|[nt"\\])')
_ESCAPED: Final = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}

_NOTES: Final = (
    ("deleted file mode ", "deleted"),
    ("new mode 100755", "executable"),
    ("new mode 100644", "not executable"),
    ("GIT binary patch", "binary"),
    ("Binary files ", "binary"),
)
"""What lines before the hunks say of a file."""


def changes_in(patch: str, kept: Kept) -> Iterator[FileChange]:
    """Yield the change of each file in a patch as ``git diff`` writes it.

    What is malformed is passed over: an agent may have written the patch.

    Args:
        patch: The patch.
        kept: How much of each file is kept.
    """
    for part in _FILE.split(patch[:LONGEST])[1:]:
        if named := re.match(r'.* ("?b/.*)', part):
            head, *hunks = _HUNK.split(part)
            yield _change(named[1], head.split("\n"), hunks, kept)


def _change(path: str, head: list[str], parts: list[str], kept: Kept) -> FileChange:
    for row in head:
        if row.startswith(("+++ b/", '+++ "b/')):
            path = row[4:].removesuffix("\t")
    notes = [note for row in head for begin, note in _NOTES if row.startswith(begin)]
    signs = Counter[str]()
    most = 4 * kept.side
    hunks = [_hunk(part, most if number < kept.hunks else 0, signs) for number, part in enumerate(parts)]
    return FileChange(
        path=line(_path(path) + (f" ({', '.join(notes)})" if notes else "")),
        added=signs["+"],
        removed=signs["-"],
        hunks=tuple(hunk for hunk in hunks if hunk.lines),
        new_file=any(row.startswith("new file mode ") for row in head),
        more_hunks=max(len(hunks) - kept.hunks, 0),
    )


def _hunk(part: str, most: int, signs: Counter[str]) -> Hunk:
    """Return a hunk with so many lines at most, and count the signs of all."""
    begin = _BEGIN.match(part)
    if begin is None:
        return Hunk(lines=())
    before, after = map(int, begin.groups())
    lines = list[DiffLine]()
    rows = [
        row for row in part[begin.end() :].removesuffix("\n").split("\n") if row[:1] in ("", " ", "-", "+")
    ]
    for row in rows:
        sign = cast("Sign", row[:1] or " ")
        signs[sign] += 1
        if len(lines) < most:
            number, old = before if sign == "-" else after, None if sign == "+" else before
            lines.append(_line(sign, row, number, old))
        before, after = before + (sign != "+"), after + (sign != "-")
    return Hunk(lines=tuple(lines), more_lines=len(rows) - len(lines))


def _line(sign: Sign, row: str, number: int, before: int | None) -> DiffLine:
    text = clean(row[1 : 2 * WIDTH].removesuffix("\r"))
    more = max(len(row) - 2 * WIDTH, 0)
    if more or len(text) > WIDTH:
        more, text = more + len(text[WIDTH - 1 :]), f"{text[: WIDTH - 1]}…"
    return DiffLine(sign=sign, text=text, number=number, before=before, more=more)


def _path(text: str) -> str:
    """Return a path, which git writes in quotes if it has unusual characters."""
    if text.startswith('"'):
        raw = _ESCAPE.sub(lambda found: _ESCAPED.get(found[1]) or bytes([int(found[1], 8)]), text.encode())
        text = raw.decode("utf-8", "replace")[1:-1]
    return text.removeprefix("b/")
