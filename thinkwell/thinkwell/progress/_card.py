"""The end card: the outcome of a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TypeAlias

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from thinkwell._core.schema.json_schema import is_array, is_object
from thinkwell._display import numbers
from thinkwell._display.summary import summary
from thinkwell._display.text import clean, line
from thinkwell._display.usage import usage_parts
from thinkwell.progress._blocks import STATUS_MARKS, Bar, Hanging, change_bar
from thinkwell.progress._markdown import Code, Prose

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from thinkwell._display.summary import Summary
    from thinkwell.events import JsonValue
    from thinkwell.progress._renderer import Shown

NAME: Final = 8
"""Columns of the names at the left."""

FILES: Final = 10
"""Most files that are named."""

RESULT: Final = 20_000
"""Most characters of a result that are drawn."""

ROWS: Final = 30
"""Most rows of a table, and lines of JSON, that are drawn."""

COLUMNS: Final = 6
"""Most columns of a table; wider data is not shown as a table."""

VALUE: Final = 300
"""Characters of a value in a table."""

DETAIL: Final = 8
"""Lines of an error's details, the last ones."""

_Object: TypeAlias = "Mapping[str, JsonValue]"


def card(shown: Shown, *, verbose: bool = False) -> list[RenderableType]:
    """Return the end card of a run.

    Args:
        shown: The run.
        verbose: Whether everything is drawn in full.
    """
    told = summary(shown.view, shown.now, shown.recording)
    return [
        Text(""),
        title_bar(told, shown.label),
        *_error(told),
        *_result(shown.untold_result, verbose=verbose),
        *_facts(told),
    ]


def title_bar(told: Summary, label: str) -> Bar:
    """Return the first row: the status, and the duration."""
    mark, style = STATUS_MARKS[told.status]
    words = f"{told.status if told.status != 'running' else 'goes on'}"
    names = dict.fromkeys(filter(None, (line(label), told.agent, told.model)))
    return Bar(
        Text.assemble(
            " ",
            (f"{mark} {words}", f"bold {style}"),
            f" {'after' if told.status != 'done' else 'in'} {numbers.seconds(told.seconds)}",
            (" · ".join(["", *names]), "dim"),
        )
    )


def end_row(shown: Shown) -> list[RenderableType]:
    """Return the end of a run and its usage, in one row."""
    told = summary(shown.view, shown.now)
    mark, style = STATUS_MARKS[told.status]
    used = " · ".join(["", *usage_parts(shown.view)])
    return [Bar(Text.assemble(" ", (mark, f"bold {style}"), (f" {told.end}{used}", "dim")))]


def _error(told: Summary) -> Iterator[RenderableType]:
    error = told.error
    if error is None or (told.status == "cancelled" and not error.detail):
        return
    yield Hanging(Text("   "), error.what, "red")
    if error.detail:
        for row in error.detail.split("\n")[-DETAIL:]:
            yield Bar(Text(f"   │ {row}", "dim"))
    if error.next:
        yield Hanging(Text("   → "), error.next, "bold")


def _facts(told: Summary) -> Iterator[RenderableType]:
    """Yield a row for each known fact."""
    for name, value in told.facts:
        yield Hanging(Text.assemble("   ", (f"{name:<{NAME}}", "dim")), value)
        if name == "work":
            yield from _changes(told)


def _changes(told: Summary) -> Iterator[RenderableType]:
    for change in told.changes[:FILES]:
        yield change_bar(change, NAME + 3)
    if len(told.changes) > FILES:
        yield Text(f"{' ' * (NAME + 3)}… {numbers.plural(len(told.changes) - FILES, 'more file')}", "dim")


def _result(result: str | None, *, verbose: bool) -> Iterator[RenderableType]:
    """Yield the result: as a table if possible, as JSON, or as text."""
    if result is None:
        return
    yield Text("")
    drawn = _as_json(result)
    yield Padding(drawn if drawn is not None else _as_text(result, verbose=verbose), (0, 1, 0, 3))
    yield Text("")


def _as_text(result: str, *, verbose: bool) -> RenderableType:
    lines = clean(result[:RESULT]).split("\n")
    if verbose or (len(lines) <= ROWS and len(result) <= RESULT):
        return Prose(result if verbose else "\n".join(lines))
    return Text("\n".join([*lines[:ROWS], "… the result is longer"]), overflow="fold")


def _as_json(result: str) -> RenderableType | None:
    if not result.startswith(("{", "[")) or len(result) > RESULT:
        return None
    try:
        value: JsonValue = json.loads(result)
    except (ValueError, RecursionError):
        return None
    if is_object(value) and 0 < len(value) <= ROWS:
        return _of_object(value)
    if is_array(value) and 0 < len(value) <= ROWS and all(map(is_object, value)):
        return _of_rows(value) or _code(result)
    return _code(result)


def _code(result: str) -> RenderableType:
    lines = clean(result).split("\n")
    more = ["…"] if len(lines) > ROWS else []
    return Code("\n".join([*lines[:ROWS], *more]), "json")


def _of_object(value: _Object) -> Table:
    table = _table()
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, each in value.items():
        table.add_row(Text(line(name, VALUE)), _cell(each))
    return table


def _of_rows(rows: Sequence[_Object]) -> Table | None:
    names = dict.fromkeys(name for row in rows for name in row)
    if not 0 < len(names) <= COLUMNS:
        return None
    table = _table(header=True)
    for name in names:
        table.add_column(Text(line(name, VALUE)), overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row[name]) if name in row else Text("") for name in names))
    return table


def _table(*, header: bool = False) -> Table:
    return Table(box=None, show_header=header, header_style="bold", padding=(0, 3, 0, 0), pad_edge=False)


def _cell(value: JsonValue) -> RenderableType:
    if isinstance(value, str):
        rows = clean(value[: 4 * VALUE]).strip()
        return Text(rows if len(rows) <= VALUE else f"{rows[: VALUE - 1]}…", overflow="fold")
    if is_array(value) and value and all(isinstance(each, str) for each in value) and len(value) <= ROWS:
        return Text("\n".join(line(str(each), VALUE) for each in value), overflow="fold")
    if isinstance(value, bool) or value is None:
        return Text({True: "yes", False: "no", None: "–"}[value], "cyan")
    return Text(line(json.dumps(value, ensure_ascii=False), VALUE), "cyan", overflow="fold")
