"""Makes messages: from our models, and from the models of the official SDK."""

from __future__ import annotations

import functools
import types
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import msgspec
import pydantic
import pytest
from hypothesis import strategies as st

from thinkwell_acp.schema import CreateElicitationRequest, CreateElicitationResponse, Model, Opaque, UnsetType

Values = st.SearchStrategy[Any]

OFFICIAL = pytest.mark.xdist_group("official models")
"""For cases that import those of the official SDK."""

TEXTS = st.text(max_size=5)
INTEGERS = st.integers(-(2**53), 2**53)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | INTEGERS | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=2)
URLS = st.sampled_from(["https://example.com/", "https://example.com/a?b=c"])

LEAVES: dict[object, Values] = {
    str: TEXTS,
    int: INTEGERS,
    float: FLOATS,
    bool: st.booleans(),
    object: JSON,
    Any: JSON,
    type(None): st.none(),
    pydantic.AnyUrl: URLS,
}

OUR_FIELDS: dict[str, Values] = {
    "ClientSessionCapabilities.compaction": st.none(),
    "ElicitationUrlMode.url": URLS,
    "OtherElicitationMode.mode": st.just("_vendor"),
    "ToolCallProgress.name": st.none(),
    "ToolCallStart.name": st.none(),
    "ToolCallUpdate.name": st.none(),
}
"""Fields of ours with rules beyond their type, and fields that the official SDK does not have yet."""

THEIR_FIELDS: dict[str, Values] = {
    "AcceptElicitationResponse.content": st.dictionaries(
        TEXTS, TEXTS | INTEGERS | st.booleans() | st.lists(TEXTS, max_size=2), max_size=2
    ),
    "Annotations.audience": st.lists(st.sampled_from(["user", "assistant"]), max_size=2),
    "CancelRequestNotification.requestId": INTEGERS | TEXTS,
    "CreateFormRequestElicitationRequest.requestId": INTEGERS | TEXTS,
    "CreateUrlRequestElicitationRequest.requestId": INTEGERS | TEXTS,
    "ElicitationOtherPropertySchema.type": st.just("_vendor"),
    "ElicitationSchema.type": st.just("object"),
    "OtherElicitationResponse.action": st.just("_vendor"),
    "OtherMultiSelectItems.type": st.just("_vendor"),
    "SessionConfigOptionBoolean.category": st.sampled_from(["mode", "_vendor"]),
    "SessionConfigOptionSelect.category": st.sampled_from(["mode", "_vendor"]),
}
"""Fields of the official SDK for which its types say less than the protocol.

An id that is null is an id, but the SDK leaves it out when it sends.
"""

NOT_OURS = frozenset(("nes", "providers", "positionEncoding", "positionEncodings"))
"""Capabilities of those parts of the protocol that are left out here."""

LEGACY = "EnvVarAuthMethod"
"""A class that the official SDK still has and the protocol has no more."""


def official() -> Any:
    """The models of the official SDK, which take a second to import."""
    import acp.schema  # noqa: TID251 - it is the peer here

    return acp.schema


def is_choice(annotation: object) -> bool:
    """Tell whether another class stands in for this one. Those inherit from it too, but do not choose."""
    return isinstance(annotation, type) and "choose" in vars(annotation)


def _one_of(members: list[Any], make: Any) -> Values:
    return st.one_of([make(member) for member in members])


def _chosen(choice: type) -> list[type]:
    members: list[type] = choice.__subclasses__()
    return [member for member in members if not is_choice(member)]


