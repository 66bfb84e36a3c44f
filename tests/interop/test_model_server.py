"""The stand-in for model services, asked as agents ask it."""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from interop.model_server import CallTool, EndTurn, Fail, Hold, ModelServer, Say, Step, Think

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Json: TypeAlias = dict[str, Any]

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "risk": {"type": "string", "enum": ["low", "high"]},
        "score": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "tags": {"type": "array"},
    },
}


@dataclass
class Heard:
    """What a client of a model API understood."""

    thoughts: str = ""
    text: str = ""
    calls: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])
    stopped_for: str = ""


@dataclass(frozen=True, kw_only=True)
class Api:
    """A client's view of one model API."""

    name: str
    path: Callable[[bool], str]
    body: Callable[[list[str], Json | None], Json]
    whole: Callable[[Json], Heard]
    streamed: Callable[[list[Json]], Heard]
    stops: tuple[str, str]
    """The reasons given when a tool is called and when the turn ends."""


def messages_body(tools: list[str], schema: Json | None) -> Json:
    body: Json = {"tools": [{"name": name, "input_schema": {}} for name in tools]}
    return body if schema is None else body | {"output_config": {"format": {"schema": schema}}}


def messages_whole(reply: Json) -> Heard:
    heard = Heard(stopped_for=reply["stop_reason"])
    for block in reply["content"]:
        match block["type"]:
            case "thinking":
                heard.thoughts += block["thinking"]
            case "text":
                heard.text += block["text"]
            case _:
                heard.calls.append((block["name"], block["input"]))
    return heard


def messages_streamed(events: list[Json]) -> Heard:
    blocks: list[Json] = []
    for event in events:
        match event["type"]:
            case "content_block_start":
                blocks.append(event["content_block"] | {"json": ""})
            case "content_block_delta":
                kind = event["delta"].pop("type")
                for key, value in event["delta"].items():
                    target = "json" if kind == "input_json_delta" else key
                    blocks[event["index"]][target] += value
            case _:
                pass
    for block in blocks:
        if block["type"] == "tool_use":
            block["input"] = json.loads(block["json"])
    assert events[-1]["type"] == "message_stop"
    return messages_whole({"content": blocks, "stop_reason": events[-2]["delta"]["stop_reason"]})


def chat_body(tools: list[str], schema: Json | None) -> Json:
    body: Json = {"tools": [{"type": "function", "function": {"name": name}} for name in tools]}
    if schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
    return body


