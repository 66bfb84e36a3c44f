"""The record of one run: its log, its result, its calls of our tools."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from thinkwell import events as ev
from thinkwell._core.log.budget import IdleClock, Meter
from thinkwell._core.log.run_log import RunLog, running_clock
from thinkwell._core.log.settlement import Settlement
from thinkwell._core.protocol.updates import Mapper
from thinkwell._core.schema.partial import PartialResult
from thinkwell._core.turn.after_work import AfterWork
from thinkwell._core.turn.own_tools import OwnTools
from thinkwell._core.turn.results import ResultTaker
from thinkwell.errors import ThoughtCancelled
from thinkwell.questions import PermissionQuestion
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from thinkwell._core.log.listener import RunListener
    from thinkwell._core.log.log_lines import LogLines
    from thinkwell._core.log.observers import RunFacts, RunObservers
    from thinkwell._core.log.owner import Owner
    from thinkwell._core.protocol.dialect import Dialect
    from thinkwell._core.protocol.tool_calls import ToolCalls
    from thinkwell._core.task.builder import Options, Spec
    from thinkwell._core.turn.own_tools import Driver
    from thinkwell.questions import Question
    from thinkwell_acp.mcp import ToolSpec

T = TypeVar("T")
E = TypeVar("E", bound=ev.ThoughtEvent)


class RunRecord(Generic[T]):
    """The record of a run. Its `Run` drives it, and its session passes on the agent's updates.

    Args:
        facts: The known facts when the run begins.
        spec: The task.
        options: The run's options.
        specs: The declarations of the run's tools for the agent.
        driver: The run.
        cwd: The folder in which it works.
        calls: The tool calls of the session.
        owner: Where the agent was opened.
        observers: The observers.
        dialect: The agent's use of the protocol.
    """

    def __init__(
        self,
        facts: RunFacts,
        spec: Spec[T],
        options: Options,
        specs: Sequence[ToolSpec],
        driver: Driver,
        *,
        cwd: str,
        calls: ToolCalls,
        owner: Owner,
        observers: RunObservers,
        dialect: Dialect,
    ) -> None:
        self.id: str = facts.id
        self._agent = facts.agent
        self.lines: LogLines = facts.lines
        self._driver = driver
        self.observers = observers
        self.log: RunLog = RunLog(
            options.include,
            options.buffer,
            driver.stop,
            clock=running_clock(),
            listeners=observers.listeners,
            agent=facts.agent,
            cwd=cwd,
            partial=PartialResult(spec.output, own_fields=facts.own_fields, whole_fields=facts.whole_fields),
            owner=owner,
        )
        self.phase: ev.Phase = "starting"
        self.result: Settlement[T] = Settlement(facts.id, self._settled, lines=facts.lines, owner=owner)
        self.results: ResultTaker[T] = ResultTaker(
            spec.output, wrapped=facts.wrapped, retries=options.retries, log=self.log, outcome=self.result
        )
        self._calls = calls
        self.mapper: Mapper = Mapper(
            self.log, calls, self._note_call, self._note_state, report=dialect.report
        )
        self._steps_are_ours = dialect.steps_are_ours
        self.after_work: AfterWork = AfterWork(self.log, self.mapper.last_update)
        self.idle: IdleClock = IdleClock(self.log.now, self.mapper.last_update)
        self.meter: Meter | None = None if options.budget is None else Meter(options.budget, driver.stop)
        self.tools: OwnTools = OwnTools(
            spec.tools,
            specs,
            driver,
            log=self.log,
            results=self.results,
            idle=self.idle,
            meter=self.meter,
            observers=observers,
        )
        self.listener: RunListener | None = None
        """The listener, which gets everything and is asked first."""
        self._repeats: Counter[bytes] = Counter()
        """How often each question was asked."""
        self.result_fields: dict[str, ev.JsonValue] = {}
        """The fields with which an agent that sends reports has ended its turn."""
        self._denied_own: list[str] = []
        """Explanations of denied calls of our tools."""

    # Called by the run

    def reach(self, phase: ev.Phase) -> None:
        """Enter a phase."""
        self.phase = phase
        self.tell(ev.PhaseChanged, phase=phase)
        self.log.publish()

    def tell(self, kind: Callable[..., E], /, **fields: object) -> None:
        """Append an event. Readers get it with the next: it may come in the middle of a batch."""
        self.log.add(kind, **fields)

    def listen(self, listener: RunListener) -> None:
        """Attach a listener. It also gets earlier events, as far as they were kept."""
        self.listener = listener
        for event in tuple(self.log.events):
            listener.event(event)
        self.log.listen(listener.event)

    def cut(self) -> None:
        """End the running calls: those of our tools, and those that the agent shows."""
        self.tools.cancel()
        self.mapper.cancel_tools()

    def end(self, error: Exception | None) -> None:
        """Append the end. Without an error, the result's error counts, if it has one."""
        self.tools.cancel()
        if error is not None:
            self._explain(error)
            self.result.fail(error)
        final = self.result.error
        phase: ev.Phase = "completed"
        cut: str | None = None
        if final is not None:
            phase = "cancelled" if isinstance(final, ThoughtCancelled) else "failed"
        elif error is not None:  # too late to invalidate the result
            cut = type(error).__name__
        if final is not None or error is not None:
            self.mapper.cancel_tools()
        self.log.add(ev.PhaseChanged, phase=phase, cut=cut)
        self.log.end(final)
        self.observers.ended(final, cut)

    def _settled(self, raw: ev.JsonValue, error: Exception | None) -> None:
        if error is not None:
            self._explain(error)  # before the error is visible
        self.observers.settled(raw, error)

    def _explain(self, error: Exception) -> None:
        """Add possible causes to an error."""
        self._driver.advise(error)
        for note in self._denied_own:
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)

    # Called by the session

    def standing_still(self) -> AbstractContextManager[None]:
        """Stop the clock for silence during a block."""
        return self.idle.held()

    def stop(self, why: Exception) -> None:
        """End the run early."""
        self._driver.stop(why)

    def _note_call(self, update: s.ToolCallStart | s.ToolCallProgress) -> None:
        call = self._calls.meet(update.tool_call_id)
        if isinstance(update.raw_output, str):  # a call for each update would cost more than this check
            self.after_work.note_call(update)
        if self._driver.note_call(update) or self._steps_are_ours:
            call.ours = True
        elif isinstance(update, s.ToolCallStart):
            call.ours = False
        if (
            self.meter is not None and call.counted is call.ours
        ):  # a call of a tool of ours is counted by that
            call.counted = not call.ours
            self.meter.tool_call(1 if call.counted else -1)

    def _note_state(self, update: s.SessionUpdate) -> None:
        self._driver.note_state(update)
        if isinstance(update, s.UsageUpdate):
            self.after_work.note_usage(update)
            if self.meter is not None:
                self.meter.context(update.used)
                if update.cost is not None:
                    self.meter.cost(update.cost.amount, update.cost.currency)

    def is_own(self, tool_id: str) -> bool:
        """Return whether a tool call that the agent shows is of a tool of ours."""
        call = self._calls.get(tool_id)
        return call is not None and call.ours

    def tool_runs(self) -> bool:
        """Return whether a tool call is running, as far as the agent says, that is not of our tools."""
        return self._calls.others_run()

    def denied_own(self, words: str) -> None:
        """Log that a call that seems to be of our tool was denied: the run may succeed anyway."""
        if words not in self._denied_own:
            self._denied_own.append(words)
            self.lines(logging.WARNING, "Run %s of agent %s: %s", self.id, self._agent, words)

    def asked_too_often(self, question: Question) -> str | None:
        """Count a question, and return a reason if it is one too many, else ``None``."""
        limit = None if self.listener is None else self.listener.max_repeats
        if limit is None:
            return None
        content = _content(question)
        self._repeats[content] += 1
        if self._repeats[content] <= limit:
            return None
        return f"the agent has asked the same more than {limit} times: {question.title!r:.200}"


def _content(question: Question) -> bytes:
    """Return a key that is the same when a question is asked again."""
    said = question.message
    if said is not None:
        question = replace(question, input=None) if isinstance(question, PermissionQuestion) else question
        said = {name: value for name, value in said.items() if name != "id"}
    from hashlib import blake2b  # loads OpenSSL, which `import thinkwell` avoids

    whole = msgspec.json.encode(replace(question, id="", tool_id=None, message=said))
    return blake2b(whole, digest_size=16).digest()  # keeps little memory for a long question
