"""Changes of files for displays. The cost of comparing is bounded, whatever the texts are."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from thinkwell._display.compare import STEPS, compare
from thinkwell._display.numbers import plural
from thinkwell._display.paths import relative, seen_from
from thinkwell._display.text import TAB, clean, exact
from thinkwell.events import DiffContent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from thinkwell._display.compare import Change
    from thinkwell.view import ToolView

Sign: TypeAlias = Literal[" ", "+", "-"]

SIZE: Final = 400_000
"""Characters of both texts together from which on only their common beginning and end are searched."""


class Kept(NamedTuple):
    """How much of a change is kept."""

    hunks: int = 20
    side: int = 40
    """Most removed lines, and most added lines, in one place."""
    context: int = 2
    """Unchanged lines around a change."""


BRIEF: Final = Kept()
"""For a terminal or a chat."""

WHOLE: Final = Kept(500, 1_000, 3)
"""For a page."""

WIDTH: Final = 500
"""Most characters of a line."""

FILE: Final = 20
"""Lines from which on a text with a final line end counts as a whole file."""

ALONE: Final = 5
"""Changes of one call that get all `STEPS` each; more have to share as many."""

FULLY: Final = 50
"""Changes of one call that are compared line by line; for more, only their lengths are shown."""

KNOWN: Final = 100_000
"""Lines of changes that are remembered."""

WORD_STEPS: Final = 5_000
"""Comparisons after which two lines count as completely different."""

ALIKE: Final = 0.4
"""The least similarity of two lines that replace each other."""

_WORDS: Final = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """A line of a change."""

    sign: Sign
    text: str
    """Clean, and of a bounded length."""
    number: int | None = None
    """Its number in the file: the new one, except for removed lines. ``None``: unknown."""
    before: int | None = None
    """Its number in the file before the change; ``None``: unknown, or a new line."""
    spans: tuple[tuple[int, int], ...] = ()
    """The changed parts of the text, if a similar line replaces it: start and end."""
    more: int = 0
    """The number of characters that follow and are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Changed lines, with some context."""

    lines: tuple[DiffLine, ...]
    more_lines: int = 0
    """The number of lines that follow and are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """The change of a file."""

    path: str
    """Relative to the session's folder; a clean line."""
    added: int
    removed: int
    hunks: tuple[Hunk, ...]
    new_file: bool = False
    more_hunks: int = 0
    """The number of hunks that follow and are left out."""
    truncated: bool = False
    """Whether the texts were too long, or too different, to compare them line by line: `added` and `removed`
    may be larger than the change."""

    def and_then(self, other: FileChange, kept: Kept = BRIEF) -> FileChange:
        """Return this change of a file combined with a later one."""
        hunks = self.hunks + other.hunks
        most = kept.hunks
        return FileChange(
            path=self.path,
            added=self.added + other.added,
            removed=self.removed + other.removed,
            hunks=hunks[:most],
            new_file=self.new_file,
            more_hunks=self.more_hunks + other.more_hunks + len(hunks[most:]),
            truncated=self.truncated or other.truncated,
        )


def changes_of(
    tool: ToolView, cwd: str, *, exactly: bool = False, kept: Kept = BRIEF
) -> tuple[FileChange, ...]:
    """Return the changes that a tool call shows, one for each file.

    Args:
        tool: The call. Comparisons are cached.
        cwd: The session's folder, to which paths are relative.
        exactly: Whether the user has to approve them: paths are complete, and invisible characters are
            escapes. Tabs are visible.
        kept: How much of each is kept.
    """
    diffs = [part for part in tool.content if isinstance(part, DiffContent)]
    if not diffs:  # as for nearly all calls
        return ()
    changes: dict[str, FileChange] = {}
    lines = {place.path: place.line for place in tool.locations}
    for number, part in enumerate(diffs):
        known = changes.get(part.path)
        steps = STEPS * min(ALONE, len(diffs)) // len(diffs) if number < FULLY else 0
        change = _change(part, lines.get(part.path), cwd, _How(exactly, steps, kept))
        changes[part.path] = change if known is None else known.and_then(change, kept)
    return tuple(changes.values())


class _How(NamedTuple):
    """How a change is shown."""

    exactly: bool
    steps: int
    """Most comparisons; 0: only the lengths are shown."""
    kept: Kept


def _change(diff: DiffContent, number: int | None, cwd: str, how: _How) -> FileChange:
    path = _written(seen_from(diff.path, cwd)) if how.exactly else relative(diff.path, cwd)
    key = _key(diff, number, how)
    known = _known.find(key)
    if known is None:
        known = _known.keep(key, _compared(diff, number, how))
    return replace(known, path=path)


