"""The items of a run: what the page shows of it, made once for all who watch."""

from __future__ import annotations

import gc
import json
import math
import re
import sys
import time
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import anyio
import msgspec
import pytest
from asking import answered, permission
from kept_runs import keep_run
from msgspec.structs import replace
from tales import tale
from web_stage import Client, Stage, served, written

from thinkwell import events as ev
from thinkwell.journal import Entry, MemoryJournal, RunRecord
from thinkwell.web import RunEnded, ShownError, web_app
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
    from types import FrameType

    from _typeshed import TraceFunction
    from scripted import Script, Turn
    from web_stage import Sse

RECORDINGS = Path(__file__).parents[1] / "progress" / "recordings"

TAGS = frozenset(
    (
        *("a", "blockquote", "br", "button", "code", "dd", "del", "details", "div", "dl", "dt", "em", "form"),
        *("h2", "h3", "h4", "h5", "h6", "hr", "icon", "img", "li", "lines", "mark", "meter", "ol", "p"),
        *("pre", "slot", "span", "strong", "summary", "table", "tbody", "td", "th", "thead", "time"),
        *("tr", "ul"),
    )
)

ATTRIBUTES = frozenset(
    (
        *("asks", "data", "deadline", "does", "fields", "href", "id", "label", "lang", "name", "numbers"),
        *("options", "path", "runs", "since", "start", "text", "type", "value"),
    )
)

BADGES = {f"badge.{name}" for name in ("timeline", "plan", "changes", "terminal", "result")}
ROOTS = {"bar", "strip", "timeline", "dock", "plan", "changes", "terminal", "result", "usage", *BADGES}
"""The places that the page has."""


class Items(dict[str, Any]):
    """The last item of each id."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        """All items that came."""
        self.last_id: str | None = None

    def take(self, frame: Sse) -> None:
        self.last_id = frame.id
        for item in frame.json():
            self.seen.append(item)
            if item[6] is None:
                self.pop(item[2], None)
            else:
                self[item[2]] = item

    def now(self) -> dict[str, Any]:
        """What is shown: each id with its place, its end and its node."""
        return {id_: [item[3], item[5], item[6]] for id_, item in self.items()}

    def places(self) -> dict[str, list[Any]]:
        """The items of each place, in order."""
        places: dict[str, list[Any]] = {}
        for item in sorted(self.values(), key=lambda item: item[3][1]):
            places.setdefault(item[3][0], []).append(item)
        return places

    def inside(self, parent: str) -> list[Any]:
        """The items in a place, in order."""
        return self.places().get(parent, [])

    def text(self, parent: str = "timeline") -> str:
        """What can be read in a place: a line for each item."""
        places = self.places()
        return "\n".join("".join(self._texts(item[6], item[2], places)) for item in places.get(parent, ()))

    def _texts(self, node: Any, id_: str, places: dict[str, list[Any]]) -> Iterator[str]:
        if isinstance(node, str):
            yield node
            return
        tag, look, *inner = node
        if tag == "slot":
            for item in places.get(look or id_, ()):
                yield from self._texts(item[6], item[2], places)
        for each in inner:
            if isinstance(each, dict):
                about = cast("dict[str, Any]", each)
                yield str(about["text"]) if tag == "lines" else ""
            else:
                yield from self._texts(each, id_, places)


def is_element(node: Any) -> TypeGuard[list[Any]]:
    return isinstance(node, list)


def elements(node: Any) -> Iterator[list[Any]]:
    if is_element(node):
        yield node
        for each in node[2:]:
            yield from elements(each)


def attributes_of(element: list[Any]) -> dict[str, Any]:
    found: list[dict[str, Any]] = [each for each in element[2:] if isinstance(each, dict)]
    return found[0] if found else {}


@asynccontextmanager
async def browser(*scripts: Script, **options: Any) -> AsyncGenerator[tuple[Client, Stage]]:
    async with served(*scripts, **options) as stage:
        yield Client(web_app(stage.server)), stage


@asynccontextmanager
async def frames_of(
    client: Client, run: str, after: str | None = None
) -> AsyncGenerator[AsyncGenerator[Sse]]:
    """The server-sent events of a run's items."""
    headers = {} if after is None else {"last-event-id": after}
    async with client.stream("GET", f"/api/runs/{run}/items", headers=headers) as answer:
        assert answer.status == 200
        async with aclosing(answer.events()) as frames:
            yield frames


async def items_of(client: Client, run: str, *, after: str | None = None) -> Items:
    """All items of a run, up to its end."""
    items = Items()
    async with frames_of(client, run, after) as frames:
        async for frame in frames:
            if frame.event == "begin":
                items = Items()
            if frame.event == "end":
                return items
            if frame.event is None:
                items.take(frame)
    raise AssertionError("it ended before the run")


def recorded(name: str) -> list[ev.ThoughtEvent]:
    lines = (RECORDINGS / f"{name}.ndjson").read_text("utf-8").split("\n")
    found = [json.loads(line) for line in lines if line]
    return [msgspec.convert(one["event"], ev.ThoughtEvent) for one in found if one["type"] == "event"]


@asynccontextmanager
async def kept(
    log: Sequence[ev.ThoughtEvent], end: RunEnded | None = None, **about: Any
) -> AsyncGenerator[Client]:
    """A client of a server that has a run with this log, called ``kept``."""
    journal = MemoryJournal()
    at = log[-1].at if log else 0.0
    end = RunEnded(seq=0, at=at, status="completed", result="Done.") if end is None else end
    async with browser(journal=journal) as (client, _):
        record = RunRecord(id="kept", agent="scripted", created=1.0, caller="", title="", **about)
        await keep_run(journal, record, log, end)
        yield client


class Counter:
    """How many there were."""

    count = 0


@contextmanager
def counted_lines(folder: str) -> Generator[Counter]:
    """Count the lines that run in the modules of a folder."""
    counter = Counter()

    def inside(_frame: FrameType, event: str, _arg: object) -> TraceFunction:
        counter.count += event == "line"
        return inside

    def enter(frame: FrameType, _event: str, _arg: object) -> TraceFunction | None:
        return inside if folder in frame.f_code.co_filename.replace("\\", "/") else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield counter
    finally:
        sys.settrace(before)


async def told(*log: ev.ThoughtEvent, end: RunEnded | None = None) -> Items:
    """The items of a run with this log."""
    async with kept(log, end) as client:
        return await items_of(client, "kept")


