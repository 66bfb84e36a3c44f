"""Patches of git as changes of files."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from thinkwell._display.diffs import WHOLE, WIDTH, DiffLine, FileChange, Hunk
from thinkwell._display.text import clean, line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from thinkwell._display.diffs import Kept, Sign

LONGEST: Final = 400_000
"""Characters of a patch from which on nothing is read."""

_HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_FILE: Final = re.compile(r'diff --git .* ("?b/.*)')
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


def changes_in(patch: str, kept: Kept = WHOLE) -> Iterator[FileChange]:
    """Yield the change of each file in a patch as ``git diff`` writes it.

    Malformed lines are passed over: an agent may have written the patch.

    Args:
        patch: The patch.
        kept: How much of each file is kept.
    """
    file: _File | None = None
    for row in patch[:LONGEST].split("\n"):
        if file is not None and file.takes(row):
            continue
        if found := _FILE.match(row):
            if file is not None:
                yield file.change()
            file = _File(_path(found[1]), kept)
        elif file is not None:
            file.head(row)
    if file is not None:
        yield file.change()


@dataclass(slots=True)
class _File:
    """A file whose change is read."""

    path: str
    kept: Kept
    new: bool = False
    notes: list[str] = field(default_factory=list[str])
    hunks: list[list[DiffLine]] = field(default_factory=list[list[DiffLine]])
    more: list[int] = field(default_factory=list[int])
    """How many lines of each hunk are left out."""
    signs: Counter[str] = field(default_factory=Counter[str])
    before: int = 0
    after: int = 0
    """The numbers of the next line."""
    left_before: int = 0
    left_after: int = 0
    """How many lines of the hunk follow."""

    def head(self, row: str) -> None:
        """Take a line between hunks."""
        if found := _HUNK.match(row):
            before, many_before, after, many_after = found.groups(default="1")
            self.before, self.after = int(before), int(after)
            self.left_before, self.left_after = int(many_before), int(many_after)
            self.hunks.append([])
            self.more.append(0)
        elif row.startswith(("+++ b/", '+++ "b/')):
            self.path = _path(row[4:].removesuffix("\t"))
        elif row.startswith("new file mode "):
            self.new = True
        elif not self.hunks:
            self.notes += [note for begin, note in _NOTES if row.startswith(begin)]

    def takes(self, row: str) -> bool:
        """Take a line of a hunk; return whether it is one."""
        sign = row[:1] or " "
        if sign == " " and self.left_before and self.left_after:
            self._add(" ", row, self.after, self.before)
        elif sign == "-" and self.left_before:
            self._add("-", row, self.before, self.before)
        elif sign == "+" and self.left_after:
            self._add("+", row, self.after, None)
        else:
            return False
        return True

    def _add(self, sign: Sign, row: str, number: int, before: int | None) -> None:
        self.signs[sign] += 1
        if len(self.hunks) > self.kept.hunks or len(self.hunks[-1]) >= 4 * self.kept.side:
            self.more[-1] += 1
        else:
            text = clean(row[1 : 2 * WIDTH].removesuffix("\r"))
            more = max(len(row) - 2 * WIDTH, 0)
            if more or len(text) > WIDTH:
                more, text = more + len(text[WIDTH - 1 :]), f"{text[: WIDTH - 1]}…"
            self.hunks[-1].append(DiffLine(sign=sign, text=text, number=number, before=before, more=more))
        if sign != "+":
            self.before, self.left_before = self.before + 1, self.left_before - 1
        if sign != "-":
            self.after, self.left_after = self.after + 1, self.left_after - 1

    def change(self) -> FileChange:
        """Return what was read."""
        shown = [
            Hunk(lines=tuple(lines), more_lines=more)
            for lines, more in zip(self.hunks, self.more, strict=True)
            if lines
        ]
        notes = f" ({', '.join(self.notes)})" if self.notes else ""
        return FileChange(
            path=line(self.path + notes),
            added=self.signs["+"],
            removed=self.signs["-"],
            hunks=tuple(shown),
            new_file=self.new,
            more_hunks=max(len(self.hunks) - self.kept.hunks, 0),
        )


def _path(text: str) -> str:
    """Return a path, which git writes in quotes if it has unusual characters."""
    if text.startswith('"'):
        raw = _ESCAPE.sub(lambda found: _ESCAPED.get(found[1]) or bytes([int(found[1], 8)]), text.encode())
        text = raw.decode("utf-8", "replace")[1:-1]
    return text.removeprefix("b/")
