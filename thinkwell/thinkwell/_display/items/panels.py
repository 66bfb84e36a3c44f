"""The panels beside a run's timeline, and at its end: plan, usage, result and sums, as nodes."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, cast

from thinkwell._core.schema.json_schema import is_array, is_object
from thinkwell._display import numbers, phases, summary, usage
from thinkwell._display.calls import told_calls
from thinkwell._display.items.nodes import element
from thinkwell._display.items.rows import DATA, mark, shortened, word
from thinkwell._display.plans import current
from thinkwell._display.text import clean, json_text, line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from thinkwell import events as ev
    from thinkwell._display.items.nodes import Node
    from thinkwell._display.items.rows import Status
    from thinkwell.view import RunView

STEPS: Final = 1_000
"""Most steps of a plan."""

FIELDS: Final = 200
"""Most fields of an object, and items of a list, in a result."""

DEEP: Final = 4
"""Most levels of nested values."""

COLUMNS: Final = 8
"""Most names of the objects in a list that is drawn as a table."""

TEXT: Final = 20_000
"""Most characters of a text in a result."""

_STEPS: Final[dict[str, Status]] = {"completed": "done", "in_progress": "doing", "pending": "todo"}

_TOKENS: Final = {
    "input": "Input",
    "output": "Output",
    "thought": "Thought",
    "cached_read": "Read from a cache",
    "cached_write": "Written to a cache",
    "total": "Total",
}


def section(title: str, *inner: Node) -> Node:
    """Return a part of a panel."""
    return element("div", "section", element("h2", "", title), *inner)


def meter(share: float, look: str = "meter") -> Node:
    """Return a bar for a share, from 0 to 1."""
    return element("meter", look, attributes={"value": round(share, 3)})


def facts(rows: Iterable[tuple[str, str]]) -> Node:
    """Return names and values; those without a value are left out."""
    told = [
        part for name, value in rows if value for part in (element("dt", "", name), element("dd", "", value))
    ]
    return element("dl", "facts", *told)


def prose(text: str) -> list[Node]:
    """Return Markdown text as nodes; unchanged if no Markdown parser is installed."""
    if find_spec("markdown_it") is None or find_spec("pygments") is None:
        return [element("p", "", clean(text))]
    from thinkwell._display.items import markdown  # needs an extra

    return markdown.prose(text)


# The plan


def progress(entries: Sequence[ev.PlanEntry]) -> str:
    """Return how much of a plan is done: ``2/5``; empty without steps."""
    done = sum(entry.status == "completed" for entry in entries)
    return f"{done}/{len(entries)}" if entries else ""


def plan(update: ev.PlanUpdate, most: int = STEPS) -> Node:
    """Return a plan, with its text, and with so many steps around the current one."""
    entries = update.entries
    title: list[Node] = ["Plan" if update.id == "main" else line(update.id, 100)]
    if entries:
        done = sum(entry.status == "completed" for entry in entries)
        title += [f" {progress(entries)}", meter(done / len(entries))]
    begin = max(0, min(current(entries) - most // 2, len(entries) - most)) if entries else 0
    more = len(entries) - begin - most
    return element(
        "div",
        "section",
        element("h2", "", *title),
        element("p", "dim", f"… {numbers.plural(begin, 'step')} before") if begin else "",
        element("ol", "steps", *map(_step, entries[begin : begin + most])),
        element("p", "dim", f"… {numbers.plural(more, 'more step')}") if more > 0 else "",
        element("div", "prose", *prose(shortened(update.markdown, 5 * TEXT))) if update.markdown else "",
        element("p", "mono dim", line(update.uri, 1_000)) if update.uri else "",
    )


def _step(entry: ev.PlanEntry) -> Node:
    high = entry.priority == "high" and entry.status != "completed"
    return element(
        "li",
        entry.status,
        mark(_STEPS[entry.status]),
        element("span", "what", line(entry.content, 1_000)),
        element("span", "badge", "high") if high else "",
    )


def strip(entries: Sequence[ev.PlanEntry]) -> Node:
    """Return a plan in a line: its progress, and the current step."""
    done = sum(entry.status == "completed" for entry in entries)
    step = entries[current(entries)]
    text = "done" if step.status == "completed" else line(step.content, 300)
    progress_ = element("span", "dim", f"plan {progress(entries)}")
    return element("div", "strip", progress_, meter(done / len(entries)), element("span", "step", text))


# Usage


USAGE: Final = ("context", "tokens", "cost", "none", "time", "run")
"""The sections of a run's usage, in order."""


