"""The paths for the libraries of front ends: the part of the description that is not in their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell.web.front_ends._ag_ui import POINT
from thinkwell.web.front_ends._formats import FORMATS
from thinkwell.web.front_ends._tools import MOST_TOOLS, TOOL_NAME
from thinkwell.web.native._openapi_parts import REF, Json, operation, parameter, streamed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.web.front_ends._formats import FormatName

_CHAT: Final = """What `DefaultChatTransport` of npm's `ai` posts, and its UI message stream, version 1.

The last message is the user's, and a run is started for it; or it is the assistant's, with answers to what a
run has asked, which then goes on. The stream ends with the run, or where the agent asks something. The same
request again starts nothing more. A disconnect is no cancel."""

_RESUME: Final = """Where `DefaultChatTransport` comes back to, to get the whole of an answer again."""

_AG_UI: Final = """What `HttpAgent` of npm's `@ag-ui/client` posts, and the events of AG-UI 1.0.

The last message is the user's, and a run is started for it; or there are answers in `resume` or in messages
of tools to what a run has asked, which then goes on. The stream ends with the run, or with an interrupt where
the agent asks something. What does not fit a conversation is a `RUN_ERROR` in the stream. The same `runId`
again starts nothing more, and gets the same. A disconnect is no cancel."""

_CHAT_BODY: Final[Json] = {
    "id": "chat-1",
    "messages": [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "What is in this folder?"}]}],
    "trigger": "submit-message",
}

_CHAT_EVENTS: Final = (
    'data: {"type":"start","messageId":"run-5b1c9d0e"}\n\n'
    'data: {"type":"text-start","id":"text-1"}\n\n'
    'data: {"type":"text-delta","id":"text-1","delta":"Hello."}\n\n'
    'data: {"type":"text-end","id":"text-1"}\n\n'
    'data: {"type":"finish","finishReason":"stop"}\n\n'
    "data: [DONE]\n\n"
)

_AG_UI_BODY: Final[Json] = {
    "threadId": "thread-1",
    "runId": "run-1",
    "messages": [{"id": "1", "role": "user", "content": "What is in this folder?"}],
    "tools": [],
    "context": [],
    "state": {},
    "forwardedProps": {},
}

_AG_UI_EVENTS: Final = (
    'data: {"type":"RUN_STARTED","threadId":"thread-1","runId":"run-1"}\n\n'
    'data: {"type":"TEXT_MESSAGE_START","messageId":"text-1","role":"assistant"}\n\n'
    'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"text-1","delta":"Hello."}\n\n'
    'data: {"type":"TEXT_MESSAGE_END","messageId":"text-1"}\n\n'
    'data: {"type":"RUN_FINISHED","threadId":"thread-1","runId":"run-1"}\n\n'
)


def front_end_paths(agents: Sequence[str]) -> Json:
    """Return what is where.

    Args:
        agents: The names of those that can be chosen.
    """
    agent = parameter("agent", "path", "Name of an agent of the server's.", {"enum": list(agents)})
    chat = parameter("chat", "path", "Id of a chat of the caller's.", {"type": "string", "minLength": 1})
    return {
        "/ai-sdk/{agent}": {"parameters": [agent], "post": _post_chat()},
        "/ai-sdk/{agent}/{chat}/stream": {"parameters": [agent, chat], "get": _resume_chat()},
        "/ag-ui/{agent}": {"parameters": [agent], "post": _run_agent()},
    }


def refine(schemas: Json) -> None:
    """Add the parts that the types of front ends lack."""
    run_input = schemas["RunInput"]["properties"]
    run_input["tools"]["anyOf"][0]["maxItems"] = MOST_TOOLS
    chosen = {"anyOf": [{"$ref": REF + "Choices"}, {"type": "null"}]}
    run_input["forwardedProps"]["properties"] = {"thinkwell": chosen}
    tool = schemas["OfferedTool"]["properties"]
    tool["name"]["pattern"] = f"^{TOOL_NAME.pattern}$"
    tool["parameters"]["properties"] = {"type": {"const": "object"}}
    schemas["Resume"]["properties"]["interruptId"]["pattern"] = f"^{POINT}$"


def _post_chat() -> Json:
    same = {"agent": "$request.path.agent", "chat": "$request.body#/id"}
    links = {"resumeChat": {"operationId": "resumeChat", "parameters": same}}
    answers = {200: {**_stream("The answer, as it comes.", _CHAT_EVENTS, "ai-sdk"), "links": links}}
    refused = (400, 404, 408, 413, 422, 429, 507)
    summary = "Continue a chat of the Vercel AI SDK"
    made = operation("postChat", summary, answers, refused=refused, text=_CHAT, body="ChatRequest")
    return _with_example(made, _CHAT_BODY)


def _resume_chat() -> Json:
    answers: dict[int, Json] = {
        200: _stream("The whole answer, as it comes.", _CHAT_EVENTS, "ai-sdk"),
        204: {"description": "There is no run to resume: the last one ended more than a minute ago."},
    }
    run = "Id of the run to come back to, whenever it was. By default the last one of the chat."
    summary = "Come back to a chat of the Vercel AI SDK"
    made = operation("resumeChat", summary, answers, refused=(404, 429), text=_RESUME)
    return {**made, "parameters": [parameter("run", "query", run)]}


def _run_agent() -> Json:
    answers = {200: _stream("The events, as they come.", _AG_UI_EVENTS, "ag-ui")}
    refused = (400, 404, 408, 413, 422, 429, 507)
    summary = "Continue a conversation of AG-UI"
    made = operation("runAgent", summary, answers, refused=refused, text=_AG_UI, body="RunInput")
    return _with_example(made, _AG_UI_BODY)


def _stream(text: str, example: str, format_: FormatName) -> Json:
    made = streamed(text, {"data": "A JSON object, as the format has it."}, example)
    headers = {
        name: {"required": True, "description": "Tells the format.", "schema": {"const": value}}
        for name, value in FORMATS[format_].headers.items()
    }
    return {**made, "headers": headers} if headers else made


def _with_example(described: Json, body: Json) -> Json:
    described["requestBody"]["content"]["application/json"]["example"] = body
    return described
