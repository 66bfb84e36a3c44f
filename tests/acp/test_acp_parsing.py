"""What comes from the other side, byte by byte: how it is cut into blocks and lines means nothing, whatever
is no message costs only itself, and each request is settled and answered once at most."""

from __future__ import annotations

import json
import tracemalloc
from codecs import BOM_UTF8
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import pytest
from acp_support import Json, chunk, request, result, text_of, to_bytes
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

# Private: the parsers do no input and output, and are fed byte by byte here, as no transport can be made to.
from thinkwell_acp import FrameTooLong
from thinkwell_acp import _jsonrpc as rpc
from thinkwell_acp import schema as s
from thinkwell_acp._framing import LineSplitter
from thinkwell_acp._peer import Answer, Message, Peer, Received

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")

# Bytes to lines

SHORT = 8

streams = st.lists(st.binary(max_size=12), max_size=8).map(b"\n".join)


def cut(stream: bytes, cuts: list[int]) -> list[bytes]:
    """Cut a stream at the given places."""
    places = sorted({0, len(stream), *(place % (len(stream) + 1) for place in cuts)})
    return [stream[start:end] for start, end in pairwise(places)]


def split(blocks: list[bytes], limit: int) -> tuple[list[bytes], bytes, bool]:
    """Feed blocks and return the lines, the rest, and whether it failed."""
    splitter = LineSplitter(limit)
    lines: list[bytes] = []
    for block in blocks:
        try:
            lines += splitter.feed(block)
        except FrameTooLong:
            break
    return lines, splitter.finish(), splitter.failure is not None


@given(streams, st.lists(st.integers(min_value=0), max_size=10))
def test_how_a_stream_is_cut_means_nothing(stream: bytes, cuts: list[int]) -> None:
    *lines, rest = stream.split(b"\n")
    assert split(cut(stream, cuts), 1000) == (lines, rest, False)


@given(streams, st.lists(st.integers(min_value=0), max_size=10))
def test_the_limit_hits_the_same_line_however_the_stream_is_cut(stream: bytes, cuts: list[int]) -> None:
    *lines, rest = stream.split(b"\n")
    good: list[bytes] = []
    for line in lines:
        if len(line) > SHORT:
            break
        good.append(line)
    failed = len(good) < len(lines) or len(rest) > SHORT
    assert split(cut(stream, cuts), SHORT) == (good, b"" if failed else rest, failed)


def test_only_the_byte_0x0a_ends_a_line() -> None:
    line = "a\r\u2028\u2029\u0085\x0b\x0c\x1cb".encode()
    assert LineSplitter().feed(line + b"\n") == [line]


def test_a_failed_splitter_stays_failed() -> None:
    splitter = LineSplitter(4)
    assert splitter.feed(b"ok\ntoo long\n") == [b"ok"]
    assert splitter.failure is not None
    with pytest.raises(FrameTooLong) as caught:
        splitter.feed(b"ok\n")
    assert caught.value.limit == 4


def test_a_line_of_the_limit_passes_and_one_byte_more_does_not() -> None:
    assert LineSplitter(4).feed(b"1234\n") == [b"1234"]
    with pytest.raises(FrameTooLong, match="more than 4 bytes"):
        LineSplitter(4).feed(b"12345\n")
    with pytest.raises(FrameTooLong):
        LineSplitter(4).feed(b"12345")


def test_nothing_is_left_after_the_end() -> None:
    splitter = LineSplitter()
    splitter.feed(b"a\nb")
    assert splitter.finish() == b"b"
    assert splitter.finish() == b""


@pytest.mark.parametrize("begun", [b"", b"beg"])
def test_the_memory_of_a_very_long_line_is_given_back(begun: bytes) -> None:
    splitter = LineSplitter()
    piece = b"x" * 1_000_000
    tracemalloc.start()
    try:
        for _ in range(20):
            assert splitter.feed(piece) == []
        assert [len(line) for line in splitter.feed(b"\n" + begun)] == [20_000_000]
        held = tracemalloc.get_traced_memory()[0]
        assert splitter.feed(b"short\n") == [begun + b"short"]
        assert held - tracemalloc.get_traced_memory()[0] > 15_000_000
    finally:
        tracemalloc.stop()


def test_a_long_line_in_small_pieces_is_not_moved_at_each_of_them() -> None:
    splitter, piece = LineSplitter(), b"x" * 16
    for _ in range(100_000):  # to move or copy all of it each time takes a minute
        assert splitter.feed(piece) == []
    assert [len(line) for line in splitter.feed(b"\n")] == [1_600_000]


# Lines to JSON-RPC messages

texts = st.text(st.characters(exclude_categories=["Cs"]))
ids = st.none() | st.integers(-(2**70), 2**70) | texts
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    leaves | texts, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)
raws = values.map(lambda value: msgspec.Raw(s.encode(value)))
errors = st.builds(rpc.ErrorObject, st.integers(-(2**31), 2**31 - 1), texts, values)
messages = (
    st.builds(rpc.Request, ids, texts, raws)
    | st.builds(rpc.Notification, texts, raws)
    | st.builds(rpc.Result, ids, raws)
    | st.builds(rpc.Failure, ids, errors)
)