async def shown(client: Client, run: str, when: Callable[[Items], object]) -> Items:
    """Return the items of a run as soon as they meet a condition."""
    items = Items()
    async with frames_of(client, run) as frames:
        async for frame in frames:
            if frame.event is None:
                items.take(frame)
                if when(items):
                    return items
    raise AssertionError("the run ended before that")


async def followed(client: Client, run: str, *, until: str) -> Items:
    """Return the items of a run as soon as its timeline has a text."""
    return await shown(client, run, lambda items: until in items.text())


async def watched(client: Client, run: str, number: int) -> list[Items]:
    """Return what several watchers of a run get at the same time."""
    seen: list[Items] = []

    async def watch() -> None:
        seen.append(await items_of(client, run))

    async with anyio.create_task_group() as tasks:
        for _ in range(number):
            tasks.start_soon(watch)
    return seen


def check_places(items: Items) -> None:
    """Check that each item stands in a place that exists."""
    slots = {
        look or item[2] for item in items.values() for tag, look, *_ in elements(item[6]) if tag == "slot"
    }
    assert {item[3][0] for item in items.values()} <= ROOTS | slots


def message(text: str, at: float = 0.0) -> ev.Message:
    return ev.Message(content=ev.TextContent(text=text), at=at)


# What they say


async def test_the_description_of_the_api_shows_them_in_the_format_in_which_they_come() -> None:
    async with kept([message("Hello.")]) as client, frames_of(client, "kept") as frames:
        begun = (await anext(frames)).json()
        described = await (await client.get("/api/openapi.json")).json()
    get = described["paths"]["/api/runs/{run}/items"]["get"]
    example = get["responses"]["200"]["content"]["text/event-stream"]["example"]
    assert f'"format":{begun["format"]},' in example


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDINGS.glob("*.ndjson")))
async def test_nodes_are_of_closed_lists_and_stand_in_places_that_are_there(name: str) -> None:
    items = await told(*recorded(name))
    check_places(items)
    for item in items.values():
        for element in elements(item[6]):
            assert element[0] in TAGS
            inner = [each[0] for each in element[2:] if not isinstance(each, dict)]
            assert "slot" not in inner or inner == ["slot"], element
            assert attributes_of(element).keys() <= ATTRIBUTES
    assert [item[2] for item in items.seen if item[0] < 0 or item[4] > item[1]] == []


async def test_a_text_a_call_and_a_question_stand_in_the_order_in_which_they_began() -> None:
    items = await told(
        message("I *look*."),
        ev.ToolStart(id="1", title="pytest -q", kind="execute", input={"command": "pytest -q"}, at=1),
        ev.QuestionAsked(id="q", title="May it run?", tool_id="1", timeout=9, at=2),
        ev.QuestionAnswered(id="q", choice="allow_once", by="human", why="", at=3),
        ev.ToolDone(
            id="1",
            status="failed",
            content=(ev.BlockContent(content=ev.TextContent(text="\x1b[31m1 failed\x1b[0m")),),
            output={"exit_code": 1},
            at=4,
        ),
        ev.Notice(severity="warning", title="slow", at=5),
    )
    assert items.text().split("\n")[:4] == [
        "I look.",
        "runpytest -qexit 13.0spytest -q1 failed",
        "askedMay it run?allowed elsewhere",
        "slow",
    ]
    assert items.inside("c2.o")[0][6] == ["lines", "", {"text": "1 failed", "runs": [8, "t-f1"]}]
    assert items.text("terminal") == "$pytest -qexit 13.0s1 failed"
    assert items["badge.terminal"][6] == "1"
    assert items["c2"][7] == {"open": True}
    assert items["c2.s"][7] == {"lane": "run", "look": "failed"}


async def test_calls_that_only_looked_share_a_line_and_those_asked_about_do_not() -> None:
    reads = [
        event
        for number in range(5)
        for event in (
            ev.ToolStart(id=str(number), title=f"{number}.py", kind="read", at=number),
            ev.ToolDone(id=str(number), status="completed", at=number + 0.5),
        )
    ]
    items = await told(*reads)
    assert [item[2] for item in items.inside("timeline")] == ["f1", "final"]
    assert [item[2] for item in items.inside("f1")] == ["c1", "c3", "c5", "c7", "c9"]
    assert "0.py, 1.py (+3)" in items.text()
    asked = ev.QuestionAsked(id="q", title="Read?", tool_id="2", at=9)
    items = await told(*reads, asked)
    assert [item[2] for item in items.inside("timeline")] == ["f1", "c5", "f7", "q11", "final"]


async def test_thoughts_and_reads_next_to_each_other_share_a_line() -> None:
    def read(number: int, at: float) -> tuple[ev.ThoughtEvent, ...]:
        return (
            ev.ToolStart(id=str(number), title=f"{number}.py", kind="read", at=at),
            ev.ToolDone(id=str(number), status="completed", at=at + 0.5),
        )

    items = await told(
        ev.Thought(text="Hm.", at=1),
        *read(1, 3.0),
        ev.Thought(text="Aha.", at=4),
        *read(2, 5.0),
        message("So it is.", at=6),
        ev.Thought(text="One.", at=7),
        message("Yes.", at=8),
        ev.Thought(text="Two", message_id="a", at=9),
        ev.Thought(text="three", message_id="b", at=10),
        ev.PhaseChanged(phase="responding", at=10.5),
    )
    assert [item[2] for item in items.inside("timeline")] == ["f1", "m7", "t8", "m9", "f10", "final"]
    assert [item[2] for item in items.inside("f1")] == ["t1", "c2", "t4", "c5"]
    line = [item[2] for item in items.seen if item[2] == "f1"]
    assert items.text().startswith("read1.py, 2.pythought 3.0s2.5s")
    assert items.inside("f10")[1][2] == "t11"
    # Drawn at the end, the line was there from its beginning: nothing is missing at a moment of the run.
    assert len(line) == 2
    assert min(item[1] for item in items.seen if item[2] == "f1") == 1


