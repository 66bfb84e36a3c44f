"""The page's script says the same of a run, and of any text, as the displays of the package."""

from __future__ import annotations

import json
import random
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from node_packages import node_run

# Private: the script does again what these do, and is compared with each by itself.
from thinkwell import events as ev
from thinkwell._core.log.reducer import ViewReducer
from thinkwell._core.policy.arguments import command_line
from thinkwell._display import numbers, phases, questions, text, tools, urls, usage
from thinkwell._display.compare import compare
from thinkwell.questions import FormField

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.view import RunView

SCRIPT = Path(__file__).with_name("script") / "same.mjs"
RECORDINGS = Path(__file__).parents[1] / "progress" / "recordings"


def said(what: str, values: Sequence[Any]) -> list[Any]:
    """What the script says of values."""
    found: list[Any] = json.loads(node_run(SCRIPT, stdin=json.dumps({what: values})))
    return found


def reduced(events: Sequence[ev.ThoughtEvent]) -> RunView:
    reducer = ViewReducer()
    reducer.apply(events)
    return reducer.snapshot()


def told(events: Sequence[ev.ThoughtEvent]) -> dict[str, Any]:
    """What Python makes of a run, in the form of the script."""
    view = reduced(events)
    calls = [tools.describe(tool, view.cwd) for tool in view.tools.values()]
    shown: dict[str, Any] = {
        "seq": events[-1].seq,
        "agent": view.agent,
        "cwd": view.cwd,
        "model": view.model or "",
        "mode": view.mode or "",
        "messages": view.messages,
        "thoughts": view.thought_blocks,
        "users": view.user_messages,
        "timeline": [item.kind for item in view.timeline],
        "tools": [
            [
                tool.id,
                tool.title,
                tool.name or "",
                tool.kind,
                tool.status,
                tool.input,
                tool.output,
                len(tool.content),
                tool.started_at,
                tool.ended_at,
                tool.parent,
            ]
            for tool in view.tools.values()
        ],
        "calls": [
            {
                "verb": call.verb,
                "target": call.target,
                "status": call.status,
                "seconds": call.seconds,
                "doing": call.doing,
            }
            for call in calls
        ],
        "codes": [tools.exit_code(tool) for tool in view.tools.values()],
        "phases": [[phase.phase, phase.detail, phase.at, phase.seconds] for phase in view.phases],
        "plans": [
            [plan.id, [[entry.content, entry.status] for entry in plan.entries]]
            for plan in view.plans.values()
        ],
        "open": sorted([question.id, question.deadline] for question in view.questions),
        "verdicts": [list(map(questions.verdict_words, question.verdicts)) for question in view.questions],
        "denied": len(view.denied),
        "attempts": [[one.accepted, one.value, one.errors] for one in view.attempts[-20:]],
        "tokens": None
        if view.tokens is None
        else {
            name: value
            for name, value in (
                ("total", view.tokens.total),
                ("input", view.tokens.input),
                ("output", view.tokens.output),
                ("cachedRead", view.tokens.cached_read),
                ("cachedWrite", view.tokens.cached_write),
                ("thought", view.tokens.thought),
            )
            if value is not None
        },
        "usage": usage.usage_parts(view),
        "durations": [list(each) for each in phases.durations(view)],
        "words": "" if view.stalled is not None else phases.words(view),
        "turns": view.turns,
        "dropped": view.dropped,
        "reason": view.stop_reason or "",
    }
    plain: dict[str, Any] = json.loads(msgspec.json.encode(shown))
    return plain


def as_json(events: Sequence[ev.ThoughtEvent]) -> list[Any]:
    return [json.loads(ev.event_to_json(event)) for event in events]


def recorded(name: str) -> list[ev.ThoughtEvent]:
    """The events of a recording."""
    lines = (RECORDINGS / f"{name}.ndjson").read_text("utf-8").split("\n")
    found = [json.loads(line) for line in lines if line]
    events = [msgspec.convert(one["event"], ev.ThoughtEvent) for one in found if one["type"] == "event"]
    return [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(events, 1)]


