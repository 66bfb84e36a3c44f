"""JSON-RPC messages as values."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thinkwell_acp import _jsonrpc as rpc
from thinkwell_acp import schema as s

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