async def test_the_end_of_a_run_that_failed_says_why_and_offers_another_one() -> None:
    error = ShownError(
        name="AgentExited", message="it has ended", exit_code=3, stderr="a\n" * 30 + "no model"
    )
    log = (
        *(ev.ToolStart(id=str(n), title="a.py", kind="read", at=0) for n in range(2)),
        ev.ToolStart(id="r", title="return_result"),
        *(ev.ToolStart(id=f"c{n}", title=f"make {n}", kind="execute") for n in range(22)),
    )
    items = await told(*log, end=RunEnded(seq=0, at=1, status="failed", error=error))
    final = items["final"][6]
    (button,) = [each for each in elements(final) if each[0] == "button"]
    assert button[2]["does"] == "again"
    assert button[2]["value"][:2] == ["read a.py (2 times)", "run make 0"]
    assert button[2]["value"][-1] == "and 3 more calls"
    assert "exit code 3" in items.text()
    (tail,) = [each for each in elements(final) if each[0] == "pre"]
    assert tail[3].splitlines() == ["a"] * 19 + ["no model"]
    items = await told(*log)
    assert not [each for each in elements(items["final"][6]) if each[0] == "button"]


async def test_a_thought_that_goes_on_leaves_its_line() -> None:
    gate = anyio.Event()

    async def goes_on(turn: Turn) -> None:
        for piece, block in (("One.", "a"), ("Two.", "b"), ("Three.", "c")):
            turn.think(piece, message_id=block)
        await gate.wait()
        turn.think("More.", message_id="a")
        await anyio.sleep_forever()

    async with browser(goes_on) as (client, stage):
        run = await stage.start(caller="")
        lines: list[str] = []

        def goes_on_after_sharing(items: Items) -> bool:
            thoughts = [item[2] for item in items.values() if item[2][0] in "ft" and "." not in item[2]]
            if len(thoughts) == 4 and not gate.is_set():
                lines.extend(each for each in thoughts if each[0] == "f")
                assert len(items.inside(lines[0])) == 2
                gate.set()
            return "More." in items.text()

        items = await shown(client, run.id, goes_on_after_sharing)
        (line,) = lines
        assert items.inside(line) == []
        assert line not in items


async def test_calls_of_a_sub_agent_stand_in_its_place() -> None:
    items = await told(
        ev.ToolStart(id="a", title="Look", kind="think"),
        ev.ToolStart(id="b", title="x.py", kind="edit", parent="a"),
        ev.ToolStart(id="c", title="y.py", kind="edit", parent="b"),
    )
    assert [item[2] for item in items.inside("timeline")] == ["c1", "final"]
    assert [item[2] for item in items.inside("c1.calls")] == ["c2"]
    assert [item[2] for item in items.inside("c2.calls")] == ["c3"]


async def test_what_a_sub_agent_says_stands_in_its_place_and_what_it_thinks_does_not() -> None:
    items = await told(
        ev.ToolStart(id="a", title="Look", kind="think"),
        ev.SubagentText(agent="a", text="Hm.", thinks=True),
        ev.SubagentText(agent="a", text="I look."),
    )
    assert [item[2] for item in items.inside("c1.calls")] == ["c1.said"]
    assert items.text("c1.calls") == "I look."


async def test_what_happens_beside_texts_and_calls_is_a_note() -> None:
    items = await told(
        ev.ReplayStarted(),
        message("Hi."),
        ev.ReplayEnded(),
        ev.Compaction(id="1", raw={"status": "started"}),
        ev.Compaction(id="1", raw={"status": "done"}),
        ev.Notice(severity="warning", title="Slow", description="very"),
        ev.Report(kind="limits", body={"left": 3}),
    )
    assert items.text().split("\n")[:-1] == [
        "what follows was said before",
        "Hi.",
        "that was the history of the session",
        "the agent shortens its context",
        "Slow: very",
        "limits: {",
        '  "left": 3',
        "}",
    ]


async def test_what_is_no_text_is_shown_as_far_as_it_can_be() -> None:
    def sent(content: ev.ContentBlock) -> ev.Message:
        return ev.Message(text="", content=content)

    png = {"type": "image/png", "data": "AAAA", "label": "Picture that the agent has sent"}
    address = {"href": "https://example.org/a"}
    items = await told(
        sent(ev.ImageContent(data="AAAA", mime_type="image/png")),
        sent(ev.ImageContent(data="?", mime_type="image/png")),
        sent(ev.ResourceLink(name="A", uri="https://example.org/a")),
        sent(ev.ResourceLink(name="B", uri="javascript:alert(1)")),
        sent(ev.EmbeddedResource(uri="file:///c", text="Three")),
        sent(ev.EmbeddedResource(uri="file:///d", blob="AAAA")),
    )
    nodes = [item[6][2] for item in items.inside("timeline")[:-1]]
    assert nodes[0] == ["img", "sent", png]
    assert address in nodes[2][2]
    assert nodes[3][1:] == ["", "B ", ["code", "mono dim", "javascript:alert(1)"]]
    assert [nodes[1][2], nodes[4][2], nodes[5][2]] == ["[image/png]", "Three", "[data: file:///d]"]


async def test_of_a_long_output_the_end_is_shown() -> None:
    content = ev.BlockContent(content=ev.TextContent(text="x" * 99 + "\n" + ("y" * 99 + "\n") * 400))
    items = await told(ev.ToolDone(id="1", status="completed", content=(content,)))
    parts = items.inside("c1.o")
    assert [item[2] for item in parts] == [f"c1.o.{number}" for number in range(6, 11)]
    assert "x" not in str(parts)


async def test_of_a_large_change_it_says_what_is_not_shown() -> None:
    old = "".join(f"{number}\n" for number in range(110))
    many = [ev.DiffContent(path="/a", old_text=old, new_text=old.replace("5\n", "5\nnew\n"))] * 48
    other = ev.DiffContent(path="/b", old_text="a\n" * 300_000, new_text="b\n" * 300_000)
    items = await told(ev.ToolStart(id="1", title="Edit", kind="edit", content=(*many, other)))
    assert "… 28 more places" in items.text()
    assert "too long or too different to be compared line by line" in items.text()


async def test_a_plan_without_steps() -> None:
    items = await told(ev.PlanUpdate(entries=(), id="later"))
    assert items.text("plan") == "later"


