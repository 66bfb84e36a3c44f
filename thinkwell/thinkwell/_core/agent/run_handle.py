"""A run, as seen by its stream and its listener."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import anyio
from anyio.lowlevel import checkpoint

from thinkwell import events as ev
from thinkwell._core.agent.limits import during
from thinkwell._core.agent.run_life import RunLife
from thinkwell._core.log.stream import Injected, Queued, Refused, ThoughtResult, ThoughtStream
from thinkwell._core.protocol.steering import refusal, steering_request
from thinkwell._core.turn.turn import PATIENT
from thinkwell.errors import RunEnded, SteeringUnsupported, ThoughtCancelled
from thinkwell_acp import AcpError, DecodeError, RpcError, steering

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from thinkwell._core.agent.run import Run, RunHost
    from thinkwell._core.log.listener import RunListener
    from thinkwell._core.log.log_lines import LogLines
    from thinkwell._core.log.settlement import Settlement
    from thinkwell._core.log.stream import Otherwise
    from thinkwell._core.questions.asker import Asker
    from thinkwell._core.turn.turn import Patience
    from thinkwell.questions import Answer

E = TypeVar("E", bound=ev.ThoughtEvent)
S = TypeVar("S", Injected, Queued[Any], Refused)
T = TypeVar("T")

UNANSWERED: Final = "the agent has not answered"

ANSWER_TIMEOUT: Final = 5.0
"""Seconds that an agent has, once the run is over, to say whether it has taken what it was told."""


class RunHandle(Generic[T]):
    """What a stream, and a listener, may ask of their run.

    Args:
        host: State shared with other runs.
        run: The run.
    """

    live = True

    def __init__(self, host: RunHost, run: Run[T]) -> None:
        self._host = host
        self._run = run
        self.id: str = run.id

    def stream(self) -> ThoughtStream[T]:
        """Return what users get of the run."""
        record = self._run.record
        return ThoughtStream(record.log, ThoughtResult(record.result), self)

    @property
    def outcome(self) -> Settlement[T]:
        """What the run comes to."""
        return self._run.record.result

    @property
    def lines(self) -> LogLines:
        """Writes log lines about the run."""
        return self._run.record.lines

    @property
    def session_id(self) -> str | None:
        """The agent's name for the session."""
        return self._run.session.id

    @property
    def recording(self) -> Path | None:
        """The file of the recording."""
        return self._host.recording

    @property
    def foreign(self) -> bool:
        """Whether the run belongs to the parent of this forked process."""
        return self._host.owner.forked

    @property
    def late(self) -> tuple[ev.ThoughtEvent, ...]:
        """Events after the end and before the session's next turn."""
        place = self._run.place
        return () if place is None else self._run.session.outside.late(place)

    def answer(self, question_id: str, answer: Answer, by: str) -> None:
        """Answer an open question of the run."""
        self._host.questions.asker.open.answer(question_id, answer, by, run=self.id)

    def attach(self, listener: RunListener) -> None:
        """Attach a listener: it gets all events, and is asked first.

        It also gets the earlier events, as far as they were kept.

        Raises:
            RuntimeError: The run has a listener.
            ValueError: It decides permissions, but ``permissions="deny"`` denies everything.
            WrongEventLoop: The caller is not in the agent's event loop.
        """
        self._check_owner()
        host, record = self._host, self._run.record
        if record.listener is not None:
            raise RuntimeError(f"{self.id} has a listener already; give all handlers to one Handlers()")
        check_listener(listener, host.questions.asker)
        if listener.takes_questions and not host.client.offers_elicitation:
            record.lines(
                logging.WARNING,
                "Agent %s was not told that its questions are answered, so it may not ask any: give "
                'open_agent(permissions="ask") or on_question=',
                host.name,
            )
            host.client.accept_elicitation()  # some agents ask anyway
        listener.begin(self)
        record.listen(listener)

    def cancel(self) -> None:
        """Cancel the run."""
        self._check_owner()
        self._run.stop(ThoughtCancelled())

    async def steer(self, text: str, otherwise: Otherwise | None) -> Injected | Queued[Any] | Refused:
        """Tell the agent something while it works; see `ThoughtStream.steer`."""
        self._check_owner()
        run = self._run
        await run.prompted.wait()
        if run.has_ended():
            raise RunEnded(self.id)
        if steering.steering_supported(self._host.client.agent):
            refused = await self._inject(text)
            if refused is None:
                return Injected()
            if refused == UNANSWERED:
                return Refused(refused, unclear=True)
        elif otherwise is None:
            raise SteeringUnsupported(self._host.name)
        else:
            refused = ""
        if otherwise is None:
            return self._steered(text, Refused(refused), refused)
        if run.has_ended():  # while this waited
            return Refused("the run has ended")
        if otherwise == "queue":
            return self._steered(text, Queued(run.follow_up(text)))
        run.interrupt(text)
        return self._steered(text, Injected(interrupted=True))

    async def _inject(self, text: str) -> str | None:
        """Let the agent read a message in its turn, or in the next one; return the reason if it does not."""
        run, answers = self._run, list[str | None]()
        if run.life is RunLife.LINGERING:
            run.interrupt(text)
            self._steered(text, Injected())
            return None

        def heard(response: steering.SteeringResponse) -> None:
            # In order among the messages: the answer to the prompt may follow directly.
            answers.append(refusal(response))
            if answers[0] is None:
                run.record.after_work.steered(text)
                self._steered(text, Injected())

        if not run.in_turn or run.session.id is None:
            return "the agent has no turn"
        request = steering_request(run.session.id, text)

        async def give_up(scope: anyio.CancelScope) -> None:
            await run.over.wait()
            await anyio.sleep(ANSWER_TIMEOUT)
            scope.cancel()

        scope = anyio.CancelScope()
        with scope, during(self._host.tasks, give_up, scope), run.record.after_work.asking():
            try:
                await self._host.client.call(steering.METHOD, request, steering.SteeringResponse, heard)
            except (RpcError, DecodeError) as exc:
                return str(exc)
            except AcpError as exc:
                raise self._host.errors.translated(exc) from exc
        return answers[0] if answers else UNANSWERED

    def _steered(self, text: str, came_to: S, reason: str = "") -> S:
        """Record the outcome."""
        if not self._run.has_ended():
            self._run.record.tell(ev.Steered, text=text, outcome=came_to.outcome, reason=reason)
            self._run.record.log.publish()
        return came_to

    def kill(self) -> None:
        """End the agent's process at once."""
        self._check_owner()
        if not self._run.record.log.ended:
            self._host.kill("stream.kill() was called")

    async def wait(self) -> None:
        """Wait until the run is over."""
        if self._run.over.is_set():
            await checkpoint()  # the event itself belongs to the agent's event loop
        else:
            self._host.owner.check()
            await self._run.over.wait()

    def _check_owner(self) -> None:
        """Check that the caller is in the agent's event loop, unless the run is over.

        Raises:
            WrongEventLoop: It is elsewhere.
        """
        if self._run.life is not RunLife.OVER:
            self._host.owner.check()

    # The listener's requests

    @property
    def agent(self) -> str:
        """Name of the agent."""
        return self._host.name

    @property
    def reports(self) -> bool:
        """Whether the agent sends everything as a `Report`."""
        return self._host.dialect.reports

    @property
    def result_fields(self) -> dict[str, ev.JsonValue]:
        """The fields with which such an agent has ended its turn."""
        return self._run.record.result_fields

    @property
    def asks_others(self) -> bool:
        """Whether others are asked if the listener leaves a question open."""
        return self._host.questions.asker.asks_others

    def is_own(self, tool_id: str) -> bool:
        """Return whether a tool call that the agent shows is of a tool of ours."""
        return self._run.record.is_own(tool_id)

    def tell(self, kind: Callable[..., E], /, **fields: object) -> None:
        """Append an event."""
        self._run.record.tell(kind, **fields)

    def stop(self, why: Exception, patience: Patience = PATIENT) -> None:
        """End the run."""
        self._run.stop(why, patience)

    async def respond(self, report: ev.Report, value: ev.JsonValue) -> None:
        """Answer a report that is neither a question nor an approval."""
        host = self._host
        if not self._run.in_turn:  # a program would take it for an answer in its next turn
            about = "Agent %s is not told the answer to %.200r: the turn of %s is over"
            self._run.record.lines(logging.DEBUG, about, host.name, report.kind, self.id)
            return
        host.dialect.respond(host.client, self.session_id, report, value)
        await host.errors.call(host.client.connection.drain())


def check_listener(listener: RunListener, asker: Asker) -> None:
    """Check that a listener's decisions have an effect.

    Raises:
        ValueError: It decides permissions, but ``permissions="deny"`` denies everything.
    """
    if listener.takes_approvals and asker.denies_all:
        raise ValueError(
            'open_agent(permissions="deny") denies what a handler of approvals would be asked for; leave '
            'permissions= out, or give permissions="ask" or a PermissionPolicy'
        )
