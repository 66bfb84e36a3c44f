"""A server of runs that is about to close."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from web_stage import ADA, served, started, watched

from thinkwell.web import RunEnded, ServerUnavailable

if TYPE_CHECKING:
    from scripted import Turn

LIMIT = 10


async def wait(turn: Turn) -> None:
    turn.say("Hello")
    await anyio.sleep_forever()


async def test_it_starts_no_more_runs_and_keeps_nobody_who_watches() -> None:
    async with served(wait) as stage:
        run = await stage.start()
        with anyio.fail_after(LIMIT):
            async with stage.server.watch(run.id, caller=ADA) as watcher:
                assert await watcher.next() is not None
                stage.server.begin_leaving()
                while await watcher.next() is not None:
                    pass
            assert await watched(stage.server, run.id) == [], "nor those who come later"
            with pytest.raises(ServerUnavailable, match="the server is closing"):
                await started(stage.server)
            assert (await stage.server.get(run.id, caller=ADA)).status == "running", "until it is left"


async def test_it_can_be_opened_again() -> None:
    async with served() as stage:
        stage.server.begin_leaving()
    async with stage.server as server:
        assert isinstance((await watched(server, (await started(server)).id))[-1], RunEnded)
