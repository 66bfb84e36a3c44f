"""From bytes to messages: framing, JSON-RPC, the schema, and a whole client."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from fuzz.hostile import FROM_AGENT, LINES, LONG_RUN, LONGEST, RESULTS, STREAMS, bodies, damaged
from fuzz.target import Target, on_both, told
from hypothesis import strategies as st

from thinkwell_acp import AcpError, ClientHandler, FrameTooLong, connect, memory_transport_pair
from thinkwell_acp import _jsonrpc as rpc
from thinkwell_acp import schema as s
from thinkwell_acp._framing import LineSplitter
from thinkwell_acp._peer import Answer, Message, Peer
from thinkwell_acp.schema import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from thinkwell_acp._peer import Received

CUTS = st.lists(st.integers(min_value=0, max_value=2**20), max_size=6)


def blocks_of(stream: bytes, cuts: Iterable[int]) -> list[bytes]:
    """Cut a stream at the given places."""
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    return [stream[start:end] for start, end in pairwise(places)]


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
            lines += map(bytes, splitter.feed(block))
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


# The schema

_TYPES = st.sampled_from([*FROM_AGENT.values(), *RESULTS])
_BODIES = _TYPES.flatmap(lambda type_: st.tuples(st.just(type_), damaged(bodies(type_))))


def check_schema(given: tuple[type[Any], bytes]) -> None:
    """A body is read or refused; what was read is written, and read again as the same."""
    type_, body = given
    try:
        value = s.decode(type_, body)
    except DecodeError as exc:
        told(str(exc), where=exc.path.startswith("$"))
        return
    written = s.encode(value)
    assert s.encode(s.decode(type_, written)) == written


# A client

_HEALTHY = (
    b'{"method":"session/update","params":{"sessionId":"healthy","update":{"sessionUpdate":"plan","entries":[]}}}\n'
    b'{"id":"healthy","method":"session/request_permission","params":{"sessionId":"healthy","toolCall":'
    b'{"toolCallId":"t"},"options":[]}}\n'
)
_MOST = 200_000
"""Bytes of a line that this client takes."""


class _Listener(ClientHandler):
    def __init__(self) -> None:
        self.sessions: list[str] = []
        self.reasons: list[AcpError] = []

    def session_updates(self, batch: Sequence[s.SessionNotification], /) -> None:
        self.sessions += [notification.session_id for notification in batch]

    def closed(self, reason: AcpError, /) -> None:
        self.reasons.append(reason)


async def check_client(given: tuple[list[bytes], list[int]]) -> None:
    """Behind all that is hostile, a healthy message arrives and is answered; or the end has a reason."""
    lines, cuts = given
    stream = b"\n".join(lines) + b"\n" + _HEALTHY
    ours, theirs = memory_transport_pair()
    listener = _Listener()
    answers: list[bytes] = []

    async def hear() -> None:
        splitter = LineSplitter()
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError):
            while b"healthy" not in b"".join(answers):
                answers.extend(map(bytes, splitter.feed(await theirs.receive())))
        heard.set()

    heard = anyio.Event()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            async with connect(ours, listener, max_line=_MOST) as client:
                tasks.start_soon(_ask, client)
                tasks.start_soon(hear)
                await anyio.wait_all_tasks_blocked()
                for block in blocks_of(stream, cuts):
                    await theirs.send(block)
                    await anyio.lowlevel.checkpoint()
                if any(len(line) > _MOST for line in stream.split(b"\n")):
                    await client.connection.wait_closed()
                    assert isinstance(client.connection.error, FrameTooLong)
                else:
                    await heard.wait()
                    assert client.connection.error is None
                    assert listener.sessions[-1] == "healthy"
            tasks.cancel_scope.cancel()
    _check_answers(answers)
    assert len(listener.reasons) == 1


async def _ask(client: Any) -> None:
    """Wait for an answer, which they may spoil."""
    prompt = s.PromptRequest(session_id="s1", prompt=(s.TextContent(text="hi"),))
    with suppress(AcpError, DecodeError):
        assert isinstance(await client.prompt(prompt), s.PromptResponse)


def _check_answers(answers: list[bytes]) -> None:
    decoded = [msgspec.json.decode(line) for line in answers]
    ids = [repr(answer["id"]) for answer in decoded if "method" not in answer]
    assert all(answer.keys() & {"result", "error"} for answer in decoded if "method" not in answer)
    # An id may be used again once it was answered, but what we got at most is what they asked.
    assert ids.count("'healthy'") <= 1
    internal = [answer for answer in decoded if answer.get("error", {}).get("code") == -32603]
    assert not internal, internal


TARGETS = (
    Target(
        name="framing",
        inputs=st.tuples(_BLOCKS, st.sampled_from([0, 1, 10, LONGEST // 2, LONGEST, 10**9])),
        check=check_framing,
    ),
    Target(name="envelope", inputs=LINES, check=check_envelope, weight=100),
    Target(name="peer", inputs=st.tuples(STREAMS, CUTS), check=check_peer),
    Target(name="schema", inputs=_BODIES, check=check_schema, weight=100),
    Target(
        name="client",
        inputs=st.tuples(STREAMS, CUTS),
        check=on_both(check_client),
        weight=60 if LONG_RUN else 25,
    ),
)
