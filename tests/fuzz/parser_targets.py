"""Lines and messages, taken apart: framing, JSON-RPC, NDJSON agents, and MCP over a stream."""
# Private: sans-I/O parsers, fed byte by byte. What they promise (how bytes are cut does not matter, nothing
# is answered twice) cannot be seen from outside, where a connection stands between.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from fuzz.hostile import CUTS, LINES, LONGEST, STREAMS, blocks_of
from fuzz.line_targets import LIMIT, LINE_STREAMS, PROGRAM_LINES
from fuzz.target import Target, on_both, silence
from fuzz.tool_targets import FEW, MCP_LINES, Pipe
from hypothesis import strategies as st
from mcp_support import Workbench

from thinkwell._lines._agent import LineAgent
from thinkwell._lines.words import (
    Prompt,
    Response,
    read_host_line,
    read_message,
    write_init,
    write_message,
    write_response,
)
from thinkwell_acp import FrameTooLong
from thinkwell_acp import _jsonrpc as rpc
from thinkwell_acp import schema as s
from thinkwell_acp._framing import LineSplitter
from thinkwell_acp._peer import Answer, Message, Peer
from thinkwell_acp.mcp._stdio import LineSession
from thinkwell_acp.schema import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell_acp._peer import Received

# Framing


def _said_over(piece: bytes, times: int) -> bytes:
    return piece * times


_REPEATED = st.builds(
    _said_over,
    st.sampled_from([b"\n", b"x", b"\r\n", b"ab\n", b"\xff"]),
    st.integers(0, min(40 * LONGEST, 100_000)),
)
_BLOCKS: st.SearchStrategy[list[bytes]] = st.lists(_REPEATED | st.binary(), max_size=8)


def check_framing(given: tuple[list[bytes], int]) -> None:
    """Lines are those of the whole stream up to the first that is too long, and nothing else is kept."""
    blocks, limit = given
    splitter = LineSplitter(limit)
    lines: list[bytes] = []
    for block in blocks:
        try:
            lines += splitter.feed(block)
        except FrameTooLong:
            break
        if splitter.failure is not None:
            break
    *whole, rest = b"".join(blocks).split(b"\n")
    good = next((index for index, line in enumerate(whole) if len(line) > limit), None)
    assert lines == (whole if good is None else whole[:good])
    failed = good is not None or len(rest) > limit
    assert (splitter.failure is not None) == failed
    assert splitter.finish() == (b"" if failed else rest)


# JSON-RPC


def _flat(received: Sequence[Received[str]]) -> list[s.SessionNotification | Message[str]]:
    return [m for item in received for m in (item if isinstance(item, list) else [item])]


def _peer() -> Peer[str]:
    peer: Peer[str] = Peer()
    peer.request("session/prompt", b"{}", "asked")
    abandoned, _ = peer.request("session/new", b"{}", "left")
    peer.abandon(abandoned)
    return peer


def check_peer(given: tuple[list[bytes], list[int]]) -> None:
    """What comes out depends neither on how the bytes are cut nor on which of the two ways reads them."""
    lines, cuts = given
    stream = b"\n".join(lines)
    whole = _peer()
    messages = _flat(whole.receive(stream)) + _flat(whole.receive_eof())
    cut = _peer()
    again = [m for block in blocks_of(stream, cuts) for m in _flat(cut.receive(block))]
    assert again + _flat(cut.receive_eof()) == messages
    assert sum(isinstance(message, Answer) for message in messages) <= 1
    served = [message.id for message in messages if isinstance(message, rpc.Request)]
    assert len(served) == len(set(served)), "a request with an id that is being served"
    for id_ in served:
        assert whole.answer(id_, b"{}")
        assert not whole.answer(id_, b"{}")
    assert whole.close() == ([] if any(isinstance(m, Answer) for m in messages) else ["asked"])
    _check_ways(stream)


def _check_ways(stream: bytes) -> None:
    """An update that does not stand at the beginning of a long line is read in another way."""
    for line in stream.split(b"\n"):
        direct = _flat(Peer[str]().receive(line + b"\n"))
        in_steps = _flat(Peer[str]().receive(b" " * 5_000 + line + b"\n"))
        assert [type(message) for message in direct] == [type(message) for message in in_steps]
        for one, other in zip(direct, in_steps, strict=True):
            assert one == other or isinstance(one, rpc.Malformed)


def check_envelope(line: bytes) -> None:
    """Whatever a line is, it is a message or a value that says why not; and what was read can be written."""
    match rpc.parse(line):
        case rpc.Malformed(line=kept, reason=reason):
            assert kept == line
            assert reason
        case rpc.Request(id=id_) | rpc.Result(id=id_):
            msgspec.json.decode(rpc.encode_result(id_, b"{}"))
        case rpc.Failure() as failure:
            msgspec.json.decode(rpc.encode_failure(failure.id, failure.error))
        case rpc.Notification():
            pass


# NDJSON agents: the translation by itself


class _Host:
    """Our side of a translation."""

    def __init__(self, *, init: dict[str, object] | None) -> None:
        self.agent = LineAgent(name="fuzzed", init=init, prompt_format="json", max_line=LIMIT)
        self.peer: Peer[str] = Peer(max_line=8 * LIMIT)
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


# NDJSON agents: one line


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


# MCP over a stream


async def check_lines(given: tuple[list[bytes], list[int]]) -> None:
    """Behind all that is hostile, a ping over the shim's stream is answered."""
    lines, cuts = given
    stream = b"\n".join(lines) + b'\n{"id":"healthy","method":"ping"}\n'
    pipe = Pipe(blocks_of(stream, cuts), hears_until=b'"healthy"')
    with anyio.fail_after(60):
        await LineSession(pipe, Workbench().server).run(b"")
    for line in pipe.answers.splitlines():
        msgspec.json.decode(line)


TARGETS = (
    Target(
        name="framing",
        inputs=st.tuples(_BLOCKS, st.sampled_from([0, 1, 10, LONGEST // 2, LONGEST, 10**9])),
        check=check_framing,
    ),
    Target(name="envelope", inputs=LINES, check=check_envelope, weight=100),
    Target(name="peer", inputs=st.tuples(STREAMS, CUTS), check=check_peer),
    Target(name="line", inputs=PROGRAM_LINES, check=check_line, weight=100),
    Target(
        name="line translation",
        inputs=st.tuples(LINE_STREAMS, CUTS, st.lists(_ANSWERS, min_size=1, max_size=4), st.booleans()),
        check=check_translation,
        weight=100,
    ),
    Target(
        name="mcp over a stream", inputs=st.tuples(MCP_LINES, CUTS), check=on_both(check_lines), weight=FEW
    ),
)
