"""What is known of a run besides its conversation, event by event: questions, plans, its state."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from msgspec.structs import replace

from thinkwell import events as ev
from thinkwell._display.calls import is_denied, is_result_title
from thinkwell._display.changes import answered_question, open_question, with_tokens
from thinkwell._values.session_options import chosen_model
from thinkwell.view import TokenCounts

if TYPE_CHECKING:
    from thinkwell._display.changes import ToolEvent
    from thinkwell.view import AnswerView, QuestionView


class Questions:
    """The questions of a run, open and answered."""

    def __init__(self) -> None:
        self.answers: list[AnswerView] = []
        self.denied: list[str] = []
        """Titles of denied questions."""
        self._open: dict[str, QuestionView] = {}
        self._verdicts: dict[str, list[ev.QuestionVerdict]] = {}
        """Verdicts on the open questions."""

    def take(self, event: ev.QuestionAsked | ev.QuestionVerdict | ev.QuestionAnswered) -> None:
        """Handle an event of a question."""
        if isinstance(event, ev.QuestionAsked):
            self._open[event.id] = open_question(event)
        elif isinstance(event, ev.QuestionVerdict):
            self._verdicts.setdefault(event.id, []).append(event)
        else:
            self._answered(event)

    def _answered(self, event: ev.QuestionAnswered) -> None:
        asked = self._open.pop(event.id, None)
        if asked is not None:
            answer = answered_question(self._with_verdicts(asked), event)
            if is_denied(answer):
                self.denied.append(asked.title)
            self.answers.append(answer)
        self._verdicts.pop(event.id, None)

    def open(self) -> tuple[QuestionView, ...]:
        """Return the open ones, with their verdicts so far."""
        return tuple(map(self._with_verdicts, self._open.values()))

    def _with_verdicts(self, question: QuestionView) -> QuestionView:
        verdicts = self._verdicts.get(question.id)
        return dataclasses.replace(question, verdicts=tuple(verdicts)) if verdicts else question


class Plans:
    """The plans of a run."""

    def __init__(self) -> None:
        self.known: dict[str, ev.PlanUpdate] = {}
        self.changes = 0

    def take(self, event: ev.PlanUpdate) -> None:
        """Handle a change of a plan."""
        if event.removed:
            self.known.pop(event.id, None)
            return
        before = self.known.get(event.id)
        if before is not None and _steps(before) != _steps(event):
            self.changes += 1
        self.known[event.id] = event

    def main(self) -> tuple[ev.PlanEntry, ...]:
        """Return the entries of the main plan."""
        plan = self.known.get("main") or next(iter(self.known.values()), None)
        return plan.entries if plan else ()


class ResultCall:
    """The last call that seems to return the result."""

    def __init__(self) -> None:
        self.id: str | None = None
        """Its id, unless the result was refused."""
        self._refused: str | None = None

    def take(self, event: ToolEvent) -> None:
        """Handle an event of a tool call."""
        if isinstance(event, ev.ToolStart) and event.id == self._refused:
            self._refused = None  # the id is used again
        named = event.title if isinstance(event, ev.ToolDone) else event.name or event.title
        if named is not None and is_result_title(named) and event.id != self._refused:
            self.id = event.id

    def refused(self) -> None:
        """Forget it: its result was refused."""
        self._refused, self.id = self.id, None


class State:
    """The state of a run besides its conversation, questions and plans."""

    def __init__(self, session: ev.SessionOpened) -> None:
        self.session = session
        self.phases: list[ev.PhaseChanged] = []
        self.usage: ev.UsageUpdate | None = None
        self.tokens: TokenCounts | None = None
        self.attempts: list[ev.ResultAttempt] = []
        self.notices: list[ev.Notice] = []
        self.stalled: ev.Stalled | None = None
        self.mode: str | None = None
        self.commands: tuple[ev.Command, ...] = ()
        self.turns = 0
        self.dropped = 0
        self.stop_reason: str | None = None
        self.background: tuple[str, ...] = ()

    def take(self, event: ev.ThoughtEvent) -> None:  # noqa: C901 - one table
        """Handle an event; most do not concern this state."""
        match event:
            case ev.UsageUpdate():
                known = None if self.usage is None else self.usage.cost
                self.usage = event if event.cost is not None else replace(event, cost=known)
            case ev.SessionOpened():
                self.session = event
                self.mode = event.mode
            case ev.ConfigUpdate():
                model = (
                    chosen_model(event.options) or self.session.model
                )  # older agents have no option for it
                self.session = replace(self.session, model=model)
            case ev.ModeUpdate():
                self.mode = event.mode_id
            case ev.CommandsUpdate():
                self.commands = event.commands
            case ev.PhaseChanged():
                self.phases.append(event)
            case ev.TurnStarted():
                self.turns = event.number
            case ev.TurnEnded():
                self.stop_reason = event.stop_reason
                if event.usage is not None:
                    self.tokens = with_tokens(self.tokens or TokenCounts(), event.usage)
            case ev.ResultAttempt():
                self.attempts.append(event)
            case ev.Notice():
                self.notices.append(event)
            case ev.BackgroundWork():
                self.background = event.tools
            case ev.Stalled():
                self.stalled = event
            case ev.Dropped():
                self.dropped += event.count
            case _:
                pass  # not shown


def _steps(plan: ev.PlanUpdate) -> tuple[object, ...]:
    return plan.markdown, plan.uri, *(entry.content for entry in plan.entries)
