"""Wrong uses of channels, which type checkers have to find, as in wrong.py. Never run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell.channels import DeliverySettings, MessageRouter, StreamingChannel, UserMessageReceived, deliver

if TYPE_CHECKING:
    from thinkwell import Agent


class Mute:
    async def write(self, user_id: str, text: str) -> None: ...


class Numbered:
    async def send(self, user_id: int, text: str) -> None: ...


class Blocking:
    def send(self, user_id: str, text: str) -> None: ...


class Mail:
    async def send(self, user_id: str, text: str) -> None: ...


def note(written: UserMessageReceived) -> None: ...


async def delivered(agent: Agent) -> None:
    stream = agent.think(int).text("Go").stream()
    await deliver(stream, Mute(), "ada")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await deliver(stream, Numbered(), "ada")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await deliver(stream, Blocking(), "ada")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await deliver(stream, Mail(), 7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await deliver(stream, Mail(), "ada", text=str.upper)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await deliver(agent.think().text("Go"), Mail(), "ada")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    streaming: StreamingChannel = Mail()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    DeliverySettings(interval=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    del streaming


async def routed(agent: Agent) -> None:
    router = MessageRouter(agent, busy="drop")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    router.on("agent_response", note)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