def _waits(view: dict[str, Any]) -> dict[str, Any]:
    """A run as it is told, with what only the page calls otherwise called the same."""
    view["words"] = view["words"].replace("waiting for your answer", "waiting for an answer")
    return view


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDINGS.glob("*.ndjson")))
def test_a_recorded_run_comes_to_the_same(name: str) -> None:
    events = recorded(name)
    parts = [events[: number + 1] for number in range(0, len(events), max(1, len(events) // 12))] + [events]
    found = said("runs", [as_json(part) for part in parts])
    for part, one in zip(parts, found, strict=True):
        assert _waits(one) == told(part)


KINDS = ("read", "edit", "execute", "search", "move", "fetch", "think", "other", "delete", "switch_mode")
INPUTS: tuple[Any, ...] = (
    None,
    {"command": "ls -l", "description": "List"},
    {"command": ["git", "commit", "-m", "it's done"], "env": {"A": "b c"}},
    {"cmd": "make", "args": ["-j", "4"]},
    {"command": "view", "path": "/w/a.py"},
    {"file_path": "/w/src/a.py"},
    {"paths": ["/w/a", "/elsewhere/b"]},
    {"pattern": "x  y", "path": "/w/src"},
    {"query": "weather", "include": "/w"},
    {"url": "https://example.com/a"},
    {"source": "/w/a", "destination": "/w/b"},
    "plain",
    ["list"],
    {"constructor": 1, "__proto__": 2},
)
OUTPUTS: tuple[Any, ...] = (
    None,
    "text",
    {"exit_code": 2},
    {"exitCode": 0, "stdout": "x"},
    {"returncode": True},
)


class _Tale:
    """A run of events that mean something together, made up at random."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._at = -2.0
        self._seq = 0

    def events(self, count: int) -> list[ev.ThoughtEvent]:
        return [self._event() for _ in range(count)]

    def _event(self) -> ev.ThoughtEvent:
        self._seq += 1
        self._at = round(self._at + self._random.choice((0.0, 0.25, 3.5)), 3)
        made = self._random.choice(
            (self._text, self._text, self._tool, self._tool, self._question, self._about, self._course)
        )()
        return msgspec.structs.replace(made, seq=self._seq, at=self._at)

    def _one(self, *values: Any) -> Any:
        return self._random.choice(values)

    def _text(self) -> ev.ThoughtEvent:
        kind = self._one(ev.Thought, ev.Message, ev.Message, ev.UserMessage)
        event: ev.ThoughtEvent = kind(
            text=self._one("", "word ", "**more**\n"), message_id=self._one(None, None, "m1", "m2")
        )
        return event

    def _tool(self) -> ev.ThoughtEvent:
        id_ = self._one("t1", "t2", "t3", "t4")
        content = self._one(
            (),
            (ev.DiffContent(path="/w/a.py", old_text="a\nb\n", new_text="a\nc\n"),),
            (ev.BlockContent(content=ev.TextContent(text="out")),),
        )
        locations = self._one((), (ev.Location(path="/w/src/a.py", line=3), ev.Location(path="/x/b")))
        title = self._one("", "Read a file", "`ls`", "run ls", "x\u202ey \x1b[1mz")
        name = self._one(None, "mcp__srv__look", "own_tool")
        match self._one("start", "update", "done"):
            case "start":
                return ev.ToolStart(
                    id=id_,
                    title=title,
                    kind=self._one(*KINDS),
                    input=self._one(*INPUTS),
                    content=content,
                    locations=locations,
                    status=self._one("pending", "in_progress"),
                    name=name,
                    parent=self._one(None, "t1"),
                )
            case "update":
                return ev.ToolUpdate(
                    id=id_,
                    title=self._one(None, title),
                    kind=self._one(None, *KINDS),
                    input=self._one(*INPUTS),
                    output=self._one(*OUTPUTS),
                    content=self._one(None, content),
                    locations=self._one(None, locations),
                    status=self._one(None, "in_progress"),
                    name=name,
                )
            case _:
                return ev.ToolDone(
                    id=id_,
                    status=self._one("completed", "failed", "cancelled"),
                    content=content,
                    output=self._one(*OUTPUTS),
                    title=title,
                )

    def _question(self) -> ev.ThoughtEvent:
        id_ = self._one("q1", "q2")
        match self._one("ask", "say", "answer"):
            case "ask":
                option = ev.QuestionOption(id="y", name="Allow", kind="allow_once")
                return ev.QuestionAsked(
                    id=id_, title="May I?", options=(option,), timeout=self._one(None, 30.0), tool_id="t1"
                )
            case "say":
                return ev.QuestionVerdict(id="q0", verdict=self._one(None, "deny"), by="judge", why="")
            case _:
                choice = self._one(None, "allow_once", "reject_once", "accept", "constructor")
                return ev.QuestionAnswered(id=id_, choice=choice, by=self._one("human", "cancel"), why="well")

    def _about(self) -> ev.ThoughtEvent:
        models = (
            {"value": "a", "name": "Model A"},
            {"group": "g", "name": "Group", "options": [{"value": "b", "name": "Model B"}]},
        )
        option = {"id": "model", "name": "Model", "category": "model", "type": "select", "options": models}
        event: ev.ThoughtEvent = self._one(
            ev.SessionOpened(agent="claude", session_id="s", cwd="/w", model=self._one(None, "m")),
            ev.ConfigUpdate(raw=({**option, "currentValue": self._one("a", "b", "c")},)),
            ev.ModeUpdate(mode_id="plan"),
            ev.UsageUpdate(
                used=18_234, size=200_000, cost=self._one(None, ev.Cost(amount=0.0612, currency="USD"))
            ),
            ev.PlanUpdate(
                id=self._one("main", "other"),
                entries=(ev.PlanEntry(content="a", status=self._one("pending", "completed")),),
                removed=self._one(False, False, True),
            ),
            ev.Dropped(count=2),
            ev.UnknownUpdate(kind="x", raw={}),
        )
        return event

    def _course(self) -> ev.ThoughtEvent:
        usage = ev.TokenUsage(input=900, output=120, cached_read=self._one(0, 800, 4000))
        event: ev.ThoughtEvent = self._one(
            ev.PhaseChanged(phase="installing", detail="npm package x"),
            ev.PhaseChanged(phase=self._one("starting", "prompted")),
            ev.PhaseChanged(phase="initializing", seconds=1.5),
            ev.PhaseChanged(phase="responding"),
            ev.PhaseChanged(phase="responding"),
            ev.TurnStarted(number=self._one(1, 2)),
            ev.TurnEnded(number=1, stop_reason="end_turn", usage=self._one(None, usage)),
            ev.ResultAttempt(accepted=self._one(True, False), value={"a": 1}, errors=("no",)),
        )
        return event


def test_a_run_at_random_comes_to_the_same() -> None:
    runs = [_Tale(seed).events(60) for seed in range(120)]
    for one, run in zip(said("runs", [as_json(run) for run in runs]), runs, strict=True):
        assert _waits(one) == told(run)


def test_texts_are_cleaned_alike() -> None:
    shown = [chr(number) for number in range(0x2FFF) if unicodedata.category(chr(number)) != "Cn"]
    shown += [chr(number) for number in (0xD800, 0xE0A0, 0xF900, 0xFE0F, 0xFEFF, 0xFFFC, 0xE0041, 0x1F600)]
    chooser = random.Random(9)
    alphabet = "ab \n\r\t\x1b[]\x07\x9b0;m\u0300\u200d\u202e\u00ad\u2800é😀"
    texts = [f"a{char}b" for char in shown]
    texts += ["".join(chooser.choices(alphabet, k=30)) for _ in range(500)]
    texts += ["Z" + "\u0300" * 40, "\u0301x", "\x1b]0;title\x07after", "\x1b]0;" + "x" * 20_000, "a" * 90]
    for one, each in zip(said("texts", texts), texts, strict=True):
        assert one["exact"] == text.exact(each), ascii(each)
        assert one["clean"].expandtabs(text.TAB) == text.clean(each), ascii(each)
        if "😀" not in each:  # of which the script counts each half
            assert one["line"] == text.line(each, 40), ascii(each)


def test_numbers_are_told_alike() -> None:
    values = [
        0,
        0.04,
        3.2,
        9.96,
        10,
        37.4,
        59.4,
        59.6,
        102,
        3723,
        950,
        999,
        18_234,
        99_949,
        200_000,
        1_500_000,
        7e9,
    ]
    for one, value in zip(said("numbers", values), values, strict=True):
        assert one == {
            "seconds": numbers.seconds(value),
            "clock": numbers.clock(value).removeprefix("0"),  # the page has one form for all times
            "count": numbers.count(round(value)),
        }


def test_hosts_are_told_alike_where_they_are_certain() -> None:
    addresses = [
        "https://example.com/a?b#c",
        "http://user:secret@Example.COM:8080/",
        "https://bücher.example",
        "https://еxample.com",
        "https:\\\\example.com",
        "https:/example.com",
        "https://a\\@b.example",
        "javascript:alert(1)",
        "mailto:ada@example.com",
        "nothing",
    ]
    for one, address in zip(said("hosts", addresses), addresses, strict=True):
        assert one in (urls.url_host(address), ""), address
    assert said("hosts", addresses[:1]) == ["example.com"]


def test_commands_are_read_alike() -> None:
    assert said("commands", list(INPUTS)) == [command_line(each) for each in INPUTS]


def test_fields_are_told_alike() -> None:
    fields = [
        FormField(name="a", type="string", minimum=2, maximum=5, format="email", required=True),
        FormField(name="b", type="integer", minimum=1),
        FormField(name="c", type="choices", maximum=3),
        FormField(name="d", type="boolean"),
        FormField(name="e", type="unknown"),
    ]
    hints = [", ".join(questions._hints(field)) for field in fields]
    assert said("fields", [msgspec.to_builtins(field) for field in fields]) == hints


def test_changes_are_found_alike() -> None:
    chooser = random.Random(4)
    pairs = [
        (chooser.choices("abcd", k=chooser.randrange(12)), chooser.choices("abcd", k=chooser.randrange(12)))
        for _ in range(300)
    ]
    for one, (old, new) in zip(said("diffs", pairs), pairs, strict=True):
        found = compare(old, new)
        assert [tuple(change.values()) for change in one["changes"]] == [
            tuple(each) for each in found.changes
        ]
        assert one["exact"] == found.exact
