"""A run: the task that drives a session from a builder's task to a settled result."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import anyio
from anyio.lowlevel import checkpoint_if_cancelled
from msgspec import structs

from thinkwell import events as ev
from thinkwell._core.agent import login as shared_login
from thinkwell._core.agent.limits import limited
from thinkwell._core.agent.run_life import RunLife, next_run_id
from thinkwell._core.agent.run_plan import RunTurns
from thinkwell._core.log.log_lines import LogLines
from thinkwell._core.log.observers import RunFacts
from thinkwell._core.protocol.errors import turn_failed
from thinkwell._core.protocol.prompt import ANY_RESULT, prompt_blocks, tool_specs
from thinkwell._core.protocol.updates import token_usage
from thinkwell._core.session.host import SessionHost
from thinkwell._core.task.prompt import TextPart
from thinkwell._core.turn.after_turn import failure
from thinkwell._core.turn.own_tools import Driver
from thinkwell._core.turn.run_record import RunRecord
from thinkwell._core.turn.turn import PATIENT, Patience, Turn
from thinkwell.errors import AgentClosed, SessionUnusable, ThinkwellError, ThoughtTimeout
from thinkwell_acp import AcpError, DecodeError, RpcError
from thinkwell_acp import schema as s
from thinkwell_acp.errors import AUTH_REQUIRED

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

    from thinkwell._core.agent.failures import AgentErrors
    from thinkwell._core.agent.launch import LaunchLog
    from thinkwell._core.agent.login import SharedLogin
    from thinkwell._core.agent.questions import AgentQuestions
    from thinkwell._core.agent.run_plan import RunPlan
    from thinkwell._core.log.observers import RunObserver
    from thinkwell._core.log.stream import ThoughtStream
    from thinkwell._core.session.turn_queue import Ticket, Turns
    from thinkwell._core.task.builder import Spec
    from thinkwell.questions import FormField, FormValue
    from thinkwell_acp._tasks import BackgroundTasks
    from thinkwell_acp.client import PromptOutcome

T = TypeVar("T")


class RunHost(SessionHost, frozen=True, kw_only=True):
    """State that the runs of one agent share, in addition to that of its sessions."""

    tasks: BackgroundTasks
    errors: AgentErrors
    login: SharedLogin
    questions: AgentQuestions
    launch_log: LaunchLog
    recording: Path | None
    """The file of the recording."""
    turns: Turns
    """The queue for an agent that works on one prompt at a time."""
    start: Callable[[RunPlan[Any]], ThoughtStream[Any]]
    """Starts another run."""
    kill: Callable[[str], None]
    """Ends the agent's process at once, with a reason."""
    over: Callable[[Run[Any]], None]
    """Called when a run is over."""
    turn_lost: Callable[[Run[Any]], None]
    """Called when the agent does not end the turn of a run."""

    def prompt(
        self, spec: Spec[Any], schema: dict[str, ev.JsonValue] | None, server: str | None, system: str
    ) -> Sequence[s.ContentBlock]:
        """Return the first prompt of a task, in the form that the agent takes.

        Args:
            spec: The task.
            schema: Schema of ``return_result``; ``None``: there is no such tool.
            server: Name of the MCP server of our tools.
            system: Instructions to put before the prompt.
        """
        return prompt_blocks(
            spec,
            embeds=self.client.capabilities.prompt_capabilities.embedded_context,
            plain=not self.dialect.has_tools,
            result_schema=schema,
            server=server,
            system=system,
        )