async def test_changes_of_files_come_by_hunks_and_by_files() -> None:
    old, new = "\n".join(map(str, range(40))), "\n".join(["x", *map(str, range(1, 39)), "y"])
    diff = ev.DiffContent(path="/w/a.py", old_text=f"{old}\n", new_text=f"{new}\n")
    items = await told(
        ev.SessionOpened(agent="scripted", session_id="s", cwd="/w"),
        ev.ToolStart(id="1", title="Edit", kind="edit", content=(diff,)),
        ev.ToolDone(id="1", status="completed", content=(diff,)),
    )
    hunks = items.inside("c2.d0")
    assert [hunk[6][2]["text"] for hunk in hunks] == ["-0\n+x\n 1\n 2\n 3", " 36\n 37\n 38\n-39\n+y"]
    assert [hunk[6][2]["numbers"][0] for hunk in hunks] == [[1, None], [37, 37]]
    (edit,) = items.inside("changes")
    assert edit[6][:3] == ["div", "diff", {"path": "a.py", "value": [2, 2]}]
    assert "a.py+2−2-0" in items.text().replace("\n", "")


@pytest.mark.parametrize(
    ("path", "looks"),
    [
        ("/a.py", ["removed keyword", "removed marked number", "added keyword", "added marked number"]),
        ("/a.txt", ["removed marked", "added marked"]),
    ],
)
async def test_changes_have_the_colours_of_their_language(path: str, looks: list[str]) -> None:
    diff = ev.DiffContent(path=path, old_text="return 1\n", new_text="return 23\n")
    items = await told(ev.ToolStart(id="1", title="Edit", kind="edit", content=(diff,)))
    lines = items.inside("c1.d0")[0][6][2]
    assert lines["text"] == "-return 1\n+return 23"
    assert [look for look in lines["runs"][1::2] if " " in look] == looks


async def test_a_result_stands_in_its_panel_by_its_fields() -> None:
    items = await told(
        ev.ResultAttempt(accepted=False, value={"a": 1}, errors=("a: too small",)),
        end=RunEnded(seq=0, at=1, status="completed", result={"a": [{"b": 1}, {"b": 2}], "c": "x"}),
    )
    assert items.text("result").startswith("Run") or "Resultalist of 2" in items.text("result")
    assert "1 refused attempt" in items.text("result")
    assert items["badge.result"][6] == "✓"


async def test_without_a_schema_the_last_message_is_the_result_so_far() -> None:
    async with browser(slow) as (client, stage):
        run = await stage.start(caller="")
        items = await followed(client, run.id, until="Half")
        assert "Last message so farHalf" in items.text("result")


async def slow(turn: Turn) -> None:
    turn.say("Half")
    await anyio.sleep(60)
    turn.say(" and half.")


async def test_changes_of_calls_that_failed_are_none() -> None:
    diff = ev.DiffContent(path="/a.py", old_text="a", new_text="b")
    items = await told(
        ev.ToolStart(id="1", title="Edit", kind="edit", content=(diff,)),
        ev.ToolDone(id="1", status="failed", content=(diff,), at=1),
    )
    assert items.inside("changes") == []
    assert "badge.changes" not in items
    assert items["c1.d0"]


async def test_a_denied_call_is_shown_as_denied_and_not_as_run() -> None:
    diff = ev.DiffContent(path="/a.py", old_text="a", new_text="b")
    items = await told(
        ev.ToolStart(id="1", title="rm -rf x", kind="execute", content=(diff,)),
        ev.QuestionAsked(id="q", title="May I?", tool_id="1"),
        ev.QuestionAnswered(id="q", choice="reject_once", by="policy", why="no shell"),
        ev.ToolDone(id="1", status="completed", at=1),
    )
    ran, asked = items.text().split("\n")[:2]
    assert ran == "runrm -rf xdenied"
    assert asked.startswith("askedMay I?denied by the permission policy: no shell")
    assert items["c1.s"][7]["look"] == "denied"
    assert items.inside("terminal") == items.inside("changes") == []
    assert not {"badge.terminal", "badge.changes"} & items.keys()
    assert "Tools" not in items.text("usage")


async def test_a_call_that_was_denied_and_then_allowed_has_run() -> None:
    items = await told(
        ev.ToolStart(id="1", title="make", kind="execute"),
        ev.QuestionAsked(id="q", title="May I?", tool_id="1"),
        ev.QuestionAnswered(id="q", choice="reject_once", by="human", why=""),
        ev.QuestionAsked(id="r", title="And now?", tool_id="1"),
        ev.QuestionAnswered(id="r", choice="allow_once", by="human", why=""),
        ev.ToolDone(id="1", status="completed", at=1),
    )
    assert items["c1.s"][7]["look"] == "done"
    assert items["badge.terminal"][6] == "1"


RESULT_TITLE = "thinkwellc1b50d97ab12_return_result"


async def test_a_result_is_one_row_and_no_tool_call() -> None:
    items = await told(
        ev.ToolStart(id="r"),  # some agents tell only later what they call
        ev.ToolUpdate(id="r", title=RESULT_TITLE, input={"result": 1}),
        ev.QuestionAsked(id="q", title=RESULT_TITLE, tool_id="r"),
        ev.QuestionAnswered(id="q", choice="allow_once", by="policy", why="it is a tool of ours"),
        ev.ResultAttempt(accepted=True, value={"result": 1}),
        ev.ToolDone(id="r", status="completed", at=1),
    )
    assert [item[2] for item in items.inside("timeline")] == ["a5", "final"]
    assert items.text().startswith("result")
    assert "return_result" not in json.dumps(items.now())
    assert "Tools" not in items.text("usage")


async def test_while_a_result_is_given_that_is_what_the_run_does() -> None:
    begun = ev.ToolStart(id="r", title=RESULT_TITLE, status="in_progress", input={"result": 1})
    async with kept_running(ev.PhaseChanged(phase="responding"), begun) as client:
        items = await followed(client, "kept", until="returning")
    assert items.text() == "returning the result"
    assert [item[2] for item in items.inside("timeline")] == ["head"]


async def test_a_result_that_was_denied_is_a_question_about_the_result() -> None:
    items = await told(
        ev.QuestionAsked(id="q", title=RESULT_TITLE, tool_id="r"),
        ev.QuestionAnswered(id="q", choice="reject_once", by="human", why=""),
        ev.ToolStart(id="r", title=RESULT_TITLE),
    )
    assert items.text().split("\n")[0] == "askedresultdenied elsewhere"
    assert "return_result" not in items.text()


def option(kind: str, name: str = "") -> ev.QuestionOption:
    return ev.QuestionOption(id=f"id of {kind} {name}", name=name, kind=kind)


