"""What happened in a run, in its order, as HTML: what was thought, said and done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell._display import diffs, numbers, questions, tools
from thinkwell._display.html_markup import NOTHING, Html, Room, joined, name, prose, shortened, tag, verbatim
from thinkwell._display.phases import OVER
from thinkwell._display.text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell._display.diffs import DiffLine, FileChange
    from thinkwell._display.tools import Call
    from thinkwell.view import AnswerView, RunView, TimelineItem, ToolView

NAME: Final = 160
"""Characters of what stands on one line."""

MESSAGE: Final = 20_000
"""Characters of a message."""

THOUGHT: Final = 6_000
"""Characters of thoughts that stand together."""

OUTPUT: Final = 4_000
"""Characters of a tool's output."""

LAST_LINES: Final = 5
"""Lines of the output of a tool that runs, and of what is thought, that are shown unasked."""

FILES: Final = 4
"""Files of which one tool's changes are drawn."""

HUNKS: Final = 2
"""Places of a file that are drawn."""

ROWS: Final = 40
"""Lines of a place that are drawn."""

LISTED: Final = 50
"""Tool calls that are listed in another one's place: those that share its line, or are its sub-agent's."""

DEPTH: Final = 3
"""Sub-agents of sub-agents that are drawn."""

BRIEF: Final = 64
"""By how much the bounds of an item are smaller where it would not fit otherwise."""

KINDS: Final = {"✔": "tw-ok", "✘": "tw-bad", "⊘": "tw-ask", "▸": "tw-now"}
"""The classes of marks."""

_SIGNS: Final = {"+": "tw-plus", "-": "tw-minus", " ": ""}


def timeline(view: RunView, now: float, room: Room) -> Html:
    """Return what happened. Where there is too little room, the beginning is left out."""
    items = _Items(view, now)
    parts: list[Html] = []
    end = len(view.timeline)
    while end:
        begin = items.begin(end)
        item = items.html(begin, end, 1)
        if len(item) > room.left:
            item = items.html(begin, end, BRIEF)
        if len(item) > room.left:
            parts.append(
                tag("div", verbatim(f"… {end:,} earlier steps are not shown"), kind="tw-said tw-dim")
            )
            break
        room.left -= len(item)
        parts.append(item)
        end = begin
    return tag("div", *reversed(parts), kind="tw-line") if any(parts) else NOTHING


