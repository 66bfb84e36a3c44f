"""From bytes to messages: the schema, and a whole client."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from fuzz.hostile import CUTS, FROM_AGENT, LONG_RUN, RESULTS, STREAMS, blocks_of, bodies, damaged
from fuzz.target import Target, on_both, told
from hypothesis import strategies as st

from thinkwell_acp import AcpError, ClientHandler, FrameTooLong, connect, memory_transport_pair
from thinkwell_acp import schema as s
from thinkwell_acp.schema import DecodeError

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    answered = bytearray()

    async def hear() -> None:
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError):
            while not (b"healthy" in answered and answered.endswith(b"\n")):
                answered.extend(await theirs.receive())
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
    _check_answers(bytes(answered).splitlines())
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
    Target(name="schema", inputs=_BODIES, check=check_schema, weight=100),
    Target(
        name="client",
        inputs=st.tuples(STREAMS, CUTS),
        check=on_both(check_client),
        weight=60 if LONG_RUN else 25,
    ),
)
