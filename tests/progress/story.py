"""Runs that are told event by event, as displays are given them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from thinkwell import events as ev
from thinkwell._reducer import ViewReducer
from thinkwell.progress._renderer import Shown

if TYPE_CHECKING:
    from thinkwell.view import RunView

CWD: Final = "/home/ada/shop"


class Story:
    """A run: what is told happens, and `now` is what a display is given."""

    def __init__(self, agent: str = "claude", **shown: Any) -> None:
        self._reducer = ViewReducer(agent=agent, cwd=CWD)
        self._error: Exception | None = None
        self.time = 0.0
        self.shown: dict[str, Any] = {"label": agent, **shown}
        self.phase("responding")

    def tell(self, *events: ev.ThoughtEvent) -> Story:
        self._reducer.apply(events)
        return self

    def after(self, seconds: float) -> Story:
        self.time += seconds
        return self

    def phase(self, phase: ev.Phase, detail: str = "") -> Story:
        return self.tell(ev.PhaseChanged(phase=phase, detail=detail, at=self.time))

    def say(self, text: str, message: str | None = None) -> Story:
        return self.tell(ev.Message(text=text, message_id=message, at=self.time))

    def think(self, text: str) -> Story:
        return self.tell(ev.Thought(text=text, at=self.time))

    def begin(self, id_: str, kind: ev.ToolKind = "execute", **about: Any) -> Story:
        about.setdefault("title", id_)
        path = about.pop("path", None)
        locations = () if path is None else (ev.Location(path=f"{CWD}/{path}"),)
        return self.tell(
            ev.ToolStart(id=id_, kind=kind, status="in_progress", locations=locations, at=self.time, **about)
        )

    def put_out(self, id_: str, text: str) -> Story:
        content = (ev.BlockContent(content=ev.TextContent(text=text)),)
        return self.tell(ev.ToolUpdate(id=id_, content=content, at=self.time))

    def end(self, id_: str, status: ev.FinalStatus = "completed", text: str = "", **about: Any) -> Story:
        if text:
            about["content"] = (ev.BlockContent(content=ev.TextContent(text=text)),)
        return self.tell(ev.ToolDone(id=id_, status=status, at=self.time, **about))

    def read(self, *names: str) -> Story:
        for name in names:
            self.begin(name, "read", path=name).end(name)
        return self

    def plan(self, *steps: str, done: int = 0) -> Story:
        entries = tuple(
            ev.PlanEntry(
                content=step,
                status="completed" if number < done else "in_progress" if number == done else "pending",
            )
            for number, step in enumerate(steps)
        )
        return self.tell(ev.PlanUpdate(entries=entries, at=self.time))

    def ask(self, id_: str = "q", **about: Any) -> Story:
        options = (
            ev.QuestionOption(id="yes", name="Allow", kind="allow_once"),
            ev.QuestionOption(id="no", name="Reject", kind="reject_once"),
        )
        about = {"title": "May I?", "options": options, "timeout": 60.0, **about}
        return self.tell(ev.QuestionAsked(id=id_, at=self.time, **about))

    def answer(self, id_: str = "q", choice: str | None = "allow_once", by: str = "human") -> Story:
        return self.tell(ev.QuestionAnswered(id=id_, choice=choice, by=by, why="", at=self.time))

    def fail(self, error: Exception) -> Story:
        self._error = error
        return self.phase("failed")

    @property
    def view(self) -> RunView:
        return self._reducer.snapshot(self._error)

    @property
    def now(self) -> Shown:
        return Shown(view=self.view, now=self.time, **self.shown)

    def asking(self, id_: str = "q", problem: str = "") -> Shown:
        return replace(self.now, asking=id_, problem=problem)
