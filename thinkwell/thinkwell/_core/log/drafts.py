"""The drafts of a result: what there is of it while the agent writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from anyio.lowlevel import checkpoint

from thinkwell._core.schema.partial import Partial, continues, whole
from thinkwell._display.calls import draft_of

if TYPE_CHECKING:
    from thinkwell._core.log.run_log import RunLog
    from thinkwell._core.log.settlement import Settlement

V_co = TypeVar("V_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft(Generic[V_co]):
    """What there is of a result while the agent writes it; see `ThoughtStream.drafts`.

    Drafts of the same `attempt` only grow: a field that is whole stays as it is, and a text or a list is
    continued.
    """

    value: V_co
    """What there is. Of a model, a dataclass or a TypedDict, a dict of the fields that have begun, validated;
    of a list, the finished items; of text, the text so far."""
    whole: frozenset[str] = frozenset()
    """The names of the fields that are whole. Another one in `value` may go on: a text, or a list."""
    attempt: int = 1
    """A greater number takes back what the drafts before have said: a result was refused, say, and the agent
    writes another."""
    final: bool = False
    """Whether this is the result, validated as a whole."""


class DraftReader(Generic[V_co]):
    """An iterator over the drafts of a run. It gives the newest one, however many there were meanwhile.

    Args:
        log: What happens in the run.
        outcome: Its result, or its error.
    """

    def __init__(self, log: RunLog, outcome: Settlement[Any]) -> None:
        self._log = log
        self._outcome = outcome
        self._partial = log.partial
        self._last = log.partial.nothing
        self._attempt = 1
        self._seen: object = None
        """What the last look has found."""
        self._over = False

    def __aiter__(self) -> DraftReader[V_co]:
        return self

    async def __anext__(self) -> Draft[V_co]:
        for draft in await self.batch():
            return draft
        raise StopAsyncIteration

    async def batch(self) -> list[Draft[V_co]]:
        """Wait for the next draft; none is the end.

        Raises:
            ThinkwellError: The run has failed.
        """
        await checkpoint()  # before a draft is taken: a cancelled reader must not lose the last one
        while not self._over:
            if drafts := self.batch_nowait():
                return drafts
            await self._log.wait()
        return []

    def batch_nowait(self) -> list[Draft[V_co]]:
        """Return the newest draft, unless it was returned already.

        Raises:
            ThinkwellError: The run has failed.
        """
        if self._over:
            return []
        outcome = self._outcome
        if outcome.done():
            self._over = True
            if outcome.error is not None:
                outcome.seen = True
                raise outcome.error.with_traceback(None)
            part = whole(outcome.value[0])
            if not continues(self._last.value, self._last.whole, part.value):
                self._attempt += 1
            return [Draft(value=part.value, whole=part.whole, attempt=self._attempt, final=True)]
        part, last = self._look(), self._last
        if (part.raw, part.whole) == (last.raw, last.whole):
            return []
        if not (last.whole <= part.whole and continues(last.raw, last.whole, part.raw)):
            if continues(last.raw, last.whole, part.given):
                return []  # what had begun behind it is gone: a number was cut behind its point, say
            self._attempt += 1
        self._last = part
        return [Draft(value=part.value, whole=part.whole, attempt=self._attempt)]

    def _look(self) -> Partial:
        """Return what there is by now."""
        if self._partial.kind == "end":
            return self._last
        reducer = self._log.reducer()
        if self._partial.kind == "text":
            text = reducer.last_message()
            return Partial(text, text, text)
        call = reducer.result_call()
        shown = None if call is None else draft_of(call)
        if shown is self._seen:
            return self._last
        self._seen = shown
        return self._partial.of(shown)
