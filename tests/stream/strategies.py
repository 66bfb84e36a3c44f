"""Makes events of every kind from their types."""

from __future__ import annotations

import types
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st
from schema.wire_strategies import JSON, OBJECTS

from thinkwell.events import ThoughtEvent

KINDS: tuple[type[ThoughtEvent], ...] = get_args(ThoughtEvent)

LEAVES: dict[object, st.SearchStrategy[Any]] = {
    Any: JSON,
    bool: st.booleans(),
    float: st.floats(0, 1e6),
    int: st.integers(0, 2**53),
    str: st.text(max_size=5),
    type(None): st.none(),
    msgspec.UnsetType: st.just(msgspec.UNSET),
}


def values(annotation: Any) -> st.SearchStrategy[Any]:
    """Return values of a field's type."""
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation in LEAVES:
        return LEAVES[annotation]
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, types.UnionType):
        return st.one_of([values(arg) for arg in args])
    if origin is tuple:
        return st.lists(values(args[0]), max_size=2).map(tuple)
    if origin is dict:
        return OBJECTS
    return structs(annotation)


def structs(kind: Any) -> st.SearchStrategy[Any]:
    """Return values of a class, with and without what may be left out."""
    hints = {name: hint for name, hint in get_type_hints(kind).items() if get_origin(hint) is not ClassVar}
    required = {field.name for field in msgspec.structs.fields(kind) if field.required}
    fields = {name: values(hint) for name, hint in hints.items()}
    return st.fixed_dictionaries(
        {name: fields[name] for name in fields if name in required},
        optional={name: fields[name] for name in fields if name not in required},
    ).map(lambda chosen: kind(**chosen))


EVENTS: st.SearchStrategy[ThoughtEvent] = st.one_of([structs(kind) for kind in KINDS])
