"""Events as lines of JSON."""

from __future__ import annotations

import json
from io import StringIO
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from progress.golden import NAMES, check, events, every_recording, recording
from progress.scenes import Report
from progress.stage import Json

from thinkwell import AgentExited, ThoughtStream, event_from_json, replay

if TYPE_CHECKING:
    from pathlib import Path


def read(text: str) -> list[dict[str, Any]]:
    assert text.endswith("\n")
    return [json.loads(each) for each in text.removesuffix("\n").split("\n")]


async def written(stream: ThoughtStream[Any], run: str | None = None) -> str:
    out = StringIO()
    await Json(out).follow(stream, run)
    return out.getvalue()


@every_recording
async def test_golden(name: str) -> None:
    check(name, "json", None, await written(replay(recording(name), speed=0, include="all")), suffix="ndjson")


@every_recording
async def test_the_events_are_the_same_and_the_end_is_last(name: str) -> None:
    lines = (await written(replay(recording(name), speed=0, include="all"))).splitlines()

    assert [event_from_json(each) for each in lines[:-1]] == list(events(name))
    assert json.loads(lines[-1])["type"] in ("result", "error")


@every_recording
async def test_nothing_controls_a_terminal(name: str) -> None:
    text = await written(replay(recording(name), speed=0, include="all"))

    assert not [char for char in text.replace("\n", "") if not char.isprintable() and char != "\ue000"]


async def test_the_result_of_a_type() -> None:
    last = read(await written(replay(recording("rich"), Report, speed=0)))[-1]

    assert last["type"] == "result"
    assert (
        last["value"]
        == Report(
            summary="Search uses an index now.",
            files=["shop/migrations/0007.py", "shop/models.py"],
            tests_passed=24,
        ).model_dump()
    )


async def test_an_error_says_what_to_do() -> None:
    last = read(await written(replay(recording("missing"), speed=0)))[-1]

    assert last["error"]["type"] == "ResultMissing"
    assert "without a result" in last["error"]["message"]
    assert last["error"]["next"] == "allow what it needs by permissions=; it was denied 2 things"
    assert last["error"]["detail"].startswith("It said: I could not")


def test_an_error_without_more() -> None:
    out = StringIO()
    Json(out).error(AgentExited(1))
    assert read(out.getvalue()) == [
        {
            "type": "error",
            "error": {
                "type": "AgentExited",
                "message": "The agent exited with code 1 before it had finished",
                "next": "open it again to go on",
            },
        }
    ]


async def test_several_runs() -> None:
    out = StringIO()
    lines = Json(out)
    async with anyio.create_task_group() as tasks:
        for name in NAMES:
            tasks.start_soon(lines.follow, replay(recording(name), speed=0), f"the {name} “run”")

    found = read(out.getvalue())
    assert {each["run"] for each in found} == {f"the {name} “run”" for name in NAMES}
    assert all(next(iter(each)) == "run" for each in found)
    assert sum(each["type"] in ("result", "error") for each in found) == len(NAMES)


def test_values_that_json_has_not() -> None:
    out = StringIO()
    Json(out).result({"bytes": b"\xff", "number": float("nan"), "other": object, "text": "\x9b\u202e"})
    value = read(out.getvalue())[0]["value"]
    assert value == {"bytes": "_w==", "number": None, "other": "<class 'object'>", "text": "\x9b\u202e"}
    assert "\x9b" not in out.getvalue()


async def test_without_a_reader(tmp_path: Path) -> None:
    class Broken(StringIO):
        def write(self, _text: str, /) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        await Json(Broken()).follow(replay(recording("died"), speed=0))
    assert not list(tmp_path.iterdir())
