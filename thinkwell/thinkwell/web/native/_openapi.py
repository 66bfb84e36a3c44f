"""The OpenAPI 3.1 document of the native API and of the routes for front ends.

The types that read requests and write answers describe them. `_openapi_paths` and `_openapi_front_ends` add
the rest: the paths, and the reasons for refusals.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from functools import cache
from sys import modules
from typing import TYPE_CHECKING, Any, Final, get_type_hints

import msgspec
from starlette.routing import Route

from thinkwell import events, view
from thinkwell._version import VERSION
from thinkwell.questions import FormField
from thinkwell.web import _records, _refusals
from thinkwell.web._http import Resource, json_answer
from thinkwell.web._requests import StartRun
from thinkwell.web.front_ends._ag_ui_input import RunInput
from thinkwell.web.front_ends._ai_sdk_chat import ChatRequest
from thinkwell.web.front_ends._requests import Choices
from thinkwell.web.native import _types
from thinkwell.web.native._openapi_front_ends import front_end_paths, refine
from thinkwell.web.native._openapi_parts import GUARD, REF, Json, refusals, refuse
from thinkwell.web.native._openapi_paths import paths, session

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from thinkwell.web._requests import ServedAgent
    from thinkwell.web._serving import RunServer

ABOUT: Final = (
    "Runs of agents: started by one request, watched by any number of others. A run continues with or "
    "without watchers; only cancelling ends it."
)

_NAMES: Final = re.compile(r"\bShown(Run|Agent|Limits|Error)\b")
"""Shorter names in the document."""

_CHAR: Final = "[0-9A-Za-z+/]"

_IMAGE: Final = (
    f"^(?:iVBORw0KGg[o-r]{_CHAR}|/9j/|R0lGO[A-P]{_CHAR}{{2}}|"
    f"UklGR[g-v]{_CHAR}{{4}}[159BFJNRVZdhlptx]XRUJQ)"
    f"(?:{_CHAR}{{4}})*(?:{_CHAR}{{2}}==|{_CHAR}{{3}}=)?$"
)
"""A PNG, JPEG, GIF or WebP in base64, by its beginning."""

_NOT_BLANK: Final = r"[^\s\u001c-\u001f\u0085]"
"""A text that is not blank."""


def routes(server: RunServer, *, has_access: bool) -> list[Route]:
    """Return the route of the document.

    Args:
        server: The server that it describes.
        has_access: Whether callers are checked.
    """

    async def openapi(request: Request) -> ASGIApp:
        url = request.scope.get("root_path", "") or "/"
        return json_answer(document(server.agents, url=url, has_access=has_access))

    return [Route("/api/openapi.json", Resource(GET=openapi))]


def document(agents: Mapping[str, ServedAgent], *, url: str, has_access: bool) -> Json:
    """Return the document.

    Args:
        agents: The agents to choose from.
        url: The address of the application.
        has_access: Whether callers are checked.
    """
    places = {**paths(_properties), **front_end_paths(list(agents))}
    made: Json = {
        "openapi": "3.1.0",
        "info": {"title": "thinkwell", "version": VERSION, "description": ABOUT},
        "servers": [{"url": url}],
        "paths": places,
        "components": {
            "schemas": {
                **_schemas(),
                "StartRun": _start_run(agents),
                "Choices": _with_choices(_schemas()["Choices"], agents),
            },
            "responses": refusals(),
        },
    }
    if has_access:
        for operations in places.values():
            for method in operations.keys() - {"parameters"}:
                refuse(operations[method], GUARD)
        places["/api/session"] = session()
        made["security"] = [{"token": []}, {"session": []}]
        made["components"]["securitySchemes"] = SCHEMES
    return made


SCHEMES: Final[Json] = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token that the operator has given out."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "thinkwell",
        "description": "What `POST /api/session` gives to a browser. The server's port is in its name.",
    },
}


def _properties(name: str) -> Json:
    """Return the properties of an object, for objects that are made of the parameters of a URL."""
    properties: Json = _schemas()[name]["properties"]
    return properties


def _start_run(agents: Mapping[str, ServedAgent]) -> Json:
    """Return the schema of a request for a run, with the choices of this server."""
    schema = _with_choices(_schemas()["StartRun"], agents)
    properties = schema["properties"]
    text, parts = properties["prompt"]["anyOf"]
    some_text = {"properties": {"type": {"const": "text"}, "text": {"pattern": _NOT_BLANK}}}
    image = {"properties": {"type": {"const": "image"}}}
    properties["prompt"] = {
        **properties["prompt"],
        "anyOf": [
            {**text, "pattern": _NOT_BLANK},
            {**parts, "contains": {"anyOf": [some_text, image]}},
        ],
    }
    return schema


def _with_choices(schema: Json, agents: Mapping[str, ServedAgent]) -> Json:
    """Return a schema with the possible values of a choice."""
    choices = {
        "agent": list(agents),
        "folder": sorted({name for agent in agents.values() for name in agent.folders}),
        "permissions": sorted({name for agent in agents.values() for name in agent.permissions}),
        "model": sorted({name for agent in agents.values() for name in agent.models}),
    }
    properties = dict(schema["properties"])
    for name in choices.keys() & properties.keys():
        chosen = [{"enum": choices[name]}] if choices[name] else []
        properties[name] = {**properties[name], "anyOf": [*chosen, {"type": "null"}]}
    longest = [agent.timeout for agent in agents.values()]
    if None not in longest:
        number, null = properties["timeout"]["anyOf"]
        limited = {**number, "maximum": max(seconds for seconds in longest if seconds is not None)}
        properties["timeout"] = {**properties["timeout"], "anyOf": [limited, null]}
    return {**schema, "properties": properties}


# Schemas


@cache
def _schemas() -> Json:
    """Return the schemas of all requests and answers, by name."""
    types = (
        *map(_types.__dict__.__getitem__, _types.DESCRIBED),
        _refusals.Refused,
        StartRun,
        _records.LogEntry,
        ChatRequest,
        RunInput,
        Choices,
    )
    _, schemas = msgspec.json.schema_components([*types, _view_type()], ref_template=REF + "{name}")
    for name, schema in schemas.items():
        texts, properties = _texts().get(name, {}), schema.get("properties", {})
        for field in texts.keys() & properties.keys():
            properties[field].setdefault("description", texts[field])
    schemas["State"]["properties"]["view"] = {"$ref": f"{REF}RunView"}
    schemas["ImagePart"]["properties"]["data"]["pattern"] = _IMAGE
    schemas["Said"] = _one_of(schemas["Said"])
    refine(schemas)
    union = [f"{REF}{kind.__name__}" for kind in _records.LogEntry.__args__]
    schemas["LogEntry"] = {
        "description": "An event of a run, or its end: the `data` of a server-sent event.",
        "anyOf": [{"$ref": reference} for reference in union],
    }
    shown: Json = msgspec.json.decode(_NAMES.sub(r"\1", msgspec.json.encode(schemas).decode()))
    return shown


def _one_of(schema: Json) -> Json:
    """Return the schema of an object with exactly one of its fields, in which the others may be null."""
    null = {"type": "null"}
    properties = {
        name: {**field, "anyOf": [one for one in field["anyOf"] if one != null]}
        for name, field in schema["properties"].items()
    }
    for field in properties.values():
        del field["default"]
    kinds = [
        {
            "type": "object",
            "required": [given],
            "properties": {name: field if name == given else null for name, field in properties.items()},
            "additionalProperties": False,
        }
        for given in properties
    ]
    return {"title": schema["title"], "description": schema["description"], "oneOf": kinds}


def _view_type() -> Any:
    """Return the type of a run's view. Type checkers alone know the types of its fields."""
    names: dict[str, Any] = {"Mapping": Mapping, "FormField": FormField}
    for kind in (view.ToolView, view.QuestionView, view.AnswerView, view.RunView):
        types = get_type_hints(kind, localns=names)
        if "error" in types:
            types["error"] = _records.ShownError | None
        namespace = {"__doc__": kind.__doc__, "__module__": kind.__module__}
        names[kind.__name__] = msgspec.defstruct(
            kind.__name__, types.items(), kw_only=True, namespace=namespace
        )
    return names["RunView"]


