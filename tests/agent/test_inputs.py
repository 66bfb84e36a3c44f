"""What users give by mistake is refused at once, with the thing to fix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from thinkwell import AgentNotFound, Buffer, Question, open_agent, tool, wait_for_answer
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator


class Review(BaseModel):
    score: int


@dataclass
class Person:
    name: str


# The prompt


@pytest.mark.parametrize("method", ["text", "line", "quote", "code"])
async def test_what_is_no_text_is_refused(method: str) -> None:
    async with ScriptedAgent(script).open() as agent:
        take = getattr(agent.think(), method)
        for content in (b"secret", 5, None, ["a"]):
            with pytest.raises(TypeError) as caught:
                take(content)
            said = str(caught.value)
            assert said.startswith(f"{method}(): give a str, not {type(content).__name__}")
            assert "secret" not in said
            assert ("decode()" in said) == isinstance(content, bytes)
        with pytest.raises(ValueError, match=r"character 2 is the lone surrogate '\\udce9'") as surrogate:
            take("ab\udce9")
    assert ".encode('utf-8', 'replace').decode()" in str(surrogate.value)


async def test_tags_and_languages_are_texts_too() -> None:
    wrong: Any = 5
    async with ScriptedAgent(script).open() as agent:
        with pytest.raises(TypeError, match=r"quote\(tag=…\): give a str, not int"):
            agent.think().quote("x", tag=wrong)
        with pytest.raises(TypeError, match=r"code\(language=…\): give a str, not int"):
            agent.think().code("x", language=wrong)


# How a run is to go


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"timeout": math.nan}, ValueError, "timeout=nan must be positive"),
        ({"timeout": 0}, ValueError, "timeout=0 must be positive"),
        ({"timeout": -1.0}, ValueError, "timeout=-1.0 must be positive"),
        ({"timeout": "5"}, TypeError, "timeout='5' must be a number of seconds, not a str"),
        ({"timeout": True}, TypeError, "timeout=True must be a number of seconds, not a bool"),
        ({"buffer": 100}, TypeError, r"buffer=100 must be a Buffer: Buffer\(max_events=…\)"),
        ({"retries": "x"}, TypeError, "retries='x' must be a whole number, not a str"),
        ({"reminders": 1.5}, TypeError, "reminders=1.5 must be a whole number, not a float"),
        ({"retries": True}, TypeError, "retries=True must be a whole number, not a bool"),
        ({"retries": -1}, ValueError, "retries=-1 must not be negative"),
        ({"reminders": -1}, ValueError, "reminders=-1 must not be negative"),
    ],
)
async def test_options_are_checked_before_anything_starts(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    handler = ScriptedAgent(script)
    async with handler.open() as agent:
        with pytest.raises(error, match=message):
            agent.think().text("Go").stream(**options)
        with pytest.raises(error, match=message):
            await agent.think().text("Go").run(**options)
    assert handler.sent.sessions == ()


async def test_limits_that_are_fine() -> None:
    async with ScriptedAgent(script).open() as agent:
        stream = (
            agent.think()
            .text("Go")
            .stream(timeout=math.inf, buffer=Buffer(max_events=5), retries=0, reminders=0)
        )
        stream.cancel()


# Tools


async def async_numbers() -> AsyncGenerator[int]:
    yield 1


def numbers() -> Generator[int]:
    yield 1


class Callback:
    def __call__(self) -> Generator[int]:
        yield 1


@pytest.mark.parametrize("function", [async_numbers, numbers, Callback()])
def test_generators_are_no_tools(function: Any) -> None:
    with pytest.raises(TypeError, match=r"numbers|Callback") as caught:
        tool(function)
    assert f"{__file__}:" in str(caught.value)
    assert "generator, and a tool returns one value; return a list" in str(caught.value)


def test_classes_are_no_tools() -> None:
    with pytest.raises(TypeError, match=r"Person\(\) \(.*: it is a class; write a function that creates one"):
        tool(Person)


@pytest.mark.parametrize("name", ["", 5])
def test_names_of_tools(name: Any) -> None:
    def plain() -> None: ...

    with pytest.raises(TypeError, match=f"{name!r} is not a valid name for a tool"):
        tool(plain, name=name)
    with pytest.raises(TypeError, match=f"{name!r} is not a valid name for a tool"):
        tool(tool(plain), name=name)


# Output types


@pytest.mark.parametrize("instance", [Review(score=1), Person(name="A")])
async def test_an_instance_is_no_type(instance: Any) -> None:
    name = type(instance).__name__
    async with ScriptedAgent(script).open() as agent:
        message = rf"think\(\): you passed an instance of {name}; pass the type: think\({name}\)"
        with pytest.raises(TypeError, match=message):
            agent.think(instance)
        async with agent.session() as session:
            with pytest.raises(TypeError, match=message):
                session.think(instance)
        with pytest.raises(TypeError, match=f"you passed an instance of {name}"):
            agent.session(output=instance)


async def test_the_output_of_a_session_is_checked_when_it_is_called() -> None:
    async with ScriptedAgent(script).open() as agent:
        with pytest.raises(TypeError, match="text needs no output type"):
            agent.session(output=str)


# Which agent


async def opening(agent: str | None = None, **options: Any) -> None:
    """Open an agent that there is not."""
    async with open_agent(agent, **options):
        raise AssertionError("it opened")


async def test_quotes_that_are_never_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THINKWELL_AGENT_CMD", raising=False)
    with pytest.raises(ValueError, match=r"open_agent\(command=…\): No closing quotation") as caught:
        await opening(command="foo 'secret")
    assert "secret" not in str(caught.value)
    monkeypatch.setenv("THINKWELL_AGENT_CMD", "foo 'secret")
    with pytest.raises(ValueError, match="the environment variable THINKWELL_AGENT_CMD: No closing"):
        await opening()
    monkeypatch.setenv("THINKWELL_AGENT_CMD", "  ")
    with pytest.raises(
        ValueError, match="the environment variable THINKWELL_AGENT_CMD: the command is empty"
    ):
        await opening()


async def test_a_wrong_name_from_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THINKWELL_AGENT_CMD", raising=False)
    monkeypatch.setenv("THINKWELL_AGENT", "cloud")
    with pytest.raises(AgentNotFound, match="the environment variable THINKWELL_AGENT") as caught:
        await opening()
    assert caught.value.agent == "cloud"
    with pytest.raises(AgentNotFound) as caught:
        await opening("cloudy")
    assert "THINKWELL_AGENT" not in str(caught.value)


async def decide(question: Question) -> None:
    return None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"startup_timeout": -1}, ValueError, "startup_timeout=-1 must be positive"),
        ({"startup_timeout": math.nan}, ValueError, "startup_timeout=nan must be positive"),
        ({"startup_timeout": "5"}, TypeError, "startup_timeout='5' must be a number of seconds"),
        ({"on_question": decide, "permissions": "deny"}, ValueError, "on_question=….*no one would be asked"),
        (
            {"on_question": "me", "permissions": "ask"},
            TypeError,
            "on_question='me'.: give a function",
        ),
        ({"on_question": [decide, 3], "permissions": "ask"}, TypeError, "on_question=3"),
        ({"on_question": 3, "permissions": "ask"}, TypeError, "on_question=3.: give a function, or a list"),
        ({"workspace": "."}, TypeError, r"workspace='.'\): give a Workspace"),
        ({"env": {"A": "b", "PORT": 8080}}, TypeError, r"env=….: 'PORT' has a int; give texts by"),
        ({"env": {1: "x"}}, TypeError, "1 has a str; give texts by their names"),
        ({"env": ["A"]}, TypeError, "env=….: it is a list; give texts by their names"),
        ({"mcp_servers": [3]}, TypeError, "mcp_servers=….: number 1 is a int; give a list of McpStdio"),
        ({"mcp_servers": 3}, TypeError, "mcp_servers=….: it is a int; give a list"),
        ({"record": 3}, TypeError, "record=3.: give a path"),
        ({"on_phase": 3}, TypeError, "on_phase=3.: give a plain function"),
        ({"on_phase": wait_for_answer}, TypeError, "on_phase=<function wait.*: give a plain function"),
        ({"question_timeout": 0}, ValueError, "question_timeout=0 must be positive"),
        ({"permissions": "perhaps"}, ValueError, 'choose "deny", "ask" or "allow", or give'),
        ({"permissions": "p.toml"}, ValueError, r"PermissionPolicy\.load\('p\.toml'\)"),
        ({"cwd": "/no/such/folder"}, NotADirectoryError, "there is no folder"),
    ],
)
def test_open_agent_refuses_when_it_is_called(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        open_agent("builtin", **options)


def test_an_agent_of_another_type() -> None:
    wrong: Any = ["claude"]
    with pytest.raises(TypeError, match=r"open_agent\(\['claude'\]\): give the name of an agent"):
        open_agent(wrong)


@pytest.mark.parametrize("command", [["python", 3], 3])
def test_a_command_of_another_type(command: Any) -> None:
    with pytest.raises(TypeError, match=r"command=.*give a line, or a list of words"):
        open_agent(command=command)


@pytest.mark.parametrize("max_events", ["10", 10.5, True])
def test_a_buffer_takes_whole_numbers(max_events: Any) -> None:
    with pytest.raises(TypeError, match=r"max_events=.*give a whole number"):
        Buffer(max_events=max_events)
