"""`Handlers`: who is told of what an agent says, and asked what it asks."""

from __future__ import annotations

import difflib
import functools
import inspect
import json
import logging
from collections.abc import Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_args, get_origin

from thinkwell._builder import check_count, check_seconds
from thinkwell._tool_arguments import code_of, hints_of
from thinkwell._where import where
from thinkwell.errors import MessageInvalid
from thinkwell.listen._listening import Listening
from thinkwell.listen._messages import TYPES, as_read
from thinkwell.listen._transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import TypeAdapter

    from thinkwell.events import JsonValue

logger = logging.getLogger("thinkwell")

MOST_ERRORS: Final = 20
"""Fields of which an error tells what is wrong. An agent may send any number."""

NAMES_TOLD: Final = 10
"""Levels of a message that the place of an error names."""

NAME_LENGTH: Final = 100
"""Characters of such a place."""

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
        concurrency: int = 1,
        timeout: float | None = 120.0,
        by: str = "handler",
    ) -> Callable[[F], F]:
        """Register a function as the handler of a type of messages: ``@handlers.on("progress")``.

        The function takes the message. An annotation says as what: a pydantic model, dataclass or TypedDict,
        which are validated, or a mapping, which is also what it gets without one. It may be ``async``;
        if it is not, it runs in a worker thread. What it returns is the answer, and ``None`` is none.

        Args:
            type: The type of the messages.
            concurrency: How many of them may be handled at once.
            timeout: Seconds that each may take, from when its handler begins; ``None``: as long as it likes.
                A handler that takes longer is cancelled, and its question goes to whoever is asked next. A
                thread cannot be cancelled: it goes on, and nobody waits for it.
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


class Registered:
    """A handler, and all that is known of it."""

    def __init__(
        self, type_: str, function: Callable[..., object], *, concurrency: int, timeout: float | None, by: str
    ) -> None:
        self.type = type_
        self.function = function
        self.concurrency = concurrency
        self.timeout = timeout
        self.by = by
        code = code_of(function)
        self.label = f"handler {getattr(code, '__qualname__', code)}(){where(code)}"
        """What to call it in a message."""
        self._annotation = _annotation(function, self.label)

    @functools.cached_property
    def _adapter(self) -> TypeAdapter[Any] | None:
        if _takes_all(self._annotation):
            return None
        from pydantic import TypeAdapter  # loaded when first needed

        try:
            adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", self._annotation))
        except Exception as exc:  # pydantic's own errors, and whatever the hooks of a type raise
            raise TypeError(f"{self.label}: pydantic can make nothing of its annotation: {exc}") from exc
        return adapter

    def prepare(self) -> None:
        """Make what reads messages.

        Raises:
            TypeError: It cannot be made.
        """
        _ = self._adapter

    def read(self, fields: dict[str, JsonValue], agent: str) -> object:
        """Return a message as what the handler takes.

        Raises:
            MessageInvalid: It does not fit.
        """
        if self._adapter is None:
            return dict(fields)  # they are the event's too
        from pydantic import ValidationError  # loaded when first needed

        try:
            # Only the JSON mode reads dates and such in strict models.
            return self._adapter.validate_json(json.dumps(as_read(self._annotation, fields)))
        except ValidationError as exc:
            errors: dict[str, str] = {}
            for error in exc.errors(include_url=False, include_context=False, include_input=False):
                errors.setdefault(_name(error["loc"]), error["msg"])
                if len(errors) == MOST_ERRORS:
                    break
            raise MessageInvalid(self.type, errors, agent=agent, handler=self.label) from None


def _name(place: Sequence[int | str]) -> str:
    """Return where a message is wrong. The agent may have chosen the names: what is none is quoted."""
    name = ".".join(map(str, place[:NAMES_TOLD]))
    plain = len(name) <= NAME_LENGTH and all(
        part.isidentifier() or part.isdecimal() for part in name.split(".")
    )
    return name if plain or not name else f"{name!a:.{NAME_LENGTH}}"


def _check_positive(name: str, value: object) -> None:
    check_count(name, value)
    if not value:
        raise ValueError(f"{name}=0: give 1 or more")


def _annotation(function: Callable[..., object], label: str) -> object:
    """Return the annotation of the parameter that takes the message; ``Any`` where it has none.

    Raises:
        TypeError: There is no such parameter, or there are others that have to be given.
    """
    code = code_of(function)
    if inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code):
        raise TypeError(f"{label}: it is a generator, and an answer is one value; return it")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError as exc:
        raise TypeError(f"{label}: its parameters are not known; wrap it in a function of yours") from exc
    takes = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    if not parameters or parameters[0].kind not in takes:
        raise TypeError(f"{label}: it takes no message; give it one parameter")
    first, *others = parameters
    for other in others:
        optional = other.kind in (other.VAR_POSITIONAL, other.VAR_KEYWORD)
        if other.default is other.empty and not optional:
            raise TypeError(f"{label}: it is called with the message alone, and also wants {other.name!r}")
    return hints_of(function, label).get(first.name, Any)


def _takes_all(annotation: object) -> bool:
    """Return whether a message is passed as it is."""
    if any(annotation is whole for whole in (Any, object, dict, Mapping, MutableMapping)):
        return True
    inner = get_args(annotation)
    return (
        get_origin(annotation) in (dict, Mapping, MutableMapping)
        and inner[0] is str
        and inner[1] in (Any, object)
    )