def chat_whole(reply: Json) -> Heard:
    choice = reply["choices"][0]
    message = choice["message"]
    calls = [
        (call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls", [])
    ]
    return Heard(message["reasoning_content"], message["content"], calls, choice["finish_reason"])


def chat_streamed(events: list[Json]) -> Heard:
    message: Json = {"reasoning_content": "", "content": "", "tool_calls": []}
    reason = ""
    for choice in (choice for event in events for choice in event["choices"]):
        delta = choice["delta"]
        for key in ("reasoning_content", "content"):
            message[key] += delta.get(key, "")
        for call in delta.get("tool_calls", []):
            if "id" in call:
                message["tool_calls"].append(call)
            else:
                message["tool_calls"][-1]["function"]["arguments"] += call["function"]["arguments"]
        reason = choice["finish_reason"] or reason
    return chat_whole({"choices": [{"message": message, "finish_reason": reason}]})


def responses_body(tools: list[str], schema: Json | None) -> Json:
    body: Json = {"tools": [{"type": "function", "name": name} for name in tools]}
    return body if schema is None else body | {"text": {"format": {"type": "json_schema", "schema": schema}}}


def responses_whole(reply: Json) -> Heard:
    heard = Heard(stopped_for=reply["status"])
    for item in reply["output"]:
        match item["type"]:
            case "reasoning":
                heard.thoughts += item["summary"][0]["text"]
            case "message":
                heard.text += item["content"][0]["text"]
            case _:
                name = f"{item['namespace']}.{item['name']}" if "namespace" in item else item["name"]
                heard.calls.append((name, json.loads(item["arguments"])))
    return heard


def responses_streamed(events: list[Json]) -> Heard:
    heard = responses_whole(events[-1]["response"])
    for kind, whole in (
        ("response.reasoning_summary_text.delta", heard.thoughts),
        ("response.output_text.delta", heard.text),
        ("response.function_call_arguments.delta", "".join(json.dumps(args) for _, args in heard.calls)),
    ):
        streamed = "".join(event["delta"] for event in events if event["type"] == kind)
        assert streamed.replace(" ", "") == whole.replace(" ", "")
    return heard


def gemini_body(tools: list[str], schema: Json | None) -> Json:
    body: Json = {"tools": [{"functionDeclarations": [{"name": name} for name in tools]}]}
    return body if schema is None else body | {"generationConfig": {"responseJsonSchema": schema}}


def gemini_whole(reply: Json) -> Heard:
    candidate = reply["candidates"][0]
    heard = Heard(stopped_for=candidate["finishReason"])
    for part in candidate["content"]["parts"]:
        if "functionCall" in part:
            heard.calls.append((part["functionCall"]["name"], part["functionCall"]["args"]))
        elif part.get("thought"):
            heard.thoughts += part["text"]
        else:
            heard.text += part["text"]
    return heard


def gemini_streamed(events: list[Json]) -> Heard:
    candidates = [event["candidates"][0] for event in events]
    parts = [part for candidate in candidates for part in candidate["content"]["parts"]]
    candidates[-1]["content"]["parts"] = parts
    return gemini_whole({"candidates": candidates[-1:]})


MESSAGES = Api(
    name="messages",
    path=lambda _: "/v1/messages?beta=true",
    body=messages_body,
    whole=messages_whole,
    streamed=messages_streamed,
    stops=("tool_use", "end_turn"),
)
CHAT = Api(
    name="chat",
    path=lambda _: "/v1/chat/completions",
    body=chat_body,
    whole=chat_whole,
    streamed=chat_streamed,
    stops=("tool_calls", "stop"),
)
RESPONSES = Api(
    name="responses",
    path=lambda _: "/v1/responses",
    body=responses_body,
    whole=responses_whole,
    streamed=responses_streamed,
    stops=("completed", "completed"),
)
GEMINI = Api(
    name="gemini",
    path=lambda stream: (
        "/v1beta/models/some-model:" + ("streamGenerateContent?alt=sse" if stream else "generateContent")
    ),
    body=gemini_body,
    whole=gemini_whole,
    streamed=gemini_streamed,
    stops=("STOP", "STOP"),
)
every_api = pytest.mark.parametrize("api", [MESSAGES, CHAT, RESPONSES, GEMINI], ids=lambda api: api.name)
every_way = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


def connect(server: ModelServer) -> closing[http.client.HTTPConnection]:
    return closing(http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10))


def post(
    server: ModelServer,
    api: Api,
    tools: list[str],
    *,
    stream: bool = True,
    schema: Json | None = None,
    more: Json | None = None,
) -> Heard:
    body = {"model": "some-model", "stream": stream} | api.body(tools, schema) | (more or {})
    with connect(server) as connection:
        connection.request("POST", api.path(stream), json.dumps(body))
        response = connection.getresponse()
        assert response.status == 200
        if not stream:
            return api.whole(json.loads(response.read()))
        return api.streamed([json.loads(data) for data in event_data(response) if data != b"[DONE]"])


def event_data(lines: Iterable[bytes]) -> Iterable[bytes]:
    return (line.removeprefix(b"data: ").strip() for line in lines if line.startswith(b"data: "))


def fetch(server: ModelServer, method: str, path: str) -> tuple[int, Any]:
    with connect(server) as connection:
        connection.request(method, path, b"{}")
        response = connection.getresponse()
        body = response.read()
        return response.status, json.loads(body) if body else None


@every_api
@every_way
def test_plays_its_steps_up_to_a_tool_call_and_goes_on_at_the_next_request(api: Api, stream: bool) -> None:
    steps: tuple[Step, ...] = (
        Think("Look it up first."),
        Say("One moment."),
        CallTool("lookup", {"word": "an acp", "deep": {"n": 1}}),
        Say("Found it."),
    )
    with ModelServer(*steps) as server:
        first = post(server, api, ["other", "mcp__server__lookup"], stream=stream)
        second = post(server, api, ["other", "mcp__server__lookup"], stream=stream)
    assert (first.thoughts, first.text) == ("Look it up first.", "One moment.")
    assert first.calls == [("mcp__server__lookup", {"word": "an acp", "deep": {"n": 1}})]
    assert (second.thoughts, second.text, second.calls) == ("", "Found it.", [])
    assert (first.stopped_for, second.stopped_for) == api.stops
    assert server.remaining == ()


