"""Runs in a notebook, executed by a Jupyter kernel."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, cast

import nbclient
import nbformat
from notebook.reading import Page

from thinkwell.progress._notebook import EVERY, NotebookRenderer, in_notebook
from thinkwell.progress._renderer import Shown
from thinkwell.testing import ScriptedAgent, script
from thinkwell.view import PhaseView, RunView

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCRIPTED = """
from thinkwell.testing import ScriptedAgent, script
played = script.thinks("Two files.").says("It is **fine**.")
"""


PATIENCE = 180
"""Seconds for a kernel to start, and for a cell: a busy machine takes its time."""


class Output(TypedDict):
    """What is looked at of an output of a cell."""

    data: dict[str, str]
    text: str


def executed(*cells: str, folder: Path) -> list[list[Output]]:
    """Execute a notebook of these cells in a kernel, and return the outputs of each."""
    code: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    written: dict[str, Any] = {
        "cells": [{**code, "id": f"cell-{number}", "source": cell} for number, cell in enumerate(cells)],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    notebook = cast("Callable[..., Any]", nbformat.reads)(json.dumps(written), as_version=4)
    path = {"metadata": {"path": str(folder)}}
    client = nbclient.NotebookClient(
        notebook, timeout=PATIENCE, startup_timeout=PATIENCE, kernel_name="python3", resources=path
    )
    client.execute()
    return [
        [Output(data=output.get("data", {}), text=output.get("text", "")) for output in cell.outputs]
        for cell in notebook.cells
    ]


def pictures(outputs: list[Output]) -> list[Page]:
    """Return the pages among a cell's outputs."""
    return [Page(output["data"]["text/html"]) for output in outputs if "text/html" in output["data"]]


def test_a_stream_shows_itself_as_it_stands(tmp_path: Path) -> None:
    shown = executed(
        SCRIPTED,
        """
async with ScriptedAgent(played).open() as agent:
    stream = agent.think().text("Review it.").stream()
    await stream.result
stream
""",
        "await stream.wait()\n[stream]",
        folder=tmp_path,
    )
    (page,) = pictures(shown[1])
    assert "done" in page.lines[0]
    assert "It is fine." in page.lines
    assert shown[1][0]["data"]["text/plain"].startswith("<ThoughtStream ")
    assert not pictures(shown[2])


async def test_a_stream_that_fails_shows_that_it_has() -> None:
    async with ScriptedAgent(script.fails(message="boom <b>")).open() as agent:
        stream = agent.think().text("Review it.").stream()
        await stream.wait()
        bundle: dict[str, str] = stream._repr_mimebundle_(include=None, exclude=None)
    assert set(bundle) == {"text/plain", "text/html"}
    assert "boom <b>" in Page(bundle["text/html"]).text


async def test_the_core_shows_itself_without_rich(tmp_path: Path) -> None:
    """The extra is not needed for a page."""
    shown = executed(
        SCRIPTED,
        """
import sys
async with ScriptedAgent(played).open() as agent:
    stream = agent.think().text("Review it.").stream()
    await stream.wait()
    stream._repr_mimebundle_()
print("rich" in sys.modules, "typer" in sys.modules)
""",
        folder=tmp_path,
    )
    assert shown[1][0]["text"] == "False False\n"


class Cell:
    """An output of a cell, kept in memory."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []
        self.calls: list[str] = []

    def display(self, obj: dict[str, str], *, raw: bool) -> None:
        self._show("display", obj, raw)

    def update(self, obj: dict[str, str], *, raw: bool) -> None:
        self._show("update", obj, raw)

    def _show(self, call: str, obj: dict[str, str], raw: bool) -> None:
        assert raw
        self.calls.append(call)
        self.shown.append(obj)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def working(text: str, **known: Any) -> Shown:
    view = RunView(agent="claude", phase="responding", phases=(PhaseView(phase="responding"),), plan=())
    return replace(Shown(label="claude", view=replace(view, mode=text), now=1.0), **known)


def test_one_output_is_drawn_anew_but_not_too_often() -> None:
    cell, clock = Cell(), Clock()
    renderer = NotebookRenderer(cell, clock=clock)
    renderer.draw([working("one")])
    renderer.draw([working("two")])
    clock.now += EVERY
    renderer.draw([working("three")])
    clock.now += EVERY
    renderer.draw([working("three")])
    renderer.suspend()
    renderer.resume()
    renderer.finish([working("four", cancelling=True)])
    assert cell.calls == ["display", "update", "update"]
    for word, shown in zip(("one", "three", "four"), cell.shown, strict=True):
        assert word in Page(shown["text/html"]).lines[0]
    assert cell.shown[0]["text/plain"] == "claude: working 00:01"
    assert "cancelling" in Page(cell.shown[2]["text/html"]).lines[0]


def test_several_runs_are_one_output() -> None:
    cell = Cell()
    renderer = NotebookRenderer(cell, clock=Clock())
    runs = [working("", label="first"), working("", label="second\n")]
    renderer.draw(runs)
    assert cell.shown[0]["text/plain"] == "first: working 00:01\nsecond: working 00:01"
    assert [row[:6] for row in Page(cell.shown[0]["text/html"]).lines] == ["▸first", "▸secon"]


def test_a_notebook_is_known(tmp_path: Path) -> None:
    assert not in_notebook()
    import ipykernel

    assert ipykernel.__name__ in sys.modules
    assert not in_notebook()  # ipykernel is there, but this is none
    asked = "from thinkwell.progress._notebook import in_notebook\nprint(in_notebook())"
    assert executed(asked, folder=tmp_path)[0][0]["text"] == "True\n"


def test_what_is_drawn_from_a_thread_belongs_to_the_cell_that_began_it(tmp_path: Path) -> None:
    shown = executed(
        """
