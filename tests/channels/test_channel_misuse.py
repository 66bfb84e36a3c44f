"""What a newcomer does wrong is said at once, in words, and does no harm."""

from __future__ import annotations

import errno
import inspect
import io
import logging
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from echoing import Echo
from kept_channels import Refused, Streamed, Whole, delivered

from thinkwell import replay
from thinkwell.channels import (
    AskingChannel,
    ChannelCapabilities,
    DeliveryFailed,
    DeliverySettings,
    MessageRouter,
    OutcomeChannel,
    TerminalChannel,
    deliver,
)
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from thinkwell import Agent
    from thinkwell.channels import ChannelQuestion

pytestmark = pytest.mark.virtual_time


# What is no run


NO_RUNS: list[tuple[Callable[[Agent], object], str]] = [
    (lambda agent: agent.think().text("Go."), "ThinkBuilder"),
    (lambda _: "Go.", "str"),
    (lambda agent: agent.think().text("Go.").run(), "coroutine"),
    (lambda _: None, "NoneType"),
]


@pytest.mark.parametrize(("made", "said"), NO_RUNS)
async def test_what_is_no_run_is_refused_and_it_is_said_how_one_is_begun(
    made: Callable[[Agent], Any], said: str
) -> None:
    channel = Whole()
    async with Echo().open() as agent:
        stream = made(agent)
        with pytest.raises(
            TypeError, match=rf"deliver\(\) takes a run that has begun, not a {said}: begin one by \.stream"
        ):
            await deliver(stream, channel, "ann")
        if inspect.iscoroutine(stream):
            assert inspect.getcoroutinestate(stream) == inspect.CORO_CLOSED
    assert channel.told == []


# What is no setting


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"streaming": "no"}, r"streaming='no'\): it must be True or False, not a str"),
        ({"thinking": 1}, r"thinking=1\): it must be True or False, not a int"),
        ({"edit_interval": "1"}, r"edit_interval='1'\): it must be a number or None, not a str"),
        ({"least_characters": 1.5}, r"least_characters=1\.5\): it must be a whole number, not a float"),
        ({"least_thinking": None}, r"least_thinking=None\): it must be a number, not a NoneType"),
        ({"stalled_after": True}, r"stalled_after=True\): it must be a number or None, not a bool"),
        ({"timeout": None}, r"timeout=None\): it must be a number, not a NoneType"),
        ({"attempts": "4"}, r"attempts='4'\): it must be a whole number, not a str"),
    ],
)
def test_settings_of_another_type_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=rf"^DeliverySettings\({said}$"):
        DeliverySettings(**settings)


@pytest.mark.parametrize(
    ("capabilities", "said"),
    [
        ({"edits": "yes"}, r"edits='yes'\): it must be True or False, not a str"),
        ({"max_length": "x"}, r"max_length='x'\): it must be a whole number or None, not a str"),
        ({"max_length": True}, r"max_length=True\): it must be a whole number or None, not a bool"),
    ],
)
def test_capabilities_of_another_type_are_refused(capabilities: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=rf"^ChannelCapabilities\({said}$"):
        ChannelCapabilities(**capabilities)


def test_markdown_needs_a_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    with pytest.raises(ImportError, match=r"markdown-it-py.* pip install 'thinkwell\[telegram\]'"):
        ChannelCapabilities(markdown=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"settings": {"streaming": False}},
            r"deliver\(settings=.*\): it must be DeliverySettings\(…\), not a d",
        ),
        ({"text": "short"}, r"deliver\(text='short'\): it must be a function, such as lambda result"),
    ],
)
async def test_options_of_another_type_are_refused(options: dict[str, Any], said: str) -> None:
    channel = Whole()
    with pytest.raises(TypeError, match=f"^{said}"):
        await delivered(script.says("a"), channel, **options)
    assert channel.told == []


USERS: list[tuple[Any, type[Exception], str]] = [
    (7, TypeError, r"\(user_id=7\): it must be a str, not a int"),
    ("", ValueError, r'\(user_id=""\): it is empty; name the user as the channel does'),
]


@pytest.mark.parametrize(("user_id", "error", "said"), USERS)
async def test_a_user_without_a_name_is_refused(user_id: Any, error: type[Exception], said: str) -> None:
    channel = Whole()
    async with ScriptedAgent(script.says("a")).open() as agent:
        stream = agent.think().text("Go.").stream()
        with pytest.raises(error, match=f"^deliver{said}"):
            await deliver(stream, channel, user_id)
        assert await stream.result == "a"
        async with MessageRouter(agent) as router:
            with pytest.raises(error, match=f"^handle_user_message{said}"):
                await router.handle_user_message("Go.", user_id, channel)
    assert channel.told == []