@every_api
def test_ends_every_turn_once_the_steps_have_run_out(api: Api) -> None:
    with ModelServer(Think("Only a thought.")) as server:
        assert post(server, api, ["any"]).text == "All steps are done."
        assert post(server, api, ["any"]).text == "All steps are done."


@every_api
def test_steps_that_were_not_taken_can_be_dropped(api: Api) -> None:
    with ModelServer(Say("never"), CallTool("lookup")) as server:
        server.skip()
        server.play(Say("instead"))
        assert post(server, api, ["any"]).text == "instead"
        assert server.remaining == ()


@every_api
@every_way
def test_requests_without_tools_take_no_steps(api: Api, stream: bool) -> None:
    with ModelServer(Say("for the turn")) as server:
        assert post(server, api, [], stream=stream).text == "Scripted text"
        assert server.remaining == (Say("for the turn"),)


@every_api
def test_a_demanded_schema_is_followed_and_takes_no_steps(api: Api) -> None:
    with ModelServer(Say("for the turn")) as server:
        value = json.loads(post(server, api, ["any"], schema=SCHEMA).text)
        assert value == {"title": "Scripted text", "risk": "low", "score": 1, "tags": []}
        assert server.remaining == (Say("for the turn"),)


def test_gemini_may_demand_json_without_a_schema() -> None:
    plain = {"generationConfig": {"responseMimeType": "application/json"}}
    with ModelServer() as server:
        assert post(server, GEMINI, [], stream=False, more=plain).text == "{}"


@pytest.mark.parametrize("name", ["lookup", "mcp__server__lookup", "server_lookup", "mcp.server.lookup"])
def test_finds_a_tool_under_the_names_agents_give_it(name: str) -> None:
    with ModelServer(CallTool("lookup")) as server:
        assert post(server, CHAT, ["lookup_all", "mylookup", name]).calls == [(name, {})]


def test_calls_a_tool_in_its_namespace() -> None:
    members = [{"type": "function", "name": "lookup"}]
    tools = [{"type": "web_search"}, {"type": "namespace", "name": "mcp__server", "tools": members}]
    with ModelServer(CallTool("lookup", {"word": "acp"})) as server:
        heard = post(server, RESPONSES, [], more={"tools": tools})
    assert heard.calls == [("mcp__server.lookup", {"word": "acp"})]


def test_asks_for_a_tool_that_is_held_back_behind_a_search() -> None:
    history = {
        "messages": [{"role": "user", "content": "Deferred:\nmcp__server__lookup\nmcp__server__other"}]
    }
    with ModelServer(Say("One moment."), CallTool("lookup")) as server:
        search = post(server, MESSAGES, ["ToolSearch"], more=history)
        assert search.calls == [("ToolSearch", {"query": "select:mcp__server__lookup", "max_results": 5})]
        assert search.text == ""
        found = post(server, MESSAGES, ["ToolSearch", "mcp__server__lookup"])
    assert (found.text, found.calls) == ("One moment.", [("mcp__server__lookup", {})])


@pytest.mark.parametrize(
    ("search", "dispatcher", "listed", "sought", "called"),
    [
        (
            "tool_search",
            "tool_call",
            "mcp__server__lookup",
            {"query": "select:mcp__server__lookup", "max_results": 5},
            {"name": "mcp__server__lookup", "arguments": {"key": "a"}},
        ),
        (
            "search_tool_functions",
            "run_typescript",
            "mcp_server.lookup",
            {"mode": "best_match", "query": "lookup"},
            {"code": 'async function main() { return await tools.mcp_server.lookup({"key":"a"}); }'},
        ),
    ],
)
def test_calls_a_tool_that_stays_hidden_through_another(
    search: str, dispatcher: str, listed: str, sought: Json, called: Json
) -> None:
    history = {"messages": [{"role": "user", "content": f"Deferred:\n{listed}\n"}]}
    with ModelServer(CallTool("lookup", {"key": "a"}), Say("Found.")) as server:
        assert post(server, CHAT, [search, dispatcher], more=history).calls == [(search, sought)]
        assert post(server, CHAT, [search, dispatcher], more=history).calls == [(dispatcher, called)]
        assert post(server, CHAT, [search, dispatcher], more=history).text == "Found."


