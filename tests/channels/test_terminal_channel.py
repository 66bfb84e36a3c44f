"""A terminal as a channel: what is written to it, and never changed."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, TextIO

import anyio
import anyio.to_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell.channels import (
    AskingChannel,
    CapableChannel,
    ChannelCapabilities,
    ChannelChoice,
    ChannelQuestion,
    ConfiguredChannel,
    DeliverySettings,
    NotifyingChannel,
    StreamingChannel,
    TerminalChannel,
    ThinkingChannel,
    deliver,
)
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

if sys.platform == "win32":
    pytest.skip("terminals of POSIX systems", allow_module_level=True)

import fcntl

from progress.ptys import program
from progress.terminal import controls

F_SETPIPE_SZ = getattr(fcntl, "F_SETPIPE_SZ", 1031)

DIM, PLAIN = "\x1b[2m", "\x1b[0m"

ALLOW = ChannelQuestion(
    id="q1",
    text="claude asks for permission: clean up",
    code="rm -rf build/",
    choices=(
        ChannelChoice(id="y", label="once", style="accept"),
        ChannelChoice(id="n", label="no", style="reject"),
    ),
    deadline=52.0,
)
ASKED = """\
? claude asks for permission: clean up
    rm -rf build/
  denied in 52s, unless it is answered
   y  once
   n  no
> """

PROGRAM = """
import anyio
from thinkwell.channels import ChannelChoice, ChannelQuestion, TerminalChannel

choices = ChannelChoice(id="y", label="once"), ChannelChoice(id="n", label="no")
text, code = "claude asks for permission: clean up", "rm -rf build/"
question = ChannelQuestion(id="q1", text=text, code=code, choices=choices, deadline=52.0)

async def main():
    channel = TerminalChannel()
    for _ in range(2):
        print("answer:", repr(await channel.ask("me", question)), flush=True)

