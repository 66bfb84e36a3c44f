"""Draws a waiting question: all that is asked, never a part of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from rich.text import Text

from thinkwell._display import numbers, questions
from thinkwell._display.cells import cells, clip, wrap
from thinkwell._display.explaining import PartKind, explanation
from thinkwell._display.questions import keys_of
from thinkwell._display.text import line
from thinkwell._display.tools import called
from thinkwell.progress._blocks import DIFF_STYLES, VERB, Bar, change_bar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from thinkwell._display.diffs import DiffLine, FileChange
    from thinkwell._display.filling import Picking
    from thinkwell._display.questions import Asked, Key
    from thinkwell.progress._renderer import Shown
    from thinkwell.view import QuestionView, RunView, ToolView

ROWS: Final = 2_000
"""Rows of a question that are drawn. A longer one says that there is more."""

TITLE: Final = 13
"""Columns beside a title: the mark before it, and the time after it."""

LONGEST: Final = 20_000
"""Characters of a command or of arguments that are drawn. A longer one says that there is more, which the
explaining key shows."""


def question_bar(question: QuestionView, view: RunView, now: float) -> Bar:
    """Return the row of a waiting question."""
    about = called(question.tool_id, view) or line(question.title)
    return Bar(
        Text.assemble((" ? ", "bold yellow"), (f"{'asks':<{VERB}} ", "bold"), about),
        _deadline(question.deadline, now),
    )


def _deadline(deadline: float | None, now: float) -> Text | None:
    if deadline is None:
        return None
    left = max(deadline - now, 0.0)
    style = "bold red" if left < 10 else "yellow"
    return Text(f"({numbers.clock(int(left)).removeprefix('0')})", style)


PICKED: Final = 3
"""Fewest rows of a list of values."""

_PART_STYLES: Final[dict[PartKind, str]] = {
    "title": "bold",
    "text": "dim",
    "name": "bold",
    "code": "",
    "@": "cyan",
    "+": DIFF_STYLES["+"],
    "-": DIFF_STYLES["-"],
}

CHANGED: Final = " ! the agent has changed what it asks:"


class Question:
    """The question that the keyboard answers: what is asked, and the keys.

    If it takes more rows than there are, it is printed above the live zone, in full; and again if the agent
    has changed it since.
    """

    def __init__(self) -> None:
        self._printed: Asked | None = None
        """The printed question, as it was then."""
        self._explained = 0
        """How often it was explained."""
        self._putting = questions.Putting()

    def draw(self, shown: Shown, width: int, room: int) -> tuple[list[RenderableType], list[Bar]]:
        """Return what to print above the live zone, and the rows in it."""
        found = next((each for each in shown.view.questions if each.id == shown.asking), None)
        if found is None:
            self._printed = None
            self._explained = 0
            return [], []
        asked = self._putting.put(found, shown.view)
        above, live = self._rows(asked, shown, width, room)
        if shown.explained <= self._explained:
            self._explained = shown.explained
            return [*above], live
        self._explained = shown.explained
        tool = None if found.tool_id is None else shown.view.tools.get(found.tool_id)
        return [*above, *_explanation(asked, tool, width)], live

    def _rows(self, asked: Asked, shown: Shown, width: int, room: int) -> tuple[list[Bar], list[Bar]]:
        """Return the rows of the question: those to print, and those in the live zone."""
        if self._printed is not None and self._printed.id != asked.id:
            self._printed = None
        title = Bar(
            Text.assemble((" ? ", "bold yellow"), (f"{_verb(asked):<{VERB}} ", "bold"), asked.title),
            _deadline(asked.deadline, shown.now),
        )
        if shown.picking is not None:
            return [], [title, *_picking(shown.picking, width, room - 1)]
        below = [*_notes(asked, shown, width), *_keys(asked, shown.chosen, width)]
        if self._printed is not None and self._printed.same(asked):
            return [], [title, *below]
        short = self._in_one(asked, shown, width)
        if short is not None and len(below) == 1 and not asked.changes and not asked.arguments:
            return [], [short]
        details = list(islice(_details(asked, width), ROWS + 1))
        if len(details) > ROWS:
            details[ROWS:] = [Bar(Text("   … and more, for which there is no room: press [e]", "bold red"))]
        if self._printed is None and 1 + len(details) + len(below) <= room:
            return [], [title, *details, *below]
        above = [Bar(Text(CHANGED, "bold yellow"))] if self._printed is not None else []
        self._printed = asked
        return [*above, Bar(title.left), *details], [title, *below]

    def _in_one(self, asked: Asked, shown: Shown, width: int) -> Bar | None:
        """Return the question in one row, if it fits."""
        if asked.command is None or "\n" in asked.command:
            return None
        left = Text.assemble((" ? ", "bold yellow"), ("allow ", "bold"), " ", asked.command, "   ")
        for number, key in enumerate(keys_of(asked)):
            left.append_text(_key(key, chosen=number == shown.chosen))
            left.append(" ")
        right = _deadline(asked.deadline, shown.now) or Text("")
        return Bar(left, right) if left.cell_len + right.cell_len + 1 <= width else None


def _verb(asked: Asked) -> str:
    return {"permission": "allow", "form": "form", "url": "open"}[asked.asks]


def _details(asked: Asked, width: int) -> Iterator[Bar]:
    """Yield the details of the question."""
    if asked.command is not None:
        yield from _whole(asked.command, width, "$ ", "bold")
    elif asked.call is not None and asked.arguments and asked.call.target not in ("", asked.title):
        yield from _whole(asked.call.target, width, f"{asked.call.verb} ", "bold")
    if asked.title_tells and (asked.said or cells(asked.title) > width - VERB - TITLE):
        yield from _whole(asked.said or asked.title, width, "", "bold")
    verb = "" if asked.call is None else f"{asked.call.verb} "
    for about in asked.about:
        if about != asked.title:
            yield from _whole(about, width, verb, "bold")
    yield from _left_out(asked.more_about, "more file")
    if asked.url is not None:
        yield from _whole(asked.url, width, "", "bold")
        if asked.host:
            yield Bar(Text.assemble("   it leads to ", (asked.host, "bold")))
    for change in asked.changes:
        yield from _change(change, width)
    if asked.arguments:
        yield from _whole(asked.arguments, width, "", "")
    for field in asked.fields:
        yield Bar(Text.assemble("   ", (field.label, "bold"), f"  {field.hint}"))
        if field.choices:
            yield from (Bar(Text(f"     {row}")) for row in wrap(field.offered, width - 5))


def _whole(text: str, width: int, mark: str, style: str) -> list[Bar]:
    """Return a text as rows in which nothing is missing."""
    shown = text[:LONGEST]
    rows = [
        Bar(Text.assemble("   ", (" " * len(mark) if number else mark, "dim"), (row, style)), widest=width)
        for number, row in enumerate(_cut(shown, width - 3 - len(mark)))
    ]
    if len(text) > LONGEST:
        rows.append(
            Bar(Text(f"   … and {len(text) - LONGEST:,} more characters: press [e] to see more", "bold red"))
        )
    return rows


def _change(change: FileChange, width: int) -> Iterator[Bar]:
    """Yield all details of a change, with counts of what is missing."""
    if cells(change.path) > width // 2:
        yield from _whole(change.path, width, "  ", "bold")
    yield change_bar(replace(change, path=clip(change.path, width)))
    for number, hunk in enumerate(change.hunks):
        if number:
            yield Bar(Text("       …", "dim"))
        for each in hunk.lines:
            yield from _diff_rows(each, width)
        yield from _left_out(hunk.more_lines, "more line")
    yield from _left_out(change.more_hunks, "more hunk")
    if change.truncated:
        yield Bar(Text("         … too long to compare", "dim"))


def _diff_rows(line: DiffLine, width: int) -> list[Bar]:
    style = DIFF_STYLES[line.sign]
    number = "" if line.number is None else str(line.number)
    rows = [
        Bar(
            Text.assemble(
                (f"{'' if again else number:>7} ", "dim"),
                (f"{' ' if again else line.sign} ", style),
                (row, style),
            )
        )
        for again, row in enumerate(_rows(line.text, max(width - 10, 8)))
    ]
    return rows + _left_out(line.more, "more character")


def _left_out(count: int, word: str) -> list[Bar]:
    more = f"         … {numbers.plural(count, word)}: press [e] to see more"
    return [Bar(Text(more, "bold red"))] if count else []


def _cut(text: str, width: int) -> list[str]:
    """Return lines cut where they are full: white space counts in what is approved."""
    rows: list[str] = []
    for found in text.split("\n"):
        rows += _rows(found, max(width, 8))
    return rows


def _rows(found: str, width: int) -> list[str]:
    if found.isascii():
        return [found[begin : begin + width] for begin in range(0, len(found), width)] or [""]
    rows, row, used = list[str](), "", 0
    for char in found:
        wide = cells(char)
        if used + wide > width:
            rows.append(row)
            row, used = "", 0
        row += char
        used += wide
    return [*rows, row]


def _notes(asked: Asked, shown: Shown, width: int) -> list[Bar]:
    """Return remarks of others on it, and the problem with the last key."""
    rows = [Bar(Text(f" ┆ {row}", "dim")) for verdict in asked.verdicts for row in wrap(verdict, width - 3)]
    if shown.problem:
        rows.append(Bar(Text(f" ! {line(shown.problem)}", "yellow")))
    return rows


def _key(key: Key, *, chosen: bool) -> Text:
    """Return a key with its action; reversed if the arrows are at it."""
    text = Text.assemble((f"[{key.key}]", "bold cyan"), f" {key.label}")
    if chosen:
        text.stylize("reverse")
    return text


def _keys(asked: Asked, chosen: int | None, width: int) -> list[Bar]:
    """Return the meanings of the keys."""
    rows = [Text("  ")]
    for number, key in enumerate(keys_of(asked)):
        text = Text.assemble(" ", _key(key, chosen=number == chosen), " ")
        if rows[-1].cell_len + text.cell_len > width and len(rows[-1]) > 2:
            rows.append(Text("  "))
        rows[-1].append_text(text)
    if asked.more_options:
        rows.append(Text(f"   … {numbers.plural(asked.more_options, 'more option')} without a key", "yellow"))
    return [Bar(row) for row in rows]


def _picking(picking: Picking, width: int, room: int) -> list[Bar]:
    """Return the list from which a value is picked: the rows around the current one."""
    field = picking.field
    rows = [Bar(Text.assemble("   ", (field.label, "bold"), f"  {field.hint}"))]
    if field.description:
        rows.append(Bar(Text(f"   {line(field.description)}", "dim")))
    most = max(room - len(rows) - 1, PICKED)
    begin = max(min(picking.at - most // 2, len(picking.rows) - most), 0)
    for number, (_, label) in enumerate(picking.rows[begin : begin + most], begin):
        box = ("[x] " if number in picking.picked else "[ ] ") if picking.several else ""
        at = number == picking.at
        row = f"   {'❯' if at else ' '} {number + 1}  {box}{label}"
        rows.append(Bar(Text(row, "bold cyan" if at else "")))
    if picking.problem:
        rows.append(Bar(Text(f" ! {picking.problem}", "yellow")))
    space = "Space marks  " if picking.several else ""
    keys = f"   ↑ ↓ choose  {space}Enter takes it  Ctrl-D leaves"
    return [*rows, Bar(Text(keys, "dim"), Text(f"{picking.at + 1}/{len(picking.rows)}", "dim"))]


def _explanation(asked: Asked, tool: ToolView | None, width: int) -> Iterator[RenderableType]:
    """Yield all details of a question: cut where rows are full, and nothing left out."""
    yield Text("")
    for part in explanation(asked, tool):
        indent = "     " if part.kind in ("code", "+", "-") else "   "
        rows = _cut(part.text, width - len(indent))
        yield Text("\n".join(f"{indent}{row}" for row in rows), _PART_STYLES[part.kind], no_wrap=True)
    yield Text("")