@pytest.mark.parametrize(
    ("question", "choices"),
    [
        (
            ev.QuestionAsked(
                id="q",
                title="?",
                options=(
                    option("allow_once", "No, never!"),
                    option("allow_always", "Always"),
                    option("reject_once", "Reject"),
                    option("allow_once", "with sudo"),
                    option("constructor", "odd"),
                ),
            ),
            [
                ["y", "Allow once: No, never!", {"option": "id of allow_once No, never!"}, "allow"],
                ["a", "Always allow", {"option": "id of allow_always Always"}, "allow"],
                ["n", "Deny", {"option": "id of reject_once Reject"}, "deny"],
                ["1", "Allow once: with sudo", {"option": "id of allow_once with sudo"}, "allow"],
                ["2", "odd", {"option": "id of constructor odd"}, "other"],
            ],
        ),
        (
            ev.QuestionAsked(id="q", title="?", options=(option("allow_once"),)),
            [
                ["y", "Allow once", {"option": "id of allow_once "}, "allow"],
                ["n", "Deny", "deny", "deny"],
            ],
        ),
        (
            ev.QuestionAsked(id="q", title="?", asks="url", url="https://e.x/"),
            [["y", "I have opened it", "accept", "allow"], ["n", "No", "decline", "deny"]],
        ),
        (ev.QuestionAsked(id="q", title="?", asks="form"), [["n", "Decline", "decline", "deny"]]),
    ],
    ids=["permission", "without a denial", "url", "form"],
)
async def test_keys_follow_from_what_options_mean_and_denying_is_always_offered(
    question: ev.QuestionAsked, choices: list[Any]
) -> None:
    async with kept_running(question) as client:
        (form,) = (await shown(client, "kept", lambda items: items.inside("dock"))).inside("dock")
        assert form[6][2]["options"] == choices


@asynccontextmanager
async def kept_running(*log: ev.ThoughtEvent) -> AsyncGenerator[Client]:
    """A client of a server that has a run with this log, called ``kept``, which goes on elsewhere."""
    journal = MemoryJournal()
    async with browser(journal=journal) as (client, _):
        await journal.create(RunRecord(id="kept", agent="scripted", created=1.0, caller="", title=""))
        entries = [written(replace(each, seq=seq)) for seq, each in enumerate(log, 1)]
        await journal.append("kept", entries)
        yield client


@pytest.mark.parametrize(
    ("choice", "by", "why", "words"),
    [
        ("allow_always", "human", "It is fine.", "allowed for good elsewhere: It is fine."),
        ("accept", "robot", "", "accepted by robot"),
        ("reject_once", "supervisor", "no", "denied by the supervisor: no"),
        ("reject_once", "deadline", "no answer within 5 seconds", "denied: no answer within 5 seconds"),
        (
            "allow_once",
            "remembered",
            "it was answered for the whole session",
            "allowed: it was answered before, for the whole session",
        ),
        (None, "cancel", "the turn was cancelled", "withdrawn: the turn was cancelled"),
        ("constructor", "constructor", "constructor", "constructor by constructor: constructor"),
        ("allow_once", "", "", "allowed"),
    ],
)
async def test_who_has_answered_is_told_as_people_call_it(
    choice: str | None, by: str, why: str, words: str
) -> None:
    items = await told(
        ev.QuestionAsked(id="q", title="?"), ev.QuestionAnswered(id="q", choice=choice, by=by, why=why)
    )
    assert items.text().startswith(f"asked?{words}")


@pytest.mark.parametrize(
    ("output", "text", "runs"),
    [
        (
            (
                "\x1b[1;31mred\x1b[0m plain\x1b[2J\x1b]0;title\x07 \x1b[38;5;2mgreen"
                "\x1b[38;2;1;2;3mtrue\x1b[39m \x1b[4;44mx\x1b[24;49my\x1b[48;5;9mz"
            ),
            "red plain greentrue xyz",
            [3, "t-bold t-f1", 7, "", 5, "t-f2", 5, "", 1, "t-under t-b4", 2, ""],
        ),
        (
            "10%\r50%\r100%\r\ndone\r\n\x1b[2;3;93;10mx\x1b[22;23my",
            "100%\ndone\nxy",
            [10, "", 1, "t-dim t-italic t-f11", 1, "t-f11"],
        ),
    ],
)
async def test_colours_of_terminals_stay_and_what_else_they_obey_goes(
    output: str, text: str, runs: list[Any]
) -> None:
    content = ev.BlockContent(content=ev.TextContent(text=output))
    items = await told(ev.ToolDone(id="1", status="completed", content=(content,)))
    assert items["c1.o.0"][6] == ["lines", "", {"text": text, "runs": runs}]


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "level": {"enum": ["low", "high"]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "item": {"$ref": "#/$defs/Item"},
        "kinds": {"type": ["string", "null"]},
        "one": {"const": 1},
        "any": True,
        "list": {"type": "array"},
    },
}


async def test_fields_of_a_result_are_those_of_its_schema_filled_in_as_they_come() -> None:
    draft = ev.ToolStart(id="r", name="mcp__thinkwell__return_result", input={"result": {"name": "a"}})
    more = ev.ToolUpdate(id="r", input={"result": {"name": "ab", "extra": 1.5, "none": None, "on": True}})
    refused = ev.ResultAttempt(accepted=False, value={}, errors=("size: too small",))

    async def panel(*log: ev.ThoughtEvent) -> str:
        async with kept(
            log, RunEnded(seq=0, at=1, status="failed"), meta={"page": {"output": SCHEMA}}
        ) as client:
            return (await items_of(client, "kept")).text("result")

    assert "namestringnot giventagslist of stringnot given" in await panel()
    assert 'level"low" | "high"not giveneitherinteger | nullnot givenitemItemnot given' in await panel()
    assert "kindsstring | nullnot givenone1not givenanyanynot givenlistlistnot given" in await panel()
    filled = await panel(draft, more)
    assert filled.startswith("Being filled innamestringab")
    assert "extranumber1.5nonenullnullonbooleantrue" in filled
    assert (await panel(draft, more, refused)).startswith("Refused; the agent may try again")


