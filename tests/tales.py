"""Runs made up at random, of events that mean something together."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from thinkwell import events as ev

__all__ = ("tale",)

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


def tale(seed: int, count: int) -> list[ev.ThoughtEvent]:
    """A run of so many events."""
    return _Tale(seed).events(count)
