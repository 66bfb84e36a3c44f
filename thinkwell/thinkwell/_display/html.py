"""A run as a piece of HTML: without scripts, links and images, and of a bounded size.

It is made for notebooks, which take the page as it is: every string that an agent, a tool or a recording had
a hand in goes through `thinkwell._display.html_markup`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from thinkwell._core.schema.json_schema import is_array, is_object
from thinkwell._display import numbers, phases, questions, summary, usage
from thinkwell._display.html_items import NAME, ROWS, file_change, timeline
from thinkwell._display.html_markup import NOTHING, Html, Room, joined, name, prose, shortened, tag, verbatim
from thinkwell._display.html_style import STYLE
from thinkwell._display.text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from thinkwell import events as ev
    from thinkwell._display.questions import Asked
    from thinkwell._display.summary import RunStatus
    from thinkwell.view import AnswerView, RunView

PAGE_LIMIT: Final = 400_000
"""Characters of a page, whatever the run was like. A notebook's file keeps the page."""

FRAME_LIMIT: Final = 100_000
"""The same while the run goes on and the page is sent again and again."""

LEAST: Final = 20_000
"""Characters below which nothing is drawn of one of several runs but its row."""

RESULT: Final = 20_000
"""Characters of a result."""

FIELDS: Final = 60
"""Fields of a result that have rows of their own."""

AROUND: Final = 100
"""Characters of the elements around a run that is one of several."""

COMMAND: Final = 8_000
"""Characters of what needs a permission."""

STEPS: Final = 40
"""Steps of a plan."""

LEAST_SECONDS: Final = 0.05
"""Seconds of a phase that is worth a word."""

ASKED: Final = 5
"""Of open questions, refused results and notices so many each."""

_MARKS: Final[dict[RunStatus, tuple[str, str]]] = {
    "running": ("▸", "tw-now"),
    "done": ("✔", "tw-ok"),
    "failed": ("✘", "tw-bad"),
    "cancelled": ("⊘", "tw-ask"),
}