async def test_how_a_run_failed_stands_at_its_end() -> None:
    end = RunEnded(seq=0, at=3, status="interrupted")
    items = await told(ev.ToolStart(id="1", title="x", status="in_progress"), end=end)
    assert "The server ended before the run did" in items.text()
    assert items["c1.s"][7]["look"] == "interrupted"


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 300), marks=pytest.mark.long)])
async def test_a_run_at_random_has_its_items_in_places_that_are_there(seeds: range) -> None:
    for seed in seeds:
        log = [ev.SessionOpened(agent="scripted", session_id="s", cwd="/w"), *tale(seed, 60)]
        items = await told(*log)
        check_places(items)
        texts = {"message": "m", "thought": "t", "user_message": "u"}
        said = {
            texts[event.type] for event in log if isinstance(event, ev.Message | ev.Thought) and event.text
        }
        assert said <= {id_[0] for id_ in items}


# The past


@pytest.mark.parametrize("name", ["rich", "nested", "hostile"])
async def test_those_up_to_a_number_are_the_run_as_it_stood(name: str) -> None:
    log = recorded(name)
    whole = await told(*log)
    for part in range(5, len(log), 11):
        at = log[part - 1].at
        earlier = await told(*log[:part], end=RunEnded(seq=0, at=at, status="interrupted"))
        heads = {id_ for id_ in earlier if id_[0] in "cqtm" and id_[1:].removesuffix(".s").isdigit()}
        known: dict[str, Any] = {}
        for item in whole.seen:
            if item[0] <= part:
                known[item[2]] = item
        assert heads <= known.keys()
        for id_ in heads & {id_ for id_ in known if id_.endswith(".s")}:
            done = earlier[id_][5] is not None
            assert known[id_][5:7] == earlier[id_][5:7] or not done


@pytest.mark.virtual_time
async def test_calls_and_questions_in_the_past_are_the_same_to_those_who_come_late() -> None:
    async def works(turn: Turn) -> None:
        turn.update(s.ToolCallStart(tool_call_id="1", title="Look", kind="execute"))
        await anyio.sleep(1)
        turn.update(s.ToolCallStart(tool_call_id="2", title="Delete", kind="execute"))
        await answered(turn, permission(turn.session_id, s.ToolCallUpdate(tool_call_id="2")))
        await anyio.sleep(1)
        turn.update(s.ToolCallProgress(tool_call_id="1", status="in_progress"))
        await anyio.sleep(1)

    def past(items: Items) -> dict[tuple[str, int], Any]:
        states = (item for item in items.seen if re.fullmatch(r"c\d+\.s|q\d+", item[2]))
        return {(item[2], item[1]): item[6] for item in states}

    async with browser(works) as (client, stage):
        run = await stage.start(caller="")
        early = Items()
        async with frames_of(client, run.id) as frames:
            async for frame in frames:
                if frame.event is None:
                    early.take(frame)
                if early.inside("dock"):
                    about = early.inside("dock")[0][6][2]
                    said = {"question": about["id"], "answer": about["options"][-1][2]}
                    await client.post(f"/api/runs/{run.id}/answer", said)
        late = await items_of(Client(web_app(stage.server)), run.id)  # which makes all of them again
    marks = [item[6][2][1] for item in late.seen if item[2].endswith(".s")]
    assert set(marks) == {"pending", "running", "denied", "interrupted"}
    assert past(late) == past(early)


async def test_what_a_call_will_do_is_there_from_its_beginning() -> None:
    diff = ev.DiffContent(path="/a.py", old_text="a\n", new_text="b\n")
    items = await told(
        ev.ToolStart(id="1", title="Edit", kind="edit", input={"why": "it fails"}, content=(diff,), at=1),
        ev.ToolDone(id="1", status="completed", content=(diff,), output="Done.", at=9),
        ev.ToolStart(id="2", title="Build", kind="execute", input={"command": "make"}, at=10),
        ev.ToolDone(id="2", status="completed", output="Built.", at=19),
    )
    since = {id_: items[id_][1] for id_ in ("c1.a", "c1.d0.0", "c1.o.0", "c3.a", "c3.o.0", "s3", "e1.0")}
    assert since == {"c1.a": 1, "c1.d0.0": 1, "c1.o.0": 9, "c3.a": 10, "c3.o.0": 19, "s3": 10, "e1.0": 9}


async def test_how_long_a_text_was_when_is_told_with_it() -> None:
    items = await told(message("One ", 0), message("two ", 1), message("three", 2))
    assert items["m1"][7]["cuts"] == [0, 4, 1, 8, 2, 13]


# Those who watch


@pytest.mark.virtual_time
async def test_a_late_watcher_sees_the_same_as_an_early_one() -> None:
    async def talks(turn: Turn) -> None:
        for number in range(30):
            turn.say(f"- item {number}, which is *long*\n")
            await anyio.sleep(0.07)

    async with browser(talks) as (client, stage):
        run = await stage.start(caller="")
        early = await items_of(client, run.id)
        late = await items_of(client, run.id)
    assert early.now() == late.now()
    assert len(late.seen) < len(early.seen)


@pytest.mark.virtual_time
async def test_a_text_that_grows_more_than_a_thousand_times() -> None:
    async def talks(turn: Turn) -> None:
        for _ in range(1_200):
            turn.say("word ")
            await anyio.sleep(0.2)

    async with browser(talks) as (client, stage):
        run = await stage.start(caller="")
        early = await items_of(client, run.id)
        late = await items_of(client, run.id)
    assert early.now() == late.now()
    assert len(early.seen) > 1_200


@pytest.mark.virtual_time
@pytest.mark.parametrize("pause", [0.03, math.inf], ids=["drawn later", "drawn"])
async def test_a_server_that_closes_ends_the_stream_before_the_run(pause: float) -> None:
    async def talks(turn: Turn) -> None:
        while True:
            turn.say("Hello. ")
            await anyio.sleep(pause)

    async with browser(talks) as (client, stage):
        run = await stage.start(caller="")
        marks: list[str | None] = []
        async with frames_of(client, run.id) as frames:
            async for frame in frames:
                marks.append(frame.event)
                if "Hello." in frame.data:
                    await anyio.sleep(0.05)
                    stage.server.begin_leaving()
        assert marks[0] == "begin"
        assert "end" not in marks


