"""The OpenAPI document: it is valid, it says what the API does, and the API does what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import pytest
from asking import permission
from drawing import drawn
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from starlette.routing import Route
from stream.strategies import EVENTS
from web_stage import Client, scripted_agent, served

from thinkwell import ViewReducer
from thinkwell.web import Access, Limits, web_app

if TYPE_CHECKING:
    from scripted import Turn

    from thinkwell.events import JsonValue
    from thinkwell.web import ServedAgent

HERE = Path(__file__).parent
TOKEN = "a-token-for-programs"


async def document(agents: dict[str, ServedAgent] | None = None, **options: Any) -> dict[str, Any]:
    """The document of an application."""
    agents = agents or {"scripted": scripted_agent(work)[0]}
    async with served(agents=agents) as stage:
        app = web_app(stage.server, **options)
        headers = {"authorization": f"Bearer {TOKEN}"}
        found: dict[str, Any] = await (await Client(app, headers=headers).get("/api/openapi.json")).json()
        return found


async def work(turn: Turn) -> None:
    turn.think("Hm.")
    await turn.client.request_permission(permission(turn.session_id))
    turn.say("Hello.")


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a value of JSON is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Return whether a value of JSON is an array."""
    return isinstance(value, list)


def references(value: JsonValue) -> set[str]:
    """All that a document refers to."""
    if is_object(value):
        found: set[str] = {value["$ref"]} if "$ref" in value else set()
        return found.union(*map(references, value.values()))
    return set[str]().union(*map(references, value)) if is_array(value) else set()


def bare(value: JsonValue) -> JsonValue:
    """A document without what it says to people."""
    if is_object(value):
        return {key: bare(each) for key, each in value.items() if key != "description"}
    return [bare(each) for each in value] if is_array(value) else value


def flaws(schema: dict[str, Any], found: dict[str, Any], *values: JsonValue) -> list[str]:
    """Why values do not fit a schema of a document."""
    checker: Any = Draft202012Validator({**schema, "components": found["components"]})
    return [error.message for value in values for error in checker.iter_errors(value)]


async def test_everything_that_it_refers_to_is_in_it() -> None:
    found = await document(access=Access({TOKEN: "ada"}))
    for reference in references(found):
        place: Any = found
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]
    schemas = found["components"]["schemas"]
    Draft202012Validator.check_schema({"$defs": schemas})
    assert not [name for name in schemas if "Shown" in name]


async def test_it_has_every_route_and_method() -> None:
    async with served(work) as stage:
        described = (await document())["paths"]
        app = web_app(stage.server, page=False, letta=False)
        paths = {route.path_format for route in app.routes if isinstance(route, Route)}
        assert paths == described.keys()
        for path in paths:
            refused = await Client(app).ask("TRACE", path.replace("{agent}", "scripted"))
            allowed = set(refused.headers["allow"].lower().split(", ")) - {"head"}
            assert allowed == described[path].keys() - {"parameters"}
    assert "/api/session" not in described
    guarded = await document(access=Access({TOKEN: "ada"}))
    assert guarded["paths"]["/api/session"].keys() == {"post", "delete"}
    assert guarded["security"] == [{"token": []}, {"session": []}]


async def test_everything_in_it_is_explained() -> None:
    found = await document(access=Access({TOKEN: "ada"}))
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            if method != "parameters":
                assert operation["summary"], path
                for parameter in operation.get("parameters", ()):
                    assert parameter["description"], parameter
    schemas = found["components"]["schemas"]
    for name in ("ChatRequest", "RunInput", "Choices"):
        for field, schema in schemas[name]["properties"].items():
            assert schema["description"], (name, field)
    assert schemas["StartRun"]["properties"]["thread"]["description"].startswith(
        "The conversation that it is"
    )
    assert schemas["Thought"]["properties"]["at"]["description"].startswith(
        "Seconds from the start of the run"
    )
    assert schemas["RunView"]["properties"]["text"]["description"] == "The text of all messages of the agent."
    assert schemas["Run"]["properties"]["ended"]["description"].startswith("When it has ended")