@functools.cache
def ours(annotation: Any) -> Values:
    """Values of one of our types, as far as we would send them."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        limits = [mark.le for mark in args[1:] if isinstance(mark, msgspec.Meta)]
        return st.integers(0, int(limits[0] or 2**53)) if limits else ours(args[0])
    if origin in (Union, types.UnionType):
        is_open = any(get_origin(member) is Literal for member in args)
        beside = (UnsetType, str) if is_open else (UnsetType,)
        return _one_of([member for member in args if member not in beside], ours)
    if origin is tuple:
        # Values of a select and groups of them never share a list; apart, other choices are no worse off.
        kinds: list[Any] = _chosen(args[0]) if is_choice(args[0]) else [args[0]]
        return st.one_of([st.lists(ours(kind), max_size=2).map(tuple) for kind in kinds])
    if origin is dict:
        return st.dictionaries(TEXTS, ours(args[1]), max_size=2)
    if origin is Literal:
        return st.sampled_from(args)
    if annotation in LEAVES:
        return LEAVES[annotation]
    if is_choice(annotation):
        return _one_of(_chosen(annotation), ours)
    if issubclass(annotation, Opaque):
        return OBJECTS.map(lambda fields: annotation({**fields, "type": "_vendor"}))
    return _our_model(annotation)


def _our_model(model: type[Model]) -> Values:
    hints = get_type_hints(model, include_extras=True)
    required: dict[str, Values] = {}
    optional: dict[str, Values] = {}
    for info in msgspec.structs.fields(model):
        values = OUR_FIELDS.get(f"{model.__name__}.{info.encode_name}")
        into = required if info.required else optional
        into[info.name] = ours(hints[info.name]) if values is None else values
    if issubclass(model, CreateElicitationRequest):
        fields = _scoped(required, optional)
    else:
        fields = st.fixed_dictionaries(required, optional=optional)
    if model is CreateElicitationResponse:
        fields = fields.filter(lambda values: values["action"] == "accept" or "content" not in values)
    return fields.map(lambda values: model(**values))


def _scoped(required: dict[str, Values], optional: dict[str, Values]) -> Values:
    """A question belongs to a session or to a request, never to both."""
    request = {"request_id": optional.pop("request_id")}
    session = {"session_id": TEXTS, "tool_call_id": optional.pop("tool_call_id")}
    del optional["session_id"]
    scopes = st.fixed_dictionaries(request) | st.fixed_dictionaries(session)
    rest = st.fixed_dictionaries(required, optional=optional)
    return st.tuples(rest, scopes).map(lambda both: both[0] | both[1])


@functools.cache
def theirs(annotation: Any) -> Values:
    """Values of one of the official SDK's types."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return theirs(args[0])
    if origin in (Union, types.UnionType):
        return _one_of([each for each in args if getattr(each, "__name__", "") != LEGACY], theirs)
    if origin is list:
        return st.lists(theirs(args[0]), max_size=2)
    if origin is dict:
        return st.dictionaries(TEXTS, theirs(args[1]), max_size=2)
    if origin is Literal:
        return st.sampled_from(args)
    if annotation in LEAVES:
        return LEAVES[annotation]
    return _their_model(annotation)


def _their_model(model: type[pydantic.BaseModel]) -> Values:
    if issubclass(model, pydantic.RootModel):
        return theirs(cast("Any", model.model_fields["root"].annotation))
    required: dict[str, Values] = {}
    optional: dict[str, Values] = {}
    for name, info in model.model_fields.items():
        key = info.alias or name
        if key in NOT_OURS:
            continue
        upper = [mark.le for mark in info.metadata if hasattr(mark, "le")]
        natural = any(hasattr(mark, "ge") for mark in info.metadata)
        values = THEIR_FIELDS.get(f"{model.__name__}.{key}")
        if values is None:
            values = (
                st.integers(0, upper[0] if upper else 2**53)
                if natural
                else theirs(cast("Any", info.annotation))
            )
        (required if info.is_required() else optional)[key] = values
    if model.__name__ == "CreateOtherElicitationRequest":
        # The official class asks neither for a session nor for a request, the protocol does.
        required |= {"mode": st.just("_vendor"), "sessionId": TEXTS}
    fields = st.fixed_dictionaries(required, optional=optional)
    return fields.map(lambda values: model.model_validate(values))