def usage_sections(
    view: RunView, *, conversation: str, ended: bool, events: int, not_understood: int
) -> Mapping[str, Node]:
    """Return the sections of `USAGE` that a run has."""
    parts: dict[str, Node] = {}
    if view.usage is not None:
        share = usage.context_share(view)
        told = f"{numbers.count(view.usage.used)} tokens"
        if share is not None:
            told = f"{numbers.count(view.usage.used)} of {numbers.count(view.usage.size)} tokens, {share:.0%}"
        bar = "" if share is None else meter(share, "wide-meter")
        parts["context"] = section("Context window", bar, element("p", "", told))
    if view.tokens is not None:
        rows = [
            (label, f"{count:,}")
            for name, label in _TOKENS.items()
            if (count := getattr(view.tokens, name)) is not None
        ]
        cached = usage.cached_share(view.tokens)
        told = "" if cached is None else f"{cached:.0%} of the input came from a cache."
        dim = element("p", "dim", told) if told else ""
        parts["tokens"] = section("Tokens of finished turns", facts(rows), dim)
    if view.usage is not None and view.usage.cost is not None:
        cost = f"{numbers.money(view.usage.cost)}, as the agent says"
        parts["cost"] = section("Cost", element("p", "", cost))
    if not parts:
        parts["none"] = section("Usage", element("p", "dim", "The agent has not reported any usage."))
    if taken := [part for part in phases.durations(view) if part.seconds >= 0.05]:
        parts["time"] = section("Time", _bars(taken))
    calls = told_calls(view) if ended else ()
    failed = sum(tool.status == "failed" for tool in calls)
    tools = f"{len(calls):,}{f', {failed:,} failed' if failed else ''}" if calls else ""
    run = (
        ("Agent", line(view.agent, 200)),
        ("Model", line(view.model or "", 200)),
        ("Mode", line(view.mode or "", 200)),
        ("Folder", line(view.cwd, 500)),
        ("Session", line(view.session_id or "", 200)),
        ("Conversation", conversation),
        ("Turns", str(view.turns) if view.turns > 1 else ""),
        ("Tools", tools),
        ("Stop reason", line(view.stop_reason or "", 100)),
        ("Events", f"{events:,}" if ended else ""),
        ("Not understood", numbers.plural(not_understood, "event") if not_understood else ""),
        ("Dropped", numbers.plural(view.dropped, "event") if view.dropped else ""),
    )
    parts["run"] = section("Run", facts(run))
    return parts


def _bars(taken: Sequence[phases.Duration]) -> Node:
    most = max(part.seconds for part in taken)
    return element(
        "div",
        "bars",
        *(
            node
            for part in taken
            for node in (
                element("span", "", part.word),
                meter(part.seconds / most, "time"),
                element("span", "dim", numbers.seconds(part.seconds)),
            )
        ),
    )


# The result


def result(title: str, value: ev.JsonValue, schema: ev.JsonValue) -> Node:
    """Return a result, as far as known: the fields of its schema, given or not."""
    copied = value if isinstance(value, str) else json_text(value)
    copy = element("button", "button small", "Copy", attributes={"does": "copy", "value": copied})
    actions = "" if value is None else element("div", "actions", copy)
    return section(title, value_node(value, schema, 0), actions)


def refused(attempts: Sequence[ev.ResultAttempt]) -> Node:
    """Return the reasons for refused results."""
    reasons = (
        element("li", "", clean(shortened("\n".join(attempt.errors), 2_000))) for attempt in attempts[-10:]
    )
    title = numbers.plural(len(attempts), "refused attempt")
    return section(title, element("ol", "dim", *reasons))


def value_node(value: ev.JsonValue, schema: ev.JsonValue, depth: int) -> Node:
    """Return a value by its kind: objects by their fields, lists of similar objects as tables."""
    properties = _properties(schema)
    if depth >= DEEP and (is_object(value) or is_array(value)):
        return element("pre", "wrap", clean(shortened(json_text(value), DATA)))
    if is_object(value) or (properties and value is None):
        given: Mapping[str, ev.JsonValue] = value if is_object(value) else {}
        names = list(dict.fromkeys([*properties, *given]))
        if not names:
            return element("pre", "wrap", "{}")
        rows = (node for name in names[:FIELDS] for node in _field(name, given, properties, depth))
        more = len(names) - FIELDS
        rest = element("dt", "dim", f"… {numbers.plural(more, 'more field')}") if more > 0 else ""
        return element("dl", "value", *rows, rest)
    if is_array(value):
        return _list(value, schema.get("items") if is_object(schema) else None, depth)
    if not isinstance(value, str):
        return element("span", "mono", json.dumps(value))
    if depth == 0:
        return element("div", "prose", *prose(shortened(value, 5 * TEXT)))
    return element("span", "", clean(shortened(value, TEXT)))