# What is no channel


async def test_a_class_is_no_channel() -> None:
    given: Any = Whole
    with pytest.raises(TypeError, match=r"^deliver\(channel=Whole\): this is a class; give an instance"):
        await delivered(script.says("a"), given)


async def test_a_method_that_turns_out_not_to_be_asynchronous_is_not_called_again() -> None:
    class Late(Whole):
        def send(self, user_id: str, text: str) -> Any:
            return self.sent.append((user_id, text))

    channel = Late()
    with pytest.raises(DeliveryFailed, match=r"send is not asynchronous: write async def send"):
        await delivered(script.says("a"), channel)
    assert channel.texts == ["a"]


class Called:
    """Is no function."""

    def __init__(self, kept: Whole) -> None:
        self.kept = kept

    def __call__(self, user_id: str, text: str) -> Coroutine[object, object, None]:
        return Whole.send(self.kept, user_id, text)


async def test_what_returns_an_awaitable_is_asynchronous() -> None:
    class Plain(Whole):
        def send(self, user_id: str, text: str) -> Any:
            return super().send(user_id, text)

    channels: list[Whole] = [Plain()]
    channel: Any = Whole()
    channel.send = Called(channel)
    channels.append(channel)
    for each in channels:
        await delivered(script.says("a"), each)
        assert each.texts == ["a"]


async def test_a_question_that_is_asked_synchronously_is_told_of() -> None:
    class Typed(Whole):
        def ask(self, user_id: str, question: ChannelQuestion) -> Any:
            return str(user_id)

    channel = Typed()
    delivery = await delivered(script.asks("Clean").says("Done."), channel)
    assert [str(error) for error in delivery.channel_errors] == [
        "ask is not asynchronous: write async def ask"
    ]


async def test_a_stop_that_is_awaited_synchronously_is_told_of() -> None:
    class Stopping(Whole):
        def wait_stop(self, user_id: str) -> Any:
            return str(user_id)

    delivery = await delivered(script.says("a"), Stopping())
    assert delivery.status == "completed"
    assert [str(error) for error in delivery.channel_errors] == [
        "wait_stop is not asynchronous: write async def wait_stop"
    ]


# Routers


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"settings": "fast"}, r"settings='fast'\): it must be DeliverySettings\(…\), not a str"),
        ({"middleware": "x"}, r"middleware='x'\): it must be a function, such as lambda text, user_id: text"),
        (
            {"session": 5},
            r"session=5\): it must be a function, such as lambda agent, user_id: agent\.session",
        ),
        ({"cwd": 5}, r"cwd=…\) is, or returned, a int: give a folder, or a function that returns one"),
    ],
)
def test_a_router_refuses_options_of_another_type(options: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=rf"^MessageRouter\({said}"):
        MessageRouter(Echo().open, **options)


async def later(text: str, user_id: str) -> None:
    """Forgets to return anything."""


def nothing_of(*_: object) -> None:
    """Forgets it too."""


def five(*_: object) -> int:
    return 5


async def folder(user_id: str) -> str:
    return "/p"  # pragma: no cover - it is not awaited


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"middleware": nothing_of},
            r"middleware=…\) returned a NoneType; it must return the p",
        ),
        (
            {"middleware": later},
            r"middleware=…\) returned a NoneType; it must return the prompt",
        ),
        ({"cwd": nothing_of}, r"cwd=…\) is, or returned, a NoneType: give a folder, or a function"),
        ({"cwd": folder}, r"cwd=…\) is, or returned, a coroutine: give a folder, or a function"),
        (
            {"session": five},
            r"session=…\) has returned a int, which async with does not take; give a fu",
        ),
    ],
)
async def test_functions_of_a_router_that_return_something_else_are_told_of(
    options: dict[str, Any], said: str
) -> None:
    channel = Whole()
    async with MessageRouter(Echo().open, **options) as router:
        with pytest.raises(TypeError, match=rf"^MessageRouter\({said}"):
            await router.invoke("Go.")
        delivery = await router.handle_user_message("Go.", "ada", channel)
    assert delivery is not None
    assert isinstance(delivery.error, TypeError)
    assert channel.texts == [
        "⚠ Something went wrong, and your message was not answered. Please try again later."
    ]