def _written(path: str) -> str:
    """Return a path as a line in which every character is visible."""
    return exact(path).replace("\n", "\\u000a")


def _clean(row: str) -> str:
    return clean(row.replace("\r", "␍"))


def _exact(row: str) -> str:
    return exact(row.expandtabs(TAB))


class _Known:
    """A cache of changes. It keeps no text of a file except the shown lines."""

    def __init__(self) -> None:
        self._changes: dict[_Key, FileChange] = {}
        self._lines = 0
        self._lock = threading.Lock()

    def find(self, key: _Key) -> FileChange | None:
        return self._changes.get(key)

    def keep(self, key: _Key, change: FileChange) -> FileChange:
        with self._lock:
            before = self._changes.pop(key, None)  # from another thread, which was faster
            self._lines += _length(change) - (0 if before is None else _length(before))
            while self._lines > KNOWN and self._changes:
                self._lines -= _length(self._changes.pop(next(iter(self._changes))))
            self._changes[key] = change
        return change


def _length(change: FileChange) -> int:
    return 1 + sum(len(hunk.lines) for hunk in change.hunks)


_Key: TypeAlias = tuple[int, int, int, int, int | None, _How]


def _key(diff: DiffContent, number: int | None, how: _How) -> _Key:
    old = diff.old_text
    # A text caches its hash, which cannot be predicted, so it is as good as the text.
    return hash(diff.new_text), len(diff.new_text), hash(old), -1 if old is None else len(old), number, how


_known: Final = _Known()


# Comparing


def _rows(text: str) -> list[str]:
    rows = text.split("\n")
    if not rows[-1]:
        rows.pop()
    return rows


def _compared(diff: DiffContent, number: int | None, how: _How) -> FileChange:
    old, new = _rows(diff.old_text or ""), _rows(diff.new_text)
    size = len(diff.old_text or "") + len(diff.new_text)
    found = compare(old, new, steps=how.steps if size <= SIZE else 0)
    base = _base(diff, number, found.changes)
    groups = list(_groups(found.changes, how.kept.context))
    rows = _Rows(old, new, base, _exact if how.exactly else _clean, how.kept)
    hunks = how.kept.hunks if how.steps else 0
    return FileChange(
        path="",
        added=sum(change.new_to - change.new_from for change in found.changes),
        removed=sum(change.old_to - change.old_from for change in found.changes),
        hunks=tuple(map(rows.hunk, groups[:hunks])),
        new_file=diff.old_text is None,
        more_hunks=len(groups[hunks:]),
        truncated=not found.exact,
    )


def _base(diff: DiffContent, number: int | None, changes: Sequence[Change]) -> int | None:
    """Return the number of the text's first line in its file.

    Some agents send whole files and some only the lines around a change; none says which it is.
    """
    if diff.old_text is None:
        return 1
    if number is not None:
        return 1 if changes and number == changes[0].new_from + 1 else number
    whole = diff.old_text.endswith("\n") and diff.old_text.count("\n") >= FILE
    return 1 if whole else None


def _groups(changes: Iterable[Change], context: int) -> Iterator[list[Change]]:
    """Yield groups of neighbouring changes."""
    group: list[Change] = []
    for change in changes:
        if group and change.old_from - group[-1].old_to > 2 * context:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


class _Rows(NamedTuple):
    """Makes lines of a change."""

    old: Sequence[str]
    new: Sequence[str]
    base: int | None
    """The number of the first line in its file."""
    show: Callable[[str], str]
    """Cleans a line."""
    kept: Kept
    """How much of the change is kept."""

    def hunk(self, group: Sequence[Change]) -> Hunk:
        """Return the hunk of a group of changes."""
        lines: list[DiffLine] = []
        missing = 0
        at = max(group[0].new_from - self.kept.context, 0)
        for change in group:
            lines += self._between(at, change.new_from, change.old_from - change.new_from)
            shown = self._changed(change) if len(lines) < 4 * self.kept.side else []
            missing += change.old_to - change.old_from + change.new_to - change.new_from - len(shown)
            lines += shown
            at = change.new_to
        lines += self._between(at, min(at + self.kept.context, len(self.new)), group[-1].old_to - at)
        return Hunk(lines=tuple(lines), more_lines=missing)

    def _between(self, begin: int, end: int, further: int) -> Iterator[DiffLine]:
        """Yield unchanged lines. In the old text they are so much further."""
        for at in range(begin, end):
            line = self._line(" ", self.new, at)
            yield line if line.number is None else replace(line, before=line.number + further)

    def _changed(self, change: Change) -> list[DiffLine]:
        old_to, new_to = (
            min(change.old_to, change.old_from + self.kept.side),
            min(change.new_to, change.new_from + self.kept.side),
        )
        removed = [self._line("-", self.old, i) for i in range(change.old_from, old_to)]
        added = [self._line("+", self.new, i) for i in range(change.new_from, new_to)]
        for i, (was, now) in enumerate(zip(removed, added, strict=False)):
            spans = _spans(was.text, now.text)
            removed[i], added[i] = replace(was, spans=spans[0]), replace(now, spans=spans[1])
        return [*removed, *added]

    def _line(self, sign: Sign, rows: Sequence[str], index: int) -> DiffLine:
        row = rows[index].removesuffix("\r")
        text = self.show(row[: 2 * WIDTH])
        more = max(len(row) - 2 * WIDTH, 0)
        if more or len(text) > WIDTH:
            more, text = more + len(text[WIDTH - 1 :]), f"{text[: WIDTH - 1]}…"
        number = None if self.base is None else self.base + index
        before = number if sign == "-" else None
        return DiffLine(sign=sign, text=text, number=number, before=before, more=more)


