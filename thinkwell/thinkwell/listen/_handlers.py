"""`Handlers`: typed functions that receive an agent's messages, and answer its questions."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable
from typing import Final, TypeVar, cast

from thinkwell import ThoughtStream
from thinkwell._core.exit import check_handlers
from thinkwell._core.schema.arguments import check_count, check_seconds
from thinkwell._core.schema.misuse import check_run
from thinkwell.listen._listening import Listening
from thinkwell.listen._messages import TYPES
from thinkwell.listen._registered import Registered
from thinkwell.listen._transcript import Transcript

logger = logging.getLogger("thinkwell")

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])

_class: Final = type  # `Handlers.on` has an argument with that name


class Handlers:
    """Handlers of an agent's messages, by type.

    You can listen to any number of runs with them, one after the other and at once.

    Args:
        transcript: Records each question with its answer, in the order of the answers.
        max_repeats: How often an agent may ask the same question in one run. One more ends the run with
            `QuestionsStopped`. ``None`` for no limit.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `max_repeats` is not positive.
    """

    def __init__(self, *, transcript: Transcript | None = None, max_repeats: int | None = 20) -> None:
        if transcript is not None and not isinstance(cast("object", transcript), Transcript):
            raise TypeError(f"Handlers(transcript={transcript!r:.100}): give a Transcript()")
        if max_repeats is not None:
            _check_positive("max_repeats", max_repeats)
        self.transcript = transcript
        """The transcript of questions and answers, if any."""
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
        """Register a function as the handler of a message type: ``@handlers.on("progress")``.

        The function takes the message. Its annotation selects the form: a pydantic model, dataclass or
        TypedDict, which are validated, or a mapping, which is the default. An ``async`` function runs in the
        event loop, a plain one in a worker thread. Its return value is the answer; ``None`` is no answer.

        Args:
            type: The type of the messages.
            concurrency: How many of them may be handled at once, independently of other types. ``None``:
                one after another, together with all other types that have ``None``, in the order of
                the agent's messages.
            timeout: Seconds for each message, from when its handler begins; ``None`` for no limit.
                A handler that takes longer is cancelled, and its question goes to the next handler. A
                thread cannot be cancelled: it continues, but nothing waits for it.
            by: The handler's name in the log and in a transcript, if it answers.

        Raises:
            TypeError: An argument has the wrong type, the function cannot be called with a message, or its
                annotation cannot be read. The message names file and line.
            ValueError: The type already has a handler, or an argument is out of range.
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
        """Return the listener of one run. `ThinkBuilder.listen` and `listen` call it.

        Raises:
            TypeError: pydantic does not support the annotation of a handler.
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
    """Listen to a run that has started, and return its result.

    The handlers first get the earlier events that the run has kept: ``stream(include="all")`` keeps all.
    For a recorded run, they get what the replay includes, so use ``replay(…, include="all")`` for all
    of it; they are not asked anything.

    Args:
        stream: The run.
        handlers: They receive the agent's messages, and answer its questions.
        timeout: Seconds for the rest of the run, including the handlers.

    Raises:
        ThoughtTimeout: The run took longer.
        RuntimeError: The run already has a listener.
        TypeError: An argument has the wrong type.
        ValueError: The timeout is not positive; or a handler decides approvals, but
            ``permissions="deny"`` forbids that.
        Exception: Everything that `ThinkBuilder.listen` raises.
    """
    check_run(stream, "listen({}, handlers)", ThoughtStream)
    if timeout is not None:
        check_seconds("timeout", timeout)
    check_handlers(handlers)
    listening = handlers.begin()
    stream._run.attach(listening)
    return await listening.hear(stream, timeout)
