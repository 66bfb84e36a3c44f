"""More of everything than anybody needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from web_stage import ADA, PATIENCE, Client, end_of, served, watched

from thinkwell import events as ev
from thinkwell.web import web_app

if TYPE_CHECKING:
    from scripted import Turn


@pytest.mark.long
@pytest.mark.parametrize("words", [4_000, pytest.param(20_000, marks=pytest.mark.long)])
async def test_a_long_run_is_looked_at_again_and_again(words: int) -> None:
    go = anyio.Event()

    async def talk(turn: Turn) -> None:
        for number in range(words):
            turn.say(f"word {number} ")
            turn.think(f"thought {number} ")
            if not number % 50:
                await anyio.lowlevel.checkpoint()
        await go.wait()

    async with served(talk) as stage:
        run, states = await stage.start(), list[int]()
        async with stage.server.watch(run.id, caller=ADA) as watcher:
            while watcher.seq < 2 * words:
                assert await watcher.next() is not None
                if len(states) < watcher.seq // 1000:
                    states.append((await stage.server.state(run.id, caller=ADA)).seq)
        assert states == sorted(states)
        state = await stage.server.state(run.id, caller=ADA)
        assert state.view.text.endswith(f"word {words - 1} ")
        go.set()
        await watched(stage.server, run.id)
        assert (await stage.server.state(run.id, caller=ADA)).view.text == state.view.text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("meta", '{"x": [' + "1, " * 40_000 + "1]}"),
        ("output", '{"description": "' + "x" * 50_000 + '"}'),
    ],
    ids=["meta", "output"],
)
async def test_what_is_kept_of_a_request_has_a_size(name: str, value: str) -> None:
    async def hello(turn: Turn) -> None:
        turn.say("Hello.")

    async with served(hello) as stage:
        client = Client(web_app(stage.server))
        content = f'{{"prompt": "Go.", "{name}": {value}}}'.encode()
        answered = await client.ask("POST", "/api/runs", content=content)
        assert answered.status == 422
        most = "65,536" if name == "meta" else "50,000"
        message = (await answered.json())["error"]["message"]
        assert message == f"{name}: it is too long; give at most {most} bytes"
        assert (await (await client.get("/api/runs")).json())["runs"] == []


@pytest.mark.long
async def test_a_long_result_is_kept_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "sk-1234567890abcdef")
    lines = [{"name": f"line {number}", "length": number} for number in range(10_000)]

    async def count(turn: Turn) -> None:
        await turn.returns(lines=lines, note="It was sk-1234567890abcdef.")

    schema = {"type": "object", "properties": {"lines": {"type": "array"}, "note": {"type": "string"}}}
    async with served(count) as stage:
        run = await stage.start(output=schema)
        log = await watched(stage.server, run.id)
    assert [entry.seq for entry in log] == list(range(1, len(log) + 1))
    (attempt,) = [entry for entry in log if isinstance(entry, ev.ResultAttempt)]
    end = end_of(log)
    assert attempt.value == end.result == {"lines": lines, "note": "It was [redacted:SERVICE_API_KEY]."}


async def test_tools_that_block_all_threads_hold_no_log_up() -> None:
    lines = ["a line"] * 40_000

    async def count(turn: Turn) -> None:
        await turn.returns(lines=lines)

    threads, tools = anyio.to_thread.current_default_thread_limiter(), list[object]()
    while threads.available_tokens:
        tools.append(object())
        threads.acquire_on_behalf_of_nowait(tools[-1])
    try:
        with anyio.fail_after(PATIENCE):
            async with served(count) as stage:
                run = await stage.start(output={"type": "object"})
                end = end_of(await watched(stage.server, run.id))
                assert end.result == {"lines": lines}
                state = await stage.server.state(run.id, caller=ADA)
                assert state.view.phase == "completed"
    finally:
        for tool in tools:
            threads.release_on_behalf_of(tool)
