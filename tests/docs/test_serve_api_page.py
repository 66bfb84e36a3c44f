"""The page about the API: what it shows is what happens, and its tables have everything."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, get_args

import anyio
import anyio.lowlevel
import pytest
from docs.pages import DOCS, files
from node_packages import node_command
from real_servers import listening
from web_stage import Client, scripted_agent

from thinkwell.journal import RunEnd
from thinkwell.questions import Verdict
from thinkwell.web import Access, Refusal, RunServer, web_app

if TYPE_CHECKING:
    from pathlib import Path

    from scripted import Turn

PAGE = DOCS / "howto" / "serve-api.md"
TEXT = PAGE.read_text("utf-8")
SECRET = "a-secret-of-this-test"


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of the server here: its others are in the tests of the web."""
    return "asyncio"


def rows(heading: str) -> list[list[str]]:
    """The cells of a table below a heading, row by row."""
    table = TEXT.partition(heading)[2].partition("\n|")[2].partition("\n\n")[0]
    cells = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return [[cell.strip() for cell in line] for line in cells]


def refusals(kind: type[Refusal]) -> dict[str, int]:
    """Every code of the API, and its status. Those of front ends are defined in packages of their own."""
    found: dict[str, int] = {}
    for each in kind.__subclasses__():
        if each.__module__.rpartition(".")[0] == "thinkwell.web":
            found |= refusals(each)
            if "code" in vars(each):
                found[each.code] = each.status
    return found


async def test_the_tables_have_everything() -> None:
    async with RunServer({"a": scripted_agent(talk)[0]}) as server:
        client = Client(web_app(server))
        described = await (await client.get("/api/openapi.json")).json()
        own: dict[str, int] = {}
        for refused in (await client.get("/api/nothing"), await client.post("/api", {})):
            own[(await refused.json())["error"]["code"]] = refused.status
    front_ends = ("/ai-sdk/", "/ag-ui/")
    there = {
        (method.upper(), path)
        for path, methods in described["paths"].items()
        for method in methods
        if method != "parameters" and not path.startswith(front_ends)
    }
    assert {tuple(request.strip("`").split(" ")) for request, *_ in rows("## What there is")} == there

    codes = {
        code: int(status)
        for status, names, *_ in rows("## When something is refused")
        for code in re.findall(r"`(\w+)`", names)
    }
    assert codes == {**own, **refusals(Refusal)}

    schemas = described["components"]["schemas"]
    said = {name for kind in schemas["Said"]["oneOf"] for name in kind["properties"]}
    answers = " ".join(cell for cell, *_ in rows("## Answering"))
    assert said
    assert set(re.findall(r'"(\w+)"', answers)) >= {*get_args(Verdict), *said}

    for names in (
        *(schemas[each]["properties"] for each in ("ListQuery", "EventsQuery", "StartRun", "State")),
        get_args(RunEnd),
    ):
        assert names
        assert [name for name in names if f"`{name}`" not in TEXT and f"`{name}=" not in TEXT] == []


async def talk(turn: Turn) -> None:
    turn.say("Three files: ")
    await anyio.lowlevel.checkpoint()
    turn.say("a, b and c.")


@pytest.mark.long
async def test_what_a_page_does_works_with_an_event_source(tmp_path: Path) -> None:
    """The script of the page, with the `EventSource` that Node.js has, and nothing else of a browser."""
    async with listening(web_app(RunServer({"a": scripted_agent(talk)[0]})), "uvicorn") as server:
        code = files(PAGE)["watch.js"].replace('fetch("/api', f'fetch("{server.url}/api')
        code = code.replace("EventSource(`/api", f"EventSource(`{server.url}/api")
        script = tmp_path / "watch.mjs"
        page = "globalThis.document = { body: { append: (text) => process.stdout.write(text) } };\n"
        script.write_text(page + code, "utf-8")
        node, *arguments = node_command(script)
        with anyio.fail_after(30):
            done = await anyio.run_process([node, "--experimental-eventsource", *arguments], check=False)
    assert done.stdout == b"Three files: a, b and c.completed\n", done.stderr


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not on PATH: install it")
async def test_the_lines_for_a_shell() -> None:
    app = web_app(RunServer({"claude": scripted_agent(talk)[0]}), access=Access({SECRET: "ada"}))
    async with listening(app, "uvicorn") as server:

        async def typed(line: str) -> str:
            line = line.replace("$SECRET", SECRET).replace("http://127.0.0.1:8283", server.url)
            with anyio.fail_after(30):
                done = await anyio.run_process(["/bin/sh", "-c", line], stderr=subprocess.DEVNULL)
            return done.stdout.decode()

        lines = [
            line.replace("\\\n", " ") for line in re.findall(r"^\$ (curl (?:\\\n|.)*)$", TEXT, re.MULTILINE)
        ]
        start, watch, answer = lines
        run = json.loads(await typed(start))["run"]["id"]
        watched = await typed(watch.replace("run-5b1c…", run))
        assert re.match(r"retry: \d+\n\nid: 1\ndata: \{", watched)
        assert re.search(r'\nid: (\d+)\nevent: end\ndata: \{"type":"end","seq":\1,', watched)
        refused = json.loads(await typed(answer.replace("run-5b1c…", run)))
        assert refused["error"]["code"] == "question_not_open"