async def opened() -> object:
    """Is called where it should be given."""


@pytest.mark.parametrize(("opener", "said"), [(opened, "coroutine"), (five, "int")])
async def test_a_function_that_opens_no_agent_is_told_of(opener: Any, said: str) -> None:
    async with MessageRouter(opener) as router:
        with pytest.raises(
            TypeError,
            match=rf'^MessageRouter\(agent=…\) has returned a {said}, .*lambda: open_agent\("claude"\)',
        ):
            await router.invoke("Go.")


async def test_a_message_that_is_no_text_is_refused() -> None:
    given: Any = 5
    async with MessageRouter(Echo().open) as router:
        with pytest.raises(TypeError, match=r"^handle_user_message\(text=5\): it must be a str, not a int"):
            await router.handle_user_message(given, "ada", Whole())
        with pytest.raises(TypeError, match=r"^MessageRouter\(prompt=5\): it must be a str, not a int"):
            await router.invoke(given)
        with pytest.raises(TypeError, match=r"^MessageRouter\(user_id=5\): it must be a str, not a int"):
            await router.invoke("Go.", user_id=given)
        assert router.conversations == ()


@pytest.mark.parametrize("prompt", ["", " \n"])
async def test_a_blank_prompt_is_refused(prompt: str) -> None:
    async with MessageRouter(Echo().open) as router:
        with pytest.raises(ValueError, match=r"^the prompt is blank; give one, as in router\.invo"):
            await router.invoke(prompt)


async def test_callbacks_that_are_not_asynchronous_are_told_of() -> None:
    told: list[str] = []

    def note(text: str) -> None:
        told.append(text)

    async def listen(text: str) -> None:
        told.append(text)

    given: list[Any] = [note, print, "print"]
    async with MessageRouter(Echo().open) as router:
        said = "^on_chunk is not asynchronous: write async def on_chunk$"
        with pytest.raises(TypeError, match=said):
            await router.invoke_streamed("Go.", given[0])
        with pytest.raises(TypeError, match=said):
            await router.invoke_streamed("Go.", given[1])
        with pytest.raises(TypeError, match=r"^invoke_streamed\(on_chunk='print'\): it must be a function"):
            await router.invoke_streamed("Go.", given[2])
        del told[:]
        assert await router.invoke_streamed("Go.", listen) == "".join(told)
    played = ScriptedAgent(script.uses("look").says("Done."))
    async with MessageRouter(played.open) as router:
        with pytest.raises(TypeError, match=r"^on_tool_call is not asynchronous"):
            await router.invoke_streamed("Go.", listen, given[0])


# Questions


class Answering(Whole):
    """Has an answer, and does not want to know what becomes of it."""

    async def ask(self, user_id: str, question: ChannelQuestion) -> str | None:
        await self.call("ask", question.code)
        return "y"


async def test_a_channel_that_only_asks_is_asked() -> None:
    channel = Answering()
    assert isinstance(channel, AskingChannel)
    assert not isinstance(channel, OutcomeChannel)
    delivery = await delivered(script.asks("Clean", input={"command": "rm"}).says("Done."), channel)
    assert channel.told == [("ask", "rm"), ("send", "Done.")]
    assert (delivery.status, delivery.channel_errors) == ("completed", ())


UNHEARD = (
    "The agent asks something, and channel %s cannot ask it: it has no method ask. Unless "
    "it is answered elsewhere, it waits until its deadline. Give the channel async def ask(self, "
    "user_id, question), or open the agent with permissions that leave nothing to ask"
)