import threading
from thinkwell.progress._notebook import NotebookRenderer
from thinkwell.progress._renderer import Shown
from thinkwell.view import RunView

renderer = NotebookRenderer()
drawn, go_on = threading.Event(), threading.Event()

def draw():
    renderer.draw([Shown(label="early", view=RunView(), now=0.0)])
    drawn.set()
    go_on.wait()
    renderer.finish([Shown(label="late", view=RunView(), now=9.0)])

thread = threading.Thread(target=draw)
thread.start()
drawn.wait()
""",
        "go_on.set()\nthread.join()",
        folder=tmp_path,
    )
    assert [page.lines[0][:5] for page in pictures(shown[0])] == ["▸late"]
    assert not shown[1]


def test_a_run_is_drawn_in_the_cell_that_waits_for_it(tmp_path: Path) -> None:
    shown = executed(
        SCRIPTED,
        """
from thinkwell.progress import show

async with ScriptedAgent(played).open() as agent:
    said = await show(agent.think().text("Review it.").stream())
print(said)
""",
        folder=tmp_path,
    )
    (page,) = pictures(shown[1])
    assert "done" in page.lines[0]
    assert "It is fine." in page.lines
    assert shown[1][-1]["text"] == "It is **fine**.\n"


def test_several_runs_are_drawn_while_a_cell_does_something_else(tmp_path: Path) -> None:
    shown = executed(
        SCRIPTED,
        """
from thinkwell.progress import Live

async with ScriptedAgent(played).open() as one, ScriptedAgent(script.refuses()).open() as two:
    streams = one.think().text("a").stream(), two.think().text("b").stream()
    async with Live(*streams, labels=("tests", "docs")):
        for stream in streams:
            await stream.wait()
        print("both are over")
""",
        folder=tmp_path,
    )
    (page,) = pictures(shown[1])
    rows = [re.sub(r"\d\d:\d\d$", "", line) for line in page.lines if line[:1] in "✘✔" and "·" not in line]
    assert rows == ["✘docsfailed", "✔testsdone"]
    assert "both are over\n" in "".join(output.get("text", "") for output in shown[1])


def test_a_stream_of_the_blocking_api_shows_itself_too(tmp_path: Path) -> None:
    played = ScriptedAgent(script.says("It is **fine**."), folder=tmp_path)
    shown = executed(
        f"""
from thinkwell.sync import open_agent

agent = open_agent(command={[*played.program()]!r}).start()
stream = agent.think().text("Review it.").stream()
print(stream.result())
stream.wait()
stream
""",
        "agent.close()",
        folder=tmp_path,
    )
    assert shown[0][0]["text"] == "It is **fine**.\n"
    (page,) = pictures(shown[0])
    assert "done" in page.lines[0]
    assert "It is fine." in page.lines
    assert shown[0][-1]["data"]["text/plain"].startswith("<ThoughtStream ")


def test_a_run_of_the_blocking_api_is_drawn_while_the_cell_waits(tmp_path: Path) -> None:
    played = ScriptedAgent(script.says("It is **fine**."), folder=tmp_path)
    shown = executed(
        f"""
from thinkwell.sync import open_agent
from thinkwell.sync.progress import show

with open_agent(command={[*played.program()]!r}) as agent:
    print(show(agent.think().text("Review it.").stream()))
""",
        folder=tmp_path,
    )
    (page,) = pictures(shown[0])
    assert "done" in page.lines[0]
    assert any(output["text"] == "It is **fine**.\n" for output in shown[0])