anyio.run(main)
"""

HOSTILE = st.text(
    alphabet=st.one_of(st.sampled_from("\x1b\x9b\x9d[]0m;\x07\r\n\t\x08\u202e\u0301 a界👩"), st.characters())
)


class Tty(io.StringIO):
    """What is written to a terminal that takes everything at once."""

    def isatty(self) -> bool:
        return True


class Typist:
    """Somebody who answers. The terminal shows what is typed, with the line end."""

    def __init__(self, out: io.StringIO) -> None:
        self._out = out
        self._type, self._typed = anyio.create_memory_object_stream[str](10)
        self._waits = anyio.Event()

    def type(self, *lines: str) -> None:
        for line in lines:
            self._type.send_nowait(line)

    def leave(self) -> None:
        """Press Ctrl-D."""
        self._type.close()

    async def is_asked(self) -> None:
        """Wait until somebody waits for a line."""
        await self._waits.wait()
        self._waits = anyio.Event()

    async def read_line(self) -> str:
        self._waits.set()
        try:
            typed = await self._typed.receive()
        except anyio.EndOfStream:
            raise EOFError from None
        self._out.write(f"{typed}\n")
        return typed

    def close(self) -> None:
        self._type.close()
        self._typed.close()


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def typist(out: io.StringIO) -> Generator[Typist]:
    typist = Typist(out)
    yield typist
    typist.close()


@pytest.fixture
def tty(monkeypatch: pytest.MonkeyPatch) -> Tty:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return Tty()


def test_what_it_can_do(out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    assert isinstance(channel, StreamingChannel)
    assert isinstance(channel, ThinkingChannel)
    assert isinstance(channel, NotifyingChannel)
    assert isinstance(channel, AskingChannel)
    assert isinstance(channel, CapableChannel)
    assert isinstance(channel, ConfiguredChannel)
    assert channel.capabilities == ChannelCapabilities()
    assert channel.settings == DeliverySettings()
    settings = DeliverySettings(thinking=False)
    assert TerminalChannel(out, settings=settings).settings is settings


async def test_the_standard_output_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    await TerminalChannel().send("me", "Done.")
    assert capsys.readouterr().out == "Done.\n"


def test_a_program_without_a_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(ValueError, match="out="):
        TerminalChannel()


async def test_a_text(out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    await channel.send("me", "\nOne.\n\nTwo.\n\n")
    await channel.send("me", "")
    await channel.send("me", "Three.")
    assert out.getvalue() == "One.\n\nTwo.\nThree.\n"


async def test_an_answer_is_written_while_it_comes(out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    await channel.on_stream_start("me")
    assert out.getvalue() == ""
    for chunk, shown in (("The", "The"), (" parser", "The parser"), (".\n\n", "The parser.")):
        await channel.on_stream_chunk("me", chunk)
        assert out.getvalue() == shown
    await channel.on_stream_chunk("me", "Good.")
    await channel.on_stream_end("me", "The parser.\n\nGood.")
    assert out.getvalue() == "The parser.\n\nGood.\n"


async def test_the_end_says_what_the_chunks_did_not(out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    await channel.on_stream_start("me")
    await channel.on_stream_chunk("me", "Half an ans")
    await channel.on_stream_end("me", "Half an ans\n\n⚠ the agent has died")
    assert out.getvalue() == "Half an ans\n\n⚠ the agent has died\n"


@pytest.mark.parametrize("chunk", ["Answer.\n\n", "\nAnswer.", " Answer. \n"])
async def test_white_space_around_the_chunks_changes_nothing(chunk: str, out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    await channel.on_stream_chunk("me", chunk)
    await channel.on_stream_end("me", "Answer.\n\nMore.")
    assert [row.strip() for row in out.getvalue().split("\n")] == ["Answer.", "", "More.", ""]


async def test_an_end_that_says_something_else_is_written_whole(out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    await channel.on_stream_chunk("me", "I think that")
    await channel.on_stream_end("me", "The answer is 7.")
    assert out.getvalue() == "I think that\nThe answer is 7.\n"


async def test_an_end_without_chunks(out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    await channel.on_stream_start("me")
    await channel.on_stream_end("me", "All.")
    assert out.getvalue() == "All.\n"


async def test_sending_ends_the_answer_that_is_written(out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    await channel.on_stream_start("me")
    await channel.on_stream_chunk("me", "Once")
    await channel.send("me", "Once and for all.")
    await channel.send("me", "Once")
    assert out.getvalue() == "Once and for all.\nOnce\n"


async def test_an_answer_without_an_end(out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    await channel.on_stream_start("me")
    await channel.on_stream_chunk("me", "Half")
    await channel.on_stream_start("me")
    await channel.on_stream_end("me", "Half")
    assert out.getvalue() == "Half\nHalf\n"


async def test_what_the_agent_does_stands_in_lines_of_its_own(out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    await channel.on_stream_start("me")
    await channel.on_stream_status("me", "Using: read\x1b[31m parser.py\n")
    await channel.on_stream_chunk("me", "I look")
    await channel.on_stream_status("me", "Using: run tests")
    await channel.on_stream_chunk("me", "\n\nGood.")
    await channel.on_stream_end("me", "I look\n\nGood.")
    assert out.getvalue() == "[Using: read parser.py]\nI look\n[Using: run tests]\nGood.\n"


async def test_a_status_while_nothing_is_written(out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    await channel.on_stream_status("me", "Using: read parser.py")
    await channel.on_stream_start("me")
    await channel.on_stream_chunk("me", "Good")
    assert out.getvalue() == "[Using: read parser.py]\nGood"


async def test_what_is_said_beside_an_answer_does_not_end_it(out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    await channel.on_stream_chunk("me", "I look")
    await channel.notify("me", "I am busy.\x1b[2J\nWrite again.\n")
    await channel.on_stream_chunk("me", " again.")
    await channel.on_stream_end("me", "I look again.")
    await channel.notify("me", "Done.")
    assert out.getvalue() == "I look\nI am busy.\nWrite again.\n again.\nDone.\n"


async def test_thinking_can_be_told_from_the_answer(out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    await channel.on_stream_start("me")
    await channel.on_stream_thinking("me", "First I ")
    await channel.on_stream_thinking("me", "read.\n\nThen")
    await channel.on_stream_thinking_end("me", 12.0)
    await channel.on_stream_chunk("me", "Good.")
    await channel.on_stream_thinking("me", "Or not?")
    await channel.on_stream_chunk("me", " Not.")
    await channel.on_stream_end("me", "Good. Not.")
    assert out.getvalue().split("\n") == [
        "┆ First I read.",
        "┆",
        "┆ Then",
        "┆ thought for 12s",
        "Good.",
        "┆ Or not?",
        " Not.",
        "",
    ]


async def test_thinking_is_dim_in_a_terminal(tty: Tty) -> None:
    channel = TerminalChannel(tty)
    await channel.on_stream_thinking("me", "One.\nTwo")
    await channel.on_stream_thinking("me", "!")
    await channel.on_stream_status("me", "Using: read")
    await channel.on_stream_end("me", "Good.")
    assert tty.getvalue() == (
        f"{DIM}┆ One.{PLAIN}\n{DIM}┆ Two{PLAIN}{DIM}!{PLAIN}\n{DIM}[Using: read]{PLAIN}\nGood.\n"
    )


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
async def test_a_terminal_without_colours(
    name: str, value: str, tty: Tty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    channel = TerminalChannel(tty)
    await channel.on_stream_thinking("me", "Hm.")
    assert tty.getvalue() == "┆ Hm."


async def test_an_escape_sequence_in_two_chunks_does_not_get_through(tty: Tty) -> None:
    channel = TerminalChannel(tty)
    for chunk in ("red: \x1b", "[31", "mred", "\x1b]0;tit", "le\x07 end\x1b"):
        await channel.on_stream_chunk("me", chunk)
    assert tty.getvalue() == "red: red end"
    await channel.on_stream_end("me", "red: \x1b[31mred\x1b]0;title\x07 end\x1b[2J!")
    assert tty.getvalue() == "red: red end!\n"


async def test_half_an_escape_sequence_is_shown_at_the_end(tty: Tty) -> None:
    channel = TerminalChannel(tty)
    await channel.on_stream_chunk("me", "end\x1b[")
    await channel.on_stream_end("me", "end\x1b[")
    await channel.send("me", "31m")
    assert tty.getvalue() == "end␛[\n31m\n"


@given(chunks=st.lists(HOSTILE), rest=HOSTILE)
def test_nothing_controls_the_terminal_and_nothing_is_lost(chunks: list[str], rest: str) -> None:
    tty, whole = Tty(), Tty()

    async def deliver() -> None:
        channel = TerminalChannel(tty)
        for chunk in chunks:
            await channel.on_stream_chunk("me", chunk)
        await channel.on_stream_end("me", "".join(chunks) + rest)
        await TerminalChannel(whole).send("me", "".join(chunks) + rest)

    anyio.run(deliver)
    assert tty.getvalue() == whole.getvalue()
    assert controls(tty.getvalue().replace("\n", "\r\n")) == set()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
async def test_what_a_file_cannot_encode_is_written_as_an_escape(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "answer.txt"
    with path.open("w", encoding=encoding) as file:
        channel = TerminalChannel(file)
        await channel.on_stream_thinking("me", "Hm…")
        await channel.on_stream_end("me", "10 € 👩 ⚠ it failed")
    assert path.read_text(encoding) == "| Hm...\n10 \\u20ac \\U0001f469 ! it failed\n"


async def test_an_encoding_that_python_does_not_know() -> None:
    class Odd(io.StringIO):
        encoding = "klingon"

    out = Odd()
    await TerminalChannel(out).send("me", "10 €")
    assert out.getvalue() == "10 \\u20ac\n"


# Runs


async def test_a_run_is_delivered(out: io.StringIO, typist: Typist) -> None:
    channel = TerminalChannel(out, read_line=typist.read_line, settings=DeliverySettings(least_thinking=0))
    typist.type("y")
    played = (
        script.thinks("Hm.")
        .says("I clean up.")
        .asks("Clean up", kind="execute", input={"command": "rm -rf build"})
    )
    async with ScriptedAgent(played.says("It is clean.")).open(permissions="ask") as agent:
        delivery = await deliver(agent.think().text("Clean up.").stream(), channel, "me")
    assert (delivery.status, delivery.streamed, delivery.channel_errors) == ("completed", True, ())
    rows = out.getvalue().splitlines()
    assert rows[0] == "┆ Hm."
    assert {"I clean up.", "    rm -rf build", "   y  once", "> y", "It is clean."} < set(rows)


async def test_a_run_that_fails_is_delivered_with_its_error(out: io.StringIO) -> None:
    async with ScriptedAgent(
        script.says("Half \x1b").says("[31man answer").fails(message="boom")
    ).open() as agent:
        delivery = await deliver(agent.think().text("Go.").stream(), TerminalChannel(out), "me")
    assert delivery.status == "failed"
    assert out.getvalue().startswith("Half an answer\n\n⚠ ")
    assert out.getvalue().endswith(delivery.text.rpartition("\n")[2] + "\n")
    assert "boom" in out.getvalue()


# Several users


async def test_several_users_do_not_share_a_line(out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    await channel.on_stream_start("ada")
    await channel.on_stream_chunk("ada", "The par")
    await channel.on_stream_start("bob")
    await channel.on_stream_chunk("bob", "The te")
    await channel.on_stream_chunk("ada", "ser.\n")
    await channel.on_stream_chunk("bob", "st.\n\nIt fails")
    await channel.on_stream_status("ada", "Using: read")
    await channel.on_stream_chunk("ada", "\nIt is")
    await channel.on_stream_end("ada", "The parser.\n\nIt is good.")
    await channel.on_stream_chunk("bob", " again")
    await channel.on_stream_end("bob", "The test.\n\nIt fails again.")
    assert out.getvalue().split("\n") == [
        "The parser.",
        "bob │ The test.",
        "ada │ [Using: read]",
        "ada │ It is good.",
        "bob │ It fails again.",
        "",
    ]


async def test_a_line_that_others_have_broken_goes_on_in_one_of_its_own(out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    await channel.on_stream_start("ada")
    await channel.on_stream_chunk("ada", "I look")
    await channel.send("bob", "One.\n\nTwo.")
    await channel.on_stream_chunk("ada", " again.")
    await channel.on_stream_end("ada", "I look again.")
    assert out.getvalue() == "I look\nbob │ One.\nbob │\nbob │ Two.\nada │  again.\n"


async def test_an_empty_answer_breaks_no_line(out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    await channel.on_stream_start("ada")
    await channel.on_stream_chunk("ada", "I look")
    await channel.on_stream_start("bob")
    await channel.on_stream_end("bob", "")
    await channel.on_stream_chunk("ada", " again.")
    assert out.getvalue() == "I look again."


async def test_the_name_of_a_user_controls_nothing(tty: Tty) -> None:
    channel = TerminalChannel(tty)
    await channel.send("ada", "Hi.")
    await channel.send("\x1b[2Jb\no\rb" + "x" * 100, "Ho.")
    assert tty.getvalue() == f"Hi.\nb o b{'x' * 34}… │ Ho.\n"


async def test_an_answer_of_a_user_alone_is_written_at_once_again(out: io.StringIO) -> None:
    channel = TerminalChannel(out)
    await channel.on_stream_start("ada")
    await channel.on_stream_start("bob")
    await channel.on_stream_chunk("ada", "Ha")
    assert out.getvalue() == ""
    await channel.on_stream_end("bob", "")
    await channel.on_stream_chunk("ada", "lf")
    assert out.getvalue() == "ada │ Half"


# Questions


async def test_a_question(out: io.StringIO, typist: Typist) -> None:
    channel = TerminalChannel(out, read_line=typist.read_line)
    typist.type("Y ")
    await channel.on_stream_start("me")
    await channel.on_stream_chunk("me", "I clean up")
    assert await channel.ask("me", ALLOW) == "y"
    await channel.on_question_end("me", ALLOW, "allowed by human")
    await channel.on_stream_end("me", "I clean up.")
    assert out.getvalue() == f"I clean up\n{ASKED}Y \n[allowed by human]\n.\n"


async def test_an_answer_that_is_none_is_not_taken(out: io.StringIO, typist: Typist) -> None:
    channel = TerminalChannel(out, read_line=typist.read_line)
    typist.type("", "once", "yes", "n")
    assert await channel.ask("me", ALLOW) == "n"
    assert out.getvalue().count("That is not one of the answers. Type one of: y, n\n> ") == 3


async def test_choices_that_are_no_keys_have_numbers(out: io.StringIO, typist: Typist) -> None:
    choices = (ChannelChoice(id="red\x1b", label="red"), ChannelChoice(id="n", label="\x1b[31mno"))
    question = ChannelQuestion(id="q", text="Which\ncolour?", url="https://a/\u202e", choices=choices)
    typist.type("red", "1")
    channel = TerminalChannel(out, read_line=typist.read_line)
    assert await channel.ask("me", question) == "red\x1b"
    assert out.getvalue().startswith("? Which\n  colour?\n    https://a/\\u202e\n   1  red\n   2  no\n> ")


async def test_letters_that_cannot_be_told_apart_are_no_keys(out: io.StringIO, typist: Typist) -> None:
    choices = (ChannelChoice(id="a", label="one"), ChannelChoice(id="A", label="two"))
    typist.type("2")
    channel = TerminalChannel(out, read_line=typist.read_line)
    assert await channel.ask("me", ChannelQuestion(id="q", text="Which?", choices=choices)) == "A"


@pytest.mark.parametrize(("typed", "said"), [(" 2 ", "2"), ("/1", ":skip"), ("", ""), ("skip", "skip")])
async def test_a_text_for_an_answer(typed: str, said: str, out: io.StringIO, typist: Typist) -> None:
    skip = ChannelChoice(id=":skip", label="skip the form")
    question = ChannelQuestion(
        id="q", text="How many?", choices=(skip,), takes_text=True, hint="whole number"
    )
    typist.type(typed)
    channel = TerminalChannel(out, read_line=typist.read_line)
    assert await channel.ask("me", question) == said
    assert out.getvalue() == f"? How many?\n  (whole number)\n  /1  skip the form\n> {typed}\n"


async def test_a_question_that_nothing_answers(out: io.StringIO, typist: Typist) -> None:
    channel = TerminalChannel(out, read_line=typist.read_line)
    assert await channel.ask("me", ChannelQuestion(id="q", text="Well?")) is None
    assert out.getvalue() == "? Well?\n"


async def test_a_question_without_an_answer(out: io.StringIO, typist: Typist) -> None:
    channel = TerminalChannel(out, read_line=typist.read_line)
    typist.leave()
    assert await channel.ask("me", ALLOW) is None
    await channel.on_question_end("me", ALLOW, "denied")
    assert out.getvalue() == f"{ASKED}\n[denied]\n"


async def test_a_question_that_is_taken_back(out: io.StringIO, typist: Typist) -> None:
    channel = TerminalChannel(out, read_line=typist.read_line)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(channel.ask, "me", ALLOW)
        await typist.is_asked()
        tasks.cancel_scope.cancel()
    await channel.on_question_end("me", ALLOW, "withdrawn")
    typist.type("n")
    assert await channel.ask("me", ALLOW) == "n"
    assert out.getvalue() == f"{ASKED}\n[withdrawn]\n{ASKED}n\n"


async def test_questions_come_one_after_another(out: io.StringIO, typist: Typist) -> None:
    channel = TerminalChannel(out, read_line=typist.read_line)
    answers: list[tuple[str, str | None]] = []

    async def ask(user_id: str) -> None:
        answers.append((user_id, await channel.ask(user_id, ALLOW)))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "ada")
            await typist.is_asked()
            async with anyio.create_task_group() as withdrawn:
                withdrawn.start_soon(ask, "eve")
                await anyio.wait_all_tasks_blocked()
                withdrawn.cancel_scope.cancel()
            tasks.start_soon(ask, "bob")
            await anyio.wait_all_tasks_blocked()
            assert out.getvalue() == ASKED
            typist.type("y")
            await typist.is_asked()
            typist.type("n")
    assert answers == [("ada", "y"), ("bob", "n")]
    assert "\nbob │ ? claude asks" in out.getvalue()
    assert "eve" not in out.getvalue()


async def test_what_is_written_meanwhile_stands_above_the_prompt(out: io.StringIO, typist: Typist) -> None:
    channel = TerminalChannel(out, read_line=typist.read_line)
    await channel.on_stream_start("me")
    await channel.on_stream_chunk("me", "I")
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(channel.ask, "me", ALLOW)
            await typist.is_asked()
            for chunk in ("go ", "on.\n", "And"):
                await channel.on_stream_chunk("me", chunk)
            await channel.on_stream_status("me", "Using: read")
            typist.type("y")
    await channel.on_stream_chunk("me", " on.")
    assert out.getvalue() == f"I\n{ASKED}\ngo on.\n> \nAnd\n[Using: read]\n> y\n on."


def test_lines_are_typed_at_the_keyboard() -> None:
    with program(sys.executable, "-c", PROGRAM) as shell:
        shell.expect("n  no\r\n> ")
        shell.type("what?\n")
        shell.expect("Type one of: y, n\r\n> ")
        shell.type("nx\x7f\n")
        shell.expect("answer: 'n'")
        shell.expect("> ")
        shell.type("\x04")
        shell.expect("answer: None")
        shell.process.wait(10)


def test_where_there_is_no_keyboard() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        start_new_session=True,
        encoding="utf-8",
        check=True,
        timeout=30,
    )
    shown = ASKED.removesuffix("> ")
    assert ran.stdout == 2 * f"{shown}[there is no keyboard to answer with]\nanswer: None\n"


# Files, pipes and terminals that take nothing


@contextmanager
def small_pipe() -> Generator[tuple[BinaryIO, TextIO]]:
    """A pipe that soon is full."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
    with os.fdopen(reader, "rb") as read, os.fdopen(writer, "w", encoding="utf-8") as out:
        yield read, out


