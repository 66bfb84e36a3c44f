"""What a program is given to do, line by line."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from lines.program import played
from pydantic import BaseModel

from thinkwell import CapabilityMissing
from thinkwell.skills import Skill

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from thinkwell import Agent, ThinkBuilder

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n and so on"


class Count(BaseModel):
    files: int


async def line_of(prompt: Callable[[Agent], ThinkBuilder[Any]], **options: Any) -> str:
    """Return the line that a program gets for a prompt, which is made of an agent."""
    async with played(**options) as (agent, program):
        stream = prompt(agent).stream()
        line = await program.hear()
        await program.say("result", text="{}", files=1)
        await stream.wait()
    return line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain", "plain"),
        ("one\ntwo", r"one\ntwo"),
        ("one\r\ntwo\rthree\n", r"one\r\ntwo\rthree\n"),
        ("\na", r"\na"),
        (r"a \n that is none, C:\new", r"a \n that is none, C:\new"),
        ("tab\there, \u2028 and \u0085, \U0001f600 \x00", "tab\there, \u2028 and \u0085, \U0001f600 \x00"),
        ('{"type":"init"}', '{"type":"init"}'),
    ],
)
async def test_a_text_is_one_line(text: str, line: str) -> None:
    assert await line_of(lambda agent: agent.think().text(text)) == line


async def test_no_word_of_ours_is_added_to_a_text() -> None:
    assert await line_of(lambda agent: agent.think(Count).text("How many?")) == "How many?"


async def test_files_and_links_in_a_text(tmp_path: Path) -> None:
    file, empty = tmp_path / "a.txt", tmp_path / "empty"
    file.write_text("a\nb", "utf-8")
    empty.write_text("", "utf-8")

    def prompt(agent: Agent) -> ThinkBuilder[Any]:
        task = agent.think().resource(file).text("and").resource("https://e.org/x").text(" then\n")
        return task.resource(file).resource(empty).text("end").resource(file)

    assert await line_of(prompt) == r"a\nb\nandhttps://e.org/x then\na\nb\nend\na\nb"


async def test_images_have_no_place_in_a_text() -> None:
    async with played() as (agent, _):
        with pytest.raises(CapabilityMissing):
            agent.think().image(PNG)


async def test_what_a_line_of_text_has_no_room_for_is_refused() -> None:
    async with played() as (agent, _), agent.session() as session:
        for task in (agent.think().text("Go"), session.think().text("Go")):
            with pytest.raises(CapabilityMissing, match=r'needed for meta\(\): .* prompt_format="json"'):
                task.meta({"trace": "7"}).stream()


async def test_skills_are_refused_by_their_name() -> None:
    skill = Skill(name="tidy", description="Tidies up.", body="Tidy up.")
    async with played() as (agent, _), agent.session() as session:
        for task in (agent.think().text("Go"), session.think().text("Go")):
            with pytest.raises(CapabilityMissing, match=r"needed for skill\(\)"):
                task.skill(skill).stream()


# As an object


async def object_of(prompt: Callable[[Agent], ThinkBuilder[Any]]) -> dict[str, Any]:
    line = await line_of(prompt, prompt_format="json")
    heard: dict[str, Any] = json.loads(line)
    assert line == json.dumps(heard, separators=(",", ":"), ensure_ascii=False)
    assert list(heard) == ["prompt", "context"]
    return heard


async def test_a_text_as_an_object() -> None:
    heard = await object_of(lambda agent: agent.think().text("one\ntwo \u00e4"))
    assert heard == {"prompt": "one\ntwo \u00e4", "context": None}


async def test_what_goes_along_is_in_the_context(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("a\nb", "utf-8")

    def prompt(agent: Agent) -> ThinkBuilder[Any]:
        task = agent.think(Count).text("Read ").resource(file).text(" and ").resource("https://e.org/x")
        return task.image(PNG).text(".").meta({"trace": "7"})

    assert await object_of(prompt) == {
        "prompt": f"Read {file.as_uri()} and https://e.org/x.",
        "context": {
            "schema": Count.model_json_schema(),
            "resources": [
                {"uri": file.as_uri(), "text": "a\nb"},
                {"uri": "https://e.org/x", "name": "x"},
            ],
            "images": [{"mimeType": "image/png", "data": base64.b64encode(PNG).decode()}],
            "meta": {"trace": "7"},
        },
    }


async def test_a_long_prompt_is_one_line() -> None:
    text = "all work and no play\n" * 200_000
    assert await line_of(lambda agent: agent.think().text(text)) == text.replace("\n", r"\n")
