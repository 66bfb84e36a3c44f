"""One line, read and written: what a host says, for programs that are hosts to others."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell._lines._words import (
    Init,
    Prompt,
    Response,
    read_host_line,
    read_message,
    write_init,
    write_message,
    write_prompt,
    write_response,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=8,
)
TEXT = st.text(st.characters(codec="utf-8"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"Do it", Prompt("Do it")),
        (rb"one\ntwo\rthree\\n", Prompt("one\ntwo\rthree\\\n")),
        (rb"C:\temp\x", Prompt(r"C:\temp\x")),
        (b"Do it\r", Prompt("Do it")),
        (b"caf\xe9", Prompt("caf\ufffd")),
        (b"\xef\xbb\xbfDo it", Prompt("Do it")),
        (b"42", Prompt("42")),
        (b'{"prompt":"one\\ntwo"}', Prompt("one\ntwo")),
        (b'{"prompt":"a\\\\nb","context":{"x":[1]}}', Prompt("a\\nb", {"x": [1]})),
        (b' { "prompt": "a", "context": null, "type": "other" } \r', Prompt("a")),
        (b'{"type":"init"}', Init({})),
        (b'{"type":"init","params":{"a":1}}', Init({"a": 1})),
        (b'{"type":"init","params":7}', Init(7)),
        (b'{"type":"response","in_reply_to":"question","value":"x"}', Response("question", "x")),
        (b'{"type":"response","in_reply_to":"own","value":[1],"id":null}', Response("own", [1], None)),
        (b'{"type":"response","in_reply_to":7,"prompt":"a"}', Response("", None)),
        (b'{"type":"response","in_reply_to":"a","value":NaN,"id":"\\ud800"}', Response("a", None, "\ufffd")),
    ],
)
def test_a_line_of_a_host(line: bytes, said: object) -> None:
    assert read_host_line(line) == said


@pytest.mark.parametrize("line", [b"", b"\r", b" \t", b"\xef\xbb\xbf", b"\xef\xbb\xbf \r"])
def test_blank_lines_say_nothing(line: bytes) -> None:
    assert read_host_line(line) is None
    assert read_message(line) is None


@pytest.mark.parametrize(
    ("line", "flaw"),
    [
        (b'{"prompt":7}', "no text under `prompt`"),
        (b'{"type":"cancel"}', "no text under `prompt`"),
        (b'{"prompt":"a"', "truncated|delimiter"),
        (b'{"prompt":"a","context":' + b"[" * 300 + b"]" * 300 + b"}", "more than 200 levels"),
        (b"{" * 100_000, "recursion|Expecting"),
    ],
)
def test_what_begins_like_an_object_and_is_none_is_a_text(line: bytes, flaw: str) -> None:
    said = read_host_line(line)
    assert isinstance(said, Prompt)
    assert said.text == line.decode()
    assert re.search(flaw, said.flaw), said.flaw


@given(st.dictionaries(TEXT, JSON, max_size=4))
def test_parameters_are_read_as_they_were_written(params: dict[str, object]) -> None:
    line = write_init(params)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert read_host_line(line[:-1]) == Init(params)


@given(TEXT, st.dictionaries(TEXT, JSON, max_size=4))
def test_prompts_are_read_as_they_were_written(text: str, context: dict[str, object]) -> None:
    line = write_prompt(text, context, "json")
    assert line.count(b"\n") == 1
    assert read_host_line(line[:-1]) == Prompt(text, context or None)


@given(TEXT.filter(lambda text: "\\" not in text and text.strip() and text[0] not in "{\ufeff \t"))
def test_texts_are_read_as_they_were_written(text: str) -> None:
    line = write_prompt(text, None, "text")
    assert line.count(b"\n") == 1
    assert b"\r" not in line
    assert read_host_line(line[:-1]) == Prompt(text)


@given(TEXT, JSON, st.just(b"") | JSON)
def test_answers_are_read_as_they_were_written(kind: str, value: object, id_: object) -> None:
    written_id = None if id_ == b"" else msgspec.json.encode(id_)
    line = write_response(kind, msgspec.json.encode(value), written_id)
    assert line.count(b"\n") == 1
    expected = Response(kind, value) if id_ == b"" else Response(kind, value, id_)
    assert read_host_line(line[:-1]) == expected


@given(TEXT, st.dictionaries(TEXT.filter(lambda key: key != "type"), JSON, max_size=4))
def test_messages_are_read_as_they_were_written(kind: str, body: dict[str, object]) -> None:
    line = write_message(kind, body)
    assert line.count(b"\n") == 1
    message = read_message(line[:-1])
    assert message is not None
    assert (message.kind, message.body, message.flaw) == (kind, body, "")
