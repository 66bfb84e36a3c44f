"""Bytes to lines: how they are cut into blocks means nothing."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell_acp import FrameTooLong
from thinkwell_acp._framing import LineSplitter

LIMIT = 8

streams = st.lists(st.binary(max_size=12), max_size=8).map(b"\n".join)


def cut(stream: bytes, cuts: list[int]) -> list[bytes]:
    """Cut a stream at the given places."""
    places = sorted({0, len(stream), *(place % (len(stream) + 1) for place in cuts)})
    return [stream[start:end] for start, end in pairwise(places)]


def read(blocks: list[bytes], limit: int) -> tuple[list[bytes], bytes, bool]:
    """Feed blocks and return the lines, the rest, and whether it failed."""
    splitter = LineSplitter(limit)
    lines: list[bytes] = []
    for block in blocks:
        try:
            lines += map(bytes, splitter.feed(block))
        except FrameTooLong:
            break
    return lines, splitter.finish(), splitter.failure is not None


@given(streams, st.lists(st.integers(min_value=0), max_size=10))
def test_how_a_stream_is_cut_means_nothing(stream: bytes, cuts: list[int]) -> None:
    *lines, rest = stream.split(b"\n")
    assert read(cut(stream, cuts), 1000) == (lines, rest, False)


@given(streams, st.lists(st.integers(min_value=0), max_size=10))
def test_the_limit_hits_the_same_line_however_the_stream_is_cut(stream: bytes, cuts: list[int]) -> None:
    *lines, rest = stream.split(b"\n")
    good: list[bytes] = []
    for line in lines:
        if len(line) > LIMIT:
            break
        good.append(line)
    failed = len(good) < len(lines) or len(rest) > LIMIT
    assert read(cut(stream, cuts), LIMIT) == (good, b"" if failed else rest, failed)


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


def test_the_memory_of_a_very_long_line_is_given_back() -> None:
    splitter = LineSplitter()
    piece = b"x" * 1_000_000
    tracemalloc.start()
    try:
        for _ in range(20):
            assert splitter.feed(piece) == []
        assert [len(line) for line in splitter.feed(b"\n")] == [20_000_000]
        held = tracemalloc.get_traced_memory()[0]
        assert splitter.feed(b"short\n") == [b"short"]
        assert held - tracemalloc.get_traced_memory()[0] > 15_000_000
    finally:
        tracemalloc.stop()
