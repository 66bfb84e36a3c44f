"""The state machine: in whatever order things happen, a request is settled and answered once at most."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import pytest
from acp_support import Json, chunk, request, result, text_of, to_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from thinkwell_acp import _jsonrpc as rpc
from thinkwell_acp import schema as s
from thinkwell_acp._peer import Answer, Message, Peer, Received

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")

some_ids = st.integers(-2, 6) | st.sampled_from(["0", "1", "a"]) | st.none()


class Interleavings(RuleBasedStateMachine):
    """Does what both sides can do, in any order, and keeps a model of what must come of it."""

    ours = Bundle("ours")

    def __init__(self) -> None:
        super().__init__()
        self.peer: Peer[int] = Peer()
        self.open: dict[object, int] = {}
        self.abandoned: set[object] = set()
        self.settled: list[int] = []
        self.sent = 0
        self.serving: set[object] = set()

    @rule(target=ours)
    def ask(self) -> int:
        id_, line = self.peer.request("m", b"{}", self.sent)
        assert json.loads(line)["id"] == id_
        assert id_ not in self.open
        self.open[id_] = self.sent
        self.sent += 1
        return id_

    @rule(id_=ours)
    def abandon(self, id_: int) -> None:
        assert self.peer.abandon(id_) == (id_ in self.open)
        if self.open.pop(id_, None) is not None:
            self.abandoned.add(id_)

    @rule(id_=ours | some_ids, fails=st.booleans())
    def they_answer(self, id_: object, fails: bool) -> None:
        answer: Json = {"error": {"code": 1, "message": "m"}} if fails else {"result": {}}
        received = self.peer.receive(to_bytes({"id": id_, **answer}))
        known = id_ if isinstance(id_, int) else None
        if known in self.open and known is not None:
            (message,) = received
            assert isinstance(message, Answer)
            assert message.token == self.open.pop(known)
            self.settled.append(message.token)
        elif known is not None and known in self.abandoned:
            self.abandoned.remove(known)
            assert received == []
        else:
            assert [type(message) for message in received] == [rpc.Malformed]

    @rule(id_=some_ids)
    def they_ask(self, id_: object) -> None:
        (message,) = self.peer.receive(to_bytes(request(id_, "m", {})))
        assert isinstance(message, rpc.Malformed if id_ in self.serving else rpc.Request)
        self.serving.add(id_)

    @rule(id_=some_ids, fails=st.booleans())
    def we_answer(self, id_: int | str | None, fails: bool) -> None:
        line = self.peer.refuse(id_, rpc.ErrorObject(1, "m")) if fails else self.peer.answer(id_, b"{}")
        assert bool(line) == (id_ in self.serving)
        if line:
            echoed = json.loads(line)["id"]
            assert (type(echoed), echoed) == (type(id_), id_)
        self.serving.discard(id_)

    @rule()
    def close(self) -> None:
        assert sorted(self.peer.close()) == sorted(self.open.values())
        self.settled += self.open.values()
        self.open.clear()
        self.abandoned.clear()
        self.serving.clear()

    @invariant()
    def nothing_is_settled_twice(self) -> None:
        assert len(self.settled) == len(set(self.settled))


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(deadline=None)


@given(st.lists(st.integers(min_value=0), max_size=12))
def test_bytes_may_be_cut_within_characters(cuts: list[int]) -> None:
    stream = to_bytes(chunk("h\u00e9"), chunk("\U0001f600\u2028\u0085"), result(0, {}), chunk("end"))
    places = sorted({0, len(stream), *(place % len(stream) for place in cuts)})
    peer: Peer[str] = Peer()
    peer.request("m", b"{}", "token")
    received = [m for a, b in pairwise(places) for m in flat(peer.receive(stream[a:b]))]
    assert [text_of(m) if isinstance(m, s.SessionNotification) else m for m in received] == [
        "h\u00e9",
        "\U0001f600\u2028\u0085",
        Answer("token", rpc.Result(0, received[2].outcome.value)),  # type: ignore[union-attr]
        "end",
    ]


def flat(received: Iterable[Received[T]]) -> list[s.SessionNotification | Message[T]]:
    """The messages one by one."""
    return [m for item in received for m in (item if isinstance(item, list) else [item])]


def one(line: bytes) -> object:
    """What a peer makes of one line."""
    (message,) = flat(Peer[object]().receive(line + b"\n"))
    return message


def update_line(text: bytes = b"x", *, before: bytes = b"", extra: bytes = b"") -> bytes:
    content = b'{"type":"text","text":"%b"}' % text
    update = b'{"sessionUpdate":"agent_message_chunk","content":%b}' % content
    params = b'{"sessionId":"s","update":%b}' % update
    return b'{%b"jsonrpc":"2.0","method":"session/update","params":%b%b}' % (before, params, extra)


@pytest.mark.parametrize(
    "line",
    [
        update_line(),
        update_line(before=b'"_meta":{"%b":1},' % (b"k" * 100)),
        update_line(extra=b',"unknown":[1,{}]'),
        update_line() + b"\r",
        b"  " + update_line(),
        b'{"method":"session\\/update",'
        + update_line()[len(b'{"jsonrpc":"2.0","method":"session/update",') :],
    ],
)
def test_an_update_is_read_wherever_its_method_stands(line: bytes) -> None:
    message = one(line)
    assert isinstance(message, s.SessionNotification)
    assert text_of(message) == "x"


@pytest.mark.parametrize("broken", [b"\xff\xfe", b"\xf0\x9f\x98", b"\\ud83d", b"\\udc00\\ud800"])
def test_broken_text_in_an_update_costs_the_character_only(broken: bytes) -> None:
    message = one(update_line(b"a%bz" % broken))
    assert isinstance(message, s.SessionNotification)
    text = text_of(message)
    assert text.startswith("a\ufffd")
    assert text.endswith("z")


def test_an_update_with_an_id_is_a_request() -> None:
    assert isinstance(one(update_line(extra=b',"id":1')), rpc.Request)


def test_an_update_without_a_session_is_no_message() -> None:
    message = one(b'{"method":"session/update","params":{"update":{"sessionUpdate":"plan","entries":[]}}}')
    assert isinstance(message, rpc.Malformed)
    assert "sessionId" in message.reason


def test_an_update_beyond_all_depth_is_no_message() -> None:
    depth = 100_000
    assert isinstance(one(update_line(extra=b',"x":' + b"[" * depth + b"]" * depth)), rpc.Malformed)


def test_blank_lines_mean_nothing() -> None:
    assert Peer[object]().receive(b"\n \r\n\t\n\n") == []


def test_a_last_line_needs_no_end() -> None:
    peer: Peer[object] = Peer()
    assert peer.receive(update_line()) == []
    (message,) = flat(peer.receive_eof())
    assert isinstance(message, s.SessionNotification)
    assert Peer[object]().receive_eof() == []


def test_what_stands_before_a_line_beyond_the_limit_is_received() -> None:
    peer: Peer[object] = Peer(max_line=1000)
    received = peer.receive(update_line() + b"\n" + update_line(b"y" * 1000) + b"\n" + update_line() + b"\n")
    assert len(received) == 1
    assert peer.failure is not None
    assert peer.receive(update_line() + b"\n") == []
    assert peer.receive_eof() == []
