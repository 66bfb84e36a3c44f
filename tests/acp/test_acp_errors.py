"""Errors carry data: they can be copied, pickled and read."""

from __future__ import annotations

import copy
import pickle

import pytest

import thinkwell_acp
from thinkwell_acp import (
    AcpError,
    CapabilityMissing,
    ConnectionBroken,
    ConnectionClosed,
    ConnectionEnded,
    FrameTooLong,
    ProcessExited,
    ProgramNotFound,
    ProgramNotStarted,
    RpcError,
    VersionMismatch,
)

ERRORS: list[tuple[AcpError, str]] = [
    (RpcError(-32000, "Log in"), "Log in [-32000]"),
    (RpcError(1, "m", {"uri": "x"}), "m [1] ({'uri': 'x'})"),
    (RpcError.method_not_found("x"), "Method not found: x [-32601] ({'method': 'x'})"),
    (
        CapabilityMissing("auth.logout", "logout"),
        "logout needs auth.logout, which the agent does not advertise",
    ),
    (ConnectionClosed(), "the connection is closed"),
    (ConnectionEnded("it said nothing"), "it said nothing"),
    (ConnectionBroken(), "the other side closed the connection"),
    (ConnectionBroken("it is late"), "it is late"),
    (ProcessExited(3, ""), "the agent exited with code 3"),
    (ProcessExited(0, "oh\n"), "the agent exited with code 0; it wrote to stderr:\noh\n"),
    (ProcessExited(-9, ""), "the agent was killed by signal 9"),
    (ProcessExited(None, ""), "the agent closed its standard output"),
    (FrameTooLong(5), "the other side sent a line of more than 5 bytes"),
    (
        VersionMismatch(1, 2),
        "the agent speaks version 2 of the Agent Client Protocol, this client version 1",
    ),
    (ProgramNotFound(["x"], "there is no x"), "there is no x"),
    (ProgramNotStarted(["x"], "x may not run"), "x may not run"),
]


@pytest.mark.parametrize(("error", "text"), ERRORS)
def test_an_error_says_what_happened_and_keeps_it_as_data(error: AcpError, text: str) -> None:
    assert str(error) == text
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert vars(twin) == vars(error)
        assert str(twin) == text


def test_every_public_name_is_there_once() -> None:
    assert sorted(set(thinkwell_acp.__all__)) == sorted(thinkwell_acp.__all__)
    assert all(hasattr(thinkwell_acp, name) for name in thinkwell_acp.__all__)