@pytest.mark.draws
async def test_views_as_json_are_what_it_says() -> None:
    found = await document()
    views: list[JsonValue] = []
    for events in drawn(st.lists(EVENTS, max_size=20), 50):
        reducer = ViewReducer()
        reducer.apply(events)
        views += (reducer.snapshot(error).to_json() for error in (None, ValueError("no")))
    assert flaws(found["components"]["schemas"]["RunView"], found, *views) == []


async def test_what_can_be_chosen_is_in_it() -> None:
    properties = (await document())["components"]["schemas"]["StartRun"]["properties"]
    assert properties["agent"]["anyOf"] == [{"enum": ["scripted"]}, {"type": "null"}]
    assert properties["permissions"]["anyOf"] == [{"enum": ["ask"]}, {"type": "null"}]
    assert properties["folder"]["anyOf"] == [{"type": "null"}]
    assert properties["model"]["anyOf"] == [{"type": "null"}]
    agent, _ = scripted_agent(work, models=("swift", "large"))
    schemas = (await document(agents={"scripted": agent}))["components"]["schemas"]
    for name in ("StartRun", "Choices"):
        assert {"enum": ["large", "swift"]} in schemas[name]["properties"]["model"]["anyOf"]


async def test_how_long_a_run_may_take_is_in_it() -> None:
    quick, _ = scripted_agent(work, timeout=60.0)
    slow, _ = scripted_agent(work, timeout=90.0)
    tireless, _ = scripted_agent(work, timeout=None)
    for agents, limits in (({"a": quick, "b": slow}, {"maximum": 90.0}), ({"a": quick, "b": tireless}, {})):
        schemas = (await document(agents=agents))["components"]["schemas"]
        for name in ("StartRun", "Choices"):
            number, null = schemas[name]["properties"]["timeout"]["anyOf"]
            assert number == {"type": "number", "exclusiveMinimum": 0.0} | limits
            assert null == {"type": "null"}


async def test_front_ends_find_their_agents_and_choices_in_it() -> None:
    found = await document()
    for path in ("/ai-sdk/{agent}", "/ai-sdk/{agent}/{chat}/stream", "/ag-ui/{agent}"):
        agent = found["paths"][path]["parameters"][0]
        assert (agent["name"], agent["schema"]) == ("agent", {"enum": ["scripted"]})
    choices = found["components"]["schemas"]["Choices"]["properties"]
    assert choices["permissions"]["anyOf"] == [{"enum": ["ask"]}, {"type": "null"}]
    assert choices["folder"]["anyOf"] == [{"type": "null"}]


async def test_what_front_ends_send_is_what_it_says() -> None:
    found = await document()
    chat = {"role": "user", "id": "1", "parts": [{"type": "text", "text": "Go."}]}
    said: dict[str, dict[str, object]] = {
        "/ai-sdk/{agent}": {"id": "chat-1", "messages": [chat], "trigger": "submit-message"},
        "/ag-ui/{agent}": {
            "threadId": "thread-1",
            "runId": "run-1",
            "messages": [{"role": "user", "id": "1", "content": "Go."}],
            "forwardedProps": {"thinkwell": {"title": "Going"}},
        },
    }
    wrong: dict[str, dict[str, object]] = {
        "/ai-sdk/{agent}": {"id": "", "messages": [chat]},
        "/ag-ui/{agent}": {**said["/ag-ui/{agent}"], "forwardedProps": {"thinkwell": {"titel": "Going"}}},
    }
    async with served(work) as stage:
        client = Client(web_app(stage.server))
        for path, body in said.items():
            post = found["paths"][path]["post"]
            schema = post["requestBody"]["content"]["application/json"]["schema"]
            assert flaws(schema, found, body) == []
            assert flaws(schema, found, post["requestBody"]["content"]["application/json"]["example"]) == []
            assert flaws(schema, found, wrong[path]) != []
            place = path.replace("{agent}", "scripted")
            answer = await client.post(place, body)
            assert answer.status == 200
            (described,) = post["responses"]["200"]["content"]
            assert answer.headers["content-type"].startswith(described)
            for name, header in post["responses"]["200"].get("headers", {}).items():
                assert answer.headers[name.lower()] == header["schema"]["const"]
            refused = await client.post(place, wrong[path])
            assert str(refused.status) in post["responses"]


