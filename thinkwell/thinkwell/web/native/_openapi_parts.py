"""Parts of the description: operations, answers and refusals."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]

REF: Final = "#/components/schemas/"

_REFUSALS: Final[dict[int, tuple[str, str]]] = {
    400: ("Malformed", "The body is not JSON, or the head of the request is malformed."),
    401: ("Unauthorized", "The caller is unknown."),
    403: ("Forbidden", "A page of another place has sent it, or it is not said which."),
    404: ("NotFound", "There is no such run, agent or open question, or it is another caller's."),
    408: ("TooSlow", "The body has not come in time."),
    409: ("Conflict", "The run is still running; or the agent has not taken the message."),
    413: ("TooLarge", "The body is longer than the server takes; see `limits.max_request`."),
    415: ("NotJson", "It has come from a browser, and does not say that it is JSON."),
    421: ("WrongHost", "The server does not go by the name in `Host`."),
    422: ("Invalid", "It can be read and means nothing here. The message says what, and where."),
    429: (
        "TooMany",
        "The maximum number of runs or of open streams is reached; or there were too many wrong secrets.",
    ),
    500: ("Failed", "There is a mistake in the server, whose log has more under the incident."),
    503: ("Unavailable", "The server starts or closes, or cannot reach its log of runs."),
    507: ("StorageFull", "There is no room to store it, on the disk of the server or in its Redis."),
}
"""The names and descriptions of refusals."""

GUARD: Final = (400, 401, 403, 415, 421, 429)
"""The refusals if callers are checked."""

_RETRY_AFTER: Final[Json] = {
    "Retry-After": {
        "required": True,
        "description": "Seconds after which to try again.",
        "schema": {"type": "integer", "minimum": 0},
    }
}


def refusals() -> Json:
    """Return the descriptions of refusals, by name."""
    made: Json = {}
    for status, (name, text) in _REFUSALS.items():
        made[name] = {"description": text, "content": json_of("Refused")}
        if status in (429, 503):
            made[name]["headers"] = _RETRY_AFTER
        if status == 401:
            challenge = {"required": True, "schema": {"type": "string"}}
            made[name]["headers"] = {"WWW-Authenticate": challenge}
    return made


def operation(
    name: str,
    summary: str,
    answers: dict[int, Json],
    *,
    refused: tuple[int, ...] = (),
    text: str | None = None,
    body: str | None = None,
) -> Json:
    """Return an operation.

    Args:
        name: Its id for programs.
        summary: Its summary.
        answers: The answers to successful requests.
        refused: The statuses of refusals, besides those of every operation.
        text: Its description.
        body: The schema of the request.
    """
    made: Json = {"operationId": name, "summary": summary}
    if text is not None:
        made["description"] = text
    if body is not None:
        made["requestBody"] = {"required": True, "content": json_of(body)}
    made["responses"] = {str(status): answer for status, answer in answers.items()}
    refuse(made, (*refused, 500, 503))
    return made


def refuse(described: Json, statuses: tuple[int, ...]) -> None:
    """Add refusals for lack of access to an operation."""
    for status in statuses:
        name, _ = _REFUSALS[status]
        described["responses"][str(status)] = {"$ref": f"#/components/responses/{name}"}


def answered(text: str, schema: str) -> Json:
    """Return a description of an answer in JSON."""
    return {"description": text, "content": json_of(schema)}


def json_of(schema: str) -> Json:
    """Return a description of JSON with a schema."""
    return {"application/json": {"schema": {"$ref": REF + schema}}}


def streamed(text: str, about: dict[str, str], example: str) -> Json:
    """Return an answer of server-sent events.

    Args:
        text: What they are.
        about: What their fields say.
        example: Some of them.
    """
    fields: Json = {name: {"type": "string", "description": said} for name, said in about.items()}
    event = {"type": "object", "description": "One of the events.", "properties": fields}
    return {"description": text, "content": {"text/event-stream": {"schema": event, "example": example}}}


def parameter(name: str, place: str, text: str, schema: Json | None = None) -> Json:
    """Return a parameter of a request: by default any text. Those of a path are required."""
    made: Json = {"name": name, "in": place, "description": text, "schema": schema or {"type": "string"}}
    return {**made, "required": True} if place == "path" else made


def in_query(properties: Json) -> list[Json]:
    """Return the parameters of a URL."""
    made: list[Json] = []
    for name, schema in properties.items():
        schema = dict(schema)
        explained = {"description": schema.pop("description")} if "description" in schema else {}
        made.append({"name": name, "in": "query", **explained, "schema": schema})
    return made
