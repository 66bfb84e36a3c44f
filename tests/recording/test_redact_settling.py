"""What is held back in case that a secret goes on is written when nothing goes on, as far as that is safe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from limits.virtual import Backend, virtual_backend
from scripted import Turn, scripted

from thinkwell import replay

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2-correct"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Backend:
    return virtual_backend(request.param)


async def test_a_run_that_hangs_has_its_last_words_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"

    async def hang(turn: Turn) -> None:
        turn.say("Let me ")
        turn.say("see")
        await anyio.sleep(100)
        turn.say("ing.")

    async with scripted(hang, record=path) as agent:
        stream = agent.think().text("x").stream()
        await anyio.sleep(0.3)
        assert path.read_text().count('"see"') == 0
        await anyio.sleep(0.5)
        written = path.read_text()
        assert written.count('"see"') == 2, "on the wire, and as an event"
        assert await stream.result == "Let me seeing."


async def test_nothing_waits_for_long_while_others_speak(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"

    async def drip(turn: Turn) -> None:
        for _ in range(20):
            turn.say("x")
            await anyio.sleep(0.3)

    async with scripted(drip, record=path) as agent:
        stream: Any = agent.think().text("x").stream()
        await anyio.sleep(5)
        assert path.read_text().count("agent_message_chunk") >= 13
        await stream.result
    assert path.read_text().count("agent_message_chunk") == 20


@pytest.mark.parametrize("pause", [0.1, 0.6])
async def test_a_secret_in_drips_is_not_written(
    tmp_path: Path, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", SECRET)
    path = tmp_path / "r.ndjson"

    async def drip(turn: Turn) -> None:
        for letter in f"It is {SECRET}, yes.":
            turn.say(letter)
            await anyio.sleep(pause)

    async with scripted(drip, record=path) as agent:
        await agent.think().text("x").run()
    said = await replay(path, speed=0).result
    assert said.endswith(", yes.")
    for begin in range(len(SECRET) - 5):
        assert SECRET[begin : begin + 6] not in said