@pytest.mark.virtual_time
async def test_text_is_there_within_a_tenth_of_a_second_and_not_more_often() -> None:
    async def talks(turn: Turn) -> None:
        for number in range(50):
            turn.say(f"{number} ")
            await anyio.sleep(0.02)

    async with browser(talks) as (client, stage):
        run = await stage.start(caller="")
        frames: list[tuple[float, str]] = []
        items = Items()
        async with frames_of(client, run.id) as sent:
            async for frame in sent:
                if frame.event is None:
                    items.take(frame)
                    frames.append((anyio.current_time(), items.text()))
        begun = frames[0][0]
        for number in range(50):
            seen = min(at for at, text in frames if str(number) in text.split())
            assert seen - begun <= number * 0.02 + 0.2
        assert len(frames) <= 16


@pytest.mark.virtual_time
async def test_what_has_not_changed_is_sent_once() -> None:
    async def talks(turn: Turn) -> None:
        for number in range(3):
            turn.think("Hm.")
            await anyio.sleep(1 / 3)
            turn.say(f"{number}.")
            await anyio.sleep(1 / 7)

    async with browser(talks) as (client, stage):
        run = await stage.start(caller="")
        seen = (await items_of(client, run.id)).seen
    sent = [json.dumps(item) for item in seen]
    assert len(set(sent)) == len(sent)


@pytest.mark.virtual_time
async def test_of_a_call_that_goes_on_only_what_changes_is_sent_again() -> None:
    async def works(turn: Turn) -> None:
        turn.update(s.ToolCallStart(tool_call_id="1", title="make", kind="execute"))
        for status in ("in_progress", "completed"):
            await anyio.sleep(1)
            turn.update(s.ToolCallProgress(tool_call_id="1", status=status))
        await anyio.sleep(1)

    async with browser(works) as (client, stage):
        run = await stage.start(caller="")
        seen = [item for item in (await items_of(client, run.id)).seen if item[2][0] in "cs"]
    (call,) = [item[2] for item in seen if item[2][1:].isdigit() and item[2][0] == "c"]
    states = [item for item in seen if item[2] == f"{call}.s"]
    assert [item[6][2] for item in states] == [["mark", each] for each in ("pending", "running", "done")]
    assert len(seen) == 2 + len(states)  # its lines in the timeline and in the terminal


@pytest.mark.virtual_time
async def test_a_client_that_comes_back_gets_what_it_has_not() -> None:
    async def talks(turn: Turn) -> None:
        turn.say("One.\n\n")
        await anyio.sleep(5)
        turn.say("Two.")

    async with browser(talks) as (client, stage):
        run = await stage.start(caller="")
        first = await followed(client, run.id, until="One.")
        rest = await items_of(client, run.id, after=first.last_id)
        whole = await items_of(client, run.id)
        assert "m" not in "".join(item[2] for item in rest.seen if item[6] == ["p", "", "One."])
        assert {**first.now(), **rest.now()} == whole.now()
        other = await items_of(client, run.id, after="0badcafe.7")
        assert other.now() == whole.now()


async def test_a_stream_says_its_format_first() -> None:
    async with kept([message("Hi.")]) as client:
        first, *_, last = await client.events("/api/runs/kept/items")
        about = first.json()
        assert (first.event, about["format"], about["seq"]) == ("begin", 4, 2)
        assert (about["run"]["id"], about["run"]["status"]) == ("kept", "completed")
        assert about["age"] == pytest.approx(time.time() - 1.0, abs=60)
        assert (last.event, last.json()) == ("end", {})
        answered = await client.get("/api/runs/other/items")
        assert answered.status == 404


async def test_an_entry_of_another_version_is_named() -> None:
    journal = MemoryJournal()
    failure = pytest.RaisesExc(msgspec.ValidationError, match=r"^Expected `str`, got `int` - at `\$\.text`$")
    with pytest.RaisesGroup(failure, allow_unwrapped=True, flatten_subgroups=True):
        async with browser(journal=journal) as (client, _):
            await journal.create(RunRecord(id="kept", agent="scripted", created=1.0, caller="", title=""))
            await journal.append("kept", [Entry(1, b'{"type":"message","text":3,"seq":1,"at":0.0}')])
            await client.get("/api/runs/kept/items")


@pytest.mark.virtual_time
async def test_many_watchers_get_the_same_also_when_one_leaves() -> None:
    async def talks(turn: Turn) -> None:
        for number in range(10):
            turn.say(f"{number}\n\n")
            await anyio.sleep(1)

    async with browser(talks) as (client, stage):
        run = await stage.start(caller="")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(followed, client, run.id, until="3"))  # it may make the items for all
            seen = await watched(client, run.id, 5)
            assert all(items.now() == seen[0].now() for items in seen)
            assert "9" in seen[0].text()


@pytest.mark.virtual_time
async def test_an_open_question_is_a_form_until_it_is_answered() -> None:
    call = s.ToolCallUpdate(tool_call_id="1", title="May it?")

    async def asks(turn: Turn) -> None:
        await answered(turn, permission(turn.session_id, call))
        await anyio.sleep(1)

    async with browser(asks) as (client, stage):
        run = await stage.start(caller="")
        items = await shown(client, run.id, lambda items: items.inside("dock"))
        (form,) = items.inside("dock")
        assert form[6][:2] == ["form", "permission"]
        about = form[6][2]
        assert about["label"] == "May it?"
        labels = {key: label for key, label, *_ in about["options"]}
        assert labels == {"a": "Always allow", "y": "Allow once", "d": "Always deny", "n": "Deny"}
        assert items.text().endswith("waits for your answer")
        said = {"question": about["id"], "answer": about["options"][0][2]}
        assert (await client.post(f"/api/runs/{run.id}/answer", said)).status == 204
        items = await items_of(client, run.id, after=items.last_id)
        assert [item for item in items.seen if item[3][0] == "dock"][-1][6] is None
        assert "allowed for good" in str(items.now())


async def test_a_long_run_shows_its_end_first_to_all_who_open_it_at_once() -> None:
    log = [message(f"Message {number}.\n\n" * 200, number) for number in range(100)]
    async with kept([replace(each, message_id=str(number)) for number, each in enumerate(log)]) as client:
        items, *others = await watched(client, "kept", 3)
    assert all(other.now() == items.now() for other in others)
    rows = [item[2] for item in items.seen if item[2][0] == "m" and item[2][1:].isdigit()]
    assert rows[0] == "m100"
    assert len(items.inside("timeline")) == 101
    assert items.text("m100").count("Message 99.") == 200