async def test_questions_without_a_listener_are_logged_once(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    played = script.asks("One").asks("Two").says("Done.")
    with anyio.fail_after(100_000):
        async with ScriptedAgent(played).open(permissions="ask", question_timeout=60, record=path) as agent:
            await deliver(agent.think().text("Go.").stream(), Whole(), "ann")
        assert caplog.messages == [UNHEARD % "Whole"]
        assert caplog.records[0].levelno == logging.WARNING
        channel = Streamed()
        await deliver(replay(path, speed=1), channel, "ann")
        assert "Waiting for an answer: One" in channel.statuses
    assert len(caplog.messages) == 1


# What fails


class Lasting(Exception):  # noqa: N818 - what the channel says
    """Is raised where nothing can be helped."""

    temporary = False


@pytest.mark.parametrize(
    "error",
    [TypeError("x"), AttributeError("x"), NotImplementedError("x"), NameError("x"), Lasting("x")],
    ids=lambda error: type(error).__name__,
)
async def test_what_cannot_succeed_is_not_tried_again(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    channel = Whole(fails={"send": 9}, error=error)
    with pytest.raises(DeliveryFailed, match="in 1 attempt: x; its text") as failed:
        await delivered(script.says("a"), channel)
    assert failed.value.__cause__ is error
    assert channel.calls["send"] == 1
    name = type(error).__name__
    assert caplog.messages == [f"Channel Whole failed (attempt 1 of 4, and it is not retried): {name}: x"]


async def test_an_end_that_cannot_succeed_is_not_sent_again() -> None:
    channel = Streamed(fails={"end": 9}, error=Lasting("x"))
    with pytest.raises(DeliveryFailed, match="in 1 attempt: x; its text") as failed:
        await delivered(script.says("a"), channel)
    assert isinstance(failed.value.__cause__, Lasting)
    assert (channel.calls["end"], channel.calls["send"]) == (1, 0)


async def test_a_text_is_sent_where_its_beginning_could_not_be_shown() -> None:
    channel = Streamed(fails={"start": 9}, error=Lasting("x"))
    await delivered(script.says("a"), channel)
    assert channel.calls["send"] == 1


@pytest.mark.parametrize("temporary", [True, None, 0])
async def test_what_is_not_said_to_last_is_tried_again(
    temporary: object, caplog: pytest.LogCaptureFixture
) -> None:
    error: Any = Refused("no")
    error.temporary = temporary
    await delivered(script.says("a"), Whole(fails={"send": 2}, error=error))
    assert caplog.messages == [
        "Channel Whole failed (attempt 1 of 4): Refused: no",
        "Channel Whole failed (attempt 2 of 4): Refused: no",
    ]


class Broken(io.StringIO):
    """A pipe that nobody reads any more."""

    def write(self, text: str, /) -> int:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


async def test_a_pipe_without_a_reader_is_not_tried_again() -> None:
    with pytest.raises(DeliveryFailed, match=r"in 1 attempt: .*Broken pipe") as failed:
        await delivered(script.says("a"), TerminalChannel(Broken()))
    assert isinstance(failed.value.__cause__, BrokenPipeError)
    assert failed.value.__cause__.errno == errno.EPIPE
    assert failed.value.text == "a"


PIPED = """
import anyio
from thinkwell.channels import DeliveryFailed, TerminalChannel, deliver
from thinkwell.testing import ScriptedAgent, script

async def main():
    played = script.says("one\\n").pauses(1).says("two\\n").pauses(1).says("three\\n")
    async with ScriptedAgent(played).open() as agent:
        await deliver(agent.think().text("Go.").stream(), TerminalChannel(), "me")

try:
    anyio.run(main)
except DeliveryFailed as error:
    assert isinstance(error.__cause__, BrokenPipeError)
    assert error.delivery.metrics.attempts == 1
    raise SystemExit(3)
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no head")
def test_a_program_whose_output_is_cut_off_ends_soon() -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PIPED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    assert program.stderr is not None
    with program, program.stderr as errors:
        assert program.stdout.readline() == "one\n"
        program.stdout.close()
        said = errors.read()
        assert (program.wait(20), "Traceback" in said) == (3, False), said


async def test_a_text_that_cannot_be_made_is_told_of_in_words(caplog: pytest.LogCaptureFixture) -> None:
    def make(result: str) -> str:
        raise ZeroDivisionError("division by zero")

    channel = Whole()
    delivery = await delivered(script.says("Look."), channel, text=make)
    assert channel.texts == ["Look.\n\n⚠ The answer could not be made from the agent's result."]
    assert delivery.status == "failed"
    assert isinstance(delivery.error, ZeroDivisionError)
    assert caplog.messages == ["The text of an answer could not be made: ZeroDivisionError: division by zero"]
    assert caplog.records[0].levelno == logging.ERROR
    assert caplog.records[0].exc_info is not None
    assert caplog.records[0].exc_info[1] is delivery.error


async def test_a_text_that_is_made_asynchronously_is_told_of() -> None:
    async def later(result: str) -> str:
        return result  # pragma: no cover - it is not awaited

    delivery = await delivered(script.says("Look."), Whole(), text=later)
    assert str(delivery.error) == "text= returned a coroutine; it must return a str"
