"""A run: from a builder's task to a settled result."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, contextmanager
from functools import partial
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import anyio
import msgspec
from anyio.lowlevel import checkpoint_if_cancelled
from msgspec.structs import replace

from thinkwell import _prompt as prompt
from thinkwell import _shared_login
from thinkwell import events as ev
from thinkwell._context import adopted, copy_context
from thinkwell._convert import Mapper
from thinkwell._limits import IdleClock, Meter
from thinkwell._lines._names import RESPOND_METHOD, RESULT_META, SCHEMA_META
from thinkwell._log import RunLog, running_clock
from thinkwell._observing import RunFacts
from thinkwell._results import ResultTaker
from thinkwell._stream import Outcome, ThoughtResult, ThoughtStream
from thinkwell._wire_prompt import ANY_RESULT, prompt_blocks, tool_specs
from thinkwell.errors import (
    AgentClosed,
    ResultMissing,
    ResultRefused,
    SessionUnusable,
    ThinkwellError,
    ThoughtCancelled,
    ThoughtTimeout,
    ToolsNotSeen,
)
from thinkwell.questions import PermissionQuestion
from thinkwell.tools import ToolContext
from thinkwell_acp import AcpError, DecodeError, RpcError
from thinkwell_acp import schema as s
from thinkwell_acp.errors import AUTH_REQUIRED
from thinkwell_acp.mcp import ToolOutput

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from thinkwell._builder import Options, Spec
    from thinkwell._link import Link
    from thinkwell._listener import RunListener
    from thinkwell._turns import Ticket
    from thinkwell._wire_session import WireSession
    from thinkwell.questions import Answer, FormField, FormValue, Question
    from thinkwell_acp.client import PromptOutcome
    from thinkwell_acp.mcp import CallContext, ToolSpec

T = TypeVar("T")
X = TypeVar("X")
E = TypeVar("E", bound=ev.ThoughtEvent)

CANCEL_TIMEOUT: Final = 10.0
"""Seconds that a cancelled turn gets to end by itself. Agents were seen to take several."""

LEAVE_TIMEOUT: Final = 2.0
"""Seconds that a cancelled turn gets where the agent's block is left: its process is ended right after."""

HOLD_TIMEOUT: Final = 1.0
"""Seconds that the answer to a cancelled tool call waits for the end of the turn."""

CLOSE_TIMEOUT: Final = 5.0
"""Seconds that it then gets to end by its session being closed, before the agent's process is ended."""

_run_numbers = count(1)


