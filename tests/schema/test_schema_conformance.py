"""Both ways between our models and those of the official SDK, over all methods and kinds of update."""

from __future__ import annotations

import json
from typing import Any, Final, TypeGuard, cast, get_args

import msgspec
import pydantic
import pytest
from drawing import drawn
from schema.wire_strategies import OFFICIAL, official, ours, theirs

from thinkwell_acp.schema import (
    METHODS,
    UNSET,
    AuthMethodAgent,
    CompactionSummaryChunk,
    CompactionUpdate,
    InitializeResponse,
    KnownUpdate,
    Model,
    NoticeUpdate,
    Opaque,
    SessionNotification,
    UnknownUpdate,
    convert,
    decode,
    encode,
    strict_decoder,
    to_builtins,
)

pytestmark = OFFICIAL

EXAMPLES: Final = 40


FIELDS = ("models", "systemPrompt")
"""Fields that older or younger agents have, and the official SDK has not."""

GONE = {"session/set_model"}
"""A method that older agents have: the official SDK does not have it any more."""

TYPES: list[type[Model]] = sorted(
    {
        type_
        for method in METHODS
        for type_ in (method.params, method.result)
        if type_ is not None and issubclass(type_, Model) and type_ is not SessionNotification
        if method.name not in GONE and type_.__name__ not in ("ListProvidersResponse", "SetProviderRequest")
    },
    key=lambda type_: type_.__name__,
)
"""What requests, notifications and results are made of; results of `mcp/message` are any JSON. In those of
providers, an API is any string of ours, and one of a few of the official SDK's."""

UPDATES: tuple[type[Model], ...] = get_args(KnownUpdate)

THEIR_UPDATES = (
    "UserMessageChunk",
    "AgentMessageChunk",
    "AgentThoughtChunk",
    "ToolCallStart",
    "ToolCallProgress",
    "AgentPlanUpdate",
    "AgentPlanContentUpdate",
    "AgentPlanRemovedUpdate",
    "AvailableCommandsUpdate",
    "CurrentModeUpdate",
    "ConfigOptionUpdate",
    "SessionInfoUpdate",
    "UsageUpdate",
)

ALWAYS_WRITTEN: dict[str, Any] = {"clientCapabilities": {}}
"""What we write although it is optional."""

YOUNGER = (NoticeUpdate, CompactionUpdate, CompactionSummaryChunk)
"""Kinds of update that the official SDK does not have yet."""


def name_of(type_: type) -> str:
    return type_.__name__


def their_type(type_: type[Model]) -> Any:
    if type_.__name__ == "SetSessionConfigOptionRequest":  # which it has under other names
        return (
            official().SetSessionConfigOptionBooleanRequest | official().SetSessionConfigOptionSelectRequest
        )
    return getattr(official(), type_.__name__)


