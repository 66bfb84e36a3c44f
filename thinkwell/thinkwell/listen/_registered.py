"""A registered handler, and the validation of its messages."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast, get_args, get_origin

from thinkwell._core.exit import code_of, hints_of, where
from thinkwell.errors import MessageInvalid
from thinkwell.listen._messages import as_read

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from thinkwell.events import JsonValue

MOST_ERRORS: Final = 20
"""Most fields that an error describes. An agent may send any number."""

NAMES_TOLD: Final = 10
"""Most levels in the path to an error."""

NAME_LENGTH: Final = 100
"""Most characters of such a place."""


class Registered:
    """A handler, and its options."""

    def __init__(
        self,
        type_: str,
        function: Callable[..., object],
        *,
        concurrency: int | None,
        timeout: float | None,
        by: str,
    ) -> None:
        self.type = type_
        self.function = function
        self.concurrency = concurrency
        self.timeout = timeout
        self.by = by
        code = code_of(function)
        self.label = f"handler {getattr(code, '__qualname__', code)}(){where(code)}"
        """Its name in messages."""
        self._annotation = _annotation(function, self.label)

    @functools.cached_property
    def _adapter(self) -> TypeAdapter[Any] | None:
        if _takes_all(self._annotation):
            return None
        from pydantic import TypeAdapter  # loaded when first needed

        try:
            adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", self._annotation))
        except Exception as exc:  # pydantic's errors, and those of the types' hooks
            raise TypeError(f"{self.label}: pydantic can make nothing of its annotation: {exc}") from exc
        return adapter

    def prepare(self) -> None:
        """Make the validator of its messages.

        Raises:
            TypeError: pydantic does not support the annotation.
        """
        _ = self._adapter

    def read(self, fields: dict[str, JsonValue], agent: str) -> object:
        """Return a message in the handler's form.

        Raises:
            MessageInvalid: It does not fit.
        """
        if self._adapter is None:
            return dict(fields)  # the event has them too
        from pydantic import ValidationError  # loaded when first needed

        try:
            # Only the JSON mode accepts dates and similar values in strict models.
            return self._adapter.validate_json(json.dumps(as_read(self._annotation, fields)))
        except ValidationError as exc:
            errors: dict[str, str] = {}
            for error in exc.errors(include_url=False, include_context=False, include_input=False):
                errors.setdefault(_name(error["loc"]), error["msg"])
                if len(errors) == MOST_ERRORS:
                    break
            raise MessageInvalid(self.type, errors, agent=agent, handler=self.label) from None


def _name(place: Sequence[int | str]) -> str:
    """Return the place of an error. The agent may have chosen the names: unusual ones are quoted."""
    name = ".".join(map(str, place[:NAMES_TOLD]))
    plain = len(name) <= NAME_LENGTH and all(
        part.isidentifier() or part.isdecimal() for part in name.split(".")
    )
    return name if plain or not name else f"{name!a:.{NAME_LENGTH}}"


def _annotation(function: Callable[..., object], label: str) -> object:
    """Return the annotation of the parameter for the message; ``Any`` if it has none.

    Raises:
        TypeError: The parameter is missing, or there are other required ones.
    """
    code = code_of(function)
    if inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code):
        raise TypeError(f"{label}: it is a generator, and an answer is one value; return it")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError as exc:
        raise TypeError(f"{label}: its parameters are unknown; wrap it in your own function") from exc
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
    """Return whether a message is passed unchanged."""
    if any(annotation is whole for whole in (Any, object, dict, Mapping, MutableMapping)):
        return True
    inner = get_args(annotation)
    return (
        get_origin(annotation) in (dict, Mapping, MutableMapping)
        and inner[0] is str
        and inner[1] in (Any, object)
    )
