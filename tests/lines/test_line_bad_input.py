"""Whatever a program prints, it does no harm, and what can be made sense of is kept."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from lines.program import ON_ONE_LOOP, every, played, started

from thinkwell import AgentExited, AgentReported, ThoughtStream
from thinkwell import events as ev

if TYPE_CHECKING:
    from pathlib import Path

    from thinkwell.questions import Question

pytestmark = pytest.mark.anyio

MIB = 1024 * 1024


async def ran(*lines: bytes) -> ThoughtStream[str]:
    """Return a run in which a program has written these bytes."""
    async with played() as (agent, program):
        stream = agent.think().text("Go").stream(include="all")
        await program.hear()
        for line in lines:
            await program.write(line)
        await stream.wait()
    return stream


async def reports(*lines: bytes) -> list[dict[str, Any]]:
    stream = await ran(*lines, b'{"type":"result"}\n')
    return [{"type": report.kind, **report.body} for report in await every(stream, ev.Report)]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"42", "42"),
        (b'"quoted"', '"quoted"'),
        (b'[{"type":"log"}]', '[{"type":"log"}]'),
        (b"  indented \r", "  indented "),
        (b"a\rb\r\r", "a\rb\r"),
        (b"\x1b[31mred\x00", "\x1b[31mred\x00"),
        (b"caf\xe9 \xf0\x9f", "caf\ufffd \ufffd"),
        ("\u2028\u0085\ufeff".encode(), "\u2028\u0085\ufeff"),
        (b"\xef\xbb\xbfDone", "Done"),
        (b'x{"type":"log"}', 'x{"type":"log"}'),
    ],
)
async def test_a_line_that_is_no_object_is_the_result(
    line: bytes, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    stream = await ran(line + b"\n")
    assert await stream.result == text
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b'{"text":"no type"}',
        b'{"type":null}',
        b'{"type":7}',
        b'{"type":["result"]}',
        b'{"Type":"result"}',
        b'{"type":"log"',
        b' {"type":"log",}',
        b'{"type":"log"}{"type":"log"}',
        b'{"type":"log"} x',
        b"{'type':'log'}",
        b'{"type":"lo\\qg"}',
        b'{"type":"log","x":01}',
        b"{" * 100_000,
        b'{"type":"log","x":' + b"[" * 100_000,
        b'{"type":"log","x":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'{"type":"log","x":' + b'{"a":' * 199 + b"[]" + b"}" * 200,
    ],
)
async def test_what_begins_like_a_message_and_is_none_is_the_result_with_a_warning(
    line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    stream = await ran(line + b"\n")
    assert await stream.result == line.decode()
    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    start = "Agent agent sent a line that begins like a message and counts as text: "
    assert warning.message.startswith(start)
    assert warning.message.endswith(f", {len(line)} bytes")
    assert len(warning.message) < 200


async def test_warnings_become_rare(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "thinkwell")
    async with played() as (agent, program), agent.session() as session:
        for _ in range(5):
            stream = session.think().text("Go").stream()
            await program.hear()
            await program.write(b"{broken\n")
            await stream.wait()
    told = [record.levelname for record in caplog.records if "begins like a message" in record.message]
    assert told == ["WARNING"] * 3 + ["DEBUG"] * 2


MESSAGES: list[tuple[bytes, dict[str, Any] | None]] = [
    (b'\t{ "type" :\t"own" }\r', {"type": "own"}),
    (b'\xef\xbb\xbf{"type":"own"}', {"type": "own"}),
    (b'{"type":"a","x":1,"x":2,"type":"own"}', {"type": "own", "x": 2}),
    (b'{"type":"own","x":NaN,"y":[Infinity,-Infinity,1e999]}', {"x": None, "y": [None, None, None]}),
    (b'{"type":"own","x":' + b"9" * 5000 + b"}", {"x": None}),
    (b'{"type":"own","x":' + b"9" * 30 + b"}", {"x": int("9" * 30)}),
    (b'{"type":"own","x":NaN,"y":[1.5,-7,' + b"9" * 30 + b"]}", {"x": None, "y": [1.5, -7, 10**30 - 1]}),
    (
        b'{"type":"own","x":"\\ud83d","\\ude00":"a\\ud83d\\ude00"}',
        {"x": "\ufffd", "\ufffd": "a\U0001f600"},
    ),
    (b'{"type":"own","x":"caf\xe9","y":"\xf0\x9f\x98"}', {"x": "caf\ufffd", "y": "\ufffd"}),
    (b'{"type":"own","x":"tab\there\x01"}', {"x": "tab\there\x01"}),
    (b'{"type":"own","x":"a\\u0000\\u2028"}', {"x": "a\x00\u2028"}),
    (b'{"type":"own","y":[[]],"x":' + b"[" * 199 + b"]" * 199 + b"}", None),
    (b'{"type":"own","x":[' + b"[{}]," * 1_000 + b"1]}", None),
]


async def test_what_can_be_made_sense_of_is_a_message() -> None:
    expected = [
        json.loads(line) if message is None else {"type": "own", **message} for line, message in MESSAGES
    ]
    assert await reports(*(line + b"\n" for line, _ in MESSAGES)) == expected


async def test_odd_types_and_ids_of_messages_are_kept() -> None:
    lines = [
        b'{"type":"\\u001b]0;x\\u0007","id":%b}\n' % id_ for id_ in (b"NaN", b"true", b'"\\ud800"', b"[]")
    ]
    ids: list[object] = [None, True, "\ufffd", []]
    assert await reports(*lines) == [{"type": "\x1b]0;x\x07", "id": id_} for id_ in ids]


async def test_blank_lines_are_skipped() -> None:
    assert await reports(b"\n\r\n \t \n\n\xef\xbb\xbf\n\xef\xbb\xbf \r\n") == []


@pytest.mark.parametrize("size", [1, 3, 7])
async def test_lines_may_come_in_pieces(size: int) -> None:
    text = '{"type":"own","x":"\u00e4\U0001f600"}\r\n{"type":"log"}\n{"type":"result","text":"\u00e4"}\n'
    data = text.encode()
    stream = await ran(*(data[start : start + size] for start in range(0, len(data), size)))
    assert await stream.result == "\u00e4"
    assert [report.body for report in await every(stream, ev.Report)] == [{"x": "\u00e4\U0001f600"}, {}]


async def test_many_lines_may_come_at_once() -> None:
    lines = b"".join(b'{"type":"own","x":%d}\n' % number for number in range(1_000))
    assert [message["x"] for message in await reports(lines)] == list(range(1_000))


# Sizes


async def took(tmp_path: Path, mib: int) -> float:
    """Return how long it takes until so much has arrived as one line."""
    source = f"""
