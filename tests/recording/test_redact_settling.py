"""What is held back in case that a secret goes on is written when nothing goes on, as far as that is safe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from limits.virtual import Backend, virtual_backend
from recording.parts import Holder, holder_of, redactor_of
from scripted import Turn, scripted

from thinkwell import replay

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2-correct"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Backend:
    return virtual_backend(request.param)


def holder() -> Holder[int]:
    return holder_of(redactor_of({"DB_PASSWORD": SECRET}))


def fed(held: Holder[int], *pieces: str) -> str:
    """Feed pieces of one text and return what comes out."""
    return "".join(
        out.text or "" for number, piece in enumerate(pieces) for out in held.add(number, "s", piece)
    )


@pytest.mark.parametrize("end", ["see", "Done.", "it", "h", "abcdefgh1", "v1.2.3", "x" * 5000, "", "sk"])
def test_a_plain_word_is_written(end: str) -> None:
    held = holder()
    assert fed(held, "Let me ", end) == "Let me "
    assert "".join(out.text or "" for out in held.settle()) == end
    assert not held.holds


@pytest.mark.parametrize(
    "end", ["hunt", "x=hunter2", "password: ab", "ghp_16C7e42F", "https://joe:sesame", "eyJhbGciOiJI"]
)
def test_what_may_become_a_secret_is_not(end: str) -> None:
    held = holder()
    fed(held, "Let me ", end)
    assert held.settle() == []
    assert held.holds


def test_what_was_written_is_context() -> None:
    held = holder()
    assert fed(held, "the ", "pass") == "the "
    assert held.settle()[0].text == "pass"
    assert held.settle() == []
    rest = fed(held, "word: sesame99", " and on ", "it goes") + "".join(
        out.text or "" for out in held.flush()
    )
    assert "sesame" not in rest
    assert rest.endswith(" and on it goes")


def test_settling_twice_and_other_records() -> None:
    held = holder()
    fed(held, "see")
    assert held.add(9) == []
    assert [out.record for out in held.settle()] == [0, 9]
    assert fed(held, "ing is ") == "ing is "


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
