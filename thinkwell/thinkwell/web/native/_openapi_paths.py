"""The paths of the native API, and the reasons for refusals: the handwritten part of its description."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell.events import ALL_TYPES
from thinkwell.web.items import FORMAT
from thinkwell.web.native._openapi_parts import Json, answered, in_query, operation, parameter, streamed
from thinkwell.web.native._types import KEY

if TYPE_CHECKING:
    from collections.abc import Callable

_WATCHING: Final = """The events of a run as server-sent events, from the first one that was not seen on.

Each has the event's number as its `id`, and a `LogEntry` in JSON as its `data`. The last one has the name
`end`; close the `EventSource` then. A browser that comes back says `Last-Event-ID` by itself, and gets just
what it has not seen. A stream without an end was broken off: come back. A comment breaks silences of 15 s."""

_ITEMS: Final = """What the page shows of a run, as server-sent events: all of it, then what changes.

The format is the page's own, and changes with it. Programs watch the events of a run instead."""

_ITEMS_EXAMPLE: Final = (
    "retry: 2000\n\nevent: begin\n"
    'data: {"run":{"id":"run-1","status":"completed"},"seq":2,"age":9.5,'
    f'"format":{FORMAT},"part":false}}\n\n'
    'id: 0badcafe.1\ndata: [[1,0.5,"m1.0",["m1",0],0.5,null,["p","","Hello."],{}]]\n\n'
    "event: whole\ndata: {}\n\nevent: end\ndata: {}\n\n"
)

_STEERING: Final = """A `steered` event of the run has the text.

Where the agent has not taken it, the answer is 409 and nothing has come of it: it takes no messages while it
works, or the run has not begun, or has ended. Send it as the prompt of another run then. After 503, and where
no answer comes, the events of the run say whether it was taken."""

_EXAMPLE: Final = (
    'retry: 2000\n\nid: 1\ndata: {"type":"message","seq":1,"at":0.5,"text":"Hello."}\n\n'
    'id: 2\nevent: end\ndata: {"type":"end","seq":2,"at":0.6,"status":"completed","result":"Hello."}\n\n'
)


def paths(properties: Callable[[str], Json]) -> Json:
    """Return what is where.

    Args:
        properties: Returns those of a schema.
    """
    run = parameter("run", "path", "Id of a run of the caller's.", {"type": "string", "minLength": 1})
    return {
        "/api": {"get": _about()},
        "/api/runs": {"get": _list(properties("ListQuery")), "post": _start()},
        "/api/runs/{run}": {"parameters": [run], "get": _state(), "delete": _delete()},
        "/api/runs/{run}/events": {"parameters": [run], "get": _events(properties("EventsQuery"))},
        "/api/runs/{run}/items": {"parameters": [run], "get": _items()},
        "/api/runs/{run}/html": {"parameters": [run], "get": _html()},
        "/api/runs/{run}/answer": {"parameters": [run], "post": _answer()},
        "/api/runs/{run}/steer": {"parameters": [run], "post": _steer()},
        "/api/runs/{run}/cancel": {"parameters": [run], "post": _cancel()},
        "/api/openapi.json": {"get": _itself()},
        "/healthz": {"get": _health()},
    }


# Paths


def _about() -> Json:
    answers = {200: answered("What this server is, and what can be chosen.", "About")}
    return operation("about", "Tell what this server is", answers)


def _list(query: Json) -> Json:
    answers = {200: answered("Some runs, the newest first.", "RunList")}
    made = operation("listRuns", "List runs", answers, refused=(422,))
    return {**made, "parameters": in_query(query)}


def _start() -> Json:
    location = {
        "Location": {"required": True, "description": "Where the run is.", "schema": {"type": "string"}}
    }
    links = {
        name: {"operationId": name, "parameters": {"run": "$response.body#/run/id"}}
        for name in ("getRun", "watchRun", "answerQuestion", "steerRun", "cancelRun", "deleteRun")
    }
    answers: dict[int, Json] = {
        201: {**answered("The run has started.", "Started"), "headers": location, "links": links},
        200: {**answered("The same key has started this run before.", "Started"), "headers": location},
    }
    text = "The caller's name for the request. The same one again starts nothing more."
    key = parameter("Idempotency-Key", "header", text, {"type": "string", "pattern": KEY.pattern})
    refused = (400, 408, 413, 422, 429, 507)
    made = operation("startRun", "Start a run", answers, refused=refused, body="StartRun")
    return {**made, "parameters": [key]}


def _state() -> Json:
    answers = {200: answered("The run as it stands.", "State")}
    return operation("getRun", "Tell how a run stands", answers, refused=(404,))