class _Items:
    """The items of a view, one by one."""

    def __init__(self, view: RunView, now: float) -> None:
        self._view = view
        self._now = now
        self._over = view.phase in OVER
        self._children: dict[str, list[ToolView]] = {}
        """The tool calls of each sub-agent."""
        self._nested: set[str] = set()
        self._answers: dict[str, list[AnswerView]] = {}
        """What was answered about each tool call."""
        seen: set[str] = set()
        for tool in view.tools.values():
            if tool.parent in seen:  # what is in its own parent's place would never be drawn
                self._children.setdefault(tool.parent, []).append(tool)
                self._nested.add(tool.id)
            seen.add(tool.id)
        for answer in view.answers:
            if answer.tool_id is not None:
                self._answers.setdefault(answer.tool_id, []).append(answer)

    def _tool(self, item: TimelineItem) -> ToolView | None:
        """Return the tool call that stands at an item, unless it stands in a sub-agent's place."""
        if item.kind != "tool" or item.id is None or item.id in self._nested:
            return None
        return self._view.tools[item.id]

    def begin(self, end: int) -> int:
        """Return where the item that ends at a place of the timeline begins: some calls share a line."""
        begin = end - 1
        while begin >= 0 and self._folds(self._view.timeline[begin]):
            begin -= 1
        return min(begin + 1, end - 1)

    def _folds(self, item: TimelineItem) -> bool:
        tool = self._tool(item)
        return tool is not None and tools.folds(tool) and tool.id not in self._answers

    def html(self, begin: int, end: int, scale: int) -> Html:
        """Return an item, its bounds divided by `scale`."""
        view = self._view
        item = view.timeline[begin]
        match item.kind:
            case "tool":
                if end - begin > 1:
                    return self._fold([view.tools[one.id or ""] for one in view.timeline[begin:end]], scale)
                tool = self._tool(item)
                return self._call(tool, 0, scale) if tool else NOTHING
            case "message":
                return tag(
                    "div", prose(shortened(view.messages[item.index], MESSAGE // scale)), kind="tw-said"
                )
            case "thought":
                last = end == len(view.timeline) and not self._over
                return _thought(view.thought_blocks[item.index], THOUGHT // scale, last=last)
            case "user":
                said = prose(shortened(view.user_messages[item.index], MESSAGE // scale))
                return tag("div", said, kind="tw-user")
            case _:
                turn = verbatim(f"turn {item.index}")
                return tag("div", turn, kind="tw-said tw-dim") if item.index > 1 else NOTHING

    def _call(self, tool: ToolView, depth: int, scale: int) -> Html:
        """Return a tool call, with what it did inside."""
        call = tools.describe(tool, self._view.cwd)
        changes = diffs.changes_of(tool, self._view.cwd)
        answers = self._answers.get(tool.id, [])
        body = joined(
            (
                *(_answer(answer) for answer in answers[-LISTED // scale - 1 :]),
                *(
                    file_change(
                        change,
                        HUNKS,
                        ROWS // scale,
                        named=len(changes) > 1 or not call.target.startswith(change.path),
                    )
                    for change in changes[: max(1, FILES // scale)]
                ),
                _more(len(changes) - max(1, FILES // scale), "file"),
                self._output(tool, OUTPUT // scale),
                self._calls(self._children.get(tool.id, []), depth + 1, scale),
            )
        )
        running = tool.ended_at is None and not self._over
        row = self._row(call, tool, changes)
        if not body:
            return tag("div", row, kind="tw-item")
        denied = any(questions.allowed(answer) is False for answer in answers)
        unfolded = bool(changes) or running or denied or tool.status == "failed"
        return _unfolding(row, body, open_=unfolded and scale == 1)

    def _row(self, call: Call, tool: ToolView, changes: Sequence[FileChange]) -> Html:
        spent = call.seconds
        if spent is None and tool.ended_at is None and not self._over:
            spent = self._now - tool.started_at
        added = sum(change.added for change in changes)
        removed = sum(change.removed for change in changes)
        return tag(
            "span",
            tag("span", verbatim(call.icon), kind=f"tw-mark {KINDS.get(call.icon, 'tw-dim')}"),
            tag("span", name(call.verb, NAME // 4), kind="tw-verb"),
            tag("span", name(call.target, NAME), kind="tw-target"),
            counts(added, removed) if changes else tag("span", name(call.detail, NAME // 4), kind="tw-dim"),
            NOTHING if spent is None else tag("span", verbatim(numbers.seconds(spent)), kind="tw-time"),
            kind="tw-row",
        )

    def _calls(self, calls: Sequence[ToolView], depth: int, scale: int) -> Html:
        if not calls or depth > DEPTH:
            return _more(len(calls), "call")
        shown = calls[-max(1, LISTED // scale // depth) :]
        before = _more(len(calls) - len(shown), "earlier call")
        return joined((before, *(self._call(tool, depth, scale * 8) for tool in shown)))

    def _fold(self, calls: Sequence[ToolView], scale: int) -> Html:
        shown = calls[: LISTED // scale]
        rows = (
            tag("div", self._row(tools.describe(tool, self._view.cwd), tool, ()), kind="tw-item")
            for tool in shown
        )
        body = joined((*rows, _more(len(calls) - len(shown), "call")))
        return _unfolding(self._row(tools.fold(calls, self._view.cwd), calls[-1], ()), body)

    def _output(self, tool: ToolView, limit: int) -> Html:
        output = tools.output_of(tool).strip("\n")
        if not output:
            return NOTHING
        if tool.ended_at is None and not self._over:
            output = "\n".join(output.splitlines()[-LAST_LINES:])
        return tag("pre", verbatim(shortened(output, limit)), kind="tw-wrap")


def counts(added: int, removed: int) -> Html:
    """Return how many lines came and went."""
    came = tag("ins", verbatim(f"+{added:,}"))
    return tag("span", came, verbatim(" "), tag("del", verbatim(f"−{removed:,}")), kind="tw-counts")


def _unfolding(row: Html, body: Html, *, open_: bool = False) -> Html:
    return tag("details", tag("summary", row), tag("div", body, kind="tw-body"), kind="tw-item", open_=open_)


def _more(number: int, word: str) -> Html:
    if number <= 0:
        return NOTHING
    return tag("div", verbatim(f"… {numbers.plural(number, f'more {word}')}"), kind="tw-dim")


def _answer(answer: AnswerView) -> Html:
    return tag("div", name(questions.answered(answer), 4 * NAME), kind="tw-ask")


def _thought(text: str, limit: int, *, last: bool) -> Html:
    """Return thoughts, folded away unless they go on."""
    if last:
        ending = "\n".join(clean(text[-NAME * LAST_LINES :]).strip().splitlines()[-2:])
        return tag("div", tag("div", verbatim(ending), kind="tw-text"), kind="tw-said tw-thought")
    row = tag(
        "span",
        tag("span", verbatim("┆"), kind="tw-mark"),
        tag("span", verbatim("thought"), kind="tw-verb"),
        tag("span", name(text[:NAME], NAME * 3 // 4), kind="tw-dim"),
        kind="tw-row",
    )
    body = tag("div", prose(shortened(text, limit)), kind="tw-body")
    return tag("details", tag("summary", row), body, kind="tw-item tw-thought")


def file_change(change: FileChange, hunks: int, rows: int, *, named: bool = True) -> Html:
    """Return what becomes of a file: at most so many places with so many lines each."""
    kind = "new " if change.new_file else ""
    head = (verbatim(kind), name(change.path, NAME), verbatim("  "), counts(change.added, change.removed))
    title = tag("div", *head, kind="tw-dim") if named else NOTHING
    numbered = any(row.number is not None for hunk in change.hunks for row in hunk.lines)
    lines: list[Html] = []
    for number, hunk in enumerate(change.hunks[:hunks]):
        if number:
            lines.append(tag("span", verbatim("⋯\n"), kind="tw-dim"))
        lines.extend(_diff_line(row, 5 if numbered else 0) for row in hunk.lines[:rows])
        if (missing := hunk.more_lines + len(hunk.lines[rows:])) > 0:
            lines.append(tag("span", verbatim(f"… {numbers.plural(missing, 'more line')}"), kind="tw-dim"))
    body = tag("pre", *lines, kind="tw-diff") if lines else NOTHING
    rest = _more(len(change.hunks[hunks:]) + change.more_hunks, "hunk")
    cut = (
        tag("div", verbatim("too long to be compared line by line"), kind="tw-dim")
        if change.truncated
        else NOTHING
    )
    return joined((title, body, rest, cut))


def _diff_line(row: DiffLine, width: int) -> Html:
    number = "" if row.number is None else f"{row.number} "
    parts = [verbatim(f"{number:>{width}}{row.sign} ")]
    done = 0
    for begin, end in row.spans:
        parts += [verbatim(row.text[done:begin]), tag("mark", verbatim(row.text[begin:end]))]
        done = end
    rest = row.text[done:]
    return tag("span", *parts, verbatim(f"{rest}\n"), kind=_SIGNS[row.sign])  # lines without the style too
