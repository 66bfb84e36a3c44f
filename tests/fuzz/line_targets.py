"""Programs that speak lines, at their worst: the translation by itself, and a whole run."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from fuzz.hostile import IDS, LEAVES, LONG_RUN, LONGEST, damaged, repeated, spoilt
from fuzz.target import Target, on_both, silence
from fuzz.wire_targets import CUTS, blocks_of
from hypothesis import strategies as st

from thinkwell import FormQuestion, ThinkwellError, open_agent
from thinkwell._lines._agent import LineAgent
from thinkwell._lines._words import (
    Prompt,
    Response,
    read_host_line,
    read_message,
    write_init,
    write_message,
    write_response,
)
from thinkwell_acp import _jsonrpc as rpc
from thinkwell_acp import memory_transport_pair
from thinkwell_acp import schema as s
from thinkwell_acp._peer import Answer, Peer
from thinkwell_acp.schema import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell import Question
    from thinkwell import questions as asking
    from thinkwell_acp._peer import Received

_TEXTS = repeated(["a", " ", "\n", "\r", "\\n", '"', "{", "\u00e4", "\x1b[31m", "\u2028", "\x00"])
_IDS = IDS | st.integers() | st.none() | LEAVES
_KINDS = st.sampled_from(
    [
        "partial",
        "partial",
        "progress",
        "log",
        "question",
        "question",
        "approval",
        "approval",
        "own",
        "init_ack",
    ]
)
_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "id": _IDS,
        "text": _TEXTS,
        "message": _TEXTS,
        "stage": IDS,
        "percent": st.integers(-1, 101) | st.floats() | LEAVES,
        "level": st.sampled_from(["debug", "info", "WARN", ""]) | LEAVES,
        "question": _TEXTS,
        "description": _TEXTS,
        "context": _TEXTS,
        "options": st.lists(IDS | _TEXTS | LEAVES, max_size=5) | LEAVES,
        "code": st.integers() | LEAVES,
    },
)


@st.composite
def _messages(draw: st.DrawFn) -> bytes:
    kind = draw(_KINDS | st.sampled_from(["result", "error"]))
    message: Any = {"type": kind, **draw(_FIELDS)}
    if not draw(st.integers(0, 3)):
        message = spoilt(message, draw)
    return msgspec.json.encode(message)


_LINES = damaged(st.one_of(_messages(), _messages(), _messages(), st.binary(max_size=20)))
_STREAMS = st.lists(_LINES, min_size=1, max_size=8)
_LIMIT = 2 * max(LONGEST, 250_000)


# The translation by itself


class _Host:
    """Our side of a translation."""

    def __init__(self, *, init: dict[str, object] | None) -> None:
        self.agent = LineAgent(name="fuzzed", init=init, prompt_format="json", max_line=_LIMIT)
        self.peer: Peer[str] = Peer(max_line=8 * _LIMIT)
        self.settled: list[str] = []
        self.asked: list[rpc.Request] = []
        self.told: list[object] = []
        self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})

    def call(self, method: str, params: object) -> None:
        _, line = self.peer.request(method, encode(params), method)
        self.agent.from_client(line)

    def prompt(self) -> None:
        self.call("session/new", {"cwd": "/", "mcpServers": []})
        for number in range(3):
            prompt = [{"type": "text", "text": f"prompt {number}"}]
            self.call("session/prompt", {"sessionId": "lines-1", "prompt": prompt})

    def hear(self) -> bytes:
        """Take what there is for our side, and return it."""
        data = self.agent.take_for_client()
        self.take(self.peer.receive(data))
        return data

    def take(self, received: Sequence[Received[str]]) -> None:
        for message in received:
            match message:
                case list():
                    self.told += [_update(one.update) for one in message]
                case Answer():
                    self.settled.append(message.token)
                case rpc.Request():
                    self.asked.append(message)
                case _:
                    raise AssertionError(message)


def _update(update: s.SessionUpdate) -> object:
    assert not isinstance(update, s.InvalidUpdate), update
    return update


def _fed(
    stream: bytes, blocks: Sequence[bytes], init: dict[str, object] | None
) -> tuple[_Host, bytes, bytes]:
    """Return our side, and all that was said to it and to the program."""
    host = _Host(init=init)
    if init is None:
        host.prompt()
    said = host.hear()
    for block in blocks:
        host.agent.from_program(block)
        if host.agent.failure is not None:
            break
    else:
        host.agent.program_ended()
    said += host.hear()
    written = b"".join(line.data for line in host.agent.take_for_program())
    assert written.count(b"\n") <= 1 + stream.count(b"\n") + 2 + 3
    return host, said, written


_ANSWERS = st.sampled_from(
    [
        b'{"action":"accept","content":{"answer":"a"}}',
        b'{"action":"decline"}',
        b'{"outcome":{"outcome":"selected","optionId":"allow"}}',
        b'{"outcome":{"outcome":"cancelled"}}',
        b'{"action":"accept","_meta":{"thinkwell.dev/value":[1]}}',
        b'{"action":"accept","_meta":{"thinkwell.dev/silent":true}}',
        None,
    ]
)


def check_translation(given: tuple[list[bytes], list[int], list[bytes | None], bool]) -> None:
    """What comes out does not depend on the cuts, is well-formed, and answers nothing twice."""
    with silence():
        _check_translation(*given)


def _check_translation(
    lines: list[bytes], cuts: list[int], answers: list[bytes | None], greets: bool
) -> None:
    stream = b"\n".join(lines)
    init: dict[str, object] | None = {"a": 1} if greets else None
    host, said, written = _fed(stream, [stream], init)
    again, said_again, written_again = _fed(stream, blocks_of(stream, cuts), init)
    assert (host.agent.failure is None) == (again.agent.failure is None)
    if host.agent.failure is None:
        assert (said, written) == (said_again, written_again)
    assert host.settled.count("session/prompt") <= 3
    if greets:
        assert host.settled in ([], ["initialize"])
    for number, request in enumerate(host.asked):
        answer = answers[number % len(answers)]
        if answer is None:
            error = rpc.ErrorObject(-32603, "no")
            host.agent.from_client(host.peer.refuse(request.id, error))
        else:
            host.agent.from_client(host.peer.answer(request.id, answer))
    replies = [read_host_line(line.data[:-1]) for line in host.agent.take_for_program()]
    assert all(isinstance(reply, Response) for reply in replies)
    assert len(replies) <= len(host.asked)
    host.agent.from_client(rpc.encode_notification("session/cancel", b'{"sessionId":"lines-1"}'))
    host.hear()
    if not greets:
        assert host.settled.count("session/prompt") == 3
        host.call("session/prompt", {"sessionId": "lines-1", "prompt": []})
        assert not host.agent.take_for_program() or not host.agent.ends


# One line


def check_line(line: bytes) -> None:
    """A line is a message or nothing, and what was read can be written and read again."""
    line = line.replace(b"\n", b"")
    message = read_message(line)
    if message is not None:
        assert msgspec.json.decode(message.raw) == {"type": message.kind, **message.body}
        again = read_message(write_message(message.kind, message.body)[:-1])
        assert again is not None
        assert (again.kind, again.body) == (message.kind, message.body)
    match read_host_line(line):
        case Response(in_reply_to=kind, value=value):
            written = write_response(kind, encode(value), None)
            assert read_host_line(written[:-1]) == Response(kind, value)
        case Prompt(text=text):
            assert isinstance(text, str)
        case None:
            assert message is None
        case said:
            params: Any = said.params
            assert read_host_line(write_init(params)[:-1]) == said


# A run


def _answer(question: Question) -> asking.Answer:
    return {question.fields[-1].name: "x"} if isinstance(question, FormQuestion) else True


async def check_run(given: tuple[list[bytes], list[int]]) -> None:
    """Whatever a program writes, each run comes to an end, and leaving the block as well."""
    lines, cuts = given
    stream = b"\n".join(lines)
    ours, theirs = memory_transport_pair()
    with anyio.fail_after(600):
        async with open_agent(
            transport=ours, protocol="ndjson", permissions="ask", on_question=_answer
        ) as agent:
            runs = [agent.think().text("Go").stream(include="all") for _ in range(2)]
            await anyio.wait_all_tasks_blocked()
            for block in blocks_of(stream, cuts):
                await theirs.send(block)
            await anyio.wait_all_tasks_blocked()
            await theirs.aclose()
            for run in runs:
                with suppress(ThinkwellError):
                    assert isinstance(await run.result, str)
                await run.wait()
                assert run.view.error is not None or run.view.stop_reason == "end_turn"


TARGETS = (
    Target(name="line", inputs=_LINES, check=check_line, weight=100),
    Target(
        name="line translation",
        inputs=st.tuples(_STREAMS, CUTS, st.lists(_ANSWERS, min_size=1, max_size=4), st.booleans()),
        check=check_translation,
        weight=100,
    ),
    Target(
        name="line run",
        inputs=st.tuples(_STREAMS, CUTS),
        check=on_both(check_run),
        weight=60 if LONG_RUN else 25,
    ),
)