hear()
text = "x" * {mib * MIB}
sys.stdout.write('{{"type":"own","x":"' + text + '"}}\\n'); sys.stdout.flush()
say("result", text=text)
"""
    async with started(tmp_path, source) as agent:
        began = time.perf_counter()
        stream = agent.think().text("Go").stream(include="all")
        result = await stream.result
        seconds = time.perf_counter() - began
        assert len(result) == mib * MIB
        (report,) = await every(stream, ev.Report)
        text = report.body["x"]
        assert isinstance(text, str)
        assert len(text) == mib * MIB
    return seconds


@pytest.mark.parametrize("mib", [5, pytest.param(20, marks=pytest.mark.long)])
async def test_a_line_of_megabytes_takes_time_in_proportion(tmp_path: Path, mib: int) -> None:
    small = min([await took(tmp_path, mib // 5) for _ in range(2)])
    large = await took(tmp_path, mib)
    assert large < 5 * 6 * small + 1


@pytest.mark.parametrize("size", [12_000_000, pytest.param(20_000_000, marks=pytest.mark.long)])
@ON_ONE_LOOP
async def test_a_line_is_as_long_as_it_is_whatever_it_takes_to_hand_it_on(size: int) -> None:
    line = b"\x01" * size  # six times as much in the protocol
    stream = await ran(line + b"\n")
    assert await stream.result == line.decode()


@pytest.mark.long
@ON_ONE_LOOP
async def test_a_long_approval_is_asked_and_its_recording_goes_on(tmp_path: Path) -> None:
    description = "x" * (22 * MIB)  # it is handed on three times
    titles: list[str] = []

    def decide(question: Question) -> bool:
        titles.append(question.title)
        return True

    path = tmp_path / "run.ndjson"
    async with played(permissions="ask", on_question=decide, record=path) as (agent, program):
        stream = agent.think().text("Go").stream()
        await program.hear()
        assert await program.ask("approval", description=description) is True
        await program.say("result", text="the very last word")
        assert await stream.result == "the very last word"
    assert len(titles) == 1
    assert last_word_is_received(path)


@pytest.mark.long
async def test_a_recording_of_long_lines_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run.ndjson"
    async with played(record=path) as (agent, program):
        stream = agent.think().text("Go").stream()
        await program.hear()
        await program.write(b"\x01" * (11 * MIB) + b"\n")
        await stream.wait()
        stream = agent.think().text("Go on").stream()
        await program.hear()
        await program.say("result", text="the very last word")
        await stream.wait()
    assert last_word_is_received(path)


def last_word_is_received(path: Path) -> bool:
    received = [line for line in path.read_bytes().splitlines() if line.startswith(b'{"type":"received"')]
    return any(b"the very last word" in line for line in received)


@pytest.mark.long
@ON_ONE_LOOP
async def test_an_answer_beyond_the_limit_ends_the_connection() -> None:
    second = anyio.Event()

    async def too_much(question: Question) -> dict[str, str]:
        if question.title == "How many?":
            await second.wait()
            await anyio.wait_all_tasks_blocked()  # the other answer waits for this one
            return {"answer": "x" * (65 * MIB)}
        second.set()
        return {"answer": "blue"}

    async with played(permissions="ask", on_question=too_much) as (agent, program):
        stream = agent.think().text("Go").stream()
        await program.hear()
        await program.say("question", question="How many?")
        await program.say("question", question="Which?")
        with pytest.raises(AgentExited, match="67108864"):
            await stream.result
    with pytest.raises(anyio.EndOfStream):
        await program.hear()  # the answer to the second would be taken for that to the first


@ON_ONE_LOOP
async def test_a_line_beyond_the_limit_ends_the_connection(tmp_path: Path) -> None:
    source = f"""