def test_gives_a_search_up_and_leaves_the_step() -> None:
    step = CallTool("lookup")
    with ModelServer(step) as server:
        searches = [post(server, MESSAGES, ["ToolSearch"]).calls for _ in range(3)]
        assert searches == [[("ToolSearch", {"query": "lookup", "max_results": 5})]] * 3
        assert post(server, MESSAGES, ["ToolSearch"]).text == "No tool is named …lookup."
        assert server.remaining == (step,)


def test_says_when_a_tool_is_not_offered() -> None:
    with ModelServer(EndTurn(), CallTool("lookup")) as server:
        assert post(server, CHAT, ["other"]).text == "All steps are done."
        assert post(server, CHAT, ["other"]).text == "No tool is named …lookup."


def test_turns_are_kept_apart_and_steps_can_be_added() -> None:
    with ModelServer(Say("First turn."), EndTurn(), Say("Second turn.")) as server:
        server.play(EndTurn(), Say("Third turn."))
        heard = [post(server, CHAT, ["any"]).text for _ in range(3)]
    assert heard == ["First turn.", "Second turn.", "Third turn."]


def test_fails_one_request_as_told() -> None:
    with ModelServer(Say("Before."), Fail(400, "no credit"), Say("After.")) as server:
        assert post(server, CHAT, ["any"]).text == "Before."
        with connect(server) as connection:
            connection.request(
                "POST", "/v1/chat/completions", json.dumps({"model": "m", **chat_body(["any"], None)})
            )
            response = connection.getresponse()
            error = json.loads(response.read())["error"]
        assert (response.status, error["message"]) == (400, "no credit")
        assert post(server, CHAT, ["any"]).text == "After."


@every_api
def test_holds_an_answer_open_until_released(api: Api) -> None:
    hold = Hold()
    body = {"model": "m", "stream": True} | api.body(["any"], None)
    with ModelServer(Say("before"), hold, Say("after")) as server, connect(server) as connection:
        connection.request("POST", api.path(True), json.dumps(body))
        response = connection.getresponse()
        begin = b""
        while b"before" not in begin:
            begin += response.readline()
        assert hold.reached.wait(10)
        hold.release()
        assert b"after" in response.read()
        assert b"after" not in begin


def test_holds_a_whole_answer_and_releases_it_when_the_server_closes() -> None:
    hold = Hold()
    body = {"model": "m"} | chat_body(["any"], None)
    with ModelServer(hold) as server, connect(server) as connection:
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        assert hold.reached.wait(10)
        server.close()
        assert connection.getresponse().status == 200


def test_survives_a_client_that_hangs_up() -> None:
    hold = Hold()
    body = {"model": "m", "stream": True} | chat_body(["any"], None)
    with ModelServer(hold, Say("words " * 10_000)) as server:
        with connect(server) as connection:
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            assert hold.reached.wait(10)
        hold.release()
        assert post(server, CHAT, ["any"]).text == "All steps are done."


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("HEAD", "/", 200, None),
        ("POST", "/v1/messages/count_tokens?beta=true", 200, {"input_tokens": 10, "totalTokens": 10}),
        ("POST", "/v1beta/models/m:countTokens", 200, {"input_tokens": 10, "totalTokens": 10}),
        ("POST", "/telemetry", 404, {}),
        ("GET", "/elsewhere", 404, {}),
        ("CONNECT", "elsewhere.example:443", 403, {}),
    ],
)
def test_side_requests_are_harmless(method: str, path: str, status: int, body: Json | None) -> None:
    with ModelServer(Say("for the turn")) as server:
        assert fetch(server, method, path) == (status, body)
        assert server.remaining == (Say("for the turn"),)
        assert [(r.method, r.path, r.dialect) for r in server.requests] == [
            (method, path.split("?")[0], None)
        ]


def test_lists_a_model() -> None:
    with ModelServer() as server:
        status, body = fetch(server, "GET", "/v1/models?limit=10")
    assert status == 200
    assert [model["id"] for model in body["data"]] == ["scripted"]


def test_records_what_it_was_asked() -> None:
    with ModelServer() as server:
        post(server, MESSAGES, ["lookup"])
        (request,) = server.requests
    assert (request.method, request.path, request.dialect) == ("POST", "/v1/messages", "messages")
    assert request.tools == ("lookup",)
    assert json.loads(request.body)["model"] == "some-model"
