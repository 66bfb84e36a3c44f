"""`Handlers`: they receive what an agent says, and answer what it asks."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar, cast

from thinkwell._core.exit import check_handlers
from thinkwell._core.schema.arguments import check_count, check_seconds
from thinkwell.listen._listening import Listening
from thinkwell.listen._messages import TYPES
from thinkwell.listen._registered import Registered
from thinkwell.listen._transcript import Transcript

if TYPE_CHECKING:
    from thinkwell import ThoughtStream

logger = logging.getLogger("thinkwell")

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])

_class: Final = type  # `Handlers.on` has an argument of that name


class Handlers:
    """Handlers of what an agent says, by the type of the message.

    They can be used by any number of listens, one after the other and at once.

    Args:
        transcript: Where each question is written down with its answer, in the order of the answers.
        max_repeats: How often an agent may ask the very same in one run. Once more ends the run by
            `QuestionsStopped`. ``None``: as often as it likes.

    Raises:
        TypeError: An argument is of another type.
        ValueError: `max_repeats` is not positive.
    """

    def __init__(self, *, transcript: Transcript | None = None, max_repeats: int | None = 20) -> None:
        if transcript is not None and not isinstance(cast("object", transcript), Transcript):
            raise TypeError(f"Handlers(transcript={transcript!r:.100}): give a Transcript()")
        if max_repeats is not None:
            _check_positive("max_repeats", max_repeats)
        self.transcript = transcript
        """What was asked and answered, where it is written down."""
        self._max_repeats = max_repeats
        self._registered: dict[str, Registered] = {}

    def __repr__(self) -> str:
        return f"<Handlers of {', '.join(self._registered) or 'nothing'}>"

    def on(
        self,
        type: str,  # noqa: A002 - what it is
        *,
        concurrency: int | None = None,
        timeout: float | None = 120.0,
        by: str = "handler",
    ) -> Callable[[F], F]:
        """Register a function as the handler of a type of messages: ``@handlers.on("progress")``.

        The function takes the message. An annotation says as what: a pydantic model, dataclass or TypedDict,
        which are validated, or a mapping, which is also what it gets without one. It may be ``async``;
        if it is not, it runs in a worker thread. What it returns is the answer, and ``None`` is none.

        Args:
            type: The type of the messages.
            concurrency: How many of them may be handled at once, whatever else is being handled. ``None``:
                one after another, together with those of all other types that have ``None``, in the order of
                the agent's messages.
            timeout: Seconds that each may take, from when its handler begins; ``None``: as long as it likes.
                A handler that takes longer is cancelled, and its question goes to the next handler. A
                thread cannot be cancelled: it goes on, and is not waited for.
            by: What the handler is called on the log and in a transcript, where it answers.

        Raises:
            TypeError: An argument is of another type, the function cannot be called with a message, or its
                annotation cannot be read. The message names file and line.
            ValueError: The type has a handler, or an argument is out of range.
        """
        for name, text in (("type", type), ("by", by)):
            if not isinstance(cast("object", text), str):
                raise TypeError(f'on({name}={text!r:.100}): give a text, such as "question"')
            if not text.strip():
                raise ValueError(f"on({name}={text!r}): it is empty")
        if concurrency is not None:
            _check_positive("concurrency", concurrency)
        if timeout is not None:
            check_seconds("timeout", timeout)

        def register(function: F) -> F:
            if not callable(cast("object", function)) or isinstance(function, _class):
                raise TypeError(f"on({type!r}): {function!r:.100} is no function")
            known = self._registered.get(type)
            if known is not None:
                raise ValueError(f"on({type!r}): there is a handler already, {known.label}")
            near = [] if type in TYPES else difflib.get_close_matches(type.lower(), TYPES, 1, 0.8)
            if near:
                logger.warning("Handlers.on(%r): do you mean %r?", type, *near)
            self._registered[type] = Registered(
                type, function, concurrency=concurrency, timeout=timeout, by=by
            )
            return function

        return register

    def begin(self) -> Listening:
        """Return who listens to one run. `ThinkBuilder.listen` and `listen` call it.

        Raises:
            TypeError: pydantic can make nothing of the annotation of a handler.
        """
        for registered in self._registered.values():
            registered.prepare()
        return Listening(dict(self._registered), transcript=self.transcript, max_repeats=self._max_repeats)


def _check_positive(name: str, value: object) -> None:
    check_count(name, value)
    if not value:
        raise ValueError(f"{name}=0: give 1 or more")


async def listen(
    stream: ThoughtStream[T],
    handlers: Handlers,
    *,
    timeout: float | None = None,  # noqa: ASYNC109 - cancelling a run takes more than a scope
) -> T:
    """Listen to a run that has been started, and return its result.

    What it has said already is heard first, as far as the run keeps it: ``stream(include="all")`` keeps all.
    Of a recorded run, the handlers hear what the replay includes, so ``replay(…, include="all")`` has all of
    it, and none is asked anything.

    Args:
        stream: The run.
        handlers: Who is told, and asked.
        timeout: Seconds that all of it may take from now on, the handlers included.

    Raises:
        ThoughtTimeout: It has taken longer.
        RuntimeError: The run has a listener already.
        TypeError: An argument is of another type.
        ValueError: The timeout is not positive; or a handler is to decide approvals, and
            ``permissions="deny"`` was said.
        Exception: All that `ThinkBuilder.listen` raises.
    """
    if timeout is not None:
        check_seconds("timeout", timeout)
    check_handlers(handlers)
    listening = handlers.begin()
    stream._run.attach(listening)
    return await listening.hear(stream, timeout)