LONG = 5_000
"""Entries of a run whose end is sent first."""


def worked(count: int) -> list[ev.ThoughtEvent]:
    """Steps of an agent: what it says, and a command."""
    log: list[ev.ThoughtEvent] = [ev.SessionOpened(agent="scripted", session_id="s", cwd="/w")]
    for number in range(count // 3):
        log += (
            message(f"Step {number}.", number),
            ev.ToolStart(id=str(number), title=f"make {number}", kind="execute", at=number),
            ev.ToolDone(id=str(number), status="completed", at=number + 0.5),
        )
    return log


async def test_the_end_of_a_long_run_comes_before_the_rest_is_made() -> None:
    log = worked(LONG)
    async with kept(log) as client:
        frames = await client.events("/api/runs/kept/items")
        whole = await items_of(client, "kept")
    marks = [frame.event for frame in frames if frame.event is not None]
    assert marks == ["begin", "begin", "whole", "end"]
    assert [frames[0].json().get("part"), frames[2].json().get("part")] == [True, False]
    end = Items()
    end.take(frames[1])
    rows = [item[2] for item in end.inside("timeline")]
    assert rows[-3:] == [f"m{len(log) - 2}", f"c{len(log) - 1}", "final"]
    assert len(rows) < 700  # on a busy machine there are fewer: only the last ones
    for id_ in rows[2:-1]:  # the first ones may have begun before
        assert end[id_] == whole[id_]
    assert {item[3][0] for item in end.values()} >= {"timeline", "bar"}
    assert not {item[3][0] for item in end.values()} & {"changes", "terminal", "usage", "result", *BADGES}
    assert "tools" not in end.text()
    assert f"{len(log) // 3:,} tools" in whole.text()
    assert len(whole.inside("timeline")) == 2 * (len(log) // 3) + 1


async def test_what_is_open_at_the_end_of_a_long_run_is_asked_at_once() -> None:
    async with kept_running(*worked(LONG), ev.QuestionAsked(id="q", title="And now?", at=9_999)) as client:
        items = await shown(client, "kept", lambda _: True)
        assert [form[6][2]["label"] for form in items.inside("dock")] == ["And now?"]


async def test_the_end_of_a_run_whose_entries_are_long_comes_with_the_rest() -> None:
    log = [*worked(LONG), *(message("x" * 200_000, 9_999 + number) for number in range(10))]
    async with kept(log) as client:
        frames = await client.events("/api/runs/kept/items")
    assert frames[1].json() == []


async def test_the_work_for_a_late_watcher_grows_with_the_items_and_no_faster() -> None:
    async def work(count: int) -> int:
        """Lines of the items' modules that run for a watcher of a run whose items are all made."""
        log = [
            replace(message(f"{number} " * 300, number), message_id=str(number)) for number in range(count)
        ]
        async with kept(log) as client:
            await items_of(client, "kept")
            with counted_lines("web/items") as lines:
                assert len((await items_of(client, "kept")).inside("timeline")) == count + 1
        return lines.count

    few, many = await work(300), await work(1_200)
    assert few * 3 < many < few * 5


# More than is kept in memory

BIG = "A" * 1_000_000


def picture(number: int, data: str = BIG) -> ev.ToolDone:
    """A picture of a megabyte: eight of them are all that is kept of a run's items."""
    content = ev.BlockContent(content=ev.ImageContent(data=data, mime_type="image/png"))
    return ev.ToolDone(id=f"picture {number}", status="completed", content=(content,))


def between(log: Sequence[ev.ThoughtEvent], *others: ev.ThoughtEvent) -> list[ev.ThoughtEvent]:
    """A log with others in it, the same number of events from each other."""
    step = max(len(log) // len(others), 1)
    parts = [log[place * step : (place + 1) * step] for place in range(len(others))]
    told = [each for other, part in zip(others, parts, strict=True) for each in (*part, other)]
    return [*told, *log[len(others) * step :]]


def without_pictures(items: Items) -> dict[str, Any]:
    return {id_: item for id_, item in items.now().items() if not id_.endswith(".p")}


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 40), marks=pytest.mark.long)])
async def test_what_has_left_memory_is_made_again_and_all_of_it_is_the_same(seeds: range) -> None:
    for seed in seeds:
        log = tale(seed, 60)
        small = await told(*between(log, *(picture(number, "AAAA") for number in range(12))))
        async with kept(between(log, *map(picture, range(12)))) as client:
            whole = await items_of(client, "kept")
            assert without_pictures(whole) == without_pictures(small)
            assert str(whole.now()).count(BIG) == 12
            assert (await items_of(client, "kept", after=whole.last_id)).seen == []


@pytest.mark.virtual_time
async def test_those_who_follow_get_the_same_as_those_who_lack_what_has_left_memory() -> None:
    block = s.ImageContent(data=BIG, mime_type="image/png")

    async def shows(turn: Turn) -> None:
        for number in range(14):
            turn.say(f"- item {number}, which is *long*\n")
            content = (s.Content(content=block),)
            turn.update(s.ToolCallStart(tool_call_id=str(number), title="Look", content=content))
            turn.update(s.ToolCallProgress(tool_call_id=str(number), status="completed"))
            await anyio.sleep(1)

    async with browser(shows) as (client, stage):
        run = await stage.start(caller="")
        seen: list[Items] = []

        async def watch() -> None:
            seen.append(await items_of(client, run.id))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            first = await followed(client, run.id, until="item 1")
            await followed(client, run.id, until="item 10")
            for _ in range(3):
                tasks.start_soon(watch)
            back = await items_of(client, run.id, after=first.last_id)
            assert {**first.now(), **back.now()} == (await items_of(client, run.id)).now()
        assert len(seen) == 4
        assert all(items.now() == seen[0].now() for items in seen)
        assert len(seen[0].inside("timeline")) == 30  # with what was asked


@pytest.mark.long
async def test_memory_holds_a_bounded_part_of_the_items_of_a_long_run() -> None:
    async with kept([picture(number) for number in range(40)]) as client:
        assert len((await items_of(client, "kept")).inside("timeline")) == 41
        gc.collect()
        (store,) = [each for each in gc.get_objects() if type(each).__name__ == "ItemStore"]
        _, held = store.after(0, math.inf)
        assert 0 < sum(len(msgspec.json.encode(each)) for each in held) < 9 * len(BIG)
