"""More of everything than anybody needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from web_stage import ADA, Client, served, watched

from thinkwell.web import web_app

if TYPE_CHECKING:
    from scripted import Turn

WORDS = 20_000


async def test_a_long_run_is_looked_at_again_and_again() -> None:
    go = anyio.Event()

    async def talk(turn: Turn) -> None:
        for number in range(WORDS):
            turn.say(f"word {number} ")
            turn.think(f"thought {number} ")
            if not number % 50:
                await anyio.lowlevel.checkpoint()
        await go.wait()

    async with served(talk) as stage:
        run, states = await stage.start(), list[int]()
        async with stage.server.watch(run.id, caller=ADA) as watcher:
            while watcher.seq < 2 * WORDS:
                assert await watcher.next() is not None
                if len(states) < watcher.seq // 1000:
                    states.append((await stage.server.state(run.id, caller=ADA)).seq)
        assert states == sorted(states)
        state = await stage.server.state(run.id, caller=ADA)
        assert state.view.text.endswith(f"word {WORDS - 1} ")
        go.set()
        await watched(stage.server, run.id)
        assert (await stage.server.state(run.id, caller=ADA)).view.text == state.view.text


@pytest.mark.parametrize(
    ("name", "value"), [("meta", {"x": [1] * 40_000}), ("output", {"description": "x" * 300_000})]
)
async def test_what_is_kept_of_a_request_has_a_size(name: str, value: object) -> None:
    async def hello(turn: Turn) -> None:
        turn.say("Hello.")

    async with served(hello) as stage:
        client = Client(web_app(stage.server))
        answered = await client.post("/api/runs", {"prompt": "Go.", name: value})
        assert answered.status == 422
        assert f"{name}: it has" in (await answered.json())["error"]["message"]
        assert (await (await client.get("/api/runs")).json())["runs"] == []
