"""``run(key=…, store=…)``: a task whose result is there does not run again."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from scripted import Turn, scripted

from thinkwell import JsonSchema, ResultRefused, ResultStoreError, Retry

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Review:
    result: int
    """Named as the key under which agents put other results."""


async def review(turn: Turn) -> None:
    await turn.returns(result=7)


async def says(turn: Turn) -> None:
    turn.say(f"said {turn.text}")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "jobs.sqlite"


@pytest.mark.parametrize(
    ("output", "script", "result"),
    [
        (Review, review, Review(7)),
        (int, review, 7),
        (str, says, "said Go"),
        (JsonSchema({"type": "integer"}), review, 7),
    ],
)
async def test_a_result_is_kept(output: Any, script: Any, result: Any, store: Path) -> None:
    async with scripted(script) as agent, agent.session() as session:
        for key, starts in (("alone", agent.think), ("in a session", session.think)):
            assert await starts(output).text("Go").run(key=key, store=store, retry=Retry()) == result
    async with scripted() as agent:  # it would play no turn
        for key in ("alone", "in a session"):
            assert await agent.think(output).text("Go").run(key=key, store=str(store)) == result


async def test_the_first_of_several_results_counts(store: Path) -> None:
    both = anyio.Event()
    begun: list[str] = []

    async def meets(turn: Turn) -> None:
        begun.append(turn.text)
        if len(begun) == 2:
            both.set()
        await both.wait()
        turn.say(turn.text)

    results: list[str] = []

    async def run(text: str) -> None:
        results.append(await agent.think().text(text).run(key="job", store=store))

    async with scripted(meets) as agent:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, "one")
            tasks.start_soon(run, "two")
        assert results[0] == results[1]


async def test_a_failure_is_not_kept(store: Path) -> None:
    async def refuses(turn: Turn) -> str | None:
        turn.say("No")
        return "refusal" if turn.text == "Go" else None

    async with scripted(refuses) as agent:
        with pytest.raises(ResultRefused):
            await agent.think().text("Go").run(key="job", store=store)
        assert await agent.think().text("Go on").run(key="job", store=store) == "No"


async def test_a_result_of_another_type(store: Path) -> None:
    async with scripted(says) as agent:
        await agent.think().text("Go").run(key="job", store=store)
        with pytest.raises(ResultStoreError, match="'job' does not fit: it is not a int; use another key"):
            await agent.think(int).text("Go").run(key="job", store=store)
    async with scripted(review) as agent:
        await agent.think(int).text("Go").run(key="typed", store=store)
        with pytest.raises(ResultStoreError, match="does not fit: the value: Input should be a valid array"):
            await agent.think(list[int]).text("Go").run(key="typed", store=store)
    with sqlite3.connect(store) as file:
        file.execute("UPDATE results SET result = X'7B'")
    file.close()
    async with scripted(says) as agent:
        with pytest.raises(ResultStoreError, match="cannot be read"):
            await agent.think().text("Go").run(key="job", store=store)


async def test_a_result_that_cannot_be_kept_is_not_lost(store: Path) -> None:
    async with scripted(says) as agent:
        await agent.think().text("Go").run(key="first", store=store)
        with sqlite3.connect(store) as file:
            file.execute(
                "CREATE TRIGGER full BEFORE INSERT ON results BEGIN SELECT RAISE(ABORT, 'full'); END"
            )
        file.close()
        with pytest.raises(ResultStoreError, match=r"cannot be used \(full\)") as caught:
            await agent.think().text("Go").run(key="job", store=store)
    assert caught.value.result == "said Go"


async def test_many_may_make_the_file_at_once(store: Path) -> None:
    async with scripted(says) as agent, anyio.create_task_group() as tasks:
        for number in range(20):
            run = partial(agent.think().text("Go").run, key=str(number), store=store)
            tasks.start_soon(run)
    with sqlite3.connect(store) as file:
        assert file.execute("SELECT count(*) FROM results").fetchone() == (20,)
    file.close()


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("CREATE TABLE notes (text)", "another program's database"),
        ("PRAGMA application_id = 7", "another program's database"),
        ("PRAGMA application_id = 1953983346; PRAGMA user_version = 2", "a newer version of thinkwell"),
    ],
)
async def test_a_file_that_is_not_ours(statement: str, reason: str, store: Path) -> None:
    with sqlite3.connect(store) as file:
        file.executescript(statement)
    file.close()
    async with scripted(says) as agent:
        with pytest.raises(ResultStoreError, match=reason) as caught:
            await agent.think().text("Go").run(key="job", store=store)
    assert (caught.value.path, caught.value.key) == (str(store), "job")


async def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("This is a long text, and not a database at all.\n" * 40)
    async with scripted(says) as agent:
        for name in ("nowhere/jobs.sqlite", "text"):
            with pytest.raises(ResultStoreError, match="cannot be used"):
                await agent.think().text("Go").run(key="job", store=tmp_path / name)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"key": "job"}, "give both"),
        ({"store": "jobs.sqlite"}, "give both"),
        ({"key": "", "store": "jobs.sqlite"}, "the key is empty"),
        ({"key": 17, "store": "jobs.sqlite"}, "give a str"),
    ],
)
async def test_wrong_keys(options: Any, error: str) -> None:
    async with scripted(says) as agent:
        with pytest.raises((TypeError, ValueError), match=error):
            await agent.think().text("Go").run(**options)
