"""A report as one page of HTML, which loads nothing and runs no script.

What agents wrote is in it: every text goes through `_text`, or through the nodes of `thinkwell._display`.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from thinkwell._display import numbers
from thinkwell._display.diffs import Kept
from thinkwell._display.items import panels, rows
from thinkwell._display.items.html import LEAST, to_html
from thinkwell._display.items.nodes import element
from thinkwell._display.text import clean, line
from thinkwell.trials._files.patches import LONGEST, changes_in
from thinkwell.trials._files.style import PAGE_STYLE
from thinkwell.trials._files.words import money, spent_words, total_cost, totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from thinkwell._display.items.nodes import Node
    from thinkwell.events import JsonValue
    from thinkwell.trials._statistics import AgentSummary, Estimate
    from thinkwell.trials._trial import Status, Trial

    _ByInput: TypeAlias = Mapping[str, Sequence[tuple[int, Trial]]]

__all__ = ("page",)

LIMIT: Final = 9_500_000
"""Most bytes of the page, with something to spare to ten million."""

MOST: Final = 400_000
"""Most bytes of what one trial has to show."""

ROW: Final = 5_000
"""Bytes of a trial without what it has to show."""

LINE: Final = 100
"""Characters that a changed line takes, or more."""

WORDS: Final = 20_000
"""Most characters of a result, a check's words, or an error."""

CHANCES: Final = (1, 2, 3, 5, 10, 20, 50, 100)
"""The numbers of trials for which pass@k is shown, besides the largest."""

MARKS: Final[dict[Status, str]] = {
    "passed": "✔",
    "failed": "✘",
    "error": "!",
    "cancelled": "⊘",
    "running": "◐",
    "waiting": "·",
}

_CUT: Final = '<div class="tw-dim">… more is not shown</div>'


def page(trials: Sequence[Trial], agents: Sequence[AgentSummary], replays: Mapping[int, str]) -> str:
    """Return the page.

    Args:
        trials: The trials.
        agents: The statistics of the agents.
        replays: The addresses of the pages with the replays of the trials, by their numbers from 1 on.
    """
    policy = f"default-src 'none'; style-src {_hash(PAGE_STYLE)}; base-uri 'none'; form-action 'none'"
    by_input: dict[str, list[tuple[int, Trial]]] = {}
    for numbered in enumerate(trials, 1):
        by_input.setdefault(numbered[1].input, []).append(numbered)
    told = " · ".join((numbers.plural(len(trials), "trial"), *totals(trials), *total_cost(trials)))
    room = min(MOST, (LIMIT - len(PAGE_STYLE)) // max(len(trials), 1) - ROW)
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n',
        f"<title>Trials – thinkwell</title>\n<style>{PAGE_STYLE}</style>\n</head>\n<body>\n<main>\n",
        f'<h1>Trials</h1>\n<p class="dim">{_text(told)}</p>\n',
        *_agents(agents),
        *_matrix(by_input, [each.agent for each in agents]),
        *_trials(by_input, replays, room),
        "</main>\n</body>\n</html>\n",
    ]
    return "".join(parts)


