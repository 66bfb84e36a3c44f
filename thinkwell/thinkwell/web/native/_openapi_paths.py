"""What is where in the native API, and why something is refused: the part of its description by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from thinkwell.events import ALL_TYPES
from thinkwell.web.native._types import KEY

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("REF", "paths", "refusals")

Json: TypeAlias = dict[str, Any]

REF: Final = "#/components/schemas/"

_REFUSALS: Final[dict[int, tuple[str, str]]] = {
    400: ("Malformed", "The body is no JSON, or the head of the request cannot be understood."),
    401: ("Unauthorized", "It is not known who asks."),
    403: ("Forbidden", "A page of another place has sent it, or it is not said which."),
    404: ("NotFound", "There is no such run, or it is somebody else's; or no such open question."),
    408: ("TooSlow", "The body has not come in time."),
    409: ("Running", "The run goes on."),
    413: ("TooLarge", "The body is longer than the server takes; see `limits.max_request`."),
    415: ("NotJson", "It has come from a browser, and does not say that it is JSON."),
    421: ("WrongHost", "The server does not go by the name in `Host`."),
    422: ("Invalid", "It can be read and means nothing here. The message says what, and where."),
    429: ("TooMany", "As many runs go on, or as many streams are open, as may be; or secrets were guessed."),
    500: ("Failed", "There is a mistake in the server, whose log has more under the incident."),
    503: ("Unavailable", "The server starts or closes, or cannot reach its log of runs."),
}
"""Names and meanings of what is not done."""

_GUARD: Final = (400, 401, 403, 415, 421, 429)
"""What is refused where it is asked who is asking."""

_RETRY_AFTER: Final[Json] = {
    "Retry-After": {
        "required": True,
        "description": "Seconds after which to try again.",
        "schema": {"type": "integer", "minimum": 0},
    }
}

_WATCHING: Final = """The events of a run as server-sent events, from the first one that was not seen on.

