"""A reader that watches a run: it sees every event, and notes every violation."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio

from thinkwell import events as ev
from thinkwell.errors import ThoughtCancelled
from thinkwell.testing._invariants import Wire, order_broken, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from thinkwell import Buffer, Session, ThoughtStream
    from thinkwell.testing._invariants import Token

AT_ONCE: Final = 0.001
"""Seconds within which events count as simultaneous."""

ITERATORS_END_WITHIN: Final = 1.0
"""Seconds in which an iterator has to end after its run."""


class Check(Protocol):
    """Called with the name of an invariant, whether it holds, and details if it does not."""

    def __call__(self, name: str, holds: bool, why: str = "", /) -> None: ...


class Watch:
    """Watches one run.

    Args:
        stream: The run.
        mark: A text that only its prompt has; ``None`` if its session has no other run.
        kept: Which kinds of events the run keeps.
        buffer: The buffer of the run.
    """

    def __init__(
        self, stream: ThoughtStream[Any], *, mark: str | None, kept: frozenset[str], buffer: Buffer | None
    ) -> None:
        self.stream = stream
        self.mark = mark
        self._kept = kept
        self._buffer = buffer
        self._settled: tuple[str, object] | None = None
        self._unsettled: list[str] = []
        self.seen: list[ev.ThoughtEvent] = []
        """The events that the watching reader has seen."""
        self.ended = anyio.Event()
        self.over_at: float | None = None

    async def read(self) -> None:
        """Read the whole run, and check its result at each event."""
        async for event in self.stream:
            self.seen.append(event)
            await self._look()
        await self._look()
        self.ended.set()

    async def wait(self) -> None:
        """Note when the run is over."""
        await self.stream.wait()
        self.over_at = anyio.current_time()
        await self._look()

    async def _look(self) -> None:
        result = self.stream.result
        if not result.done():
            if self._settled is not None:
                self._unsettled.append("it was settled and is not any more")
            return
        error = result.exception()
        now = ("failed", error) if error is not None else ("done", await result)
        if self._settled is None:
            self._settled = now
        elif self._settled[0] != now[0] or self._settled[1] is not now[1]:
            self._unsettled.append(f"it was {self._settled!r:.200} and is {now!r:.200}")

    @property
    def error(self) -> Exception | None:
        """The error of the run."""
        return self.stream.result.exception()

    async def check(self, check: Check, wire: Wire, others: Sequence[str]) -> None:
        """Check everything, after the run.

        Args:
            check: Called with each outcome.
            wire: The messages on its connection.
            others: Texts, each in the prompt of one other run.
        """
        run = self.stream.id
        await self._look()
        check(
            "the result is settled once",
            self._settled is not None and not self._unsettled,
            f"{run}: {self._unsettled}",
        )
        with anyio.move_on_after(ITERATORS_END_WITHIN):
            await self.ended.wait()
        check("iterators end", self.ended.is_set(), run)
        whole = [event async for event in self.stream]
        self._check_numbers(check, whole)
        self._check_phase(check)
        session = self.stream.session_id
        if session is None or self._overflown(whole):
            return
        prompts = wire.prompts_of(session, self.mark, others)
        kept = Wire((), {session: self._of_kinds(wire, session)}, wire.prompts)
        kept.passed, kept.stuck, kept.steered = wire.passed, wire.stuck, wire.steered
        wrong = None
        if self._buffer is None:
            wrong = order_broken(
                kept,
                prompts,
                wire.comparable(shown(whole)),
                alone=self.mark is None,
                error=self.error,
                ended_at=self.over_at or 0,
            )
        check("events are in the order of the wire", wrong is None, f"{run}: {wrong}")
        if self.mark is None and self._buffer is None:
            late = [event for event in self.stream.late if event.type in self._kept]
            check_nothing_lost(check, kept, session, wire.comparable(shown([*whole, *late])))

    def _of_kinds(self, wire: Wire, session: str) -> list[tuple[int, tuple[str, str]]]:
        kinds = {kind.partition("_")[0] for kind in self._kept}
        return [
            (place, token)
            for place, token in wire.updates.get(session, ())
            if token[0] in kinds and wire.comparable([token])
        ]

    @property
    def complete(self) -> bool:
        """Whether it keeps everything that is compared."""
        return self._buffer is None and self._kept >= ev.ALL_TYPES

    def _overflown(self, whole: Sequence[ev.ThoughtEvent]) -> bool:
        return self._buffer is not None and any(isinstance(event, ev.Dropped) for event in whole)

    def _check_numbers(self, check: Check, whole: Sequence[ev.ThoughtEvent]) -> None:
        run = self.stream.id
        numbers = [event.seq for event in whole]
        seen = [event.seq for event in self.seen]
        if self._buffer is None:
            check("no gap and no repeat", numbers == list(range(1, len(numbers) + 1)), f"{run}: {numbers}")
            check("readers see the same", list(whole) == self.seen, f"{run}: {seen} is not {numbers}")
        else:
            rising = all(one < two for one, two in pairwise(seen))
            check("no gap and no repeat", rising, f"{run}: {seen}")
            check(
                "buffers report all text that they lose",
                self._amount(whole) == self._amount(self.seen),
                f"{run}: {self._amount(whole)} is not {self._amount(self.seen)}",
            )
        times = [event.at for event in whole]
        check("time does not run back", times == sorted(times), f"{run}: {times}")

    def _amount(self, events: Sequence[ev.ThoughtEvent]) -> object:
        """Return the part that a buffer must not change: the text, or the number of its pieces."""
        assert self._buffer is not None
        texts = [event for event in events if isinstance(event, ev.Message | ev.Thought)]
        if self._buffer.overflow == "drop_oldest":
            return len(texts) + sum(event.count for event in events if isinstance(event, ev.Dropped))
        said: dict[tuple[str, str | None], str] = {}
        for event in texts:  # those of interleaved messages may be combined
            key = event.type, event.message_id
            said[key] = said.get(key, "") + event.text
        return said

    def _check_phase(self, check: Check) -> None:
        view, error = self.stream.view, self.error
        phase = "completed"
        if view.error is not None:
            phase = "cancelled" if isinstance(view.error, ThoughtCancelled) else "failed"
        fits = view.phase == phase and (error is None or view.error is error)
        check(
            "the view's phase is final and fits the result",
            fits,
            f"{self.stream.id}: {view.phase}, {error!r}",
        )
        check("no question is open in the end", view.questions == (), f"{self.stream.id}: {view.questions}")


class SessionWatch:
    """Watches the events between the turns of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.id = session.id
        self.seen: list[ev.ThoughtEvent] = []
        self.ended_at = math.inf
        """When the session was closed."""

    async def read(self) -> None:
        """Read until the session is closed."""
        async for event in self._session.events():
            self.seen.append(event)
        self.ended_at = anyio.current_time()


def check_nothing_lost(
    check: Check, wire: Wire, session: str, tokens: Iterable[Token], until: float = math.inf
) -> None:
    """Check that every update of a session reached its readers, in a turn or late.

    Args:
        check: Called with each outcome.
        wire: The messages.
        session: The session.
        tokens: The updates that reached its readers.
        until: When it was closed: later updates need not reach them.
    """
    updates = wire.updates.get(session, ())
    told = set(wire.comparable(tokens))
    came = set(wire.comparable(token for _, token in updates))
    owed = set(wire.comparable(token for place, token in updates if wire.passed[place].at < until - AT_ONCE))
    check(
        "no update is lost, and none is made up",
        owed <= told <= came,
        f"session {session}: lost {sorted(owed - told)}, made up {sorted(told - came)}",
    )