hear()
say("partial", text="so ")
for _ in range(65):
    sys.stdout.write("x" * {MIB})
print(flush=True)
say("result", text="never")
sys.stdin.read()
"""
    async with started(tmp_path, source) as agent:
        stream = agent.think().text("Go").stream()
        with pytest.raises(AgentExited, match="67108864"):
            await stream.result
        assert stream.view.text == "so "
        with pytest.raises(AgentExited):
            await agent.think().text("And now?").run()


@pytest.mark.long
@ON_ONE_LOOP
async def test_a_prompt_beyond_the_limit_ends_the_connection() -> None:
    async with played() as (agent, _):
        with pytest.raises(AgentExited, match="67108864"):
            await agent.think().text("x" * (65 * MIB)).run()


async def test_an_error_of_a_megabyte_is_an_error() -> None:
    stream = await ran(b'{"type":"error","message":"%b"}\n' % (b"x" * MIB))
    with pytest.raises(AgentReported) as caught:
        await stream.result
    assert len(caught.value.message) == MIB


# Last lines without an end


@pytest.mark.parametrize("line", [b'{"type":"progress","message":"Delet', b"{", b'{"type":"result"} {'])
async def test_a_program_that_ends_in_the_middle_of_a_message_has_failed(
    line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with played() as (agent, program):
        stream = agent.think().text("Go").stream()
        await program.hear()
        await program.write(line)
        await program.end()
        with pytest.raises(AgentExited):
            await stream.result
    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert warning.message.startswith("Agent agent ended in the middle of a message, which is left out: ")
    assert warning.message.endswith(f", {len(line)} bytes")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"Done: 3 {files", "Done: 3 {files"),
        (b'{"files":3}', '{"files":3}'),
        (b'{"type":"result","text":"a"}', "a"),
    ],
)
async def test_a_last_line_that_is_whole_needs_no_end(line: bytes, text: str) -> None:
    async with played() as (agent, program):
        stream = agent.think().text("Go").stream()
        await program.hear()
        await program.write(line)
        await program.end()
        assert await stream.result == text


# Lines that end a turn and are probably not meant to


async def test_a_line_of_text_among_messages_ends_a_turn_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "thinkwell")
    async with played() as (agent, program), agent.session() as session:

        async def turn(*lines: bytes) -> list[str]:
            caplog.clear()
            stream = session.think().text("Go").stream()
            await program.hear()
            for line in lines:
                await program.write(line + b"\n")
            await stream.wait()
            return [record.levelname for record in caplog.records if "that is no message" in record.message]

        assert await turn(b"plain") == []
        assert await turn(b'{"type":"own"}', b"DeprecationWarning: x") == ["WARNING"]
        assert "ended its turn with a line that is no message: plain text, 21 bytes" in caplog.text
        debugged = [record for record in caplog.records if "DeprecationWarning" in record.message]
        assert {record.levelname for record in debugged if record.name == "thinkwell"} <= {"DEBUG"}
        assert await turn(b'{"type":"result"}') == []
        assert await turn(b"plain") == ["WARNING"]
        assert await turn(b"plain") == ["WARNING"]
        assert await turn(b"plain") == ["DEBUG"]
