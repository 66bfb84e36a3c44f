"""Runs in a notebook: executed by a Jupyter kernel, and drawn into cells kept in memory."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from notebook.kernel import execute, printed
from notebook.reading import Page
from scripted import Turn, scripted

from thinkwell.progress import Live
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from notebook.kernel import Output

EVERY = 0.25
"""Seconds between two pages."""

CELLS = {
    "shows itself": """
import sys
from thinkwell.testing import ScriptedAgent, script

played = script.thinks("Two files.").says("It is **fine**.")
async with ScriptedAgent(played).open() as agent:
    stream = agent.think().text("Review it.").stream()
    await stream.result
stream
""",
    "without rich": """
await stream.wait()
print("rich" in sys.modules, "typer" in sys.modules)
[stream]
""",
    "waits": """
from thinkwell.progress import Live, show

async with ScriptedAgent(played).open() as agent:
    said = await show(agent.think().text("Review it.").stream())
print(said)
""",
    "does something else": """
async with ScriptedAgent(played).open() as one, ScriptedAgent(script.refuses()).open() as two:
    streams = one.think().text("a").stream(), two.think().text("b").stream()
    async with Live(*streams, labels=("tests", "docs")):
        for stream in streams:
            await stream.wait()
        print("both are over")
""",
    "begins": """
import asyncio

asked, go_on = asyncio.Event(), asyncio.Event()

async def ask() -> str:
    asked.set()
    await go_on.wait()
    return "go on"

async def main() -> None:
    async with ScriptedAgent(script.calls("ask").says("Late.")).open() as agent:
        await show(agent.think().text("Go").tool(ask).stream())

task = asyncio.create_task(main())
await asked.wait()
""",
    "ends": "go_on.set()\nawait task",
    "blocks": """
from thinkwell.sync import open_agent
from thinkwell.sync.progress import show

agent = open_agent(command=COMMAND).start()
print(show(agent.think().text("Review it.").stream()))
stream = agent.think().text("Review it.").stream()
print(stream.result())
stream.wait()
agent.close()
stream
""",
}
"""A notebook, by what its cells do."""


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Output]]:
    """The outputs of each cell of the notebook, executed in a kernel."""
    folder = tmp_path_factory.mktemp("notebook")
    says = script.says("It is **fine**.")
    command = [*ScriptedAgent(says.stops().says("It is **fine**."), folder=folder).program()]
    outputs = execute([cell.replace("COMMAND", repr(command)) for cell in CELLS.values()], folder)
    return dict(zip(CELLS, outputs, strict=True))


def pictures(outputs: list[Output]) -> list[Page]:
    """Return the pages among a cell's outputs."""
    return [Page(output["data"]["text/html"]) for output in outputs if "text/html" in output["data"]]


@pytest.mark.xdist_group("kernel")
class TestInAKernel:
    """What the cells of the notebook show."""

    def test_a_stream_shows_itself_as_it_stands(self, executed: dict[str, list[Output]]) -> None:
        (page,) = pictures(executed["shows itself"])
        assert "done" in page.lines[0]
        assert "It is fine." in page.lines
        assert executed["shows itself"][0]["data"]["text/plain"].startswith("<ThoughtStream ")
        assert not pictures(executed["without rich"])

    def test_the_core_shows_itself_without_rich(self, executed: dict[str, list[Output]]) -> None:
        """The extra is not needed for a page."""
        assert executed["without rich"][0]["text"] == "False False\n"

    def test_a_run_is_drawn_in_the_cell_that_waits_for_it(self, executed: dict[str, list[Output]]) -> None:
        (page,) = pictures(executed["waits"])
        assert "done" in page.lines[0]
        assert "It is fine." in page.lines
        assert executed["waits"][-1]["text"] == "It is **fine**.\n"

    def test_several_runs_are_drawn_while_a_cell_does_something_else(
        self, executed: dict[str, list[Output]]
    ) -> None:
        (page,) = pictures(executed["does something else"])
        rows = [
            re.sub(r"\d\d:\d\d$", "", line) for line in page.lines if line[:1] in "✘✔" and "·" not in line
        ]
        assert rows == ["✘docsfailed", "✔testsdone"]
        assert "both are over\n" in printed(executed["does something else"])

    def test_what_is_drawn_later_belongs_to_the_cell_that_began_it(
        self, executed: dict[str, list[Output]]
    ) -> None:
        (page,) = pictures(executed["begins"])
        assert "done" in page.lines[0]
        assert "Late." in page.lines
        assert not executed["ends"]

    def test_runs_of_the_blocking_api_are_drawn_too(self, executed: dict[str, list[Output]]) -> None:
        drawn, page = pictures(executed["blocks"])
        for each in (drawn, page):
            assert "done" in each.lines[0]
        assert "It is fine." in page.lines
        assert printed(executed["blocks"]).count("It is **fine**.\n") == 2
        assert executed["blocks"][-1]["data"]["text/plain"].startswith("<ThoughtStream ")


async def test_a_stream_that_fails_shows_that_it_has() -> None:
    async with ScriptedAgent(script.fails(message="boom <b>")).open() as agent:
        stream = agent.think().text("Review it.").stream()
        await stream.wait()
        bundle: dict[str, str] = stream._repr_mimebundle_(include=None, exclude=None)
    assert set(bundle) == {"text/plain", "text/html"}
    assert "boom <b>" in Page(bundle["text/html"]).text