_Spans: TypeAlias = tuple[tuple[int, int], ...]


def _spans(was: str, now: str) -> tuple[_Spans, _Spans]:
    """Return the parts in which two lines differ; empty if they have little in common."""
    old, new = _WORDS.findall(was), _WORDS.findall(now)
    found = compare(old, new, WORD_STEPS)
    removed = _extents(old, [(change.old_from, change.old_to) for change in found.changes])
    added = _extents(new, [(change.new_from, change.new_to) for change in found.changes])
    length = len(was.strip()) + len(now.strip())
    changed = sum(end - begin for begin, end in removed + added)
    if not found.exact or length == 0 or (length - changed) / length < ALIKE:
        return (), ()
    return removed, added


def _extents(words: Sequence[str], ranges: Sequence[tuple[int, int]]) -> _Spans:
    """Return the ranges of words in characters. Those separated only by white space are joined."""
    spans: list[tuple[int, int]] = []
    at = done = 0
    for begin, end in ranges:
        between = "".join(words[done:begin])
        changed = "".join(words[begin:end])
        at += len(between)
        if changed and spans and between.isspace():
            spans[-1] = (spans[-1][0], at + len(changed))
        elif changed:
            spans.append((at, at + len(changed)))
        at += len(changed)
        done = end
    return tuple(spans)


# Excerpts


class Excerpt(NamedTuple):
    """The first lines of a change, and the size of the rest."""

    lines: tuple[DiffLine, ...]
    more_lines: int
    """The number of lines of the first hunk that are left out."""
    more_hunks: int

    @property
    def rest(self) -> list[str]:
        """What is left out, in words: ``3 more lines``, ``1 more hunk``."""
        left = {"more line": self.more_lines, "more hunk": self.more_hunks}
        return [plural(number, word) for word, number in left.items() if number]


def excerpt(change: FileChange, limit: int = 8) -> Excerpt:
    """Return the first hunk of a change in a few lines, with removed and added ones.

    Args:
        change: The change.
        limit: Most lines to return.
    """
    if not change.hunks:
        return Excerpt((), 0, 0)
    hunk = change.hunks[0]
    lines = hunk.lines if len(hunk.lines) <= limit else _first_lines(hunk.lines, limit)
    more = len(hunk.lines) - len(lines) + hunk.more_lines
    return Excerpt(tuple(lines), more, len(change.hunks) - 1 + change.more_hunks)


def _first_lines(lines: Sequence[DiffLine], limit: int) -> list[DiffLine]:
    begin = next(i for i, each in enumerate(lines) if each.sign != " ")
    lead = list(lines[max(begin - 1, 0) : begin]) if limit > 2 else []
    end = _block_end(lines, begin)
    room = limit - len(lead)
    if end - begin > room:
        removed = [each for each in lines[begin:end] if each.sign == "-"]
        added = [each for each in lines[begin:end] if each.sign == "+"]
        few = min(len(removed), max(room // 2, room - len(added)))
        return [*lead, *removed[:few], *added[: room - few]]
    while end < len(lines):  # the next change, if all of it fits
        after = _block_end(
            lines, next((i for i in range(end, len(lines)) if lines[i].sign != " "), len(lines))
        )
        if after - begin > room:
            break
        end = after
    return [*lead, *lines[begin:end]]


def _block_end(lines: Sequence[DiffLine], begin: int) -> int:
    """Return the end of lines that were changed together: removed ones, and their replacements."""
    end = begin
    while end < len(lines) and lines[end].sign != " ":
        end += 1
    return end