def _delete() -> Json:
    answers = {204: {"description": "It was deleted."}}
    return operation("deleteRun", "Forget a run that has ended", answers, refused=(404, 409, 507))


def _events(query: Json) -> Json:
    last = (
        "What a browser says that it has seen, when it comes back. It wins over `after`. "
        "Anything but the number of an event is ignored."
    )
    about = {
        "id": "Number of the event.",
        "event": "`end`, or nothing.",
        "data": "A `LogEntry` in JSON, where `format` is `native`.",
    }
    answers: dict[int, Json] = {
        200: _stream("The events, as they come.", about, _EXAMPLE),
        204: {"description": "The end was seen: there is nothing more. Browsers do not come back."},
    }
    made = operation("watchRun", "Watch a run", answers, refused=(404, 422, 429), text=_WATCHING)
    kinds = {"type": "array", "items": {"enum": sorted({"all", "default", *ALL_TYPES})}, "minItems": 1}
    include = {**query["include"], **kinds, "default": ["all"]}
    parameters = in_query({**query, "include": include})
    for each in parameters:
        if each["name"] == "include":
            each.update(style="form", explode=False)
    return {**made, "parameters": [*parameters, parameter("Last-Event-ID", "header", last)]}


def _items() -> Json:
    about = {
        "id": "What to say as `Last-Event-ID` when it comes back.",
        "event": "`begin`, `whole` or `end`, or nothing.",
        "data": "Items in JSON, or the run to which they belong.",
    }
    answers = {200: _stream("The items, as they change.", about, _ITEMS_EXAMPLE)}
    made = operation("watchItems", "Watch what the page shows", answers, refused=(404,), text=_ITEMS)
    last = "The id of the last event that was seen. One that is not known counts as none."
    names = (("Last-Event-ID", "header"), ("after", "query"))
    return {**made, "parameters": [parameter(*name, last) for name in names]}


def _stream(description: str, about: dict[str, str], example: str) -> Json:
    """Return a description of server-sent events.

    Args:
        description: Their description.
        about: A description of their fields.
        example: Some events.
    """
    made = streamed(description, about, example)
    fields = made["content"]["text/event-stream"]["schema"]["properties"]
    fields["retry"] = {"type": "integer", "description": "Milliseconds after which to come back."}
    return made


def _html() -> Json:
    saved = {
        "description": "One file of HTML, which shows the run in a browser without a server.",
        "headers": {"Content-Disposition": {"required": True, "schema": {"type": "string"}}},
        "content": {"text/html": {"schema": {"type": "string"}}},
    }
    return operation("saveRun", "Save a run that has ended as one file", {200: saved}, refused=(404, 409))


def _answer() -> Json:
    answers = {204: {"description": "The agent gets it."}}
    refused = (400, 404, 408, 413, 422)
    return operation(
        "answerQuestion", "Answer an open question", answers, refused=refused, body="AnswerQuestion"
    )


def _steer() -> Json:
    answers = {204: {"description": "The agent has it, and reads it in the turn that runs."}}
    refused = (400, 404, 408, 409, 413, 422)
    return operation(
        "steerRun",
        "Tell the agent something while it works",
        answers,
        refused=refused,
        text=_STEERING,
        body="SteerRun",
    )


def _cancel() -> Json:
    answers = {202: {"description": "The run is being cancelled, or has ended before."}}
    return operation("cancelRun", "Cancel a run", answers, refused=(404,))


def _itself() -> Json:
    description = {"description": "This document.", "content": {"application/json": {"schema": _ANY_OBJECT}}}
    return operation("describe", "Return this document", {200: description})


def _health() -> Json:
    answers = {200: answered("It is running.", "Health")}
    return {**operation("health", "Check whether the server is running", answers), "security": []}


def session() -> Json:
    """Return what can be done at ``/api/session``, where it is asked who is asking."""
    return {"post": _enter(), "delete": _leave()}


def _enter() -> Json:
    cookie = {"Set-Cookie": {"required": True, "schema": {"type": "string"}}}
    answers = {204: {"description": "The browser is known.", "headers": cookie}}
    refused = (400, 401, 403, 408, 413, 415, 421, 429, 507)
    text = "For pages: the cookie is sent by `EventSource` too, and no script can read it."
    made = operation(
        "beginSession", "Give a secret for a cookie", answers, refused=refused, text=text, body="Secret"
    )
    return {**made, "security": []}


def _leave() -> Json:
    answers = {204: {"description": "The browser is not known any more."}}
    made = operation("endSession", "Give the cookie back", answers, refused=(400, 403, 415, 421, 507))
    return {**made, "security": []}


_ANY_OBJECT: Final[Json] = {"type": "object"}
