"""A conversation with an agent that says in its turn what it is given, be it hostile."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio
import msgspec

from thinkwell import Buffer, HistoryMessage, RunView, ThinkwellError, ThoughtEvent, ThoughtStream, open_agent
from thinkwell_acp import memory_transport_pair

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from thinkwell_acp import MemoryTransport

SESSION: Final = "the session"
CWD: Final = str(Path(__file__).resolve().parent)


class Talk(NamedTuple):
    """What came of it."""

    events: list[ThoughtEvent]
    view: RunView
    history: tuple[HistoryMessage, ...]
    answers: dict[str, Any]
    """What the agent was answered, by the ids of its requests."""


def request(id_: str, method: str, params: bytes) -> bytes:
    """A request of the agent's, whose parameters are written already."""
    return b'{"jsonrpc":"2.0","id":"%b","method":"%b","params":%b}' % (id_.encode(), method.encode(), params)


class Player:
    """The agent.

    Args:
        transport: Its end of the connection.
        lines: What it says in its turn.
        waits_for: Ids of requests that have to be answered before the turn ends.
        replayed: What it says while it opens an old session.
    """

    def __init__(
        self,
        transport: MemoryTransport,
        lines: Sequence[bytes],
        waits_for: Sequence[str] = (),
        replayed: Sequence[bytes] = (),
    ) -> None:
        self._transport = transport
        self._lines = lines
        self._waits_for = waits_for
        self._replayed = replayed
        self._prompt: object = None
        self.answers: dict[str, Any] = {}

    async def play(self) -> None:
        """Talk until the client is gone."""
        heard = b""
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            while True:
                heard += await self._transport.receive()
                *lines, heard = heard.split(b"\n")
                for line in lines:
                    await self._take(msgspec.json.decode(line))

    async def _take(self, message: dict[str, Any]) -> None:
        match message.get("method"):
            case None:
                self.answers[message["id"]] = message.get("result", message.get("error"))
                await self._end_turn_when_answered()
            case "initialize":
                capabilities = {"loadSession": True, "mcpCapabilities": {"acp": True}}
                await self._answer(message["id"], {"protocolVersion": 1, "agentCapabilities": capabilities})
            case "session/new":
                await self._answer(message["id"], {"sessionId": SESSION})
            case "session/load":
                await self._say(*self._replayed)
                await self._answer(message["id"], {})
            case "session/prompt":
                self._prompt = message["id"]
                await self._say(*self._lines)
                await self._end_turn_when_answered()
            case "session/cancel":
                await self._end_turn("cancelled")
            case _ if "id" in message:
                error = {"code": -32601, "message": "no"}
                await self._say(msgspec.json.encode({"jsonrpc": "2.0", "id": message["id"], "error": error}))
            case _:
                pass

    async def _end_turn_when_answered(self) -> None:
        if self.answers.keys() >= set(self._waits_for):
            await self._end_turn("end_turn")

    async def _end_turn(self, reason: str) -> None:
        if self._prompt is not None:
            await self._answer(self._prompt, {"stopReason": reason})
            self._prompt = None

    async def _answer(self, id_: object, result: object) -> None:
        await self._say(msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "result": result}))

    async def _say(self, *lines: bytes) -> None:
        await self._transport.send(b"".join(line + b"\n" for line in lines))


async def talk(
    *lines: bytes,
    waits_for: Sequence[str] = (),
    replayed: Sequence[bytes] = (),
    buffer: Buffer | None = None,
    look: Callable[[ThoughtStream[str]], Awaitable[None]] | None = None,
    **options: Any,
) -> Talk:
    """Have one run of a session, and return what came of it.

    Args:
        lines: What the agent says in its turn.
        waits_for: Ids of those of its requests that have to be answered before the turn ends.
        replayed: What the agent says while the session is loaded.
        buffer: The run's.
        look: Looks at the run while it goes on.
        options: Those of `open_agent`.
    """
    ours, theirs = memory_transport_pair()
    player = Player(theirs, lines, waits_for, replayed)
    talked: list[Talk] = []
    with anyio.fail_after(600):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(player.play)
            async with (
                open_agent(transport=ours, cwd=CWD, **options) as agent,
                agent.session(load=SESSION if replayed else None) as session,
            ):
                stream = session.think().text("Go").stream(include="all", buffer=buffer)
                if look is not None:
                    await look(stream)
                with suppress(ThinkwellError):
                    await stream.result
                events = [event async for event in stream]
                talked.append(Talk(events, stream.view, session.history(), player.answers))
            tasks.cancel_scope.cancel()
    return talked[0]