WITHOUT_SOURCES = """
import anyio, inspect
def no_source(module): raise OSError
inspect.getsource = no_source
from thinkwell.web import web_app
from web_stage import Client, scripted_agent, served
async def main():
    async with served(agents={"scripted": scripted_agent()[0]}) as stage:
        print((await (await Client(web_app(stage.server)).get("/api/openapi.json")).body()).decode())
anyio.run(main)
"""


async def test_without_the_sources_it_only_explains_less() -> None:
    whole = await document()
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_SOURCES], env=environment, capture_output=True, timeout=60, check=True
    )
    less = json.loads(ended.stdout)
    assert bare(less) == bare(whole)
    assert len(json.dumps(less)) < len(json.dumps(whole))


async def test_events_and_states_are_what_it_says() -> None:
    found = await document()

    def valid(name: str, value: JsonValue) -> None:
        assert flaws({"$ref": f"#/components/schemas/{name}"}, found, value) == []

    async with served(work) as stage:
        client = Client(web_app(stage.server))
        run = (await client.post("/api/runs", {"prompt": "Go."})).headers["location"]
        async with client.stream("GET", f"{run}/events") as answered:
            async for event in answered.events():
                valid("LogEntry", event.json())
                valid("State", await (await client.get(run)).json())
                if event.json()["type"] == "question":
                    body = {"question": event.json()["id"], "answer": "allow"}
                    assert (await client.post(f"{run}/answer", body)).status == 204
        state = await (await client.get(run)).json()
        assert state["end"]["status"] == "completed"
        valid("State", state)
        valid("About", await (await client.get("/api")).json())


BODIES = (b"", b"{", b"[]", b"{}", b'{"prompt": ""}', b'{"prompt": "x", "agent": "y"}', b"{" * 100_001)
"""What is no request, or is one of something that there is not."""


@pytest.mark.parametrize("known", [True, False])
async def test_what_is_refused_is_refused_as_it_says(*, known: bool) -> None:
    async with served(work, limits=Limits(max_request=100_000)) as stage:
        client = Client(web_app(stage.server))
        found = await document()
        run = (await client.post("/api/runs", {"prompt": "Go."})).headers["location"] if known else ""
        for path, operations in found["paths"].items():
            place = path.replace("{run}", run.rpartition("/")[2] or "x")
            place = place.replace("{agent}", "scripted" if known else "x").replace("{chat}", "x")
            for method, operation in operations.items():
                for body in BODIES if method == "post" else (None,):
                    if method == "parameters" or (known and place.endswith(("/events", "/items"))):
                        continue
                    answered = await client.ask(method.upper(), f"{place}?limit=x", content=body)
                    described = operation["responses"][str(answered.status)]
                    if "$ref" in described:
                        described = found["components"]["responses"][described["$ref"].rpartition("/")[2]]
                    content = described.get("content")
                    if content is None:
                        assert await answered.body() == b""
                    else:
                        schema = content[answered.headers["content-type"].partition(";")[0]]["schema"]
                        assert flaws(schema, found, await answered.json()) == [], (method, place, body)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["uvicorn", "hypercorn-trio"])
@pytest.mark.parametrize(
    "part", ["^/api/runs", "^/(api$|api/[^r]|healthz|ai-sdk|ag-ui)"], ids=["runs", "others"]
)
def test_whatever_is_sent_it_answers_as_it_says(kind: str, part: str, tmp_path: Path) -> None:
    """Schemathesis sends what is described and what is not, with all of its checks.

    Part by part: it tries wrong tokens, of which a server takes so many.
    """
    with subprocess.Popen(
        [sys.executable, str(HERE / "api_under_test.py"), kind, TOKEN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        asked = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{url}/api/openapi.json"),
                *("--header", f"Authorization: Bearer {TOKEN}"),
                *("--include-path-regex", part, "--checks", "all", "--phases", "coverage,fuzzing,stateful"),
                *("--max-examples", os.environ.get("EXAMPLES", "8"), "--seed", "1"),
                *("--generation-database", "none", "--no-color"),
            ],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(HERE), "SCHEMATHESIS_HOOKS": "api_hooks"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        _, errors = server.communicate("", timeout=30)
    assert asked.returncode == 0, asked.stdout
    assert server.returncode == 0
    assert "incident" not in errors
    assert "Traceback" not in errors