_STEPS: Final = {"completed": ("✔", "tw-over"), "in_progress": ("▸", "tw-here"), "pending": ("·", "")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What is drawn of a run."""

    view: RunView
    now: float
    """Seconds since the run began; how long it took, where it is over."""
    label: str = ""
    """What the program calls the run."""
    result: str | None = None
    """The result, as text or as JSON. ``None``: what the view tells of it."""
    recording: str | None = None
    """Where the run is recorded."""
    cancelling: bool = False

    @property
    def over(self) -> bool:
        """Whether the run is over."""
        return self.view.phase in phases.OVER

    @property
    def status(self) -> RunStatus:
        """How the run ended, or that it goes on."""
        return summary.status_of(self.view)


def page(picture: Picture, *, limit: int = PAGE_LIMIT) -> str:
    """Return a run as HTML of at most `limit` characters. What is left out is said there."""
    return _whole(_run(picture, limit - len(_whole(NOTHING))))


def bundle(plain: str, view: RunView, now: float, recording: Path | None) -> dict[str, str]:
    """Return a run as notebooks take it: by kinds, of which they choose.

    Args:
        plain: The run as text.
        view: The run.
        now: Seconds since it began.
        recording: Where it is recorded.
    """
    picture = Picture(view=view, now=now, recording=None if recording is None else str(recording))
    return {"text/plain": plain, "text/html": page(picture)}


def pages(pictures: Sequence[Picture], *, limit: int = PAGE_LIMIT) -> str:
    """Return several runs as one page: a row for each, those that failed first.

    Those that are over can be unfolded: what is drawn anew all the time could not be kept open.
    """
    room = (limit - len(_whole(NOTHING))) // max(1, len(pictures))
    ordered = sorted(pictures, key=lambda picture: picture.status != "failed")
    rows = joined(_several(picture, room) for picture in ordered)
    return _whole(rows if len(rows) <= limit - len(_whole(NOTHING)) else verbatim(f"{len(pictures)} runs"))


def _whole(body: Html) -> str:
    return tag("div", Html(f"<style>{STYLE}</style>"), body, kind="thinkwell-run")


def _several(picture: Picture, left: int) -> Html:
    mark, kind = _MARKS[picture.status]
    used = " · ".join(usage.usage_parts(picture.view))
    row = tag(
        "span",
        tag("span", verbatim(mark), kind=f"tw-mark {kind}"),
        tag("b", name(picture.label or picture.view.agent or "run", NAME)),
        tag("span", joined((_phase(picture), name(used, NAME)), " · "), kind="tw-dim"),
        tag("span", verbatim(numbers.clock(picture.now)), kind="tw-time"),
        kind="tw-row",
    )
    room = Room(left - len(row) - AROUND)
    if not picture.over:
        asked = room.take(lambda scale: _open_questions(picture.view, picture.now, scale))
        return tag("div", row, asked, kind="tw-item")
    if left < LEAST:
        return tag("div", row, kind="tw-item")
    body = tag("div", _run(picture, room.left), kind="thinkwell-run")
    return tag("details", tag("summary", row), body, kind="tw-item")


def _run(picture: Picture, limit: int) -> Html:
    view = picture.view
    room = Room(limit)
    head = room.take(lambda scale: _head(picture, NAME // scale))
    end = room.take(lambda scale: _end(picture, scale))
    foot = room.take(lambda scale: _foot(picture, NAME // scale))
    plan = room.take(lambda scale: _plan(view.plan, STEPS // scale, NAME // scale))
    asked = room.take(lambda scale: _open_questions(view, picture.now, scale))
    told = timeline(view, picture.now, room)
    return joined((head, plan, told, asked, end, foot))


def _phase(picture: Picture) -> Html:
    return name(phases.words(picture.view, cancelling=picture.cancelling), NAME)


def _head(picture: Picture, limit: int) -> Html:
    view = picture.view
    mark, kind = _MARKS[picture.status]
    title = name(picture.label or view.agent or "run", limit)
    agent = view.agent if picture.label and picture.label != view.agent else ""
    facts = [fact for fact in (agent, view.model, view.mode, view.cwd) if fact]
    running = len(phases.running(view))
    state = joined(
        (
            _phase(picture),
            verbatim(numbers.plural(running, "tool") + " running" if running else ""),
            verbatim(numbers.clock(picture.now)),
        ),
        " · ",
    )
    return tag(
        "div",
        tag("span", verbatim(mark), kind=f"tw-mark {kind}"),
        tag("b", title),
        tag("span", joined((name(fact, limit) for fact in facts), " · "), kind="tw-dim"),
        tag("span", state, kind=f"tw-phase {'tw-dim' if picture.over else 'tw-now'}"),
        kind="tw-head",
    )


def _plan(entries: Sequence[ev.PlanEntry], steps: int, limit: int) -> Html:
    """Return the steps around the one that is being worked at."""
    if not entries:
        return NOTHING
    done = sum(entry.status == "completed" for entry in entries)
    begin = max(0, min(done - steps // 2, len(entries) - steps))
    parts = [tag("span", verbatim(f"plan {done}/{len(entries)}"), kind="tw-dim")]
    if begin:
        parts.append(tag("span", verbatim(f"… {begin} before"), kind="tw-dim"))
    for entry in entries[begin : begin + steps]:
        mark, kind = _STEPS[entry.status]
        parts.append(tag("span", verbatim(f"{mark} "), name(entry.content, limit), kind=kind))
    if rest := len(entries) - begin - steps:
        parts.append(tag("span", verbatim(f"… {rest} more"), kind="tw-dim") if rest > 0 else NOTHING)
    return tag("div", joined(parts, " "), kind="tw-plan")


def _open_questions(view: RunView, now: float, scale: int) -> Html:
    """Return what waits for an answer, in full: a person is to decide by it."""
    boxes = [_question(questions.asked(question, view), now, scale) for question in view.questions[:ASKED]]
    if (more := len(view.questions) - ASKED) > 0:
        boxes.append(tag("div", verbatim(f"… {numbers.plural(more, 'more question')}"), kind="tw-dim"))
    if view.stalled is not None and view.phase not in phases.OVER:
        quiet = f"nothing was heard of the agent for {numbers.seconds(view.stalled.idle)}"
        boxes.append(tag("div", verbatim(quiet), kind="tw-box"))
    return joined(boxes)


def _question(asked: Asked, now: float, scale: int) -> Html:
    limit = COMMAND // scale
    left = asked.left(now)
    exactly = [part for part in (asked.said, asked.command, asked.arguments, asked.url) if part]
    exactly += asked.about[:ASKED]
    offered = [choice.label for choice in asked.options] or [
        f"{one.label} ({one.hint}{one.offered and f': {one.offered}'})" for one in asked.fields
    ]
    files = len(asked.about[ASKED:]) + asked.more_about
    unseen = [
        f"… {numbers.plural(count, what)}"
        for count, what in (
            (files, "more file"),
            (len(asked.changes[ASKED:]), "more change"),
            (len(offered[FIELDS:]) + asked.more_options, "more choice"),
        )
        if count
    ]
    return tag(
        "div",
        tag("b", verbatim("? "), name(asked.title, NAME), kind="tw-ask"),
        NOTHING if left is None else tag("span", verbatim(f"  {numbers.clock(left)} left"), kind="tw-dim"),
        *(tag("pre", verbatim(shortened(part, limit)), kind="tw-wrap") for part in exactly),
        tag("div", verbatim("leads to "), name(asked.host, NAME)) if asked.host else NOTHING,
        *(file_change(change, ASKED, ROWS // scale) for change in asked.changes[:ASKED]),
        *(tag("div", name(verdict, 4 * NAME)) for verdict in asked.verdicts[-ASKED:]),
        tag("div", joined((name(one, NAME) for one in offered[:FIELDS]), " · "), kind="tw-dim"),
        *(tag("div", verbatim(each), kind="tw-dim") for each in unseen),
        kind="tw-box",
    )


def _end(picture: Picture, scale: int) -> Html:
    """Return what came of the run: its error or its result, and what was refused on the way."""
    view = picture.view
    refused = [attempt for attempt in view.attempts if not attempt.accepted]
    parts = [_notice(notice) for notice in view.notices[-ASKED:]]
    alone = [answer for answer in view.answers if answer.tool_id not in view.tools]
    parts += [_answer(answer) for answer in alone[-ASKED:]]
    if refused:
        told = (tag("div", name("; ".join(one.errors[:ASKED]), 4 * NAME)) for one in refused[-ASKED:])
        row = verbatim(numbers.plural(len(refused), "result was refused", "results were refused"))
        parts.append(tag("details", tag("summary", row, kind="tw-ask"), tag("div", *told, kind="tw-body")))
    if view.error is not None and view.phase in phases.OVER:
        parts.append(_error(view.error, picture.status, RESULT // scale))
    parts.append(_result(picture, scale))
    return joined(parts)


def _answer(answer: AnswerView) -> Html:
    return tag("div", name(f"{answer.title}: {questions.answered(answer)}", 4 * NAME), kind="tw-ask")


def _error(error: Exception, status: RunStatus, limit: int) -> Html:
    words = summary.error_words(error)
    quoted = tag("pre", verbatim(shortened(words.detail, limit)), kind="tw-wrap") if words.detail else NOTHING
    return tag(
        "div",
        tag("div", verbatim(shortened(words.what, limit)), kind="tw-text"),
        quoted,
        tag("div", verbatim(f"→ {shortened(words.next, limit)}"), kind="tw-text") if words.next else NOTHING,
        kind=f"tw-box {_MARKS[status][1]}",
    )


def _notice(notice: ev.Notice) -> Html:
    told = f"{notice.title}: {notice.description}" if notice.description else notice.title
    return tag("div", name(f"{notice.severity}: {told}", 4 * NAME), kind="tw-ask")


def _result(picture: Picture, scale: int) -> Html:
    result = picture.result if picture.result is not None else _given(picture.view)
    messages = picture.view.messages
    if result is None or (messages and result.strip() == messages[-1].strip()):  # it stands there already
        return NOTHING
    return tag("div", tag("div", verbatim("result"), kind="tw-dim"), _value(result, scale), kind="tw-line")


def _given(view: RunView) -> str | None:
    """Return the last result that was accepted, as JSON."""
    for attempt in reversed(view.attempts):
        if attempt.accepted:
            return _json(attempt.value)
    return None


def _json(value: ev.JsonValue) -> str:
    try:
        return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    except RecursionError:
        return "…"


def _value(result: str, scale: int) -> Html:
    """Return a result: an object as a table, text as text, and everything else as JSON."""
    limit = RESULT // scale
    if not result.lstrip().startswith(("{", "[")):
        return prose(shortened(result, limit))
    try:
        value: ev.JsonValue = json.loads(result)
    except (ValueError, RecursionError):
        return prose(shortened(result, limit))
    if not is_object(value) or not value:
        return _code(result, limit)
    shown = list(value.items())[: max(1, FIELDS // scale)]
    each = max(NAME, limit // len(shown))
    rows = [_row(name(key, NAME // 2), _field(one, each)) for key, one in shown]
    more = len(value) - len(shown)
    if more:
        rows.append(_row(verbatim(f"… {numbers.plural(more, 'more field')}"), NOTHING))
    return tag("table", *rows, kind="tw-fields")


def _row(key: Html, value: Html) -> Html:
    return tag("tr", tag("th", key), tag("td", value), kind="tw-field")


def _field(value: ev.JsonValue, limit: int) -> Html:
    if isinstance(value, str):
        return verbatim(clean(shortened(value, limit)))
    if is_array(value) and value and all(isinstance(item, str) for item in value):
        return verbatim(clean(shortened("\n".join(f"• {item}" for item in value), limit)))
    shown = _json(value)
    return _code(shown, limit) if "\n" in shown else verbatim(shortened(shown, limit))


def _code(text: str, limit: int) -> Html:
    return tag("pre", verbatim(clean(shortened(text, limit))), kind="tw-wrap")


def _foot(picture: Picture, limit: int) -> Html:
    """Return the sums: what was done, what it took, and where it can be found again."""
    rows = [usage.usage_words(picture.view)]
    if picture.over:
        sums = summary.summary(picture.view, picture.now, picture.recording)
        turns = numbers.plural(sums.turns, "turn") if sums.turns > 1 else ""
        spent = (
            f"{word} {numbers.seconds(taken)}" for word, taken in sums.durations if taken >= LEAST_SECONDS
        )
        rows = [
            " · ".join(filter(None, (sums.work, turns, sums.usage))),
            " · ".join(spent),
            f"session {sums.session_id}" if sums.session_id else "",
            f"recorded in {sums.recording}" if sums.recording else "",
        ]
    return tag("div", *(tag("div", name(row, 4 * limit)) for row in rows if row), kind="tw-line tw-dim")