class Run(Generic[T]):
    """The state of one run, and the task that drives it."""

    live = True

    def __init__(
        self,
        link: Link,
        spec: Spec[T],
        options: Options,
        session: WireSession,
        *,
        result_schema: dict[str, ev.JsonValue] | None,
        ephemeral: bool,
    ) -> None:
        self._link = link
        if options.listener is not None:
            self._check_listener(options.listener)  # before anybody learns of the run
        self._spec = spec
        self._options = options
        self._session = session
        self._ephemeral = ephemeral
        self._result_schema = result_schema
        self.id: Final = options.run_id or f"run-{next(_run_numbers)}"
        wrapped = spec.output.wrapped or result_schema is ANY_RESULT
        self._observers = link.observers.run(
            RunFacts(
                id=self.id,
                agent=link.name,
                include=options.include,
                text=spec.output.schema is None,
                ephemeral=ephemeral,
                wrapped=wrapped,
            )
        )
        self.log = RunLog(
            options.include,
            options.buffer,
            self.stop,
            clock=running_clock(),
            listeners=self._observers.listeners,
            agent=link.name,
            cwd=session.cwd,
        )
        link.launch_log.tell(self.log)
        self._phase: ev.Phase = "starting"
        self.log.add(ev.PhaseChanged, phase=self._phase)
        self.result: Outcome[T] = Outcome(self.id, self._settled, agent=link.name)
        self._results = ResultTaker(
            spec.output, wrapped=wrapped, retries=options.retries, log=self.log, outcome=self.result
        )
        self.mapper = Mapper(self.log, self._note_call, self._note_state, by_lines=link.by_lines)
        self._idle = IdleClock(self.log.now, self.mapper.last_update)
        self._meter = None if options.budget is None else Meter(options.budget, self.stop)
        self._scope = anyio.CancelScope()
        self._turn_over: anyio.Event | None = None
        """Set when the agent answers the prompt; ``None`` before the first one is sent."""
        self._login_wanted = False
        """Whether the prompt was refused for want of a login."""
        self._over = anyio.Event()
        self._stopped_by: Exception | None = None
        self._patience: anyio.CancelScope | None = None
        """Bounds the wait for the end of a cancelled turn."""
        self.given_up = False
        """Whether the turn could not be ended."""
        self._calls: set[anyio.CancelScope] = set()
        self._own_shown: set[str] = set()
        """Ids of calls of our tools that the agent has shown."""
        self._context = copy_context()
        self._turn = 0
        self._tools_told = False
        """Whether the readers know that the agent has fetched our tools."""
        self._told_session: str | None = None
        """The session that the readers know of."""
        self._reminders_left = options.reminders
        self._repeats: Counter[bytes] = Counter()
        """How often each question was asked."""
        self.result_fields: dict[str, ev.JsonValue] = {}
        """What an agent that speaks lines has ended its turn with."""
        self.listener: RunListener | None = None
        if options.listener is not None:
            self.attach(options.listener)
        self._ticket: Ticket | None = None
        self._place: int | None = None
        """How many runs had the session before this one; ``None`` until it has it."""

    @property
    def stream(self) -> ThoughtStream[T]:
        """A handle for the user."""
        return ThoughtStream(self.log, ThoughtResult(self.result), self)

    def _settled(self, raw: ev.JsonValue, error: Exception | None) -> None:
        if error is not None:
            self._link.advise(error)  # before anybody can look at it
        self._observers.settled(raw, error)

    # What a stream asks

    @property
    def session_id(self) -> str | None:
        """The agent's name for the session."""
        return self._session.id

    @property
    def recording(self) -> Path | None:
        """The file in which the agent is recorded."""
        return self._link.recording

    @property
    def late(self) -> tuple[ev.ThoughtEvent, ...]:
        """What came after the end and before the session's next turn."""
        if self._place is None:
            return ()
        begin, *end = self._session.turn_marks[self._place : self._place + 2]
        return tuple(self._session.between.events[begin : end[0] if end else None])

    def answer(self, question_id: str, answer: Answer, by: str) -> None:
        """Answer an open question of the run."""
        asker = self._link.asking.asker
        asker.answer(question_id, answer, by, concerns=lambda question: question.run_id == self.id)

    def attach(self, listener: RunListener) -> None:
        """Tell somebody of everything that happens, and ask him first what the agent asks.

        What has happened is told as far as it was kept.

        Raises:
            RuntimeError: Somebody listens already.
            ValueError: He is to decide what the agent may do, and it was said that everything is denied.
        """
        if self.listener is not None:
            raise RuntimeError(f"{self.id} has a listener already; give all handlers to one Handlers()")
        self._check_listener(listener)
        if listener.takes_questions and not self._link.client.offers_elicitation:
            self._link.logger.warning(
                "Agent %s was not told that its questions are answered, so it may not ask any: give "
                'open_agent(permissions="ask") or on_question=',
                self._link.name,
            )
            self._link.client.accept_elicitation()  # some agents ask all the same
        self.listener = listener
        listener.begin(self)
        for event in tuple(self.log.events):
            listener.event(event)
        self.log.listen(listener.event)

    def _check_listener(self, listener: RunListener) -> None:
        if listener.takes_approvals and self._link.asking.asker.denies_all:
            raise ValueError(
                'open_agent(permissions="deny") denies what a handler of approvals would be asked for; leave '
                'permissions= out, or give permissions="ask" or a PermissionPolicy'
            )

    def asked_too_often(self, question: Question) -> str | None:
        """Count a question, and return why it is one too many; ``None``: it is not."""
        limit = None if self.listener is None else self.listener.max_repeats
        if limit is None:
            return None
        content = _content(question)
        self._repeats[content] += 1
        if self._repeats[content] <= limit:
            return None
        return f"the agent has asked the same more than {limit} times: {question.title!r:.200}"

    # What a listener asks

    @property
    def agent(self) -> str:
        """Name of the agent."""
        return self._link.name

    @property
    def by_lines(self) -> bool:
        """Whether the agent speaks lines."""
        return self._link.by_lines

    @property
    def asks_others(self) -> bool:
        """Whether somebody is asked what the listener leaves open."""
        return self._link.asking.asker.asks_others

    def tell(self, kind: Callable[..., E], /, **fields: object) -> None:
        """Append an event. Readers learn of it with the next: it may come in the middle of a batch."""
        self.log.add(kind, **fields)

    async def respond(self, report: ev.Report, value: ev.JsonValue) -> None:
        """Answer what an agent that speaks lines has said."""
        if not self._in_turn:  # a program would take it for an answer to what it says in its next turn
            about = "Agent %s is not told the answer to %.200r: the turn of %s is over"
            self._link.logger.debug(about, self._link.name, report.kind, self.id)
            return
        answer: dict[str, ev.JsonValue] = {
            "kind": report.kind,
            "value": value,
            "sessionId": self._session.id,
        }
        if "id" in report.body:
            answer["id"] = report.message_id
        self._link.client.connection.notify(RESPOND_METHOD, answer)
        await self._link.call(self._link.client.connection.drain())

    def cancel(self) -> None:
        """Cancel the run."""
        self.stop(ThoughtCancelled())

    def kill(self) -> None:
        """End the agent's process at once."""
        if not self.log.ended:
            self._link.kill()

    async def wait(self) -> None:
        """Wait until the run is over."""
        await self._over.wait()

    def stop(self, why: Exception) -> None:
        """End the run before its time; the result fails with the reason unless it is there already."""
        if self.log.ended or self._stopped_by is not None:
            self._hurry()
            return
        self._stopped_by = why
        self.result.fail(why)
        if self._in_turn:
            assert self._session.id is not None
            self._link.client.cancel(self._session.id)
        self._link.withdraw(lambda question: question.run_id == self.id)
        self._cancel_calls()
        self.mapper.cancel_tools()
        self._scope.cancel()

    def standing_still(self) -> AbstractContextManager[None]:
        """Stop the clock for silence for the time of a block."""
        return self._idle.held()

    def know_own(self, tool_id: str) -> None:
        """Know that a tool call that the agent shows is of a tool of ours."""
        self._own_shown.add(tool_id)

    def is_own(self, tool_id: str) -> bool:
        """Return whether a tool call that the agent shows is of a tool of ours."""
        return tool_id in self._own_shown

    def _cancel_calls(self) -> None:
        for scope in tuple(self._calls):
            scope.cancel()

    # The task

    def queue_up(self) -> None:
        """Ask for the session: now, because tasks do not start in the order in which they were made."""
        others = (self._link.turns,) if self._link.by_lines else ()
        self._ticket = self._session.turns.ask(*others)

    async def main(self) -> None:
        """Drive the run to its end. Never raises."""
        try:
            await self._drive()
        except Exception as exc:
            if not isinstance(exc, AcpError | DecodeError | ThinkwellError | OSError):
                about = "Run %s of agent %s failed in a way that thinkwell did not foresee"
                self._link.logger.exception(about, self.id, self._link.name)
            self._end(self._link.error(exc))
        finally:
            self._end(self._stopped_by or AgentClosed())
            try:
                if self._ephemeral:
                    await self._session.close()
            finally:
                self._link.runs.pop(self, None)
                self._over.set()

    async def _drive(self) -> None:
        with anyio.move_on_after(self._options.timeout) as limit, self._scope:
            assert self._ticket is not None
            async with self._ticket:
                try:
                    with self._limited():
                        await self._work()
                finally:
                    # The session is held until its turn is over: a late cancellation cannot hit the next one.
                    with anyio.CancelScope(shield=True):
                        self._check_limit(limit)
                        if self._in_turn:
                            await self._wind_down()
        self._check_limit(limit)

    def _check_limit(self, limit: anyio.CancelScope) -> None:
        if limit.cancel_called:
            assert self._options.timeout is not None
            self.stop(ThoughtTimeout(self._options.timeout))

    @contextmanager
    def _limited(self) -> Generator[None]:
        """Keep the run within its budget and its silence, for the time of a block."""
        meter, idle_timeout = self._meter, self._options.idle_timeout
        with ExitStack() as watches:
            if idle_timeout is not None:
                self._idle.reset()
                watches.enter_context(self._watched(self._watch_silence, idle_timeout))
            if meter is not None:
                seconds_left = watches.enter_context(meter.budget.shared_by(meter))
                watches.enter_context(self._watched(meter.watch, seconds_left))
            yield

    @contextmanager
    def _watched(self, watch: Callable[[X], Awaitable[None]], argument: X) -> Generator[None]:
        scope = anyio.CancelScope()

        async def task() -> None:
            with scope:
                await watch(argument)

        self._link.tasks.start_soon(task)
        try:
            yield
        finally:
            scope.cancel()

    async def _watch_silence(self, limit: float) -> None:
        def warn(idle: float) -> None:
            self.log.add(ev.Stalled, idle=idle, limit=limit)
            self.log.publish()
            about = "Run %s: nothing was heard of agent %s for %.0f s; it is cancelled after %g s"
            self._link.logger.warning(about, self.id, self._link.name, idle, limit)

        await self._idle.watch(limit, self._has_reason, warn)
        self.stop(ThoughtTimeout(limit, idle=True))

    def _has_reason(self) -> bool:
        """Whether there is a reason for silence."""
        return self.mapper.tool_runs(besides=self._own_shown) or self._link.login.running

    @contextmanager
    def _authenticating(self) -> Generator[None]:
        """Show that a login is gone through, for the time of a block."""
        before = self._phase
        self._reach("authenticating")
        yield
        self._reach(before)

    def _reach(self, phase: ev.Phase) -> None:
        self._phase = phase
        self.log.add(ev.PhaseChanged, phase=phase)
        self.log.publish()

    async def _work(self) -> None:
        _shared_login.shown.set(self._authenticating)
        if not self._session.usable:
            raise SessionUnusable(self._session.id or "")
        if self._meter is not None and (used_up := self._meter.budget.exceeded(wants_more=True)):
            raise used_up
        tools = self.tool_specs()
        if self._session.id is None:
            self._take_session()  # before it is there: some agents send updates before they answer
            with self._link.asking.opening(self._session):
                await self._session.open(tools)
            self._idle.reset()
        self._tell_session()
        if tools:
            self._reach("connecting_tools")
            await self._session.offer(tools, needed=self._needs_tools)
            if self._session.tools.seen:
                self._tell_tools_seen()
                self._reach("tools_ready")
        if self._session.id != self._told_session:
            self._tell_session()  # the agent would not fetch other tools in the one that it had
        blocks = prompt_blocks(self._spec, self._link, self._result_schema, self._session.server_name)
        while blocks:
            await self._run_turn(blocks)
            blocks = self._reminder()

    def _tell_tools_seen(self) -> None:
        self._tools_told = True
        names = tuple(tool.name for tool in self.tool_specs())
        self.log.add(ev.ToolsSeen, names=names, via=self._session.tools.tried[-1])
        self.log.publish()

    def _tell_session(self) -> None:
        session = self._session
        assert session.id is not None
        self._told_session = session.id
        state = session.state
        self.log.add(
            ev.SessionOpened,
            agent=self._link.name,
            session_id=session.id,
            cwd=session.cwd,
            model=state.model,
            mode=state.mode,
        )
        self.log.publish()

    def _take_session(self) -> None:
        self._place = self._session.take(self)
        if self._meter is not None:
            self._meter.begin(self._session.cost)

    # What updates say, beside the events that they become

    def _note_call(self, call: s.ToolCallStart | s.ToolCallProgress) -> None:
        id_ = call.tool_call_id
        if self._session.note_call(call) or self._link.by_lines:  # its steps, of which nothing is a tool's
            self._own_shown.add(id_)
        elif isinstance(call, s.ToolCallStart):
            self._own_shown.discard(id_)
        if self._meter is not None:
            self._meter.shown_call(id_, own=id_ in self._own_shown)

    def _note_state(self, update: s.SessionUpdate) -> None:
        self._session.note_state(update)
        if self._meter is not None and isinstance(update, s.UsageUpdate):
            self._meter.context(update.used)
            if update.cost is not None:
                self._meter.cost(update.cost.amount, update.cost.currency)

    # Turns

    @property
    def _in_turn(self) -> bool:
        return self._turn_over is not None and not self._turn_over.is_set()

    async def _run_turn(self, blocks: Sequence[s.ContentBlock]) -> None:
        assert self._session.id is not None
        if not self._turn:
            self._observers.session(self._session.id)
        meta: dict[str, ev.JsonValue] = {**self._observers.meta(), **(self._spec.meta or {})}
        if self._link.by_lines and self._spec.output.schema is not None:
            meta[SCHEMA_META] = self._spec.output.schema
        request = s.PromptRequest(session_id=self._session.id, prompt=tuple(blocks), meta=meta or None)
        if self._place is None:
            self._take_session()  # not before: what comes until now is late news of the turn before
        logins = self._link.client.logins
        self._login_wanted = False
        turn_over = await self._send_prompt(request)
        if turn_over.is_set():
            return  # the connection had ended
        self._turn += 1
        self._session.history.prompted(blocks)
        self.log.add(ev.TurnStarted, number=self._turn, reminder=self._turn > 1)
        self._reach("prompted")
        self.mapper.await_response()
        await turn_over.wait()
        if self._login_wanted:
            await self._link.client.login_since(logins)
            await (await self._send_prompt(request)).wait()

    async def _send_prompt(self, request: s.PromptRequest) -> anyio.Event:
        await checkpoint_if_cancelled()  # nobody would cancel the turn of a run that was stopped before
        self._idle.reset()
        turn_over = anyio.Event()
        self._link.client.start_prompt(request, partial(self._prompt_ended, turn_over))
        self._turn_over = turn_over
        return turn_over

    def _reminder(self) -> Sequence[s.ContentBlock]:
        if self.log.ended:
            return ()
        refused = self._results.refused
        wrong = None if refused is None else refused.errors
        return (s.TextContent(text=prompt.reminder(wrong)),)

    async def _wind_down(self) -> None:
        """Wait for a cancelled turn to end; then close the session; then end the agent."""
        assert self._turn_over is not None
        with anyio.move_on_after(CANCEL_TIMEOUT) as self._patience:
            self._hurry()
            await self._turn_over.wait()
            return
        if self._link.leaving:
            return  # the agent's process is ended next, and everything with it
        client, session = self._link.client, self._session
        assert session.id is not None
        session.usable = False
        self.given_up = True
        if client.capabilities.session_capabilities.close is not None:
            with anyio.move_on_after(CLOSE_TIMEOUT) as self._patience:
                try:
                    await client.close_session(s.CloseSessionRequest(session_id=session.id))
                    await self._turn_over.wait()
                    return
                except (AcpError, DecodeError) as exc:
                    self._link.logger.debug(
                        "Agent %s: session/close of %s: %s", self._link.name, session.id, exc
                    )
        session.occupant = None
        self._link.give_up(self)

    def _hurry(self) -> None:
        """Wait less for the agent where the block around the run is being left."""
        leaving = self._link.leaving or self._session.leaving
        if leaving and self._patience is not None:
            soon = anyio.current_time() + LEAVE_TIMEOUT
            self._patience.deadline = min(self._patience.deadline, soon)

    # The end of a turn; called while messages are being read

    def _prompt_ended(self, turn_over: anyio.Event, outcome: PromptOutcome) -> None:
        turn_over.set()
        if not isinstance(outcome, s.PromptResponse):
            if not self._wants_login(outcome):
                self._end(self._stopped_by or self._link.error(outcome))
            return
        if self._link.by_lines and outcome.meta is not None and self._stopped_by is None:
            self.result_fields = outcome.meta.get(RESULT_META) or {}
            self._results.take_fields(self.result_fields)
        usage = None if outcome.usage is None else s.to_builtins(outcome.usage)
        self.log.add(ev.TurnEnded, number=self._turn, stop_reason=outcome.stop_reason, usage=usage)
        self.log.publish()  # a full buffer stops the run now or never
        if self._stopped_by is not None:
            self._end(self._stopped_by)
        elif not self._wants_reminder(outcome.stop_reason):
            self._conclude(outcome.stop_reason)
        if self._meter is not None:  # not before: the result that is there stays
            self._meter.end_turn(0 if outcome.usage is None else outcome.usage.total_tokens)

    def _wants_login(self, outcome: Exception) -> bool:
        """Whether the prompt is to be sent again after a login: once, and only where nothing came of it."""
        self._login_wanted = (
            not self._login_wanted
            and isinstance(outcome, RpcError)
            and outcome.code == AUTH_REQUIRED
            and self._link.login.method is not None
            and self._stopped_by is None
            and self.mapper.awaiting_response
        )
        return self._login_wanted

    def _wants_reminder(self, stop_reason: str) -> bool:
        if self.result.done() or self._spec.output.schema is None or stop_reason != "end_turn":
            return False
        if not self._reminders_left or not self._session.tools.seen:
            return False
        self._reminders_left -= 1
        return True

    @property
    def _tools_missed(self) -> bool:
        """Whether the task needs tools and the agent has never fetched any."""
        return self._needs_tools and not self._session.tools.seen

    @property
    def _needs_tools(self) -> bool:
        if self._link.by_lines:
            return False
        return bool(self._spec.tools) or self._spec.output.schema is not None

    def _conclude(self, stop_reason: str) -> None:
        """Settle the result by what the last turn came to, and end the log."""
        text = self.log.last_message()
        output = self._spec.output
        if self.result.done():
            self._end(None)
        elif stop_reason == "refusal":
            self._end(ResultRefused(text))
        elif output.text is not None and stop_reason == "end_turn" and not self._tools_missed:
            self.result.set(output.text(text), text)
            self._end(None)
        elif self._results.refused is not None:
            self._end(self._results.refused)
        elif self._tools_missed:
            self._end(ToolsNotSeen(self._session.tools.tried, text))
        else:
            self._end(ResultMissing(stop_reason, text, denied=self.log.view().denied))

    def _end(self, error: Exception | None) -> None:
        """Append the end, once. Without an error it is the result's, where that is one."""
        if self.log.ended:
            return
        if self._session.occupant is self:
            self._session.occupant = None
        self._cancel_calls()
        self._link.withdraw(lambda question: question.run_id == self.id)
        if error is not None:
            self._link.advise(error)
            self.result.fail(error)
        final = self.result.error or error
        phase: ev.Phase = "completed"
        if final is not None:
            self.mapper.cancel_tools()
            phase = "cancelled" if isinstance(final, ThoughtCancelled) else "failed"
        self.log.add(ev.PhaseChanged, phase=phase)
        self.log.end(final)
        self._observers.ended(final)

    # Tools

    def tool_specs(self) -> list[ToolSpec]:
        """Return the tools that the run offers."""
        return tool_specs(self._spec, self._result_schema)

    async def call_tool(
        self, name: str, arguments: dict[str, ev.JsonValue], context: CallContext
    ) -> ToolOutput:
        """Run a tool for the agent."""
        self._idle.reset()
        if not self._tools_told and not self.log.ended:
            self._tell_tools_seen()  # some agents fetch them in the middle of the turn
        if name == prompt.RESULT_TOOL:
            return self._results.take(arguments)
        if self._meter is not None and self._stopped_by is None:
            self._meter.own_call()
        if self._stopped_by is not None:
            return _task_cancelled()
        tool = next(tool for tool in self._spec.tools if tool.name == name)
        with self._idle.held(), anyio.CancelScope() as scope:
            self._calls.add(scope)
            try:
                with adopted(self._context), self._observers.calling(name):
                    told = ToolContext(self._session.id or "", context.report, self._ask)
                    result = await tool.call(arguments, told)
                    if result.is_error:
                        self._observers.call_failed()
            finally:
                self._calls.discard(scope)
            return ToolOutput(content=result.content, structured=result.structured, is_error=result.is_error)
        # The answer to a cancelled call must not overtake the cancellation of the turn, or the agent goes on.
        if self._turn_over is not None:
            with anyio.move_on_after(HOLD_TIMEOUT):
                await self._turn_over.wait()
        return _task_cancelled()

    async def _ask(self, title: str, fields: Sequence[FormField]) -> dict[str, FormValue] | None:
        """Ask something for a tool of ours."""
        return await self._link.asking.ask_for_tool(title, fields, self._session, self.id)


def _content(question: Question) -> bytes:
    """Return what is the same where a question is asked again."""
    said = question.message
    if said is not None:
        question = replace(question, input=None) if isinstance(question, PermissionQuestion) else question
        said = {name: value for name, value in said.items() if name != "id"}
    whole = msgspec.json.encode(replace(question, id="", tool_id=None, message=said))
    return blake2b(whole, digest_size=16).digest()  # what is kept of a long one is short


def _task_cancelled() -> ToolOutput:
    return ToolOutput.text("The task was cancelled.", is_error=True)