async def test_what_could_not_be_written_is_written_again() -> None:
    class Full(io.StringIO):
        full = True

        def write(self, text: str, /) -> int:
            if self.full:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(text)

    out = Full()
    channel = TerminalChannel(out)
    await channel.on_stream_start("me")
    with pytest.raises(OSError, match="No space"):
        await channel.on_stream_chunk("me", "Half an")
    with pytest.raises(OSError, match="No space"):
        await channel.send("me", "Half an answer.")
    with pytest.raises(OSError, match="No space"):
        await channel.on_stream_status("you", "Using: read")
    out.full = False
    await channel.send("me", "Half an answer.")
    assert out.getvalue().endswith("Half an answer.\n")
    assert out.getvalue().count("Half") == 1


async def test_a_file_that_was_closed(tmp_path: Path) -> None:
    path = tmp_path / "answer.txt"
    with path.open("w", encoding="utf-8") as file:
        channel = TerminalChannel(file)
        file.write("# ")
        await channel.send("me", "Good.")
        assert path.read_text("utf-8") == "# Good.\n"
    with pytest.raises(ValueError, match="closed file"):
        await channel.send("me", "More.")
    with pytest.raises(ValueError, match="closed file"):
        await TerminalChannel(file).send("me", "More.")


async def test_a_pipe_without_a_reader() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w", encoding="utf-8") as out:
        out.write("# ")
        channel = TerminalChannel(out)
        await channel.send("me", "Good — and more.")
        assert os.read(reader, 100).decode() == "# Good — and more.\n"
        os.close(reader)
        with pytest.raises(BrokenPipeError):
            await channel.send("me", "More.")


async def test_a_pipe_that_is_full_holds_up_nothing_else() -> None:
    written: list[bytes] = []
    with small_pipe() as (read, out), anyio.fail_after(30):
        channel = TerminalChannel(out)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(channel.send, "me", "a" * 10_000)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

        async def read_all() -> None:
            written.append(await anyio.to_thread.run_sync(read.read, 10_003))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read_all)
            await channel.send("me", "b")
    assert written == [b"a" * 10_000 + b"\nb\n"]


def test_a_pipe_that_is_full_when_the_event_loop_ends() -> None:
    with small_pipe() as (read, out):
        channel = TerminalChannel(out)

        async def give_up() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(channel.send, "me", "a" * 10_000)
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()

        anyio.run(give_up)
        assert read.read(10_001) == b"a" * 10_000 + b"\n"
        anyio.run(channel.send, "me", "b")
        assert read.read(2) == b"b\n"