def dumped(value: pydantic.BaseModel) -> Any:
    """Dump as the official SDK does when it sends."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)


def whole(value: object) -> Any:
    """Return a value of ours as builtins with everything that it holds, defaults too."""
    if isinstance(value, Model):
        config = type(value).__struct_config__
        values = {info.encode_name: getattr(value, info.name) for info in msgspec.structs.fields(value)}
        fields = {name: whole(field) for name, field in values.items() if field is not UNSET}
        return fields if config.tag is None else {str(config.tag_field): config.tag, **fields}
    if isinstance(value, tuple):
        return [whole(element) for element in cast("tuple[object, ...]", value)]
    return value.raw if isinstance(value, Opaque) else to_builtins(value)


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def within(part: Any, all_of_it: Any) -> bool:
    """Tell whether everything in one JSON value is in another; `null` is the same as nothing."""
    if is_object(part) and is_object(all_of_it):
        return all(within(value, all_of_it.get(key)) for key, value in part.items())
    if is_array(part) and is_array(all_of_it):
        same_length = len(part) == len(all_of_it)
        return same_length and all(within(*pair) for pair in zip(part, all_of_it, strict=True))
    return bool(part == all_of_it)


def without_fields(value: dict[str, Any]) -> dict[str, Any]:
    return {name: field for name, field in value.items() if name not in FIELDS}


def check_ours(type_: type[Model], message: Model, adapter: pydantic.TypeAdapter[Any]) -> None:
    raw = encode(message)
    assert decode(type_, raw) == message
    assert convert(type_, to_builtins(message)) == message
    theirs_of_it = adapter.validate_json(raw)
    known = json.loads(raw, object_hook=without_fields)
    assert within(known, theirs_of_it.model_dump(mode="json", by_alias=True))


def check_theirs(type_: type[Model], message: pydantic.BaseModel) -> None:
    sent = dumped(message)
    received = decode(type_, json.dumps(sent).encode())
    assert within(sent, whole(received))
    held = message.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert within(json.loads(encode(received)), ALWAYS_WRITTEN | held)
    assert decode(type_, encode(received)) == received


@pytest.mark.draws
@pytest.mark.parametrize("type_", TYPES, ids=name_of)
def test_every_message_of_ours_is_read_by_the_official_models(type_: type[Model]) -> None:
    adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(their_type(type_))
    for message in drawn(ours(type_), EXAMPLES):
        check_ours(type_, message, adapter)


@pytest.mark.draws
@pytest.mark.parametrize("type_", TYPES, ids=name_of)
def test_every_message_of_the_official_models_is_read_by_ours(type_: type[Model]) -> None:
    for message in drawn(theirs(their_type(type_)), EXAMPLES):
        check_theirs(type_, message)


@pytest.mark.draws
@pytest.mark.parametrize("kind", UPDATES, ids=name_of)
def test_every_update_of_ours_is_read_by_the_official_models_that_have_it(kind: type[Model]) -> None:
    adapter = pydantic.TypeAdapter(official().SessionNotification)
    for update in drawn(ours(kind), EXAMPLES):
        message = SessionNotification(session_id="s", update=update)
        if kind in YOUNGER:
            assert strict_decoder(SessionNotification).decode(encode(message)) == message
            with pytest.raises(pydantic.ValidationError):
                adapter.validate_json(encode(message))
        else:
            check_ours(SessionNotification, message, adapter)


@pytest.mark.draws
@pytest.mark.parametrize("kind", THEIR_UPDATES)
def test_every_update_of_the_official_models_is_read_by_ours(kind: str) -> None:
    for update in drawn(theirs(getattr(official(), kind)), EXAMPLES):
        message = official().SessionNotification.model_validate({"sessionId": "s", "update": update})
        check_theirs(SessionNotification, message)
        received = decode(SessionNotification, json.dumps(dumped(message)).encode())
        assert not isinstance(received.update, Opaque)


def test_a_login_of_a_type_that_is_no_more_is_read_as_one_of_the_agent() -> None:
    login = official().EnvVarAuthMethod(id="key", name="API key", vars=[], type="env_var")
    message = official().InitializeResponse(protocol_version=1, auth_methods=[login])
    received = decode(InitializeResponse, json.dumps(dumped(message)).encode())
    assert received.auth_methods == (AuthMethodAgent(id="key", name="API key"),)


def test_the_updates_of_the_official_models_are_all_there() -> None:
    updates = get_args(official().SessionNotification.model_fields["update"].annotation)
    assert tuple(update.__name__ for update in updates) == THEIR_UPDATES


def test_the_official_models_and_ours_have_the_same_methods() -> None:
    from acp.meta import AGENT_METHODS, CLIENT_METHODS  # noqa: TID251 - it is the peer here

    def kept(names: dict[str, str]) -> set[str]:
        return {name for name in names.values() if not name.startswith(("nes/", "document/"))}

    cancel = {"$/cancel_request"}
    ours_of_agents = {method.name for method in METHODS if method.side != "client"}
    assert kept(AGENT_METHODS) == ours_of_agents - cancel - GONE
    assert kept(CLIENT_METHODS) == {method.name for method in METHODS if method.side != "agent"} - cancel


def test_unknown_updates_are_written_back_unchanged() -> None:
    raw = {"sessionUpdate": "of_tomorrow", "n": 1, "deep": {"a": [None]}}
    message = SessionNotification(session_id="s", update=UnknownUpdate(raw))
    assert json.loads(encode(message)) == {"sessionId": "s", "update": raw} == to_builtins(message)
    assert decode(SessionNotification, encode(message)) == message
