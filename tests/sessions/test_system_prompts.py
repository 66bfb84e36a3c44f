"""System prompts: the agent gets them when the session is opened, or before its first prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pytest
from msgspec.structs import replace
from scripted import EVERY_SESSION_CALL, playing
from traced import TracedAgent

from thinkwell import CapabilityMissing, open_agent, sync
from thinkwell.agents import AgentProfile, Program
from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell import Agent


RHYME = "Speak in rhyme."
IN_PROMPT = "<system>\nSpeak in rhyme.\n</system>\n\n"
APPENDS = s.SessionSystemPromptCapabilities()
REPLACES = s.SessionSystemPromptCapabilities(
    mode=s.SessionSystemPromptModeCapabilities(override=s.SessionSystemPromptOverrideCapabilities())
)


def takes(system: s.SessionSystemPromptCapabilities | None) -> s.AgentCapabilities:
    flags = replace(EVERY_SESSION_CALL.session_capabilities, system_prompt=system)
    return replace(EVERY_SESSION_CALL, session_capabilities=flags)


def played(system: s.SessionSystemPromptCapabilities | None = APPENDS) -> ScriptedAgent:
    return ScriptedAgent(script.says("Fine."), capabilities=takes(system), repeats=True, complete=False)


def got(agent: ScriptedAgent) -> list[tuple[str, str | None, str | None]]:
    return [(one.method, one.system, one.system_mode) for one in agent.sent.sessions]


async def test_every_way_to_open_a_session_says_it_again() -> None:
    scripted = played()
    async with scripted.open() as agent:
        async with agent.session(system=RHYME) as session:
            async with session.fork() as copy:
                await copy.think().text("Go").run()
            async with session.fork(system="Speak plainly."):
                pass
        for load, resume, fork in (("s1", None, None), (None, "s2", None), (None, None, "s3")):
            async with agent.session(system=RHYME, load=load, resume=resume, fork=fork):
                pass
        await agent.think().text("Go").system(RHYME).run()
        await agent.think().text("Go").run()
    assert got(scripted) == [
        ("session/new", RHYME, "append"),
        ("session/fork", RHYME, "append"),
        ("session/fork", "Speak plainly.", "append"),
        ("session/load", RHYME, "append"),
        ("session/resume", RHYME, "append"),
        ("session/fork", RHYME, "append"),
        ("session/new", RHYME, "append"),
        ("session/new", None, None),
    ]
    assert [prompt.text for prompt in scripted.sent.prompts] == ["Go"] * 3


async def test_a_session_that_is_opened_anew_for_its_tools_has_it_again() -> None:
    def count() -> int:
        return 3

    scripted = ScriptedAgent(
        script.says("Fine."), capabilities=takes(APPENDS), relists=False, repeats=True, complete=False
    )
    async with scripted.open() as agent, agent.session(system=RHYME) as session:
        await session.think().text("Go").run()
        await session.think().text("Go").tool(count).run()
    assert got(scripted) == [("session/new", RHYME, "append"), ("session/resume", RHYME, "append")]


async def test_an_agent_that_lets_it_replace_its_own_is_asked_to() -> None:
    scripted = played(REPLACES)
    async with scripted.open() as agent:
        async with agent.session(system=RHYME, system_mode="replace"):
            pass
        await agent.think().text("Go").system("First.").system(RHYME, mode="replace").run()
    assert got(scripted) == [("session/new", RHYME, "override")] * 2


Mode: TypeAlias = Literal["append", "replace"]
Fallback: TypeAlias = Literal["prompt"] | None


def in_session(agent: Agent, mode: Mode, fallback: Fallback = None) -> object:
    return agent.session(system=RHYME, system_mode=mode, system_fallback=fallback)


def in_task(agent: Agent, mode: Mode, fallback: Fallback = None) -> object:
    return agent.think().system(RHYME, mode=mode, fallback=fallback)


@pytest.mark.parametrize("call", [in_session, in_task])
@pytest.mark.parametrize(
    ("capability", "mode", "missing"),
    [
        (None, "append", "sessionCapabilities.systemPrompt"),
        (None, "replace", "sessionCapabilities.systemPrompt"),
        (APPENDS, "replace", "sessionCapabilities.systemPrompt.mode.override"),
        (
            s.SessionSystemPromptCapabilities(mode=s.SessionSystemPromptModeCapabilities()),
            "replace",
            "sessionCapabilities.systemPrompt.mode.override",
        ),
    ],
)
async def test_what_the_agent_does_not_take_is_an_error_before_anything_is_sent(
    call: Callable[..., object],
    capability: s.SessionSystemPromptCapabilities | None,
    mode: Mode,
    missing: str,
) -> None:
    scripted = played(capability)
    async with scripted.open() as agent:
        with pytest.raises(CapabilityMissing, match='with the fallback "prompt" its text goes') as caught:
            call(agent, mode)
        assert caught.value.capability == missing
        call(agent, mode, "prompt")
    assert scripted.sent.methods == ("initialize",)


async def test_with_the_fallback_it_goes_before_the_first_prompt_that_is_answered() -> None:
    scripted = ScriptedAgent(
        script.fails().says("Fine.").stops().says("Fine.").stops().says("Fine.").stops(), complete=False
    )
    async with scripted.open() as agent:
        async with agent.session(system=RHYME, system_fallback="prompt") as session:
            assert session.think().text("Go").explain().prompt[0]["text"] == f"{IN_PROMPT}Go"
            await session.think().text("Go").stream().wait()
            await session.think().text("Go").run()
            assert session.think().text("Go").explain().prompt[0]["text"] == "Go"
            await session.think().text("Go").run()
        task = agent.think().text("Go").system(RHYME, mode="replace", fallback="prompt")
        assert task.explain().prompt[0]["text"] == f"{IN_PROMPT}Go"
        await task.run()
    assert [prompt.text for prompt in scripted.sent.prompts] == [
        f"{IN_PROMPT}Go",
        f"{IN_PROMPT}Go",
        "Go",
        f"{IN_PROMPT}Go",
    ]
    assert {one.system for one in scripted.sent.sessions} == {None}


async def test_with_the_fallback_an_agent_that_takes_it_gets_it_as_one() -> None:
    scripted = played()
    async with scripted.open() as agent:
        await agent.think().text("Go").system(RHYME, fallback="prompt").run()
    assert got(scripted) == [("session/new", RHYME, "append")]
    assert scripted.sent.prompts[0].text == "Go"


async def test_of_an_agent_whose_sessions_keep_theirs_an_old_one_takes_no_other() -> None:
    keeps = AgentProfile(name="keeps", program=Program(command=("keeps",)), keeps_system=True)
    scripted = played()
    async with open_agent(keeps, transport=scripted.connect()) as agent:
        async with agent.session(system=RHYME) as session, session.fork():
            with pytest.raises(CapabilityMissing, match="it keeps the one that it began with"):
                session.fork(system=RHYME)
        for old in ("load", "resume", "fork"):
            source: dict[str, Any] = {old: "s1"}
            with pytest.raises(CapabilityMissing, match='with the fallback "prompt" its text goes'):
                agent.session(system=RHYME, **source)
            async with agent.session(system=RHYME, system_fallback="prompt", **source) as session:
                await session.think().text("Go").run()
    assert [(method, system) for method, system, _ in got(scripted)] == [
        ("session/new", RHYME),
        *((f"session/{method}", None) for method in ("fork", "load", "resume", "fork")),
    ]
    assert [prompt.text for prompt in scripted.sent.prompts] == [f"{IN_PROMPT}Go"] * 3


async def test_an_explanation_shows_it() -> None:
    async with played().open() as agent:
        explanation = agent.think().text("Go").system(RHYME).explain()
    assert explanation.system == {"mode": "append", "content": [{"type": "text", "text": RHYME}]}
    assert str(explanation).startswith(f"--- system (append) ---\n{RHYME}\n--- prompt ---\nGo\n--- tools")


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"system": " "}, ValueError, "session.* the system prompt is empty"),
        ({"system": b"x"}, TypeError, "session.*give a str, not bytes"),
        ({"system": "x", "system_mode": "override"}, ValueError, "'override' is not a mode"),
        ({"system": "x", "system_fallback": "drop"}, ValueError, "'drop' is not a fallback"),
        ({"system_mode": "replace"}, ValueError, "it is required with system_mode= or system_fallback="),
        ({"system_fallback": "prompt"}, ValueError, "it is required with system_mode= or system_fallback="),
    ],
)
async def test_what_is_no_system_prompt_is_refused(
    given: dict[str, Any], error: type[Exception], words: str
) -> None:
    async with played().open() as agent:
        with pytest.raises(error, match=words):
            agent.session(**given)


@pytest.mark.parametrize(("text", "words"), [("", "system prompt is empty"), ("\ud800", "lone surrogate")])
async def test_wrong_system_prompts_of_a_task_are_refused(text: str, words: str) -> None:
    async with played().open() as agent:
        with pytest.raises(ValueError, match=rf"system\(\).*{words}"):
            agent.think().system(text)


async def test_a_turn_of_a_session_takes_no_system_prompt() -> None:
    async with played().open() as agent, agent.session() as session:
        with pytest.raises(ValueError, match=r"give it to agent\.session\(system=…\)"):
            session.think().system(RHYME)


def test_agents_that_block() -> None:
    scripted = played()
    with sync.open_agent(transport=scripted.connect()) as agent:
        with agent.session(system=RHYME) as session, session.fork():
            pass
        agent.think().text("Go").system(RHYME).run()
    assert got(scripted) == [
        ("session/new", RHYME, "append"),
        ("session/fork", RHYME, "append"),
        ("session/new", RHYME, "append"),
    ]


@pytest.mark.parametrize(("agent", "mode"), [("claude-agent-acp", "replace"), ("codex-acp", "append")])
async def test_real_agents_get_what_they_were_seen_to_take(agent: str, mode: Any) -> None:
    traced = TracedAgent(f"{agent}-system")
    ours, theirs = memory_transport_pair()
    async with playing(theirs, traced), open_agent(transport=ours) as running:
        text = "SYSTEM-MARK: speak in rhyme."
        task = running.think().text("Count, please.").system(text, mode=mode)
        assert await task.run() == "Short harmless text."
        if mode == "append":
            with pytest.raises(CapabilityMissing):
                running.think().system(text, mode="replace")
    seen = traced.asked["session/new"]["systemPrompt"]
    assert traced.sent.one("session/new").params["systemPrompt"] == seen
