"""`deliver`: send a run to a user through a channel."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar, cast

import anyio

from thinkwell import ThoughtStream
from thinkwell._conversations.checks import close_coroutine
from thinkwell._core.schema.misuse import check_run
from thinkwell._display.numbers import seconds
from thinkwell._display.summary import error_words
from thinkwell._display.text import line, result_text
from thinkwell.channels._calls import begun, in_words
from thinkwell.channels._checks import check_function
from thinkwell.channels._following import Following, Piece, said
from thinkwell.channels._outcome import Delivery, DeliveryMetrics, unless_failed
from thinkwell.channels._protocols import (
    AskingChannel,
    ChannelCounts,
    CountingChannel,
    StoppingChannel,
)
from thinkwell.channels._questions import Asking
from thinkwell.channels._recipient import Recipient, checked
from thinkwell.channels._sending import NOTHING, Sent, send_final
from thinkwell.channels._showing import showing
from thinkwell.errors import ThoughtCancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from anyio.abc import TaskGroup

    from thinkwell.channels._outcome import DeliveryStatus
    from thinkwell.channels._protocols import Channel, DeliverySettings
    from thinkwell.view import RunView

T = TypeVar("T")

logger = logging.getLogger("thinkwell")

TITLE: Final = 200
"""Most characters of the title of a question that cannot be answered here."""

UNHEARD: Final = (
    "The agent asks something, and channel %s cannot ask it: it has no method ask. Unless "
    "it is answered elsewhere, it waits until its deadline. Give the channel async def ask(self, "
    "user_id, question), or open the agent with permissions that leave nothing to ask"
)

LOOK: Final = 0.05
"""Seconds between two looks at the run. A look costs more the longer the run is, and without a pause a fast
agent would cause thousands in a second. The end of the run is seen at once."""

GOODBYE: Final = 5.0
"""Seconds that a cancelled delivery has to show its end."""

UNMADE: Final = "⚠ The answer could not be made from the agent's result."
"""Sent to the user if the text of the result could not be made."""


async def deliver(
    stream: ThoughtStream[T],
    channel: Channel,
    user_id: str,
    *,
    settings: DeliverySettings | None = None,
    text: Callable[[T], str] | None = None,
) -> Delivery:
    """Deliver a run to a user, and return when the final text is delivered.

    A `StreamingChannel` gets the text while it is written, every other channel gets all of it at the end. A
    channel declares further abilities by its methods: see the other protocols beside `StreamingChannel`.

    The run never waits for the channel, and no error of the channel ends it. If the run fails, the text so
    far is delivered with a description of the error. If the agent is silent for too long, the run is
    cancelled, and the text so far is delivered. If the channel fails, the text is kept and sent whole at the
    end, with retries. An exception with a number ``retry_after`` sets the pause in seconds; one with
    ``temporary = False``, or one that indicates a bug, is not retried: see `Channel.send`.

    Cancelling this call ends the delivery and not the run. A streaming channel gets the text so far and the
    end; other channels get nothing.

    Args:
        stream: The run.
        channel: The channel to deliver to.
        user_id: The user, as the channel names them.
        settings: How to deliver; by default the channel's own settings, or else `DeliverySettings()`.
        text: Makes the final text from the result. The default is the agent's message or, if that is
            empty, the result, as JSON if it is not a str.

    Raises:
        DeliveryFailed: The final text could not be sent. The exception has the text.
        TypeError: An argument, or the channel's settings or capabilities, have another type.
        ValueError: `user_id` is empty.
    """
    check_run(stream, "deliver({}, channel, user_id)", ThoughtStream)
    to = Recipient("deliver", channel, user_id, settings)
    check_function("deliver", "text", text, "lambda result: …")
    return unless_failed(*await _Delivering(stream, to, text).run())


class _Ended(NamedTuple):
    """How a run ended."""

    status: DeliveryStatus
    run_text: str
    mark: str = ""
    """A note that follows the text."""
    error: Exception | None = None

    @property
    def full_text(self) -> str:
        """The whole text to deliver."""
        return said((self.run_text, self.mark)) or NOTHING


class _Delivering(Generic[T]):
    """A delivery in progress."""

    def __init__(self, stream: ThoughtStream[T], to: Recipient, text: Callable[[T], str] | None) -> None:
        self._stream = stream
        self._to = to
        self._make_text = text
        self._began = anyio.current_time()
        self._following = Following()
        self._show = showing(to)
        self._asking: Asking | None = None
        self._outcome: tuple[Delivery, Exception | None] | None = None
        self._ended: _Ended | None = None
        """How the run ended, once its final text is on its way."""
        self._waits_for: set[str] = set()
        """Questions that were already reported as waiting."""
        self._news = anyio.Event()
        self._over = anyio.Event()
        """Set when the run has ended."""
        self._heard_at = self._began

    async def run(self) -> tuple[Delivery, Exception | None]:
        """Deliver, and return the outcome, and the error if the final text could not be sent."""
        async with anyio.create_task_group() as tasks:
            try:
                await self._begin(tasks)
                self._ended = ended = await self._follow()
                self._outcome = await self._end(ended)
            except anyio.get_cancelled_exc_class():
                await self._say_goodbye()
                raise
            tasks.cancel_scope.cancel()
        assert self._outcome is not None
        return self._outcome

    async def _begin(self, tasks: TaskGroup) -> None:
        tasks.start_soon(self._listen)
        channel = self._to.channel
        if isinstance(channel, StoppingChannel):
            tasks.start_soon(self._wait_stop, channel)
        if isinstance(channel, AskingChannel) and self._stream._run.live:
            self._asking = Asking(self._stream, channel, self._to, tasks)
        await self._show.begin()

    async def _listen(self) -> None:
        """Watch for updates of the run until it is over."""
        log = self._stream._log
        while not log.ended:
            self._news.set()  # the first time, for everything before this task
            await log.wait()
            self._heard_at = anyio.current_time()
        self._news.set()
        self._over.set()

    async def _wait_stop(self, channel: StoppingChannel) -> None:
        try:
            await begun("wait_stop", channel.wait_stop, self._to.user_id)
        except Exception as exc:
            self._to.failed(exc)
        else:
            self._stream.cancel()

    async def _follow(self) -> _Ended:
        """Deliver updates until the run is over or given up."""
        log = self._stream._log
        while True:
            self._news = anyio.Event()
            ended = log.ended
            view = self._stream.view
            self._look(view)
            if ended:
                self._stop_thinking()
                self._ask(view)
                return await self._result(view)
            looked_at = anyio.current_time()
            await self._show.hand_over()
            self._ask(view)  # behind the text that came before it
            if self._is_stalled():
                return await self._stalled()
            with anyio.move_on_after(min(self._show.due, self._stalls_at) - anyio.current_time()):
                await self._news.wait()
            with anyio.move_on_after(looked_at + LOOK - anyio.current_time()):
                await self._over.wait()

    def _look(self, view: RunView) -> None:
        """Deliver what is new."""
        now = self._stream.elapsed
        pieces = [*self._following.look(view, now), *self._unanswerable(view)]
        self._show.add(pieces, self._following.thinking(now), thinks=self._following.thinks)

    def _stop_thinking(self) -> None:
        """End the thinking in the display."""
        now = self._stream.elapsed
        self._show.add(self._following.stop_thinking(now), self._following.thinking(now), thinks=False)

    def _ask(self, view: RunView) -> None:
        """Ask the open questions, if the channel can ask."""
        if self._asking is not None:
            self._asking.look(view)

    def _unanswerable(self, view: RunView) -> Iterable[Piece]:
        """Yield a status for each question that cannot be answered here."""
        if self._asking is not None:
            return
        for question in view.questions:
            if question.id not in self._waits_for:
                if not self._waits_for and self._stream._run.live:
                    logger.warning(UNHEARD, type(self._to.channel).__name__)
                self._waits_for.add(question.id)
                yield Piece("status", f"Waiting for an answer: {line(question.title, TITLE)}")

    # Silence

    @property
    def _stalls_at(self) -> float:
        limit = self._to.settings.stalled_after
        return math.inf if limit is None else self._heard_at + limit

    def _is_stalled(self) -> bool:
        """Return whether the agent was silent for too long, with no tool or question to wait for."""
        if anyio.current_time() < self._stalls_at:
            return False
        view = self._stream.view
        waits = view.questions or any(tool.ended_at is None for tool in view.tools.values())
        if waits or view.phase not in ("prompted", "responding"):
            self._heard_at = anyio.current_time()
            return False
        return True

    async def _stalled(self) -> _Ended:
        """Give the run up, and return its outcome so far. The result may exist before the run's end."""
        view = self._stream.view
        is_settled = self._stream.result.done()
        self._stream.cancel()
        self._stop_thinking()
        ended = await self._result(view) if is_settled else _Ended("completed", said(view.messages))
        if ended.status != "completed":
            return ended
        limit = seconds(self._to.settings.stalled_after or 0.0)
        mark = f"⏳ The agent was silent for {limit}, so it was stopped. This is its answer so far."
        return _Ended("stalled", ended.run_text, mark)

    # The end

    async def _result(self, view: RunView) -> _Ended:
        """Return how a finished run ended."""
        text = said(view.messages)
        try:
            value = await self._stream.result
        except ThoughtCancelled as exc:
            return _Ended("cancelled", text, "⏹ Stopped.", exc)
        except Exception as exc:
            words = error_words(exc)
            return _Ended("failed", text, f"⚠ {words.what}", exc)
        try:
            return _Ended("completed", self._text(value, text))
        except Exception as exc:  # its text is not for the user
            logger.error("The text of an answer could not be made: %s", in_words(exc), exc_info=exc)
            return _Ended("failed", text, UNMADE, exc)

    def _text(self, value: T, text: str) -> str:
        """Return the final text.

        Args:
            value: The result.
            text: The agent's message.

        Raises:
            Exception: The function that makes it failed.
        """
        if self._make_text is None:
            return text or ("" if value is None else result_text(value))
        made = self._make_text(value)
        if not isinstance(cast("object", made), str):
            close_coroutine(made)
            raise TypeError(f"text= returned a {type(made).__name__}; it must return a str")
        return made

    async def _end(self, ended: _Ended) -> tuple[Delivery, Exception | None]:
        """Deliver the final text, and meanwhile the outcomes of questions."""
        if self._asking is not None:
            self._asking.end(self._stream.view)
        streamed = await self._show.end(ended.full_text)
        sent = Sent(attempts=1, retries=0, failure=self._show.refusal)
        if not streamed and sent.failure is None:
            sent = await send_final(
                self._to,
                ended.full_text,
                thoughts=self._shown_thoughts(),
                thought_for=self._following.thinking(self._stream.elapsed),
            )
        now = anyio.current_time()
        if self._asking is not None:
            await self._asking.wait()  # that may fail too
        counts = self._counts()
        first_at = self._show.first_at
        if first_at is None and sent.failure is None:
            first_at = now
        first_delivery = None if first_at is None else first_at - self._began
        delivery = Delivery(
            user_id=self._to.user_id,
            text=ended.full_text,
            run_text=ended.run_text,
            status=ended.status,
            error=ended.error,
            channel_errors=tuple(self._to.errors),
            streamed=streamed,
            metrics=DeliveryMetrics(
                first_delivery=first_delivery if counts.first_delivery is None else counts.first_delivery,
                thinking=self._following.thinking(self._stream.elapsed),
                total=now - self._began,
                chunks=self._show.chunks,
                edits=counts.edits,
                attempts=sent.attempts,
                retries=counts.retries + sent.retries,
            ),
        )
        return delivery, sent.failure

    def _counts(self) -> ChannelCounts:
        channel = self._to.channel
        if isinstance(channel, CountingChannel):
            try:
                return checked(channel, "counts", channel.counts(self._to.user_id), ChannelCounts)
            except Exception as exc:
                self._to.failed(exc)
        return ChannelCounts()

    def _shown_thoughts(self) -> str:
        """Return the agent's thinking, if it was long enough to be shown."""
        settings, thought_for = self._to.settings, self._following.thinking(self._stream.elapsed)
        shown = settings.thinking and thought_for >= settings.least_thinking
        return said(self._stream.view.thought_blocks) if shown else ""

    async def _say_goodbye(self) -> None:
        """End the stream that the channel shows, if that works at once."""
        self._stop_thinking()
        text = said(self._stream.view.messages)
        ended = self._ended or _Ended("cancelled", text, "⏹ The delivery was cancelled.")
        with anyio.CancelScope(shield=True), anyio.move_on_after(GOODBYE):
            await self._show.end(ended.full_text)
