"""How an agent uses the skills of its task, and what the prompt says of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from pydantic import BaseModel
from scripted import Played, Turn, scripted
from skills.folders import text, told, write_skill

from thinkwell import ThoughtCancelled, ToolContext, ToolError
from thinkwell.errors import SkillError
from thinkwell.skills import Skill
from thinkwell.tools import tool
from thinkwell_acp import RpcError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Place(BaseModel):
    city: str


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


async def weather(place: Place, context: ToolContext) -> dict[str, str]:
    """Say how it is."""
    if place.city == "Atlantis":
        raise ToolError("There is no weather station in Atlantis.")
    return {"city": place.city, "session": context.session_id}


def now() -> str:
    """Say the time."""
    return "noon"


SUMS = Skill("sums", "Adds numbers.\nUse it for sums.", "Call add.", tools=[add, weather, now])
PLAIN = Skill("plain", "Has a body only.", "Just do it.")


def call(name: str, arguments: object = None, skill: str = "sums") -> tuple[str, Mapping[str, object]]:
    return "call_skill_tool", {"skill": skill, "tool": name, "arguments": arguments}


# What is offered


async def test_the_prompt_names_the_skills_and_nothing_of_their_bodies(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "notes", body="Be brief.")
    async with scripted() as agent:
        plain = agent.think().text("Go").explain()
        task = agent.think(Place).text("Go").skill(SUMS).skill(folder).tool(add)
        explained = task.explain()
        (block,) = explained.prompt
        assert "- sums: Adds numbers. Use it for sums.\n- notes: Writes release notes.\n" in block["text"]
        assert "activate_skill" in block["text"]
        assert "Be brief." not in block["text"]
        assert "call_skill_tool" not in block["text"]
        assert "skill" not in plain.prompt[0]["text"]
        assert plain.tools == ()
        names = {one["name"] for one in explained.tools}
        assert names == {"add", "activate_skill", "call_skill_tool", "read_skill_file", "return_result"}
        assert len(names) == len(explained.tools)


async def test_the_schemas_do_not_depend_on_the_skills() -> None:
    async with scripted() as agent:
        builders = [
            agent.think().skill(SUMS),
            agent.think().skill(PLAIN),
            agent.think().skill(PLAIN).skill(SUMS),
        ]
        assert len({json.dumps(builder.explain().tools) for builder in builders}) == 1


async def test_a_builder_is_never_changed() -> None:
    async with scripted() as agent:
        none = agent.think().text("Go")
        one = none.skill(SUMS)
        two = one.skill(PLAIN)
        assert "sums" not in none.explain().prompt[0]["text"]
        assert "plain" not in one.explain().prompt[0]["text"]
        assert "plain" in two.explain().prompt[0]["text"]


async def test_two_skills_of_one_name_are_refused(tmp_path: Path) -> None:
    first, second = write_skill(tmp_path / "one"), write_skill(tmp_path / "two")
    async with scripted() as agent:
        builder = agent.think().skill(first)
        with pytest.raises(ValueError, match="there are two skills called 'notes'") as caught:
            builder.skill(second)
        assert str(first) in str(caught.value)
        assert str(second) in str(caught.value)
        with pytest.raises(ValueError, match="two skills called 'sums'"):
            agent.think().skill(SUMS).skill(SUMS)


async def test_the_names_of_the_three_tools_are_taken() -> None:
    mine = tool(add, name="activate_skill")
    async with scripted() as agent:
        with pytest.raises(ValueError, match="skill 'sums' needs the name 'activate_skill'"):
            agent.think().tool(mine).skill(SUMS)
        with pytest.raises(ValueError, match="another tool is already called 'activate_skill'"):
            agent.think().skill(SUMS).tool(mine)
        assert agent.think().tool(mine).explain().tools[0]["name"] == "activate_skill"


async def test_a_skill_that_cannot_be_used_is_refused_at_once(tmp_path: Path) -> None:
    async with scripted() as agent:
        with pytest.raises(SkillError, match=r"SKILL\.md' cannot be used: line 1: it has no name"):
            agent.think().skill(write_skill(tmp_path, front="---\n---\n"))
        with pytest.raises(TypeError):
            agent.think().skill(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# Activating


async def test_activating_gives_the_body_and_the_schemas_of_the_tools() -> None:
    sums, plain = await told(
        [SUMS, PLAIN], ("activate_skill", {"name": "sums"}), ("activate_skill", {"name": "plain"})
    )
    assert text(sums).startswith("Call add.\n\nTools of this skill, for call_skill_tool with skill 'sums'")
    head, schema = text(sums).split("- add: Add two numbers.\n  ")[0], tool(add).input_schema
    assert "add" in head
    assert f"- add: Add two numbers.\n  {json.dumps(schema)}\n- weather: Say how it is.\n" in text(sums)
    assert text(plain) == "Just do it."


async def test_unknown_names_are_answered_with_those_that_exist() -> None:
    answers = await told(
        [SUMS, PLAIN],
        ("activate_skill", {"name": "sum"}),
        call("add", skill="../sums"),
        call("subtract"),
        call("add", skill="plain"),
        ("read_skill_file", {"skill": "", "path": "x"}),
        ("activate_skill", {}),
        ("activate_skill", {"name": 3}),
    )
    assert [text(answer, is_error=True) for answer in answers] == [
        "name: must be one of 'sums', 'plain' (got 'sum')",
        "skill: must be one of 'sums', 'plain' (got '../sums')",
        "tool: must be one of 'add', 'weather', 'now' (got 'subtract')",
        "Skill 'plain' has no tools",
        "skill: must be one of 'sums', 'plain' (got '')",
        "Invalid arguments: $: 'name' is a required property",
        "Invalid arguments: $.name: 3 is not of type 'string'",
    ]


# Tools of a skill


async def test_calling_a_tool_of_a_skill() -> None:
    answers = await told(
        [SUMS],
        call("add", {"a": 2}),
        call("add", '{"a": 2, "b": 3}'),
        call("add", {"a": 1, "wait_for_previous": True}),
        call("weather", {"place": {"city": "Delft"}}),
        call("now"),
        call("now", ""),
        ("call_skill_tool", {"skill": "sums", "tool": "now"}),
    )
    assert [text(answer) for answer in answers] == [
        "3",
        "5",
        "2",
        '{"city": "Delft", "session": "session-1"}',
        "noon",
        "noon",
        "noon",
    ]
    assert answers[3]["structuredContent"] == {"city": "Delft", "session": "session-1"}


async def test_what_goes_wrong_in_a_tool_of_a_skill_is_told() -> None:
    answers = await told(
        [SUMS],
        call("add", {"b": 3}),
        call("add"),
        call("add", [1]),
        call("add", "no JSON"),
        call("weather", {"place": {"city": "Atlantis"}}),
        call("weather", {"place": "Delft"}),
    )
    said = [text(answer, is_error=True) for answer in answers]
    assert said[:5] == [
        "Invalid arguments: a: Field required",
        "Invalid arguments: a: Field required",
        "arguments: must be an object, with the tool's parameters as its keys",
        "arguments: must be an object, with the tool's parameters as its keys",
        "There is no weather station in Atlantis.",
    ]
    assert said[5].startswith("Invalid arguments: place: ")


async def test_cancelling_the_run_cancels_the_tool_of_a_skill() -> None:
    started, cancelled = anyio.Event(), anyio.Event()
    contexts: list[ToolContext] = []

    async def forever(context: ToolContext) -> None:
        contexts.append(context)
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async def script(turn: Turn) -> None:
        await turn.call("call_skill_tool", {"skill": "slow", "tool": "forever"})

    with anyio.fail_after(5):
        async with scripted(script) as agent:
            stream = agent.think().text("Go").skill(Skill("slow", "Waits.", tools=[forever])).stream()
            await started.wait()
            stream.cancel()
            await cancelled.wait()
            with pytest.raises(ThoughtCancelled):
                await stream.result
            await stream.wait()
    assert contexts[0].cancelled


# Sessions


@pytest.mark.virtual_time
async def test_each_turn_of_a_session_has_its_own_skills(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "notes", files={"a.md": "A file"})
    said: list[str] = []

    async def script(turn: Turn) -> None:
        for name in ("sums", "notes"):
            answer: dict[str, Any] = await turn.call("activate_skill", {"name": name})
            said.append(answer["content"][0]["text"][:9] if not answer["isError"] else "no")
        turn.say("Done")

    async def without(turn: Turn) -> None:
        with pytest.raises(RpcError, match="Unknown tool: activate_skill"):
            await turn.call("activate_skill", {"name": "sums"})
        turn.say("Done")

    handler = Played([script, script, without], relists=True)
    with anyio.fail_after(10):
        async with scripted(agent=handler) as agent, agent.session() as session:
            await session.think().text("One").skill(SUMS).run()
            await session.think().text("Two").skill(folder).run()
            await session.think().text("Three").run()
    assert said == ["Call add.", "no", "no", "Be brief."]
