"""Makes what an agent might send at its worst: messages of the protocol, spoilt in every way that we know of.

Messages are made from the schema's own classes and then spoilt: first as values (fields dropped, replaced,
given ids that clash), then as bytes (keys doubled, cut, spliced). Values that only bytes can say (numbers
without end, halves of characters, depth) travel through the encoder as `Raw`.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import msgspec
from hypothesis import strategies as st
from msgspec import Raw
from schema.wire_strategies import JSON, ours

from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from typing_extensions import TypeIs

LONG_RUN: Final = "THINKWELL_FUZZ" in os.environ
"""Whether there is time for inputs of a size at which too much work shows."""

LONGEST: Final = 50_000 if LONG_RUN else 1_000
"""Characters of a text that is a piece said over and over."""

DEEPEST: Final = 100_000 if LONG_RUN else 5_000


def is_object(value: Any) -> TypeIs[dict[str, Any]]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeIs[list[Any]]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)


FROM_AGENT: Final[dict[str, type[s.Model]]] = {
    method.name: method.params for method in s.METHODS if method.side in ("client", "both")
}
"""Parameters of what an agent sends, by method."""

RESULTS: Final[tuple[type, ...]] = tuple(
    dict.fromkeys(
        method.result
        for method in s.METHODS
        if method.side in ("agent", "both") and method.result not in (None, object)
    )
)
"""What an agent answers."""

IDS: Final = st.sampled_from(["", "a", "b", "s1"])
_ID_KEYS: Final = frozenset(("id", "messageId", "planId", "sessionId", "toolCallId", "compactionId"))


def repeated(pieces: Sequence[str], longest: int = LONGEST) -> st.SearchStrategy[str]:
    """Texts made of a few pieces, one of them perhaps very often."""
    one = st.sampled_from(pieces)
    few = st.lists(one, max_size=6).map("".join)
    unit = one | st.lists(one, min_size=1, max_size=3).map("".join)

    def many(unit: str, share: float) -> str:
        return unit * int(longest * share // max(len(unit), 1))

    often = st.builds(many, unit, st.sampled_from([0.1, 0.5, 1.0]))
    return st.one_of(few, st.tuples(few, often, few).map("".join))


def depth(opening: bytes, closing: bytes) -> st.SearchStrategy[Raw]:
    """Values within values, as deep as readers can just take, and far deeper."""
    around = st.integers(60, 1100) | st.sampled_from([2, 300, 985, 995, DEEPEST])
    return around.map(lambda n: Raw(opening * n + b"1" + closing * n))


LEAVES: Final[st.SearchStrategy[Any]] = st.one_of(
    JSON,
    IDS,
    st.sampled_from(
        [
            Raw(b"NaN"),
            Raw(b"-Infinity"),
            Raw(b"1e999"),
            Raw(b"1.5"),
            Raw(b"-0"),
            Raw(b"9" * 30),
            Raw(b"9" * 5000),
            Raw(b"18446744073709551616"),
            Raw(rb'"\ud83d"'),
            Raw(rb'"\ude00\ud83d"'),
            Raw(rb'"\q"'),
            Raw(b'"\xff\xe2\x82"'),
            Raw(b'"a\x00b"'),
            Raw(rb'"a\u0000\u2028\n"'),
            Raw(b'{"a":1,"a":2}'),
            Raw(b'{"type":"text","type":"image"}'),
            Raw(b"[]" * 2),
        ]
    ),
    depth(b"[", b"]"),
    depth(b'{"a":', b"}"),
    repeated(["a", "_", " ", "\\", '"', "\u00e4", "\U0001f600", "\x00", "/", "-"]),
)
"""Values that nobody should send."""


def spoilt(value: Any, draw: st.DrawFn) -> Any:
    """Return a JSON value with one thing somewhere in it spoilt."""
    if not value or draw(st.integers(0, 5)) == 0:
        return draw(LEAVES)
    if is_object(value):
        return _spoilt_object(dict(value), draw)
    if not is_array(value):
        return draw(LEAVES)
    place = draw(st.integers(0, len(value) - 1))
    before, item, after = value[:place], value[place], value[place + 1 :]
    match draw(st.integers(0, 9)):
        case 0:
            return before + after
        case 1:
            return value + value[:3]
        case _:
            return [*before, spoilt(item, draw), *after]


def _spoilt_object(fields: dict[str, Any], draw: st.DrawFn) -> dict[str, Any]:
    key = draw(st.sampled_from(sorted(fields)))
    value = fields.pop(key)
    match draw(st.integers(0, 9)):
        case 0:
            pass
        case 1:
            fields[draw(st.sampled_from([*sorted(fields), "_meta", "x"]))] = value
        case _:
            fields[key] = spoilt(value, draw)
    return fields


def with_ids(value: Any, draw: st.DrawFn) -> Any:
    """Return a value whose ids are of a few, so that they clash."""
    if is_array(value):
        return [with_ids(item, draw) for item in value]
    if not is_object(value):
        return value
    return {
        key: draw(IDS) if key in _ID_KEYS and isinstance(item, str) else with_ids(item, draw)
        for key, item in value.items()
    }


@st.composite
def bodies(draw: st.DrawFn, type_: type, fill: Callable[[Any, st.DrawFn], Any] = with_ids) -> bytes:
    """Values of a type as JSON, spoilt up to three times; half of them not at all."""
    value = fill(msgspec.json.decode(s.encode(draw(ours(type_)))), draw)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2, 3]))):
        value = spoilt(value, draw)
    return _doubled(msgspec.json.encode(value), draw)


def _doubled(body: bytes, draw: st.DrawFn) -> bytes:
    """Return a body in which some object has, now and then, a key twice or one more."""
    if body[:1] != b"{" or len(body) > 10_000 or draw(st.integers(0, 7)):
        return body
    places = [place for place, byte in enumerate(body) if byte == 0x7B]
    place = draw(st.sampled_from(places)) + 1
    key = draw(st.sampled_from(["type", "sessionUpdate", "id", "method", "toolCallId", "content", "x"]))
    return body[:place] + msgspec.json.encode({key: draw(LEAVES)})[1:-1] + b"," + body[place:]


@st.composite
def damaged(draw: st.DrawFn, lines: st.SearchStrategy[bytes]) -> bytes:
    """Lines, some of them cut, spliced or with bytes that do not belong."""
    line = draw(lines)
    how = draw(st.sampled_from(["", "", "", "", "cut", "splice", "insert", "twice", "pad"]))
    place = draw(st.integers(0, len(line))) if how else 0
    match how:
        case "cut":
            return line[:place]
        case "splice":
            other = draw(lines)
            return line[:place] + other[draw(st.integers(0, len(other))) :]
        case "insert":
            return line[:place] + draw(st.binary(max_size=4)) + line[place:]
        case "twice":
            return line[:place] + line
        case "pad":
            return b" " * draw(st.sampled_from([1, 5_000])) + line + b"\r"
        case _:
            return line


def _known_messages() -> st.SearchStrategy[bytes]:
    def call(method: str) -> st.SearchStrategy[bytes]:
        return st.builds(_call, WIRE_IDS, st.just(method), bodies(FROM_AGENT[method]))

    def result(type_: type) -> st.SearchStrategy[bytes]:
        return st.builds(_answer, WIRE_IDS, bodies(type_))

    calls = st.one_of([call(method) for method in FROM_AGENT])
    results = st.one_of([result(type_) for type_ in RESULTS])
    return st.one_of(call("session/update"), call("session/update"), calls, calls, results)


WIRE_IDS: Final = st.sampled_from(
    [b"0", b"1", b"0.0", b"null", b'""', b'"0"', b"true", b"-1", b"9" * 30, b"{}", b'"\\ud83d"', None, None]
)


def _call(id_: bytes | None, method: str, params: bytes) -> bytes:
    head = b"" if id_ is None else b'"id":%b,' % id_
    return b'{"jsonrpc":"2.0",%b"method":"%b","params":%b}' % (head, method.encode(), params)


def _answer(id_: bytes | None, result: bytes) -> bytes:
    return b'{"id":%b,"result":%b}' % (id_ or b"0", result)


@st.composite
def _odd_messages(draw: st.DrawFn) -> bytes:
    known = {
        "jsonrpc": st.sampled_from(["2.0", 2, None]),
        "id": LEAVES,
        "method": st.sampled_from([*FROM_AGENT, "_x/y", ""]) | LEAVES,
        "params": LEAVES,
        "result": LEAVES,
        "error": st.fixed_dictionaries({}, optional={"code": LEAVES, "message": LEAVES, "data": LEAVES})
        | LEAVES,
    }
    return msgspec.json.encode(draw(st.fixed_dictionaries({}, optional=known)))


LINES: Final[st.SearchStrategy[bytes]] = damaged(
    st.one_of(st.deferred(_known_messages), st.deferred(_known_messages), _odd_messages(), st.binary())
)
"""Whole lines of an agent, line ends among them now and then."""

STREAMS: Final = st.lists(LINES, min_size=1, max_size=6)

CUTS: Final = st.lists(st.integers(min_value=0, max_value=2**20), max_size=6)


def blocks_of(stream: bytes, cuts: Iterable[int]) -> list[bytes]:
    """Cut a stream at the given places."""
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    return [stream[start:end] for start, end in pairwise(places)]