def _properties(schema: ev.JsonValue) -> Mapping[str, ev.JsonValue]:
    properties = schema.get("properties") if is_object(schema) else None
    return properties if is_object(properties) else {}


def _field(
    name: str, given: Mapping[str, ev.JsonValue], properties: Mapping[str, ev.JsonValue], depth: int
) -> tuple[Node, Node]:
    kind = type_of(properties[name]) if name in properties else kind_of(given[name])
    head = element("dt", "", line(name, 200), element("span", "type", line(kind, 200)))
    if name not in given:
        return head, element("dd", "waits", "not given")
    return head, element("dd", "", value_node(given[name], properties.get(name), depth + 1))


def _list(values: Sequence[ev.JsonValue], schema: ev.JsonValue, depth: int) -> Node:
    if not values:
        return element("span", "dim", "empty")
    shown = values[:FIELDS]
    more = len(values) - len(shown)
    rest = f"… {numbers.plural(more, 'more item')}" if more else ""
    objects = [each for each in shown if is_object(each)]
    names = list(dict.fromkeys(name for each in objects for name in each))
    if len(objects) < len(shown) or not 0 < len(names) <= COLUMNS or depth >= DEEP:
        items = [element("li", "", value_node(each, schema, depth + 1)) for each in shown]
        return element("ul", "", *items, element("li", "", rest) if rest else "")
    head = element("tr", "", *(element("th", "", line(name, 100)) for name in names))
    rows = (
        element(
            "tr",
            "",
            *(
                element("td", "", value_node(each[name], None, depth + 1) if name in each else "")
                for name in names
            ),
        )
        for each in objects
    )
    table = element("table", "", element("thead", "", head), element("tbody", "", *rows))
    return element("div", "grid", table, rest)


def type_of(schema: ev.JsonValue) -> str:
    """Return a schema's type, in short."""
    if not is_object(schema):
        return "any"
    enum = schema.get("enum")
    if is_array(enum):
        return " | ".join(json.dumps(each, ensure_ascii=False) for each in enum[:8])
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    for key in ("anyOf", "oneOf"):
        if is_array(schema.get(key)):
            return " | ".join(dict.fromkeys(map(type_of, schema[key][:8])))
    kind = schema.get("type")
    if kind == "array":
        return f"list of {type_of(schema['items'])}" if is_object(schema.get("items")) else "list"
    if isinstance(schema.get("$ref"), str):
        return line(schema["$ref"].rpartition("/")[2], 40)
    if is_array(kind):
        return " | ".join(map(str, kind))
    return line(str(schema.get("title") or kind or "any"), 40)


_KINDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
}


def kind_of(value: ev.JsonValue) -> str:
    """Return the kind of a JSON value."""
    if is_array(value):
        return f"list of {len(value)}" if value else "empty list"
    return _KINDS.get(type(cast("object", value)), "object")


# The end


def final(view: RunView, status: Status, reason: str, seconds: float, error: str, *about: Node) -> Node:
    """Return the outcome of a run.

    Args:
        view: The run.
        status: How it ended.
        reason: Why its last turn has ended, in the protocol's words.
        seconds: Its duration.
        error: The error, as text; may be empty.
        about: Further details, and what to do.
    """
    sums = summary.summary(view, seconds)
    work = (f"in {numbers.seconds(seconds)}", sums.work, *usage.usage_parts(view))
    why = f" ({line(reason, 60).replace('_', ' ')})" if reason not in ("", "end_turn") else ""
    head = element("div", "words", mark(status), word(status), element("span", "dim", why))
    return element(
        "div",
        f"final {status}",
        head,
        element("div", "error", clean(shortened(error, 4_000))) if error else "",
        *about,
        element("div", "", INTERRUPTED) if status == "interrupted" else "",
        element("div", "dim", " · ".join(filter(None, work))),
    )


INTERRUPTED: Final = "The server ended before the run did. What is here is complete up to then."