def _hash(style: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"


def _text(text: str, limit: int = 200) -> str:
    """Return a text as one line of HTML, also for an attribute."""
    return escape(line(text, limit))


def _table(
    look: str, label: str, heads: Iterable[str], rows: Iterable[tuple[str, Iterable[str]]]
) -> Iterator[str]:
    """Yield a table: its rows have a name, and cells of HTML."""
    yield f'<div class="sheet" tabindex="0" role="region" aria-label="{label}">'
    yield f'<table class="{look}">\n<thead><tr>'
    yield "".join(f'<th scope="col">{_text(head)}</th>' for head in heads)
    yield "</tr></thead>\n<tbody>\n"
    for name, cells in rows:
        yield f'<tr><th scope="row">{_text(name)}</th>'
        yield "".join(f"<td>{cell}</td>" for cell in cells)
        yield "</tr>\n"
    yield "</tbody></table></div>\n"


# Agents


def _agents(agents: Sequence[AgentSummary]) -> Iterator[str]:
    plots = (
        ("Pass rate", [(each, each.rate) for each in agents], _percent),
        ("Cost of a trial, median", [(each, each.cost) for each in agents], money),
        ("Time of a trial, median", [(each, each.seconds) for each in agents], numbers.seconds),
    )
    yield '<section>\n<h2>Agents</h2>\n<div class="plots">\n'
    for title, figures, words in plots:
        most = 1.0 if words is _percent else max((each.high for _, each in figures if each), default=0.0)
        yield f'<figure class="sheet"><figcaption>{title}</figcaption>\n'
        for summary, estimate in figures:
            yield f'<div class="row"><span>{_text(summary.agent)}</span>'
            if estimate is None:
                yield '<span class="dim">not known</span></div>\n'
                continue
            interval = f"{words(estimate.low)} to {words(estimate.high)}"
            about = f" · {summary.passed} of {summary.trials}" if words is _percent else ""
            yield f'<span class="figure">{words(estimate.value)} '
            yield f'<span class="dim">({interval}){about}</span></span>{_bar(estimate, most)}</div>\n'
        yield "</figure>\n"
    yield "</div>\n"
    yield '<p class="dim">In brackets, and as lines: 95 % confidence intervals.</p>\n'
    yield from _chances(agents)
    yield "</section>\n"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _bar(estimate: Estimate, most: float) -> str:
    """Return a figure as a bar, and its interval as a line across the bar's end."""
    value, low, high = (
        round(1000 * each / most) if most else 0 for each in (estimate.value, estimate.low, estimate.high)
    )
    ends = "".join(
        f'<rect class="interval" x="{min(max(at - 1, 0), 997)}" y="3" width="3" height="8"/>'
        for at in (low, high)
    )
    return (
        '<svg viewBox="0 0 1000 14" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="rail" width="1000" height="14"/><rect class="bar" width="{value}" height="14"/>'
        f'<rect class="interval" x="{low}" y="6" width="{high - low}" height="2"/>{ends}</svg>'
    )


def _chances(agents: Sequence[AgentSummary]) -> Iterator[str]:
    """Yield pass@k of each agent."""
    most = max((max(each.pass_at, default=0) for each in agents), default=0)
    if most < 2:
        return
    shown = [*(k for k in CHANCES if k < most), most]
    heads = ["One of k passes", *(f"k = {k}" for k in shown)]
    rows = (
        (each.agent, [_percent(each.pass_at[k]) if k in each.pass_at else "–" for k in shown])
        for each in agents
    )
    yield from _table("chances", "pass@k", heads, rows)


# The matrix


def _matrix(by_input: _ByInput, agents: Sequence[str]) -> Iterator[str]:
    rows = (
        (given, [_cell([each for each in trials if each[1].agent == agent]) for agent in agents])
        for given, trials in by_input.items()
    )
    yield "<section>\n<h2>Inputs × agents</h2>\n"
    yield from _table("matrix", "Inputs and agents", ["Input", *agents], rows)
    yield "</section>\n"


def _cell(numbered: Sequence[tuple[int, Trial]]) -> str:
    marks = "".join(_mark(trial, number) for number, trial in numbered)
    passed = sum(trial.status == "passed" for _, trial in numbered)
    sums = f'<span class="dim">{passed} of {len(numbered)}</span>' if len(numbered) > 1 else ""
    return f'<div class="marks">{marks}</div>{sums}'


def _mark(trial: Trial, number: int) -> str:
    words = _text(f"{trial.agent}, {trial.repeat}: {trial.status}")
    return (
        f'<a href="#trial-{number}" class="{trial.status}" title="{words}" aria-label="{words}">'
        f"{MARKS[trial.status]}</a>"
    )


# The trials


def _trials(by_input: _ByInput, replays: Mapping[int, str], room: int) -> Iterator[str]:
    yield "<section>\n<h2>Trials</h2>\n"
    for given, trials in by_input.items():
        yield f"<h3>{_text(given)}</h3>\n"
        for number, trial in trials:
            facts = " · ".join(_facts(trial))
            yield (
                f'<details class="trial"><summary><span class="{trial.status}" aria-hidden="true">'
                f"{MARKS[trial.status]}</span><strong>{_text(trial.agent, 100)}</strong>"
                f'<span>{trial.repeat}</span><span class="{trial.status}">{trial.status}</span>'
                f'<span class="facts">{_text(facts)}</span></summary>\n'
            )
            yield f'<div id="trial-{number}">'
            if replay := replays.get(number):
                yield f'<p><a href="{escape(quote(replay))}">Replay</a></p>'
            yield _shown(trial, room)
            yield "</div></details>\n"
    yield "</section>\n"


def _facts(trial: Trial) -> Iterator[str]:
    if trial.changes:
        stat = trial.changes.stat
        yield f"+{stat.insertions:,} −{stat.deletions:,}"
    if trial.score is not None:
        yield f"score {trial.score:g}"
    if trial.attempts > 1:
        yield f"{trial.attempts} attempts"
    yield from spent_words(trial.spent)
    if trial.seconds:
        yield numbers.seconds(trial.seconds)


def _shown(trial: Trial, room: int) -> str:
    """Return what a trial has to show, in so many bytes."""
    html = _filled(trial, room * 19 // 20)
    if len(html.encode()) > room:
        html = _filled(trial, room // 4)  # a character takes four bytes at most
    return f'<div class="thinkwell-run">{html}</div>'


def _filled(trial: Trial, limit: int) -> str:
    """Return what a trial has to show, in so many characters."""
    html = ""
    for node in _nodes(trial, limit):
        if limit - len(html) < LEAST:
            return html.removesuffix(_CUT) + _CUT
        html += to_html(node, limit - len(html))
    return html


def _nodes(trial: Trial, limit: int) -> Iterator[Node]:
    most = min(WORDS, limit // 4)
    told: dict[str, JsonValue] = {"Error": trial.error, "Check": trial.detail or None, "Result": trial.result}
    for title, what in told.items():
        if what is not None:
            yield element("div", "label", title)
            if isinstance(what, str):
                yield element("pre", "wrap", clean(rows.shortened(what, most)))
            else:
                yield panels.value_node(what, None, 0)
    if trial.changes:
        yield element("div", "label", "Changes")
        kept = Kept(hunks=limit // LINE, side=limit // LINE // 4)
        for change in changes_in(trial.changes.diff, kept):
            yield rows.change(change, *(rows.hunk(hunk, change.path) for hunk in change.hunks))
        if len(trial.changes.diff) > LONGEST:
            yield element("div", "dim", "… the rest is too long to be shown")
