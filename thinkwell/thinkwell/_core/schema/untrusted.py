"""Foreign JSON Schemas: values are checked against them in bounded time.

A pattern can keep a backtracking engine busy forever, references can double with each step, and comparing
many items takes quadratic time. None of that may stop a program that serves others.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from thinkwell._core.schema.json_schema import is_array, is_object
from thinkwell._values.text_rules import is_linear, misses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from thinkwell.events import JsonValue

    Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterator[Any] | None]

SECONDS: Final = 2.0
"""Time for one value; a check that takes longer is refused. A list of 40,000 small objects takes as long."""


class TooCostlyError(Exception):
    """A value cannot be checked in time."""


def refuse_costly(schema: JsonValue) -> None:
    """Refuse a schema that cannot be checked in bounded time.

    Raises:
        TypeError: It contains such a part; the text names it.
    """
    waiting: list[JsonValue] = [schema]
    while waiting:
        part = waiting.pop()
        if is_array(part):
            waiting += part
        elif is_object(part):
            _refuse(part, is_root=part is schema)
            waiting += part.values()


def _refuse(part: dict[str, JsonValue], *, is_root: bool) -> None:
    pattern = part.get("pattern")
    if isinstance(pattern, str) and not is_linear(pattern):
        raise TypeError(
            f"the pattern {pattern[:100]!r} cannot be matched in linear time; do without look-around and "
            "back-references, and repeat less"
        )
    if is_object(part.get("patternProperties")):
        raise TypeError("patternProperties cannot be used here; name the properties, or allow any")
    if isinstance(part.get("$schema"), str) and not is_root:
        raise TypeError("$schema can only be used at the root")


def bounded(kind: Any) -> Callable[[Any], Any]:
    """Return a function that makes checkers of a dialect raise `TooCostlyError` after a time.

    Args:
        kind: jsonschema's class of the dialect's validators.
    """
    from jsonschema import validators  # only for raw schemas

    extend: Any = vars(validators)["extend"]  # jsonschema has no types
    end = 0.0

    def timed(check: Keyword) -> Keyword:
        def check_in_time(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            if time.perf_counter() > end:
                raise TooCostlyError
            yield from check(validator, value, instance, schema) or ()

        return check_in_time

    keywords: dict[str, Keyword] = {**kind.VALIDATORS, "pattern": _pattern, "uniqueItems": _unique_items}
    checker: Any = extend(kind, {name: timed(check) for name, check in keywords.items()})

    def make(*arguments: Any, **options: Any) -> Any:
        nonlocal end
        end = time.perf_counter() + SECONDS
        return checker(*arguments, **options)

    return make


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    """Match in linear time."""
    from jsonschema import ValidationError  # only for raw schemas

    if isinstance(instance, str) and misses(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _unique_items(validator: Any, unique: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Compare in linear time."""
    from jsonschema import ValidationError  # only for raw schemas

    if unique and is_array(instance):
        seen: set[Any] = set()
        for item in instance:
            shape = _shape(item)
            if shape in seen:
                yield ValidationError(f"{instance!r} has non-unique elements")
                return
            seen.add(shape)


def _shape(value: JsonValue) -> Any:
    """Return a key that is the same for equal values, and only for them."""
    if is_array(value):
        return ("array", *map(_shape, value))
    if is_object(value):
        return ("object", frozenset((name, _shape(member)) for name, member in value.items()))
    return (isinstance(value, bool), value)  # True is not 1, but 1.0 is