Each has the event's number as its `id`, and a `LogEntry` in JSON as its `data`. The last one has the name
`end`; close the `EventSource` then. A browser that comes back says `Last-Event-ID` by itself, and gets just
what it has not seen. A stream without an end was broken off: come back. A comment breaks silences of 15 s."""

_EXAMPLE: Final = (
    'retry: 2000\n\nid: 1\ndata: {"type":"message","seq":1,"at":0.5,"text":"Hello."}\n\n'
    'id: 2\nevent: end\ndata: {"type":"end","seq":2,"at":0.6,"status":"completed","result":"Hello."}\n\n'
)


def refusals() -> Json:
    """Return how it is answered that something was not done, by names."""
    made: Json = {}
    for status, (name, text) in _REFUSALS.items():
        made[name] = {"description": text, "content": _json("Refused")}
        if status in (429, 503):
            made[name]["headers"] = _RETRY_AFTER
        if status == 401:
            challenge = {"required": True, "schema": {"type": "string"}}
            made[name]["headers"] = {"WWW-Authenticate": challenge}
    return made


def paths(properties: Callable[[str], Json], *, has_access: bool) -> Json:
    """Return what is where.

    Args:
        properties: Returns those of a schema.
        has_access: Whether it is asked who is asking.
    """
    made: dict[str, Json] = {
        "/api": {"get": _about()},
        "/api/runs": {"get": _list(properties("ListQuery")), "post": _start()},
        "/api/runs/{run}": {"parameters": [_RUN], "get": _state(), "delete": _delete()},
        "/api/runs/{run}/events": {"parameters": [_RUN], "get": _events(properties("EventsQuery"))},
        "/api/runs/{run}/answer": {"parameters": [_RUN], "post": _answer()},
        "/api/runs/{run}/cancel": {"parameters": [_RUN], "post": _cancel()},
        "/api/openapi.json": {"get": _itself()},
        "/healthz": {"get": _health()},
    }
    if has_access:
        for operations in made.values():
            for method in operations.keys() - {"parameters"}:
                _refuse(operations[method], _GUARD)
        made["/api/session"] = {"post": _enter(), "delete": _leave()}
    return made


# What there is


def _about() -> Json:
    answers = {200: _answered("What this server is, and what can be chosen.", "About")}
    return _operation("about", "Tell what this server is", answers)


def _list(query: Json) -> Json:
    answers = {200: _answered("Some runs, the newest first.", "RunList")}
    operation = _operation("listRuns", "List runs", answers, refused=(422,))
    return {**operation, "parameters": _in_query(query)}


def _start() -> Json:
    location = {
        "Location": {"required": True, "description": "Where the run is.", "schema": {"type": "string"}}
    }
    links = {
        name: {"operationId": name, "parameters": {"run": "$response.body#/run/id"}}
        for name in ("getRun", "watchRun", "answerQuestion", "cancelRun", "deleteRun")
    }
    answers: dict[int, Json] = {
        201: {**_answered("The run has started.", "Started"), "headers": location, "links": links},
        200: {**_answered("The same key has started this run before.", "Started"), "headers": location},
    }
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "The caller's name for the request. The same one again starts nothing more.",
        "schema": {"type": "string", "pattern": KEY.pattern},
    }
    refused = (400, 408, 413, 422, 429)
    operation = _operation("startRun", "Start a run", answers, refused=refused, body="StartRun")
    return {**operation, "parameters": [key]}


def _state() -> Json:
    answers = {200: _answered("The run as it stands.", "State")}
    return _operation("getRun", "Tell how a run stands", answers, refused=(404,))


def _delete() -> Json:
    answers = {204: {"description": "It is gone."}}
    return _operation("deleteRun", "Forget a run that has ended", answers, refused=(404, 409))


def _events(query: Json) -> Json:
    last = {
        "name": "Last-Event-ID",
        "in": "header",
        "description": "What a browser says that it has seen, when it comes back. It wins over `after`. "
        "What is no number of an event is ignored.",
        "schema": {"type": "string"},
    }
    event = {
        "type": "object",
        "description": "One of the events.",
        "properties": {
            "id": {"type": "string", "description": "Number of the event."},
            "event": {"type": "string", "description": "`end`, or nothing."},
            "data": {"type": "string", "description": "A `LogEntry` in JSON, where `format` is `native`."},
            "retry": {"type": "integer", "description": "Milliseconds after which to come back."},
        },
    }
    stream = {"schema": event, "example": _EXAMPLE}
    answers: dict[int, Json] = {
        200: {"description": "The events, as they come.", "content": {"text/event-stream": stream}},
        204: {"description": "The end was seen: there is nothing more. Browsers do not come back."},
    }
    operation = _operation("watchRun", "Watch a run", answers, refused=(404, 422, 429), text=_WATCHING)
    kinds = {"type": "array", "items": {"enum": sorted({"all", "default", *ALL_TYPES})}, "minItems": 1}
    include = {**query["include"], **kinds, "default": ["all"]}
    parameters = _in_query({**query, "include": include})
    for parameter in parameters:
        if parameter["name"] == "include":
            parameter.update(style="form", explode=False)
    return {**operation, "parameters": [*parameters, last]}


def _answer() -> Json:
    answers = {204: {"description": "The agent is told."}}
    refused = (400, 404, 408, 413, 422)
    return _operation(
        "answerQuestion", "Answer an open question", answers, refused=refused, body="AnswerQuestion"
    )


def _cancel() -> Json:
    answers = {202: {"description": "The run is being cancelled, or has ended before."}}
    return _operation("cancelRun", "Cancel a run", answers, refused=(404,))


def _itself() -> Json:
    description = {"description": "This document.", "content": {"application/json": {"schema": _ANY_OBJECT}}}
    return _operation("describe", "Return this document", {200: description})


def _health() -> Json:
    answers = {200: _answered("It is there.", "Health")}
    return {**_operation("health", "Tell whether the server is there", answers), "security": []}


def _enter() -> Json:
    cookie = {"Set-Cookie": {"required": True, "schema": {"type": "string"}}}
    answers = {204: {"description": "The browser is known.", "headers": cookie}}
    refused = (400, 401, 403, 408, 413, 415, 421, 429)
    text = "For pages: the cookie is sent by `EventSource` too, and no script can read it."
    operation = _operation(
        "beginSession", "Give a secret for a cookie", answers, refused=refused, text=text, body="Secret"
    )
    return {**operation, "security": []}


def _leave() -> Json:
    answers = {204: {"description": "The browser is not known any more."}}
    operation = _operation("endSession", "Give the cookie back", answers, refused=(400, 403, 415, 421))
    return {**operation, "security": []}


# How it is written down

_ANY_OBJECT: Final[Json] = {"type": "object"}

_RUN: Final[Json] = {
    "name": "run",
    "in": "path",
    "required": True,
    "description": "Id of a run of the caller's.",
    "schema": {"type": "string", "minLength": 1},
}


def _operation(
    name: str,
    summary: str,
    answers: dict[int, Json],
    *,
    refused: tuple[int, ...] = (),
    text: str | None = None,
    body: str | None = None,
) -> Json:
    made: Json = {"operationId": name, "summary": summary}
    if text is not None:
        made["description"] = text
    if body is not None:
        made["requestBody"] = {"required": True, "content": _json(body)}
    made["responses"] = {str(status): answer for status, answer in answers.items()}
    _refuse(made, (*refused, 500, 503))
    return made


def _refuse(operation: Json, statuses: tuple[int, ...]) -> None:
    for status in statuses:
        name, _ = _REFUSALS[status]
        operation["responses"][str(status)] = {"$ref": f"#/components/responses/{name}"}


def _answered(text: str, schema: str) -> Json:
    return {"description": text, "content": _json(schema)}


def _json(schema: str) -> Json:
    return {"application/json": {"schema": {"$ref": REF + schema}}}


def _in_query(properties: Json) -> list[Json]:
    """Return parameters of a URL."""
    made: list[Json] = []
    for name, schema in properties.items():
        schema = dict(schema)
        explained = {"description": schema.pop("description")} if "description" in schema else {}
        made.append({"name": name, "in": "query", **explained, "schema": schema})
    return made