class Run(Generic[T]):
    """The task of one run.

    Args:
        host: State shared with other runs of its agent.
        plan: What it is to do, and where.
        observer: Learns what happens in it, besides the agent's observers.
    """

    def __init__(self, host: RunHost, plan: RunPlan[T], observer: RunObserver | None = None) -> None:
        spec, options, session, schema = plan.spec, plan.options, plan.session, plan.result_schema
        self._host = host
        self._plan = plan
        self.session = session
        self._ephemeral = plan.ephemeral
        self.id: Final = options.run_id or next_run_id()
        self.life: RunLife = RunLife.QUEUED
        self._scope = anyio.CancelScope()
        self.over: anyio.Event = anyio.Event()
        self._stopped_by: Exception | None = None
        facts = RunFacts(
            id=self.id,
            agent=host.name,
            lines=LogLines(agent=host.name, run=self.id),
            include=options.include,
            text=spec.output.schema is None,
            ephemeral=plan.ephemeral,
            wrapped=spec.output.wrapped or schema is ANY_RESULT,
            own_fields=schema not in (None, ANY_RESULT),
            whole_fields=host.whole_fields,
            attempt=options.attempt,
        )
        self.record: RunRecord[T] = RunRecord(
            facts,
            spec,
            options,
            tool_specs(spec, schema),
            Driver(
                stop=self.stop,
                stopped=lambda: self._stopped_by is not None,
                advise=host.errors.advise,
                session_id=lambda: session.id,
                tools_via=lambda: session.tools.tried[-1],
                wait_for_turn=self._wait_for_turn,
                ask=self._ask,
                note_call=session.note_call,
                note_state=self._note_state,
            ),
            cwd=session.cwd,
            calls=session.calls,
            owner=host.owner,
            observers=host.observers.run(facts, observer),
            dialect=host.dialect,
        )
        host.launch_log.tell(self.record.log)
        self.record.tell(ev.PhaseChanged, phase=self.record.phase)
        self._turn: Turn | None = None
        """The last turn."""
        self._turns = RunTurns(options.reminders)
        self._login_wanted = False
        """Whether the prompt was refused because a login is required."""
        self._shown_session: str | None = None
        """The session id that the readers have seen."""
        self.prompted: anyio.Event = anyio.Event()
        """Set when its first prompt was sent, or never will be."""
        self.place: int | None = None
        """How many runs had the session before this one; ``None`` until it has it."""
        # At once, because tasks do not start in the order in which they were made.
        others = (host.turns,) if host.dialect.one_turn_at_a_time else ()
        self._ticket: Ticket = session.turns.ask(*others)

    def follow_up(self, text: str) -> ThoughtStream[T]:
        """Start a run of the same task after this one, with text as its prompt."""
        spec = replace(self._plan.spec, parts=(TextPart(text),))
        options = replace(self._plan.options, listener=None, run_id=None)
        plan = structs.replace(self._plan, spec=spec, options=options, ephemeral=self._ephemeral)
        stream = self._host.start(plan)
        self._ephemeral = False  # the last run closes it
        return stream

    def stop(self, why: Exception, patience: Patience = PATIENT) -> None:
        """End the run early; the result fails with the reason unless there is one.

        A second call only shortens the wait for its turn.

        Args:
            why: The reason.
            patience: How long to wait for the turn.
        """
        first = self.life in (RunLife.QUEUED, RunLife.PREPARING, RunLife.PROMPTING, RunLife.LINGERING)
        if first:
            self._move(RunLife.STOPPING)
            self._stopped_by = why
            self.record.result.fail(why)
        if self._turn is not None and not self._turn.over:
            self._turn.cancel(patience)
        if first:
            self._host.questions.asker.open.withdraw(run=self.id)
            self.record.cut()
            self._scope.cancel()

    # The task

    async def main(self) -> None:
        """Drive the run to its end. Never raises."""
        try:
            await self._drive()
        except Exception as exc:
            if not isinstance(exc, AcpError | DecodeError | ThinkwellError | OSError):
                about = "Run %s of agent %s failed in a way that thinkwell did not foresee"
                self.record.lines(logging.ERROR, about, self.id, self._host.name, exc_info=True)
            self._end(self._host.errors.error(exc))
        finally:
            self._end(self._stopped_by or AgentClosed())
            try:
                if self._ephemeral:
                    await self.session.close()
            finally:
                self._move(RunLife.OVER)
                self._host.over(self)
                self.over.set()

    async def _drive(self) -> None:
        host, record = self._host, self.record
        with anyio.move_on_after(self._plan.options.timeout) as limit, self._scope:
            async with self._ticket:
                try:
                    with limited(record, host.name, self._plan.options.idle_timeout, host.login, host.tasks):
                        await self._work()
                finally:
                    # The session is held until its turn is over: a late cancellation cannot hit the next one.
                    with anyio.CancelScope(shield=True):
                        self._check_limit(limit)
                        if self.in_turn:
                            await self._wind_down()
        self._check_limit(limit)

    def _check_limit(self, limit: anyio.CancelScope) -> None:
        if limit.cancel_called:
            assert self._plan.options.timeout is not None
            self.stop(ThoughtTimeout(self._plan.options.timeout))

    async def _wind_down(self) -> None:
        """Wait for a cancelled turn to end; otherwise end the agent."""
        assert self._turn is not None
        if await self._turn.wind_down(self.session.stuck):
            self.session.release(self.record)
            self._host.turn_lost(self)

    @contextmanager
    def _authenticating(self) -> Generator[None]:
        """Show the login phase during a block."""
        before = self.record.phase
        self.record.reach("authenticating")
        yield
        self.record.reach(before)

    async def _work(self) -> None:
        await checkpoint_if_cancelled()
        self._move(RunLife.PREPARING)
        shared_login.shown.set(self._authenticating)
        session, record, meter = self.session, self.record, self.record.meter
        if not session.life.usable:
            raise SessionUnusable(session.id or "")
        if meter is not None and (used_up := meter.budget.exceeded(wants_more=True)):
            raise used_up
        specs = record.tools.specs
        if session.id is None:
            self._take_session()  # before it is open: some agents send updates before they answer
            await session.open(specs)
            record.idle.reset()
        if self._plan.options.model is not None:
            await session.settings.set_model(self._plan.options.model)
        self._show_session()
        if specs:
            record.reach("connecting_tools")
            await session.offer(specs, needed=self._needs_tools)
            if session.tools.seen:
                record.tools.announce()
                record.reach("tools_ready")
        if session.id != self._shown_session:
            self._show_session()  # the agent would not fetch other tools in the old session
        schema, reminds = self._plan.result_schema, False
        blocks = self._host.prompt(self._plan.spec, schema, session.server_name, session.preface)
        while not self._ended:
            await self._run_turn(blocks, reminds=reminds)
            if self.life is RunLife.LINGERING:
                wait = self._plan.options.background_wait
                await record.after_work.wait(wait, lambda: self._turns.interrupted)
                if not self._turns.interrupted:  # else the agent reads them beside that prompt
                    self._turns.interrupt(*record.after_work.take_unanswered())
                self._turn_over()
            blocks, reminds = self._turns.next(record.results.refused)

    def _show_session(self) -> None:
        session = self.session
        assert session.id is not None
        self._shown_session = self.record.lines.known["session"] = session.id
        self.record.tell(
            ev.SessionOpened,
            agent=self._host.name,
            session_id=session.id,
            cwd=session.cwd,
            model=session.state.model,
            mode=session.state.mode,
        )
        self.record.log.publish()

    def _take_session(self) -> None:
        self.place = self.session.take(self.record)
        if self.record.meter is not None:
            self.record.meter.begin(self.session.cost)

    # Turns

    @property
    def in_turn(self) -> bool:
        """Whether one of its turns is running."""
        return self._turn is not None and not self._turn.over

    @property
    def given_up(self) -> bool:
        """Whether the agent did not end the run's turn when it was told to."""
        return self._turn is not None and self._turn.stuck

    async def _ask(self, title: str, fields: Sequence[FormField]) -> dict[str, FormValue] | None:
        """Ask for values for a tool of ours."""
        return await self._host.questions.ask_for_tool(title, fields, self.session, self.id)

    async def _wait_for_turn(self) -> None:
        if self._turn is not None:  # pragma: no branch - a tool is called in a turn
            await self._turn.wait()

    def interrupt(self, text: str) -> None:
        """Let the agent end its turn, if it is in one, and tell it something in the next one."""
        self._turns.interrupt(text)
        if self.in_turn:
            assert self._turn is not None
            self._host.questions.asker.open.withdraw(run=self.id)
            self._turn.cancel(PATIENT)
            self.record.cut()
        else:
            self.record.after_work.look_again()

    async def _run_turn(self, blocks: Sequence[s.ContentBlock], *, reminds: bool) -> None:
        record, host = self.record, self._host
        assert self.session.id is not None
        if not self._turns.number:
            record.observers.session(self.session.id)
        meta: dict[str, ev.JsonValue] = {
            **record.observers.prompt(blocks),
            **(self._plan.spec.meta or {}),
            **host.dialect.prompt_meta(self._plan.spec.output.schema),
        }
        request = s.PromptRequest(session_id=self.session.id, prompt=tuple(blocks), meta=meta or None)
        if self.place is None:
            self._take_session()  # not earlier: updates until now belong to the turn before
        logins = host.client.logins
        self._login_wanted = False
        turn = await self._prompt(request)
        if turn.over:
            return  # the connection had ended
        self._turns.number += 1
        record.lines.known["turn"] = self._turns.number
        self.session.outside.history.prompted(blocks)
        record.tell(ev.TurnStarted, number=self._turns.number, reminder=reminds)
        record.reach("prompted")
        self.prompted.set()
        record.mapper.await_response()
        await turn.wait()
        if self._login_wanted:
            await host.client.login_since(logins)
            await (await self._prompt(request)).wait()

    async def _prompt(self, request: s.PromptRequest) -> Turn:
        await checkpoint_if_cancelled()  # otherwise a run that was already stopped would begin its turn
        self.record.idle.reset()
        self._move(RunLife.PROMPTING)
        self._turn = Turn(self._host.client, request, self._turn_ended)
        return self._turn

    def _note_state(self, update: s.SessionUpdate) -> None:
        self.session.note_state(update)
        self._host.errors.note(update)
        if self._turn is not None and self._host.errors.in_text:
            failed = turn_failed(update)
            if failed is not None:
                self._turn.failed_after = self.record.log.last_message() if failed else None

    def _turn_ended(self, outcome: PromptOutcome) -> None:
        """Handle the answer to a prompt. It is called while messages are being read."""
        record = self.record
        if not isinstance(outcome, s.PromptResponse):
            if self._wants_login(outcome):
                self._move(RunLife.PREPARING)
            else:
                text = record.log.last_message()
                self._end(self._stopped_by or self._host.errors.of_turn(outcome, text))
            return
        self.session.preface = ""  # the agent has it now
        fields = self._host.dialect.result_fields(outcome)
        if fields is not None and self._stopped_by is None:
            record.result_fields = fields
            record.results.take_fields(fields)
        usage = None if outcome.usage is None else token_usage(outcome.usage)
        record.tell(ev.TurnEnded, number=self._turns.number, stop_reason=outcome.stop_reason, usage=usage)
        record.log.publish()  # a full buffer stops the run now or never
        self._turns.stop_reason = outcome.stop_reason
        if self._stopped_by is not None:
            self._end(self._stopped_by)
        elif (failure := self._failure_in_text()) is not None:
            self._end(failure)
        elif (
            self._plan.options.background_wait and record.after_work.expected and not self._turns.interrupted
        ):
            self._move(RunLife.LINGERING)
        else:
            self._turn_over()
        if record.meter is not None:  # not earlier: an existing result stays
            record.meter.end_turn(0 if outcome.usage is None else outcome.usage.total_tokens)

    def _failure_in_text(self) -> Exception | None:
        """Return why the turn failed, if the agent says so in a message and marks it."""
        assert self._turn is not None
        before = self._turn.failed_after
        if before is None:
            return None
        text = self.record.log.last_message()
        return self._host.errors.in_message(text.removeprefix(before).strip() or text.strip())

    def _turn_over(self) -> None:
        """Start another turn, or conclude."""
        if self._turns.interrupted or self._wants_reminder():
            self._move(RunLife.PREPARING)
        else:
            self._conclude(self._turns.stop_reason)

    def _wants_login(self, outcome: Exception) -> bool:
        """Whether to send the prompt again after a login: once, and only if there was no answer."""
        self._login_wanted = (
            not self._login_wanted
            and isinstance(outcome, RpcError)
            and outcome.code == AUTH_REQUIRED
            and self._host.login.method is not None
            and self._stopped_by is None
            and self.record.mapper.awaiting_response
        )
        return self._login_wanted

    def _wants_reminder(self) -> bool:
        return (
            not self.record.result.done()
            and self._plan.spec.output.schema is not None
            and self._turns.stop_reason == "end_turn"
            and self.session.tools.seen
            and self._turns.remind()
        )

    @property
    def _needs_tools(self) -> bool:
        """Whether the task cannot succeed without tools."""
        wanted = bool(self._plan.spec.tools) or self._plan.spec.output.schema is not None
        return wanted and self._host.dialect.has_tools

    def _conclude(self, stop_reason: str) -> None:
        """Settle the result by the outcome of the last turn, and end the log."""
        record, output, tools = self.record, self._plan.spec.output, self.session.tools
        error: Exception | None = None
        if not record.result.done():
            text = record.log.last_message()
            error = failure(
                output,
                stop_reason,
                text,
                refused=record.results.refused,
                tools_missed=self._needs_tools and not tools.seen,
                tools_tried=tools.tried,
                denied=lambda: record.log.view().denied,
            )
            if error is None:
                assert output.text is not None
                record.result.set(output.text(text), text)
        self._end(error)

    # The end

    def has_ended(self) -> bool:
        """Return whether it was stopped, or has ended."""
        return self._stopped_by is not None or self._ended

    @property
    def _ended(self) -> bool:
        return self.life in (RunLife.ENDED, RunLife.OVER)

    def _end(self, error: Exception | None) -> None:
        """Append the end, once. Without an error, the result's error counts, if it has one."""
        if self._ended:
            return
        self._move(RunLife.ENDED)
        self.prompted.set()
        self.session.release(self.record)
        self._host.questions.asker.open.withdraw(run=self.id)
        self.record.end(error)

    def _move(self, life: RunLife) -> None:
        self.life = self.life.to(life)