BARE = """
import sys
sys.modules.update(dict.fromkeys(("markdown_it", "pygments", "rich")))  # as if they were not installed
import anyio
from thinkwell.testing import ScriptedAgent, script

EDITS = script.uses("Edit", kind="edit", path="/a.py", old_text="x = 1\\n", new_text="x = 2\\n")

async def main() -> None:
    scripted = ScriptedAgent(EDITS.calls("go", {"path": "a.py"}).says("It is **fine**."))
    async with scripted.open() as agent:
        stream = agent.think().text("Go").tool(go).stream()
        await stream.wait()
        sys.stdout.write(stream._repr_mimebundle_()["text/html"])

async def go(path: str) -> str:
    return path

anyio.run(main)
"""


def test_the_core_shows_itself_without_any_extra() -> None:
    done = subprocess.run([sys.executable, "-c", BARE], stdout=subprocess.PIPE, check=True, encoding="utf-8")
    assert {"It is **fine**.", "- x = 1", "+ x = 2"} <= set(Page(done.stdout).lines)


class Cell:
    """An output of a cell, kept in memory."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []
        self.calls: list[str] = []
        self.times: list[float] = []
        self.broken = False

    def display(self, obj: dict[str, str], *, raw: bool) -> None:
        self._show("display", obj, raw)

    def update(self, obj: dict[str, str], *, raw: bool) -> None:
        self._show("update", obj, raw)

    def _show(self, call: str, obj: dict[str, str], raw: bool) -> None:
        assert raw
        if self.broken:
            raise RuntimeError("the cell is gone")
        self.calls.append(call)
        self.shown.append(obj)
        self.times.append(time.monotonic())

    @property
    def page(self) -> Page:
        """What stands there."""
        return Page(self.shown[-1]["text/html"])

    async def until(self, text: str) -> None:
        """Wait until it shows a text: it is drawn by a thread."""
        while not self.shown or text not in self.page.text:  # noqa: ASYNC110
            await anyio.sleep(0.01)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    """The cell that runs, as of a kernel."""
    shown = Cell()
    kernel: Any = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    display: Any = SimpleNamespace(DisplayHandle=lambda: shown)
    monkeypatch.setitem(sys.modules, "ipykernel", display)
    monkeypatch.setitem(sys.modules, "IPython.core.getipython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown


async def test_one_output_is_drawn_anew_but_not_too_often(cell: Cell) -> None:
    async def works(turn: Turn) -> None:
        for word in ("one ", "two ", "three "):
            turn.say(word)
            await cell.until(word.strip())

    with anyio.fail_after(60):
        async with scripted(works) as agent:
            stream = agent.think().text("Go").stream()
            async with Live(stream):
                await stream.wait()
    assert cell.calls == ["display", *["update"] * (len(cell.calls) - 1)]
    assert all(after - before >= EVERY for before, after in pairwise(cell.times[:-1]))
    pages = [shown["text/html"] for shown in cell.shown]
    assert all(page != after for page, after in pairwise(pages))
    assert re.fullmatch(r"scripted: [\w ]+ 00:0\d", cell.shown[0]["text/plain"])
    assert "done" in cell.page.lines[0]
    assert "one two three" in cell.page.lines


async def test_a_run_that_is_being_cancelled_is_said_to_be(cell: Cell) -> None:
    begun = anyio.Event()

    async def works(turn: Turn) -> None:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await cell.until("cancelling")

    with anyio.fail_after(60):
        async with scripted(works) as agent:
            stream = agent.think().text("Go").stream()
            async with Live(stream) as live:
                await begun.wait()
                live.press_ctrl_c()
                await stream.wait()
    assert "cancelled" in cell.page.lines[0]


async def test_several_runs_are_one_output(cell: Cell) -> None:
    async def waits(turn: Turn) -> None:
        await cell.until("second")

    with anyio.fail_after(60):
        async with scripted(waits) as agent:
            streams = [agent.think().text("Go").stream() for _ in range(2)]
            async with Live(*streams, labels=("first", "second\n")):
                for stream in streams:
                    await stream.wait()
    assert re.fullmatch(r"first: [\w ]+ 00:0\d\nsecond: [\w ]+ 00:0\d", cell.shown[0]["text/plain"]), (
        cell.shown[0]["text/plain"]
    )
    assert [row[:6] for row in Page(cell.shown[0]["text/html"]).lines] == ["▸first", "▸secon"]
    assert cell.calls[0] == "display"
    assert "display" not in cell.calls[1:]


async def test_what_stands_there_already_is_not_drawn_again(cell: Cell) -> None:
    with anyio.fail_after(60):
        async with ScriptedAgent(script.says("Fine.")).open() as agent:
            stream = agent.think().text("Go").stream()
            await stream.wait()
            async with Live(stream):
                await cell.until("Fine.")
    assert cell.calls == ["display"]


async def test_a_cell_that_is_gone_holds_nothing_up(cell: Cell, caplog: pytest.LogCaptureFixture) -> None:
    cell.broken = True
    with anyio.fail_after(60):
        async with ScriptedAgent(script.says("Fine.")).open() as agent:
            stream = agent.think().text("Go").stream()
            async with Live(stream):
                assert await stream.result == "Fine."
    assert "Progress is not shown any more" in caplog.text


async def test_a_program_with_ipykernel_is_no_notebook(
    cell: Cell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor is a terminal with IPython."""
    terminal: Any = SimpleNamespace(get_ipython=lambda: SimpleNamespace())
    elsewhere: Any = SimpleNamespace(get_ipython=lambda: None)
    for imported in (terminal, elsewhere, None):
        if imported is None:
            monkeypatch.delitem(sys.modules, "IPython.core.getipython")
        else:
            monkeypatch.setitem(sys.modules, "IPython.core.getipython", imported)
        async with ScriptedAgent(script.says("Fine.")).open() as agent:
            stream = agent.think().text("Go").stream()
            async with Live(stream):
                await stream.wait()
        assert "Fine." in capsys.readouterr().err
    assert not cell.shown
