"""Points that are easily got wrong, as far as the models decide them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thinkwell_acp import schema as s
from thinkwell_acp.schema import UNSET, JsonObject, decode, encode, to_builtins


def read(type_: type[Any], raw: object) -> Any:
    return decode(type_, json.dumps(raw).encode())


def update(**fields: object) -> Any:
    return read(s.SessionNotification, {"sessionId": "s", "update": fields}).update


def written(value: object) -> Any:
    return json.loads(encode(value))


def test_point_08_patch_merge_of_a_tool_call_takes_null_and_absent_for_unchanged() -> None:
    absent = update(sessionUpdate="tool_call_update", toolCallId="t")
    null = update(
        sessionUpdate="tool_call_update",
        toolCallId="t",
        title=None,
        content=None,
        locations=None,
        rawInput=None,
    )
    assert absent == null == s.ToolCallProgress(tool_call_id="t")


def test_point_08_patch_merge_of_a_tool_call_tells_an_empty_array_from_none() -> None:
    cleared = update(sessionUpdate="tool_call_update", toolCallId="t", content=[], locations=[])
    assert (cleared.content, cleared.locations) == ((), ())
    assert written(cleared)["content"] == []


def test_point_08_patch_merge_of_session_info_has_three_states() -> None:
    assert update(sessionUpdate="session_info_update").title is UNSET
    assert update(sessionUpdate="session_info_update", title=None).title is None
    assert update(sessionUpdate="session_info_update", title="x").title == "x"
    assert update(sessionUpdate="session_info_update", _meta=None).meta is None
    assert update(sessionUpdate="session_info_update").meta is UNSET


def test_point_08_patch_merge_of_a_compaction_has_three_states() -> None:
    fields: JsonObject = {"sessionUpdate": "compaction_update", "compactionId": "c", "status": "of_tomorrow"}
    untouched = update(**fields)
    assert (untouched.summary, untouched.error, untouched.meta) == (UNSET, UNSET, UNSET)
    cleared = update(**fields, summary=None, error=None, _meta=None)
    assert (cleared.summary, cleared.error, cleared.meta) == (None, None, None)
    assert update(**fields, summary=[]).summary == ()
    assert update(**fields, summary=[{"type": "smell"}, {"type": "text", "text": "x"}]).summary == (
        s.TextContent(text="x"),
    )


@pytest.mark.parametrize("title", [UNSET, None, "x"])
def test_point_11_null_and_absent_are_written_as_they_are(title: Any) -> None:
    fields = written(s.SessionInfoUpdate(title=title))
    assert fields == {"sessionUpdate": "session_info_update", **({} if title is UNSET else {"title": title})}


def test_point_11_empty_arrays_that_are_required_are_written() -> None:
    stdio = s.McpServerStdio(name="n", command="/c", args=(), env=())
    http = s.McpServerHttp(name="n", url="u", headers=())
    sse = s.McpServerSse(name="n", url="u", headers=())
    assert written(s.NewSessionRequest(cwd="/", mcp_servers=())) == {"cwd": "/", "mcpServers": []}
    assert written(s.LoadSessionRequest(session_id="s", cwd="/", mcp_servers=())) == {
        "sessionId": "s",
        "cwd": "/",
        "mcpServers": [],
    }
    assert written(stdio) == {"name": "n", "command": "/c", "args": [], "env": []}
    assert written(http) == {"type": "http", "name": "n", "url": "u", "headers": []}
    assert written(sse) == {"type": "sse", "name": "n", "url": "u", "headers": []}
    assert written(s.AgentPlanUpdate(entries=())) == {"sessionUpdate": "plan", "entries": []}


def test_point_11_client_capabilities_are_written_even_when_there_are_none() -> None:
    request = s.InitializeRequest(protocol_version=1, client_capabilities=s.ClientCapabilities())
    assert written(request) == {"protocolVersion": 1, "clientCapabilities": {}}
    assert read(s.InitializeRequest, {"protocolVersion": 1}) == request


@pytest.mark.parametrize("key", ["serverId", "id", "acpId"])
def test_an_mcp_server_in_the_client_is_read_under_its_older_names(key: str) -> None:
    server = s.McpServerAcp(name="n", server_id="x")
    request = read(s.NewSessionRequest, {"cwd": "/", "mcpServers": [{"type": "acp", "name": "n", key: "x"}]})
    assert request.mcp_servers == (server,)
    assert read(s.ConnectMcpRequest, {key: "x"}).server_id == "x"
    assert written(server) == {"type": "acp", "name": "n", "serverId": "x"}


@pytest.mark.parametrize(("raw", "supported"), [({"close": {}}, True), ({"close": None}, False), ({}, False)])
def test_point_12_an_empty_object_is_a_yes(raw: JsonObject, supported: bool) -> None:
    answer = read(
        s.InitializeResponse, {"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": raw}}
    )
    assert (answer.agent_capabilities.session_capabilities.close is not None) is supported
    gate = s.REQUESTS["session/close"].gate
    assert gate is not None
    assert gate.is_open(answer.agent_capabilities) is supported


@pytest.mark.parametrize(
    ("raw", "supported"), [({}, False), ({"form": None}, False), ({"form": {}}, True), ({"url": {}}, True)]
)
def test_point_12_elicitation_without_a_mode_is_a_no(raw: JsonObject, supported: bool) -> None:
    gate = s.REQUESTS["elicitation/create"].gate
    assert gate is not None
    assert gate.holder == "client"
    assert gate.is_open(read(s.ClientCapabilities, {"elicitation": raw})) is supported


@pytest.mark.parametrize(
    ("flag", "supported"),
    [(True, True), (False, False), ("yes", False), ({}, False), (1, False), (None, False)],
)
def test_point_12_a_flag_needs_a_literal_true(flag: object, supported: bool) -> None:
    capabilities = read(
        s.InitializeResponse, {"protocolVersion": 1, "agentCapabilities": {"loadSession": flag}}
    )
    assert capabilities.agent_capabilities.load_session is supported
    gate = s.REQUESTS["session/load"].gate
    assert gate is not None
    assert gate.is_open(capabilities.agent_capabilities) is supported


def test_point_12_supported_markers_are_written_as_empty_objects() -> None:
    capabilities = s.SessionCapabilities(
        list=s.SessionListCapabilities(), delete=s.SessionDeleteCapabilities()
    )
    assert written(capabilities) == {"list": {}, "delete": {}}


def test_point_20_logins_are_told_apart_by_type() -> None:
    answer = read(
        s.InitializeResponse,
        {
            "protocolVersion": 1,
            "authMethods": [
                {"id": "a", "name": "A"},
                {"id": "b", "name": "B", "type": "agent", "description": "d"},
                {"id": "c", "name": "C", "type": "terminal", "args": ["--login"], "env": {"X": "1"}},
                {"id": "d", "name": "D", "type": "env_var", "vars": ["V"]},
                {"id": "e", "name": "E", "type": "terminal", "args": ["ok", 1], "env": 3},
            ],
        },
    )
    assert answer.auth_methods == (
        s.AuthMethodAgent(id="a", name="A"),
        s.AuthMethodAgent(id="b", name="B", description="d"),
        s.AuthMethodTerminal(id="c", name="C", args=("--login",), env={"X": "1"}),
        s.AuthMethodAgent(id="d", name="D"),
        s.AuthMethodTerminal(id="e", name="E", args=("ok",)),
    )
    assert "type" not in written(answer)["authMethods"][0]
    assert written(answer)["authMethods"][2]["type"] == "terminal"


@pytest.mark.parametrize("fields", [{}, {"messageId": None}, {"messageId": 7}])
def test_point_21_a_message_id_of_null_is_none(fields: JsonObject) -> None:
    content = {"type": "text", "text": "x"}
    assert update(sessionUpdate="agent_message_chunk", content=content, **fields).message_id is None


def test_point_21_chunks_of_all_three_kinds_are_content_chunks() -> None:
    for kind in (s.UserMessageChunk, s.AgentMessageChunk, s.AgentThoughtChunk):
        chunk = kind(content=s.TextContent(text="x"), message_id="m")
        assert update(**to_builtins(chunk)) == chunk
        assert isinstance(chunk, s.ContentChunk)


@pytest.mark.parametrize(
    "options",
    [
        [{"value": "v", "name": "n"}],
        [{"group": "g", "name": "G", "options": [{"value": "v", "name": "n"}]}],
        [],
    ],
    ids=["flat", "groups", "empty"],
)
def test_point_23_options_are_read_flat_and_in_groups(options: list[JsonObject]) -> None:
    raw = {"id": "c", "name": "n", "type": "select", "currentValue": "v", "options": options}
    (option,) = update(sessionUpdate="config_option_update", configOptions=[raw]).config_options
    assert isinstance(option, s.SessionConfigSelect)
    assert written(option) == raw


def test_point_23_an_option_of_an_unknown_type_is_dropped_alone() -> None:
    known = {"id": "b", "name": "n", "type": "boolean", "currentValue": True}
    raw = [
        {"id": "a", "name": "n", "type": "slider", "currentValue": 3},
        known,
        {"id": "c", "type": "select"},
    ]
    expected = (s.SessionConfigBoolean(id="b", name="n", current_value=True),)
    assert update(sessionUpdate="config_option_update", configOptions=raw).config_options == expected
    assert read(s.NewSessionResponse, {"sessionId": "s", "configOptions": raw}).config_options == expected


@pytest.mark.parametrize("key", ["currentModeId", "modeId"])
def test_point_23_both_spellings_of_the_mode_are_read(key: str) -> None:
    change = update(sessionUpdate="current_mode_update", **{key: "m"})
    assert change == s.CurrentModeUpdate(current_mode_id="m")
    assert written(change) == {"sessionUpdate": "current_mode_update", "currentModeId": "m"}


def test_point_23_the_type_of_a_setting_follows_from_its_value() -> None:
    def request(value: str | bool) -> s.SetSessionConfigOptionRequest:
        return s.SetSessionConfigOptionRequest(session_id="s", config_id="c", value=value)

    same: JsonObject = {"sessionId": "s", "configId": "c"}
    assert written(request("v")) == {**same, "value": "v"}
    assert written(request(False)) == {**same, "value": False, "type": "boolean"}
    for tolerated in ({"value": "v"}, {"value": "v", "type": "id"}, {"value": "v", "type": "boolean"}):
        assert read(s.SetSessionConfigOptionRequest, {**same, **tolerated}) == request("v")
    assert read(s.SetSessionConfigOptionRequest, {**same, "value": False, "type": "boolean"}) == request(
        False
    )


def test_unknown_words_are_kept_where_the_protocol_is_open() -> None:
    assert read(s.PromptResponse, {"stopReason": "bored"}).stop_reason == "bored"
    assert read(s.PermissionOption, {"optionId": "o", "name": "n", "kind": "shrug"}).kind == "shrug"
    assert update(sessionUpdate="notice", severity="dire", title="x").severity == "dire"
    raw = {"id": "b", "name": "n", "type": "boolean", "currentValue": True, "category": "_x"}
    assert read(s.SetSessionConfigOptionResponse, {"configOptions": [raw]}).config_options[0].category == "_x"


def test_a_tool_call_in_a_permission_request_has_no_tag() -> None:
    request = s.RequestPermissionRequest(
        session_id="s",
        tool_call=s.ToolCallUpdate(tool_call_id="t"),
        options=(s.PermissionOption(option_id="o", name="n", kind="allow_once"),),
    )
    assert written(request)["toolCall"] == {"toolCallId": "t"}
    assert written(s.ToolCall(tool_call_id="t", title="x")) == {"toolCallId": "t", "title": "x"}


def test_outcomes_of_a_permission_request() -> None:
    chosen = s.RequestPermissionResponse(outcome=s.SelectedPermissionOutcome(option_id="o"))
    cancelled = s.RequestPermissionResponse(outcome=s.CancelledPermissionOutcome())
    assert written(chosen) == {"outcome": {"outcome": "selected", "optionId": "o"}}
    assert written(cancelled) == {"outcome": {"outcome": "cancelled"}}
    assert decode(s.RequestPermissionResponse, encode(cancelled)) == cancelled


def test_questions_are_told_apart_by_mode_and_keep_their_scope() -> None:
    form = read(
        s.CreateElicitationRequest,
        {
            "mode": "form",
            "message": "m",
            "requestId": None,
            "requestedSchema": {
                "type": "wrong",
                "properties": {
                    "name": {"type": "string", "format": "of-tomorrow", "title": 3},
                    "n": {"type": "integer", "minimum": 1, "default": "x"},
                    "both": {
                        "type": "array",
                        "items": {"anyOf": [{"const": "a", "title": "A"}]},
                        "default": ["a", 1],
                    },
                    "one": {"type": "array", "items": {"type": "string", "enum": ["a"]}, "maxItems": 1},
                    "map": {"type": "map", "zoom": 3},
                    "odd": {"type": "array", "items": {"type": "colour"}},
                },
                "required": ["name"],
            },
        },
    )
    assert isinstance(form, s.ElicitationFormMode)
    assert (form.session_id, form.request_id) == (None, None)
    assert form.requested_schema.properties == {
        "name": s.StringPropertySchema(format="of-tomorrow"),
        "n": s.IntegerPropertySchema(minimum=1),
        "both": s.MultiSelectPropertySchema(
            items=s.TitledMultiSelectItems(any_of=(s.EnumOption(const="a", title="A"),)), default=("a",)
        ),
        "one": s.MultiSelectPropertySchema(items=s.StringMultiSelectItems(enum=("a",)), max_items=1),
        "map": s.OtherElicitationPropertySchema({"type": "map", "zoom": 3}),
        "odd": s.MultiSelectPropertySchema(items=s.OtherMultiSelectItems({"type": "colour"})),
    }
    assert written(form)["requestedSchema"]["type"] == "object"
    assert written(form)["requestId"] is None
    assert decode(s.CreateElicitationRequest, encode(form)) == form
    url = read(
        s.CreateElicitationRequest,
        {"mode": "url", "message": "m", "sessionId": "s", "toolCallId": 1, "elicitationId": "e", "url": "u"},
    )
    assert url == s.ElicitationUrlMode(message="m", session_id="s", elicitation_id="e", url="u")
    assert url.request_id is UNSET
    other = read(s.CreateElicitationRequest, {"mode": "_x", "message": "m", "sessionId": "s"})
    assert other == s.OtherElicitationMode(mode="_x", message="m", session_id="s")


def test_values_of_a_form_keep_their_types() -> None:
    content = {"a": True, "b": 1, "c": 1.0, "d": "x", "e": ["y"]}
    answer = read(s.CreateElicitationResponse, {"action": "accept", "content": content})
    assert {key: type(value) for key, value in answer.content.items()} == {
        "a": bool,
        "b": int,
        "c": float,
        "d": str,
        "e": tuple,
    }


@pytest.mark.parametrize("id_", [0, -1, "1", "", None])
def test_point_14_request_ids_keep_their_type(id_: int | str | None) -> None:
    notification = read(s.CancelRequestNotification, {"requestId": id_})
    assert type(notification.request_id) is type(id_)
    assert written(notification) == {"requestId": id_}


def test_point_25_meta_round_trips() -> None:
    meta = {
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "zed.dev/x": {"y": [None]},
    }
    request = s.PromptRequest(session_id="s", prompt=(s.TextContent(text="x"),), meta=meta)
    assert written(request)["_meta"] == meta
    assert decode(s.PromptRequest, encode(request)) == request


def test_numbers_that_json_cannot_say_are_never_written() -> None:
    call = s.ToolCall(tool_call_id="t", title="x", raw_input=[float("nan"), float("inf"), -float("inf")])
    assert to_builtins(call)["rawInput"] == [None, None, None]


def test_what_has_no_form_in_json_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no form in JSON"):
        encode(s.ToolCall(tool_call_id="t", title="x", raw_input=object()))


def test_a_method_without_a_capability_has_no_gate() -> None:
    assert s.REQUESTS["session/new"].gate is None
    assert s.REQUESTS["mcp/message"].params is s.MessageMcpRequest
    assert s.NOTIFICATIONS["mcp/message"].params is s.MessageMcpNotification
    gate = s.REQUESTS["terminal/create"].gate
    assert gate is not None
    assert gate.is_open(s.ClientCapabilities(terminal=True))
    assert not gate.is_open(s.ClientCapabilities())


def test_every_public_name_is_there_once() -> None:
    assert isinstance(s.__all__, tuple)
    assert len(set(s.__all__)) == len(s.__all__)
    assert all(hasattr(s, name) for name in s.__all__)
