"""What is mended, what is an error, and that nothing else can happen."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schema.wire_strategies import JSON, OBJECTS, ours
from suite.tiers import few

from thinkwell_acp import schema as s
from thinkwell_acp.schema import DecodeError, JsonObject, Model, convert, decode, encode, to_builtins
from thinkwell_acp.schema.updates import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable

TYPES: list[type] = sorted(
    {type_ for method in s.METHODS for type_ in (method.params, method.result) if type_ is not None},
    key=lambda type_: type_.__name__,
)

BLOCK = {"type": "text", "text": "x"}
OPTION = {"optionId": "o", "name": "n", "kind": "allow_once"}
SELECT = {"id": "c", "name": "n", "type": "select", "currentValue": "v"}


def read(type_: type[Any], raw: object) -> Any:
    """Decode both ways and see that they agree."""
    value = decode(type_, json.dumps(raw).encode())
    assert convert(type_, raw) == value
    return value


def update(**fields: object) -> Any:
    return read(s.SessionNotification, {"sessionId": "s", "update": fields}).update


MENDED: list[tuple[type[Model], JsonObject, str, JsonObject, str]] = [
    # type, what it needs, the key that is bad, bad values by name, the field
    (s.TextContent, {"text": "x"}, "_meta", {"text": "x", "array": []}, "meta"),
    (s.TextContent, {"text": "x"}, "annotations", {"text": "x", "array": []}, "annotations"),
    (s.Annotations, {}, "priority", {"text": "1", "flag": True}, "priority"),
    (s.Annotations, {}, "audience", {"text": "user", "object": {}}, "audience"),
    (s.ResourceLink, {"name": "n", "uri": "u"}, "size", {"text": "1", "fraction": 1.5}, "size"),
    (s.ToolCallLocation, {"path": "/p"}, "line", {"negative": -1, "text": "1"}, "line"),
    (s.ToolCall, {"toolCallId": "t", "title": "x"}, "status", {"unknown": "lost", "number": 1}, "status"),
    (s.ToolCall, {"toolCallId": "t", "title": "x"}, "kind", {"number": 1, "null": None}, "kind"),
    (s.ToolCall, {"toolCallId": "t", "title": "x"}, "content", {"object": {}, "null": None}, "content"),
    (s.ToolCallUpdate, {"toolCallId": "t"}, "status", {"unknown": "lost", "number": 1}, "status"),
    (s.ToolCallUpdate, {"toolCallId": "t"}, "kind", {"number": 1}, "kind"),
    (s.ToolCallUpdate, {"toolCallId": "t"}, "locations", {"object": {}, "text": "/p"}, "locations"),
    (s.PromptResponse, {"stopReason": "end_turn"}, "usage", {"partial": {"totalTokens": 1}}, "usage"),
    (s.NewSessionResponse, {"sessionId": "s"}, "modes", {"partial": {"availableModes": []}}, "modes"),
    (s.InitializeResponse, {"protocolVersion": 1}, "agentInfo", {"partial": {"name": "n"}}, "agent_info"),
    (
        s.InitializeResponse,
        {"protocolVersion": 1},
        "authMethods",
        {"null": None, "object": {}},
        "auth_methods",
    ),
    (s.InitializeResponse, {"protocolVersion": 1}, "agentCapabilities", {"array": []}, "agent_capabilities"),
    (s.AuthMethodTerminal, {"id": "i", "name": "n"}, "env", {"number": {"A": 1}, "array": []}, "env"),
    (
        s.AgentCapabilities,
        {},
        "loadSession",
        {"text": "true", "object": {}, "number": 1, "null": None},
        "load_session",
    ),
    (
        s.CreateTerminalRequest,
        {"sessionId": "s", "command": "c"},
        "outputByteLimit",
        {"negative": -1},
        "output_byte_limit",
    ),
    (s.SessionInfoUpdate, {}, "title", {"number": 1}, "title"),
]


@pytest.mark.parametrize(
    ("type_", "needed", "key", "bad", "field"),
    [
        pytest.param(type_, needed, key, bad, field, id=f"{type_.__name__}.{key}-{name}")
        for type_, needed, key, values, field in MENDED
        for name, bad in values.items()
    ],
)
def test_point_24_a_malformed_optional_field_counts_as_absent(
    type_: type[Model], needed: JsonObject, key: str, bad: object, field: str
) -> None:
    assert getattr(read(type_, {**needed, key: bad}), field) == getattr(read(type_, needed), field)


def test_point_24_a_bad_element_is_dropped_alone() -> None:
    answer = read(
        s.InitializeResponse,
        {
            "protocolVersion": 1,
            "authMethods": [{"id": "a", "name": "A"}, {"id": 1}, "x", {"id": "b", "name": "B"}],
        },
    )
    assert [method.id for method in answer.auth_methods] == ["a", "b"]
    change = update(
        sessionUpdate="tool_call_update",
        toolCallId="t",
        content=[{"type": "hologram"}, {"type": "diff", "path": "/p", "newText": "n"}, {"type": "diff"}, 3],
        locations=[{"line": 1}, {"path": "/p"}],
    )
    assert change.content == (s.Diff(path="/p", new_text="n"),)
    assert change.locations == (s.ToolCallLocation(path="/p"),)
    commands = [{"name": "a", "description": "b", "input": {"hint": 1}}, {"name": "c"}]
    assert update(
        sessionUpdate="available_commands_update", availableCommands=commands
    ).available_commands == (s.AvailableCommand(name="a", description="b"),)
    directories = read(
        s.NewSessionRequest,
        {"cwd": "/", "mcpServers": ["x", {"name": "n"}], "additionalDirectories": ["/a", 1]},
    )
    assert (directories.mcp_servers, directories.additional_directories) == ((), ("/a",))
    assert read(s.Annotations, {"audience": ["user", "robot"]}).audience == ("user",)


@pytest.mark.parametrize("bad", ["absent", None, "x", {}, 1])
def test_point_24_a_required_but_lenient_array_is_empty(bad: object) -> None:
    def field(key: str) -> JsonObject:
        return {} if bad == "absent" else {key: bad}

    assert update(sessionUpdate="plan", **field("entries")).entries == ()
    assert (
        update(sessionUpdate="available_commands_update", **field("availableCommands")).available_commands
        == ()
    )
    assert update(sessionUpdate="config_option_update", **field("configOptions")).config_options == ()
    assert read(s.ListSessionsResponse, field("sessions")).sessions == ()
    assert read(s.SessionModeState, {"currentModeId": "m", **field("availableModes")}).available_modes == ()
    assert read(s.SessionConfigSelectGroup, {"group": "g", "name": "n", **field("options")}).options == ()
    assert read(s.NewSessionRequest, {"cwd": "/", **field("mcpServers")}).mcp_servers == ()
    assert read(s.SetSessionConfigOptionResponse, field("configOptions")).config_options == ()
    assert read(s.PlanItems, {"planId": "p", **field("entries")}).entries == ()


def test_point_24_an_unknown_tool_kind_is_other() -> None:
    assert update(sessionUpdate="tool_call", toolCallId="t", title="x", kind="dance").kind == "other"
    assert update(sessionUpdate="tool_call_update", toolCallId="t", kind="dance").kind == "other"


def test_point_24_an_unknown_status_is_pending_on_a_new_call_and_no_change_on_a_known_one() -> None:
    assert update(sessionUpdate="tool_call", toolCallId="t", title="x", status="lost").status == "pending"
    assert update(sessionUpdate="tool_call_update", toolCallId="t", status="lost").status is None


@pytest.mark.parametrize(
    "block", [BLOCK, {"type": "resource_link", "name": "n", "uri": "u"}], ids=["text", "link"]
)
def test_point_24_a_bare_block_in_the_content_of_a_tool_call_is_wrapped(block: JsonObject) -> None:
    change = update(sessionUpdate="tool_call_update", toolCallId="t", content=[block])
    (content,) = change.content
    assert isinstance(content, s.Content)
    assert to_builtins(content.content) == block


STRICT: list[tuple[str, type[Model], JsonObject, str]] = [
    (
        "options missing",
        s.RequestPermissionRequest,
        {"sessionId": "s", "toolCall": {"toolCallId": "t"}},
        "$.options",
    ),
    (
        "an option malformed",
        s.RequestPermissionRequest,
        {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": [OPTION, {"optionId": "o"}]},
        "$.options[1].name",
    ),
    (
        "no tool call id",
        s.RequestPermissionRequest,
        {"sessionId": "s", "toolCall": {"toolCallId": 1}, "options": [OPTION]},
        "$.toolCall.toolCallId",
    ),
    (
        "a block malformed",
        s.PromptRequest,
        {"sessionId": "s", "prompt": [BLOCK, {"type": "text"}]},
        "$.prompt[1].text",
    ),
    (
        "a block unknown",
        s.PromptRequest,
        {"sessionId": "s", "prompt": [{"type": "smell"}]},
        "$.prompt[0].type",
    ),
    ("a block no object", s.PromptRequest, {"sessionId": "s", "prompt": [3]}, "$.prompt[0].type"),
    ("prompt no array", s.PromptRequest, {"sessionId": "s", "prompt": BLOCK}, "$.prompt"),
    ("session id no text", s.SessionNotification, {"sessionId": 1, "update": {}}, "$.sessionId"),
    ("no stop reason", s.PromptResponse, {}, "$.stopReason"),
    ("protocol version too big", s.InitializeResponse, {"protocolVersion": 65536}, "$.protocolVersion"),
    ("cursor no text", s.ListSessionsRequest, {"cursor": 1}, "$.cursor"),
    ("limits of a form", s.StringPropertySchema, {"type": "string", "minLength": -1}, "$.minLength"),
    (
        "a field of a form malformed",
        s.CreateElicitationRequest,
        {
            "mode": "form",
            "message": "m",
            "sessionId": "s",
            "requestedSchema": {"properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        },
        "$.requestedSchema.properties.a.items",
    ),
    (
        "a field of a form without a type",
        s.CreateElicitationRequest,
        {"mode": "form", "message": "m", "sessionId": "s", "requestedSchema": {"properties": {"a": {}}}},
        "$.requestedSchema.properties.a",
    ),
    (
        "a field of a form no object",
        s.CreateElicitationRequest,
        {"mode": "form", "message": "m", "sessionId": "s", "requestedSchema": {"properties": {"a": 1}}},
        "$.requestedSchema.properties.a",
    ),
    ("a question that belongs to nothing", s.CreateElicitationRequest, {"mode": "x", "message": "m"}, "$"),
    ("no object", s.McpServerStdio, {"name": "n", "command": "c", "args": [], "env": [1]}, "$.env[0]"),
    (
        "content of a form",
        s.CreateElicitationResponse,
        {"action": "accept", "content": {"a": {}}},
        "$.content.a",
    ),
    ("outcome unknown", s.RequestPermissionResponse, {"outcome": {"outcome": "maybe"}}, "$.outcome.outcome"),
]


@pytest.mark.parametrize(("type_", "raw", "path"), [pytest.param(*case[1:], id=case[0]) for case in STRICT])
def test_point_24_what_is_strict_is_an_error_that_says_where(
    type_: type[Model], raw: JsonObject, path: str
) -> None:
    text = json.dumps(raw).encode()
    with pytest.raises(DecodeError) as caught:
        decode(type_, text)
    error = caught.value
    assert (error.type_name, error.path, error.raw) == (type_.__name__, path, text)
    assert str(error) == f"{type_.__name__}: {error.message} at {path}"
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.path, copy.raw) == (error.path, error.raw)
    with pytest.raises(DecodeError) as again:
        convert(type_, raw)
    assert (again.value.path, again.value.raw) == (path, raw)


def test_point_06_an_unknown_update_is_kept_with_its_raw_body() -> None:
    raw = {"sessionUpdate": "of_tomorrow", "x": [1, None]}
    unknown = update(**raw)
    assert unknown == s.UnknownUpdate(raw)
    match unknown:
        case s.UnknownUpdate(kept):
            assert kept == raw
        case _:
            pytest.fail("no match")


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ({"sessionUpdate": "agent_message_chunk"}, "agent_message_chunk"),
        ({"sessionUpdate": "agent_message_chunk", "content": {"type": "smell"}}, "agent_message_chunk"),
        ({"sessionUpdate": "tool_call", "toolCallId": 1, "title": "x"}, "tool_call"),
        ({"sessionUpdate": 1}, ""),
        ({}, ""),
        ([], ""),
        ("x", ""),
        (None, ""),
    ],
)
def test_point_06_a_malformed_update_is_told_apart_from_an_unknown_one(raw: object, kind: str) -> None:
    invalid = read(s.SessionNotification, {"sessionId": "s", "update": raw}).update
    assert isinstance(invalid, s.InvalidUpdate)
    assert (invalid.kind, invalid.raw) == (kind, raw)
    assert "$.update" in invalid.error
    assert json.loads(encode(invalid)) == raw


def test_a_notification_without_an_update_has_an_invalid_one() -> None:
    assert read(s.SessionNotification, {"sessionId": "s"}).update == s.InvalidUpdate(
        "", None, "It is missing at $.update"
    )


def test_opaque_values_are_values() -> None:
    one, same = s.InvalidUpdate("plan", {"a": 1}, "bad"), s.InvalidUpdate("plan", {"a": 1}, "bad")
    assert one == same
    assert hash(one) == hash(same)
    assert one != s.UnknownUpdate({"a": 1})
    assert pickle.loads(pickle.dumps(one)) == one
    assert repr(one) == "InvalidUpdate('plan', {'a': 1}, 'bad')"
    with pytest.raises(AttributeError, match="immutable"):
        one.raw = {}


def test_half_a_character_in_a_text_becomes_a_replacement_character() -> None:
    def chunk(text: bytes) -> bytes:
        content = b'{"type":"text","text":"' + text + b'"}'
        return (
            b'{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":' + content + b"}}"
        )

    def text_of(raw: bytes) -> str:
        return decode(s.SessionNotification, raw).update.content.text  # type: ignore[union-attr]

    assert text_of(chunk(rb"a\ud83d")) == "a\ufffd"
    assert text_of(chunk(rb"\uDE00b")) == "\ufffdb"
    assert text_of(chunk(rb"\ud83d\ud83d\ude00")) == "\ufffd\U0001f600"
    assert text_of(chunk(rb"\\ud83d \" \ud83d")) == '\\ud83d " \ufffd'
    assert s.parse_json(rb'["\ud83d", "\u00e4"]') == ["\ufffd", "ä"]
    assert s.mend_surrogates(b'"plain"') == b'"plain"'


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"nonsense", b"{} {}", b'"\xff"', b"NaN", b"[" * 100_000, b"1e999"]
)
@pytest.mark.parametrize(
    "type_", [s.SessionNotification, s.LogoutResponse, s.CreateElicitationRequest, object]
)
def test_what_is_no_json_is_an_error(type_: type[Any], raw: bytes) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(type_, raw)
    assert caught.value.path == "$"


EMPTY = [
    type_
    for type_ in TYPES
    if type_.__name__.endswith("Response")
    and issubclass(type_, Model)
    and type_.__struct_fields__ == ("meta",)
]


@pytest.mark.parametrize("type_", EMPTY, ids=lambda type_: type_.__name__)
@pytest.mark.parametrize("raw", [b"{}", b"null", None, b'{"unknown":1}'])
def test_point_25_empty_results_are_written_as_objects_and_read_as_anything(
    type_: type[Any], raw: bytes | None
) -> None:
    assert encode(type_()) == b"{}"
    assert decode(type_, raw) == type_()


def test_a_result_that_is_null_is_an_object_without_fields() -> None:
    assert decode(s.LoadSessionResponse, b"null") == s.LoadSessionResponse()
    assert convert(s.LoadSessionResponse, None) == s.LoadSessionResponse()
    assert decode(s.SetSessionConfigOptionResponse, b"{}").config_options == ()
    with pytest.raises(DecodeError, match="missing"):
        decode(s.NewSessionResponse, b"null")
    assert decode(object, b"null") is None
    assert decode(object, None) is None


def mutated(raw: Any, draw: Callable[[st.SearchStrategy[Any]], Any]) -> Any:
    """Replace one thing somewhere in a JSON value by any other."""
    if not raw or not isinstance(raw, (dict, list)) or draw(st.integers(0, 3)) == 0:
        return draw(JSON)
    copy: Any = raw.copy()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    keys = sorted(copy) if isinstance(raw, dict) else range(len(copy))
    key = draw(st.sampled_from(keys))
    copy[key] = mutated(copy[key], draw)
    return copy


@pytest.mark.draws
@pytest.mark.parametrize("type_", TYPES, ids=lambda type_: type_.__name__)
def test_junk_is_read_or_is_a_decode_error(type_: Any) -> None:
    @settings(max_examples=few(60))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        message = data.draw(st.one_of(JSON, OBJECTS, ours(type_)))
        raw = mutated(json.loads(encode(message)), data.draw)
        try:
            value = decode(type_, json.dumps(raw).encode())
        except DecodeError:
            with pytest.raises(DecodeError):
                convert(type_, raw)
        else:
            assert convert(type_, raw) == value
            assert decode(type_, encode(value)) == value

    check()


@settings(max_examples=200)
@given(st.dictionaries(st.text(max_size=3), JSON, max_size=3), st.sampled_from(sorted(KINDS)))
def test_no_update_is_an_error(fields: JsonObject, kind: str) -> None:
    received = update(**{**fields, "sessionUpdate": kind})
    assert not isinstance(received, s.UnknownUpdate)


@settings(max_examples=100)
@given(st.binary(max_size=60))
def test_bytes_that_are_no_message_are_a_decode_error(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(s.SessionNotification, raw)