@cache
def _texts() -> dict[str, dict[str, str]]:
    """Return the docstrings of the fields of classes from their sources; nothing without sources."""
    sent = [modules[kind.__module__] for kind in (StartRun, ChatRequest, RunInput, Choices)]
    known = {
        kind.__name__: kind
        for module in (events, view, _types, _records, _refusals, *sent)
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__.startswith("thinkwell.")
    }
    return {
        name: {
            _written(kind, field): text
            for base in reversed(kind.__mro__)
            for field, text in _module_texts(base.__module__).get(base.__name__, {}).items()
        }
        for name, kind in known.items()
    }


def _written(kind: type, field: str) -> str:
    """Return the name of a field in JSON."""
    if issubclass(kind, msgspec.Struct) and field in kind.__struct_fields__:
        return kind.__struct_encode_fields__[kind.__struct_fields__.index(field)]
    return field


@cache
def _module_texts(module: str) -> dict[str, dict[str, str]]:
    try:
        tree = ast.parse(inspect.getsource(modules[module]))
    except (OSError, TypeError):  # without a source
        return {}
    return {node.name: _class_texts(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _class_texts(node: ast.ClassDef) -> dict[str, str]:
    """Return the texts after the fields of a class, which do not exist at run time."""
    texts: dict[str, str] = {}
    for field, text in zip(node.body, node.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                texts[name] = " ".join(words.replace("``", "`").split())
            case _:
                pass
    return texts
