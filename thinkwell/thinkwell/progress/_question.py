"""A question that waits for an answer, as it is drawn: all of what is asked, never a part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from thinkwell._display import numbers, questions
from thinkwell._display.cells import cells, wrap
from thinkwell._display.text import line
from thinkwell.progress._blocks import DIFF_STYLES, VERB, Bar, change_bar
from thinkwell.progress._choices import keys_of

if TYPE_CHECKING:
    from thinkwell._display.diffs import DiffLine, FileChange
    from thinkwell._display.questions import Asked
    from thinkwell.progress._renderer import Shown
    from thinkwell.view import QuestionView, RunView

LONGEST: Final = 20_000
"""Characters of a command or of arguments that are drawn. What is longer says so, and can be looked at with
the key that explains."""


def question_bar(question: QuestionView, view: RunView, now: float) -> Bar:
    """Return the row of a question that the keyboard does not answer now."""
    asked = questions.asked(question, view)
    return Bar(
        Text.assemble((" ? ", "bold yellow"), (f"{'asks':<{VERB}} ", "bold"), _about(asked)),
        _deadline(asked, now),
    )


def _about(asked: Asked) -> str:
    call = asked.call
    return f"{call.verb} {call.target}" if call is not None and call.target else asked.title


def _deadline(asked: Asked, now: float) -> Text | None:
    left = asked.left(now)
    if left is None:
        return None
    style = "bold red" if left < 10 else "yellow"
    return Text(f"({numbers.clock(int(left)).removeprefix('0')})", style)


class Question:
    """The question that the keyboard answers: what is asked, and the keys.

    Where the first takes more rows than there are, it is printed above the live zone, whole.
    """

    def __init__(self) -> None:
        self._printed: str | None = None
        """The id of the question that was printed."""

    def draw(self, shown: Shown, width: int, room: int) -> tuple[list[Bar], list[Bar]]:
        """Return the rows to print above the live zone, and those in it."""
        found = next((each for each in shown.view.questions if each.id == shown.asking), None)
        if found is None:
            self._printed = None
            return [], []
        asked = questions.asked(found, shown.view)
        title = Bar(
            Text.assemble((" ? ", "bold yellow"), (f"{_verb(asked):<{VERB}} ", "bold"), asked.title),
            _deadline(asked, shown.now),
        )
        details = _details(asked, width)
        below = [*_notes(asked, shown, width), *_keys(asked, width)]
        short = self._in_one(asked, shown, width)
        if short is not None and len(below) == 1 and not asked.changes and not asked.arguments:
            return [], [short]
        if self._printed != asked.id and 1 + len(details) + len(below) <= room:
            return [], [title, *details, *below]
        if self._printed == asked.id:
            return [], [title, *below]
        self._printed = asked.id
        return [Bar(title.left), *details], [title, *below]

    def _in_one(self, asked: Asked, shown: Shown, width: int) -> Bar | None:
        """Return all of it in one row, where that has room."""
        if asked.command is None or "\n" in asked.command:
            return None
        left = Text.assemble((" ? ", "bold yellow"), ("allow ", "bold"), " ", asked.command, "   ")
        for key in keys_of(asked):
            left.append(f"[{key.key}]", "bold cyan")
            left.append(f" {key.label} ")
        right = _deadline(asked, shown.now) or Text("")
        return Bar(left, right) if left.cell_len + right.cell_len + 1 <= width else None


def _verb(asked: Asked) -> str:
    return {"permission": "allow", "form": "form", "url": "open"}[asked.asks]


def _details(asked: Asked, width: int) -> list[Bar]:
    """Return what is asked."""
    rows: list[Bar] = []
    if asked.command is not None:
        rows += _whole(asked.command, width, "$ ", "bold")
    elif (
        asked.call is not None
        and asked.call.target
        and asked.call.target != asked.title
        and not asked.changes
    ):
        rows += _whole(asked.call.target, width, f"{asked.call.verb} ", "bold")
    if asked.url is not None:
        rows += _whole(asked.url, width, "", "bold")
        rows += [Bar(Text.assemble("   it leads to ", (asked.host, "bold")))] if asked.host else []
    for change in asked.changes:
        rows += _change(change, width)
    if asked.arguments:
        rows += _whole(asked.arguments, width, "", "")
    for field in asked.fields:
        rows.append(Bar(Text.assemble("   ", (field.label, "bold"), f"  {field.hint}")))
    return rows


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


def _change(change: FileChange, width: int) -> list[Bar]:
    """Return everything that is known of a change, and how much is not."""
    rows = _whole(change.path, width, "  ", "bold") if cells(change.path) > width // 2 else []
    rows.append(change_bar(change))
    for number, hunk in enumerate(change.hunks):
        rows += [Bar(Text("       …", "dim"))] if number else []
        rows += [row for each in hunk.lines for row in _diff_rows(each, width)]
        rows += _left_out(hunk.more_lines, "more line")
    rows += _left_out(change.more_hunks, "more hunk")
    return [*rows, Bar(Text("         … too long to compare", "dim"))] if change.truncated else rows


def _diff_rows(line: DiffLine, width: int) -> list[Bar]:
    style = DIFF_STYLES[line.sign]
    number = "" if line.number is None else str(line.number)
    return [
        Bar(
            Text.assemble(
                (f"{'' if again else number:>7} ", "dim"),
                (f"{' ' if again else line.sign} ", style),
                (row, style),
            )
        )
        for again, row in enumerate(_rows(line.text, max(width - 10, 8)))
    ]


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
    """Return what others said of it, and what was wrong with the last key."""
    rows = [Bar(Text(f" ┆ {row}", "dim")) for verdict in asked.verdicts for row in wrap(verdict, width - 3)]
    if shown.problem:
        rows.append(Bar(Text(f" ! {line(shown.problem)}", "yellow")))
    return rows


def _keys(asked: Asked, width: int) -> list[Bar]:
    """Return what the keys mean."""
    rows = [Text("  ")]
    for key in keys_of(asked):
        text = Text.assemble((f" [{key.key}]", "bold cyan"), f" {key.label} ")
        if rows[-1].cell_len + text.cell_len > width and len(rows[-1]) > 2:
            rows.append(Text("  "))
        rows[-1].append_text(text)
    return [Bar(row) for row in rows]
