"""The typed result while the agent writes it."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import anyio
import pytest
from annotated_types import MinLen
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, RootModel, field_validator, model_validator
from stream.wire_agent import end_turn, say, update, wire_agent
from sync.playing import playing
from typing_extensions import TypedDict

from thinkwell import AgentExited, Draft, JsonSchema, ResultInvalid, ThoughtCancelled, ThoughtStream, replay
from thinkwell import sync as blocking
from thinkwell.testing import Script, ScriptedAgent, script
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from thinkwell.events import Include
    from thinkwell.testing import ScriptedTurn

pytestmark = pytest.mark.virtual_time

TITLE = "mcp__thinkwell0123456789ab__return_result"


class Finding(BaseModel):
    line: int
    note: str = "none"


class Review(BaseModel):
    title: str
    score: int
    findings: list[Finding] = []
    verdict: str = "good"


REVIEW: dict[str, Any] = {"title": "Fine", "score": 12, "findings": [{"line": 1}, {"line": 23, "note": "b"}]}


def show(turn: ScriptedTurn, given: object, id_: str = "c", **fields: Any) -> None:
    turn.update(s.ToolCallProgress(tool_call_id=id_, title=TITLE, raw_input=given, **fields))


class Shows:
    """A turn in which the agent shows arguments one after the other, and returns the last ones."""

    def __init__(self, *shown: object, returns: dict[str, Any] | None = None) -> None:
        self._shown = shown
        self._returned = returns

    async def __call__(self, turn: ScriptedTurn) -> None:
        for given in self._shown:
            show(turn, given)
            await anyio.sleep(1)
        if self._returned is not None:
            await turn.call("return_result", self._returned)


class Drafted(NamedTuple):
    of: str | None
    drafts: list[Draft[Any]]


async def drafted(type_: Any, played: Script | Callable[[ScriptedTurn], Awaitable[None]]) -> Drafted:
    """Return what the drafts of a run are of, and the drafts."""
    async with ScriptedAgent(played if isinstance(played, Script) else script.does(played)).open() as agent:
        stream: ThoughtStream[Any] = agent.think(type_).text("Review").stream()
        return Drafted(stream.view.drafts, [draft async for draft in stream.drafts()])


async def drafts_of(type_: Any, *shown: object, returns: dict[str, Any]) -> list[Draft[Any]]:
    return (await drafted(type_, Shows(*shown, returns=returns))).drafts


def told(drafts: Sequence[Draft[Any]]) -> list[tuple[Any, set[str], int]]:
    assert [draft.final for draft in drafts] == [False] * (len(drafts) - 1) + [True]
    return [(draft.value, {*draft.whole}, draft.attempt) for draft in drafts]


async def test_a_model_grows_field_by_field() -> None:
    async with ScriptedAgent(script.returns(REVIEW, streamed=True)).open() as agent:
        stream = agent.think(Review).text("Review").stream()
        assert stream.view.drafts == "fields"
        drafts = [draft async for draft in stream.drafts()]
        assert drafts[-1].value == dict(await stream.result)
    seen = [draft.value for draft in drafts]
    assert any("Fine".startswith(str(value["title"])) and value["title"] != "Fine" for value in seen)
    assert {"title": "Fine", "score": 12, "findings": [Finding(line=1)]} in seen
    assert all("verdict" not in value for value in seen[:-1])  # its default is no draft
    assert all("score" not in draft.value or "score" in draft.whole for draft in drafts)
    assert {draft.attempt for draft in drafts} == {1}
    assert drafts[-1].final
    assert [draft.final for draft in drafts].count(True) == 1


async def test_what_may_go_on_is_not_whole() -> None:
    drafts = await drafts_of(
        Review,
        {},
        {"title": "Fi"},
        {"title": "Fine", "score": 1},
        {"title": "Fine", "score": 12, "findings": [{"line": 1}, {"line": 2}]},
        returns=REVIEW,
    )
    first = [Finding(line=1)]
    assert told(drafts)[:-1] == [
        ({"title": "Fi"}, set(), 1),
        ({"title": "Fine"}, {"title"}, 1),
        ({"title": "Fine", "score": 12, "findings": first}, {"title", "score"}, 1),
    ]


class Texts(TypedDict):
    plain: str
    note: str | None


async def test_a_typed_dict_is_a_dict_of_what_is_there() -> None:
    shown = ({"plain": "a"}, {"plain": "ab", "note": "c"}, {"plain": "ab", "note": None})
    drafts = await drafts_of(Texts, *shown, returns={"plain": "ab", "note": None})
    assert told(drafts) == [
        ({"plain": "a"}, set(), 1),
        ({"plain": "ab", "note": "c"}, {"plain"}, 1),
        ({"plain": "ab"}, {"plain"}, 2),  # the text is taken back, and that is said
        ({"plain": "ab", "note": None}, {"plain", "note"}, 2),
    ]


@dataclass
class Point:
    x: int = 7
    y: int = 8
    names: list[str] = field(default_factory=list[str])


async def test_a_dataclass_shows_no_default() -> None:
    drafts = await drafts_of(Point, {"x": 1, "y": 2}, returns={"x": 1, "y": 2})
    assert told(drafts) == [({"x": 1}, {"x"}, 1), ({"x": 1, "y": 2, "names": []}, {"x", "y", "names"}, 1)]


async def test_a_list_has_its_finished_items() -> None:
    findings = [{"line": 1}, {"line": 2, "note": "b"}]
    of, drafts = await drafted(list[Finding], script.returns(findings, streamed=True))
    assert of == "items"
    assert told(drafts) == [
        ([Finding(line=1)], set(), 1),
        ([Finding(line=1), Finding(line=2, note="b")], set(), 1),
    ]


async def test_numbers_are_whole_when_the_next_begins() -> None:
    shown = [{"result": numbers} for numbers in ([], [1], [1, 2], [1, 23], [1, 23, 4])]
    drafts = await drafts_of(list[int], *shown, returns={"result": [1, 23, 456]})
    assert told(drafts) == [([1], set(), 1), ([1, 23], set(), 1), ([1, 23, 456], set(), 1)]


@pytest.mark.parametrize("include", ["default", {"plan"}])
async def test_text_is_there_so_far(include: Include) -> None:
    told_ = script.says("I look. ", message_id="a").says("Two ", message_id="b").says("bugs.", message_id="b")
    async with ScriptedAgent(told_).open() as agent:
        stream = agent.think().text("Review").stream(include=include)
        assert stream.view.drafts == "text"
        drafts = [draft async for draft in stream.drafts()]
    assert told(drafts)[-1] == ("Two bugs.", set(), drafts[-1].attempt)
    # The result is the last message: one before it is taken back.
    assert {draft.attempt for draft in drafts if draft.value.startswith("Two")} == {drafts[-1].attempt}
    assert all(draft.attempt == 1 for draft in drafts if draft.value.startswith("I"))


async def test_a_refused_result_is_taken_back_at_once() -> None:
    wrong = {"title": "Bad", "score": "many", "verdict": "x"}
    told_ = script.returns(wrong, streamed=True, expect_error=True).returns(REVIEW, streamed=True)
    _, drafts = await drafted(Review, told_)
    before = [draft.value for draft in drafts if draft.attempt == 1]
    assert {"title": "Bad"} in before
    assert all("score" not in value for value in before)  # it is no number
    again = [draft.value for draft in drafts if draft.attempt == 2]
    assert again[0] == {}
    assert drafts[-1].value["title"] == "Fine"
    assert {draft.attempt for draft in drafts} == {1, 2}


class Checked(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)
    name: str
    places: Annotated[list[int], MinLen(3)]
    kind: Literal["a", "ab"] = Field(default="a", alias="Kind")
    upper: Annotated[str, AfterValidator(str.upper)] = ""
    odd: int = 1

    @field_validator("odd")
    @classmethod
    def _is_odd(cls, value: int) -> int:
        if value == 0:
            raise ZeroDivisionError
        if not value % 2:
            raise ValueError("not odd")
        return value


CHECKED = {"name": "x", "places": [1, 2, 3], "Kind": "ab", "upper": "u", "odd": 3}


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"name": " x "}, None),  # the end of it may be stripped
        ({"name": " x ", "places": [1, 2]}, {"name": "x", "places": [1]}),  # though there must be three
        ({"name": "x", "places": [1, "?", 2]}, {"name": "x", "places": [1]}),
        ({"name": "x", "places": ["?", 2]}, {"name": "x", "places": []}),
        ({"name": "x", "places": [1]}, {"name": "x", "places": []}),
        ({"name": "x", "places": {}}, {"name": "x"}),
        ({"name": "x", "places": [1], "Kind": "a"}, {"name": "x"}),  # too few, and a kind that may go on
        ({"name": "x", "Kind": "a", "upper": "b"}, {"name": "x", "kind": "a"}),
        ({"name": "x", "odd": 3, "stranger": 1}, {"name": "x", "odd": 3}),
        ({"name": "x", "odd": 2, "stranger": 1}, {"name": "x"}),
        ({"name": "x", "odd": 0, "stranger": 1}, None),  # its check fails in a way that tells of no field
        ({"name": 1, "places": []}, {"places": []}),
        ({"name": 1}, None),
        ([1], None),
    ],
)
async def test_what_is_not_sure_to_stay_is_not_shown(given: object, value: object) -> None:
    drafts = await drafts_of(Checked, given, returns=CHECKED)
    assert [draft.value for draft in drafts[:-1]] == ([] if value is None else [value])


class Node(BaseModel):
    name: str
    children: list[Node] = []


async def test_a_type_that_contains_itself() -> None:
    given = {"name": "a", "children": [{"name": "b"}, {}]}
    drafts = await drafts_of(Node, {"result": given}, returns={"result": {"name": "a"}})
    assert drafts[0].value == {"name": "a", "children": [Node(name="b")]}
    nodes = await drafts_of(list[Node], {"result": [{"name": "b"}, {}]}, returns={"result": []})
    assert told(nodes) == [([Node(name="b")], set(), 1), ([], set(), 2)]


class Renamed(BaseModel):
    title: str

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, data: dict[str, str]) -> dict[str, str]:
        return {"title": data.get("name") or data["title"]}


class Shouted(BaseModel):
    title: str
    score: int

    @model_validator(mode="after")
    def _shout(self) -> Shouted:
        self.title = self.title.upper()
        return self


class Names(RootModel[dict[str, int]]):
    pass


async def test_a_validator_that_changes_a_whole_model() -> None:
    first = await drafts_of(Renamed, {"title": "a", "x": 1}, returns={"name": "b"})
    assert told(first) == [({"title": "b"}, {"title"}, 1)]  # what runs before may move fields
    shown = {"title": "a", "score": 1}
    last = await drafts_of(Shouted, shown, returns=shown)
    assert told(last) == [({"title": "a"}, {"title"}, 1), ({"title": "A", "score": 1}, {"title", "score"}, 2)]


@pytest.mark.parametrize(
    ("type_", "given", "value"),
    [
        (int, {"result": 12}, 12),
        (dict[str, int], {"a": 1, "b": 2}, {"a": 1, "b": 2}),
        (tuple[int, str], {"result": [1, "a"]}, (1, "a")),
        (Names, {"a": 1}, {"root": {"a": 1}}),
        (JsonSchema({"type": "object", "properties": {"a": {}}}), {"a": 1}, {"a": 1}),
    ],
)
async def test_of_other_types_only_the_end_comes(type_: Any, given: dict[str, Any], value: object) -> None:
    of, drafts = await drafted(type_, Shows(given, returns=given))
    assert of == "end"
    assert [draft.value for draft in drafts] == [value]
    assert drafts[0].attempt == 1


@pytest.mark.parametrize("type_", [Review | Finding, Review | None, int | str])
async def test_a_union_is_refused_at_the_call(type_: Any) -> None:
    async with (
        ScriptedAgent(script.hangs(), complete=False).open() as agent,
        agent.think(type_).text("Go").stream() as stream,
    ):
        with pytest.raises(TypeError, match=r"which type of .* a result is before it is whole"):
            stream.drafts()
        stream.cancel()


async def test_a_session_of_changing_types_has_only_the_end() -> None:
    told_ = script.does(Shows({"result": REVIEW}, returns={"result": REVIEW})).stops()
    fixed = script.returns(REVIEW, streamed=True)
    async with ScriptedAgent(told_ + fixed).open() as agent:
        async with agent.session() as session:
            stream = session.think(Review).text("Go").stream()
            assert stream.view.drafts == "end"
            assert [draft.value["title"] async for draft in stream.drafts()] == ["Fine"]
        async with agent.session(output=Review) as session:
            stream = session.think(Review).text("Go").stream()
            assert stream.view.drafts == "fields"
            assert len([draft async for draft in stream.drafts()]) > 3


async def test_a_call_that_was_denied_is_taken_back() -> None:
    async def denied(turn: ScriptedTurn) -> None:
        await Shows({"title": "Fine", "score": 1})(turn)
        show(turn, None, status="failed")
        await anyio.sleep(1)
        turn.update(s.ToolCallStart(tool_call_id="c", title=TITLE, raw_input={"title": "F", "score": 1}))
        await turn.call("return_result", REVIEW)

    _, drafts = await drafted(Review, denied)
    assert [(draft.value, draft.attempt) for draft in drafts[:2]] == [({"title": "Fine"}, 1), ({}, 2)]


async def test_the_id_of_a_refused_call_may_be_used_again() -> None:
    async def twice(turn: ScriptedTurn) -> None:
        await Shows({"title": "Bad", "score": 1}, returns={})(turn)
        show(turn, {"title": "Bad", "score": 1}, status="failed")
        await anyio.sleep(1)
        turn.update(s.ToolCallStart(tool_call_id="c", title=TITLE))
        await Shows({"title": "Fi", "score": 1}, returns=REVIEW)(turn)

    _, drafts = await drafted(Review, twice)
    assert [(draft.value, draft.attempt) for draft in drafts[:3]] == [
        ({"title": "Bad"}, 1),
        ({}, 2),
        ({"title": "Fi"}, 2),
    ]
    assert drafts[-1].attempt == 3  # it returns another title than it has shown


async def test_a_number_that_is_cut_behind_its_point() -> None:
    shown = ({"title": "a", "score": 1}, {"title": "a"}, {"title": "a", "score": 1.5, "verdict": ""})
    drafts = await drafts_of(Review, *shown, returns=REVIEW | {"title": "a"})
    assert [(draft.value, {*draft.whole}, draft.attempt) for draft in drafts[:-1]] == [
        ({"title": "a"}, {"title"}, 1),
        ({"title": "a", "verdict": ""}, {"title"}, 1),
    ]
    numbers = await drafts_of(
        list[int], {"result": [1, 2, 3]}, {"result": [1, 2]}, returns={"result": [1, 2]}
    )
    assert told(numbers) == [([1, 2], set(), 1), ([1, 2], set(), 1)]


async def test_a_slow_reader_gets_the_newest() -> None:
    parts = [{"title": "x" * size} for size in range(1, 50)]
    async with ScriptedAgent(script.does(Shows(*parts, returns=REVIEW | parts[-1]))).open() as agent:
        stream = agent.think(Review).text("Go").stream()
        reader = stream.drafts()
        assert (await anext(reader)).value == {"title": "x"}
        await stream.wait()
        assert (await anext(reader)).final
        assert [draft.final async for draft in stream.drafts()] == [True]
        with pytest.raises(StopAsyncIteration):
            await anext(reader)


async def test_two_readers_and_one_that_is_cancelled() -> None:
    told_ = script.returns(REVIEW, streamed=True).pauses(0.01)
    async with ScriptedAgent(told_).open() as agent:
        stream = agent.think(Review).text("Go").stream()
        reader, other = stream.drafts(), stream.drafts()
        assert aiter(reader) is reader
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anext(reader)
        assert scope.cancelled_caught
        assert [draft async for draft in reader][-1] == [draft async for draft in other][-1]


async def test_the_error_of_the_run_is_raised() -> None:
    invalid = script.returns({"title": "?"}, expect_error=True)
    async with ScriptedAgent(invalid).open() as agent:
        stream = agent.think(Review).text("Go").stream(retries=0, reminders=0)
        reader = stream.drafts()
        with pytest.raises(ResultInvalid):
            await anext(reader)
        with pytest.raises(StopAsyncIteration):
            await anext(reader)
    with pytest.raises(ResultInvalid):  # after the end, too
        await anext(stream.drafts())


async def test_an_agent_that_is_killed_and_a_run_that_is_cancelled() -> None:
    async with ScriptedAgent(script.does(Shows({"title": "a"}, {})), complete=False).open() as agent:
        stream = agent.think(Review).text("Go").stream()
        reader = stream.drafts()
        assert (await anext(reader)).value == {"title": "a"}
        stream.cancel()
        with pytest.raises(ThoughtCancelled):
            await anext(reader)
    async with wire_agent() as (agent, wire):
        text = agent.think().text("Go").stream()
        await wire.begin()
        await wire.write(say("Half an ans"))
        words = text.drafts()
        assert (await anext(words)).value == "Half an ans"
        await wire.hang_up()
        with pytest.raises(AgentExited):
            await anext(words)


async def test_a_call_that_only_names_the_tool_takes_nothing_back() -> None:
    async def searches(turn: ScriptedTurn) -> None:
        await Shows({"title": "Fine", "score": 1})(turn)
        turn.update(s.ToolCallStart(tool_call_id="t", title="grep return_result", raw_input={"title": "x"}))
        await anyio.sleep(1)
        await Shows({"title": "Fine", "score": 12, "verdict": "g"}, returns=REVIEW | {"verdict": "g"})(turn)

    _, drafts = await drafted(Review, searches)
    assert {draft.attempt for draft in drafts} == {1}
    assert drafts[1].value == {"title": "Fine", "score": 12, "verdict": "g"}


async def test_another_tool_is_no_draft() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Go").stream()
        prompt = await wire.begin()
        await wire.write(update("tool_call", toolCallId="t", title="ls", rawInput={"title": "x"}))
        await wire.write(say("Done."), end_turn(prompt))
        assert [draft.value async for draft in stream.drafts()][-1] == "Done."


async def test_a_recording_has_the_same_drafts(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    agent = ScriptedAgent(script.returns(REVIEW, streamed=True))
    async with agent.open(record=path) as opened:
        stream = opened.think(Review).text("Go").stream()
        original = [draft async for draft in stream.drafts()]
    again = replay(path, Review, speed=1)
    assert again.view.drafts == "fields"
    drafts = [draft async for draft in again.drafts()]
    assert drafts[-1] == original[-1]
    assert replay(path, speed=0).view.drafts == "end"  # of no known type
    assert [draft.value async for draft in replay(path, speed=0).drafts()] == [REVIEW]


def test_the_blocking_api_gives_them(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"

    async def recorded() -> None:
        agent = ScriptedAgent(script.returns(REVIEW, streamed=True))
        async with agent.open(record=path) as opened:
            await opened.think(Review).text("Go").run()

    asyncio.run(recorded())
    stream = blocking.replay(path, Review)
    drafts = list(stream.drafts())
    assert told(drafts)[-1][0]["title"] == "Fine"
    assert list(stream.drafts())[-1] == drafts[-1]
    whole: list[bool] = ["title" in draft.value for draft in stream.drafts()]
    assert whole[-1]


@pytest.mark.usefixtures("warm_python")
def test_drafts_of_a_process_without_a_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with playing(script.returns(REVIEW, streamed=True)) as agent:
        stream = agent.think(Review).text("Go").stream()
        drafts = stream.drafts()
        while not next(drafts).final:
            pass
        assert stream.view.drafts == "fields"
        with pytest.raises(TypeError, match="union"):
            agent.think(Review | Finding).text("Go").stream().drafts()
    assert next(drafts, None) is None  # the agent is closed
    assert [draft.final for draft in stream.drafts()] == [True]