def encoded(message: rpc.Message) -> bytes:
    match message:
        case rpc.Request():
            return rpc.encode_request(message.id, message.method, bytes(message.params))
        case rpc.Notification():
            return rpc.encode_notification(message.method, bytes(message.params))
        case rpc.Result():
            return rpc.encode_result(message.id, bytes(message.value))
        case rpc.Failure():
            return rpc.encode_failure(message.id, message.error)
        case rpc.Malformed():
            raise AssertionError(message)


def read(line: bytes) -> rpc.Message:
    return rpc.parse(line)


@given(messages)
def test_what_is_written_is_read_back(message: rpc.Message) -> None:
    line = encoded(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert rpc.parse(line) == message
    plain: dict[str, Any] = json.loads(line)
    assert plain["jsonrpc"] == "2.0"


@given(st.binary() | values.map(lambda value: json.dumps(value).encode()))
@example(b"[" * 200_000)
@example(b'{"method":"x","params":' + b"[" * 200_000 + b"]" * 200_000 + b"}")
@example(b'{"id":1,"error":{"code":1,"data":' + b"[" * 990 + b"]" * 990 + b"}}")
@example(b'{"id":' + b"9" * 5000 + b',"method":"x"}')
@example(b'{"id":1e400,"method":"x"}')
@example(b"NaN")
@example(b'{"id":NaN,"method":"x"}')
def test_junk_never_raises(line: bytes) -> None:
    rpc.parse(line)


@given(st.dictionaries(st.sampled_from(["id", "method", "params", "result", "error", "jsonrpc"]), values))
def test_odd_objects_never_raise(message: dict[str, object]) -> None:
    rpc.parse(json.dumps(message).encode())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"Welcome!", "malformed"),
        (b"[]", "Expected `object`"),
        (b"5", "Expected `object`"),
        (b'{"jsonrpc":"2.0"}', "neither a method nor an id"),
        (b'{"id":1}', "without method, result or error"),
        (b'{"id":1,"error":null}', "without method, result or error"),
        (b'{"id":1.5,"method":"x"}', "got `float`"),
        (b'{"id":true,"method":"x"}', "got `bool`"),
        (b'{"a":' + b"[" * 100_000, "recursion"),
    ],
)
def test_what_is_no_message_is_a_value_with_a_reason(line: bytes, reason: str) -> None:
    message = rpc.parse(line)
    assert isinstance(message, rpc.Malformed)
    assert reason in message.reason
    assert message.line == line


def test_params_may_be_missing() -> None:
    assert read(b'{"id":1,"method":"x"}') == rpc.Request(1, "x", rpc.NO_PARAMS)
    assert read(b'{"method":"x"}') == rpc.Notification("x", rpc.NO_PARAMS)


def test_a_null_result_is_a_result_and_a_null_error_is_none() -> None:
    assert read(b'{"id":1,"result":null}') == rpc.Result(1, msgspec.Raw(b"null"))
    assert read(b'{"id":1,"result":{},"error":null}') == rpc.Result(1, msgspec.Raw(b"{}"))


@pytest.mark.parametrize("error", ['"boom"', "[]", '{"code":"x"}', '{"message":"m"}'])
def test_an_error_of_the_wrong_shape_is_an_error_all_the_same(error: str) -> None:
    message = rpc.parse(b'{"id":1,"error":%b}' % error.encode())
    assert isinstance(message, rpc.Failure)
    assert message.error.code == -32603
    assert message.error.data == error


def test_an_error_needs_no_message() -> None:
    assert read(b'{"id":1,"error":{"code":-32000}}') == rpc.Failure(1, rpc.ErrorObject(-32000))
    assert json.loads(rpc.encode_failure(1, rpc.ErrorObject(5)))["error"] == {"code": 5, "message": ""}


@pytest.mark.parametrize("broken", [b"\xff", b"\xe2\x82", b"\\ud83d", b"\\udc00"])
def test_broken_text_costs_the_character_and_not_the_message(broken: bytes) -> None:
    line = b'{"id":"a","method":"m","params":{"text":"x%by"}}' % broken
    message = rpc.parse(line)
    assert isinstance(message, rpc.Request)
    assert json.loads(bytes(message.params)) == {"text": "x\ufffdy"}


def test_escaped_pairs_of_surrogates_survive_a_repair() -> None:
    message = rpc.parse(b'{"method":"\xff","params":{"text":"\\ud83d\\ude00"}}')
    assert isinstance(message, rpc.Notification)
    assert message.method == "\ufffd"
    assert json.loads(bytes(message.params)) == {"text": "\U0001f600"}


@pytest.mark.parametrize("data", [object(), "\ud800", float("nan")])
def test_an_error_is_written_whatever_is_in_it(data: object) -> None:
    line = rpc.encode_failure(1, rpc.ErrorObject(1, "caf\u00e9 \ud800", data))
    assert json.loads(line)["error"]["message"] == "caf\u00e9 ?"
    assert isinstance(rpc.parse(line), rpc.Failure)


def test_an_error_may_carry_a_model() -> None:
    line = rpc.encode_failure(1, rpc.ErrorObject(1, "m", {"block": s.TextContent(text="t")}))
    assert json.loads(line)["error"]["data"] == {"block": {"type": "text", "text": "t"}}


# Messages to what is to be done

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
    assert Peer[object]().receive(b"\n \r\n\t\n\n" + BOM_UTF8 + b"\n" + BOM_UTF8 + b" \r\n") == []


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
