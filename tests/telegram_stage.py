"""A Telegram channel, a server for it in memory, and people: what tests of the channel play on."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from bot_api.server import TOKEN, BotApi
from bot_api.serving import client

from thinkwell.channels import deliver
from thinkwell.channels.telegram import TelegramChannel
from thinkwell.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    import httpx
    from anyio.abc import TaskGroup
    from bot_api.values import Chat, Person, Post

    from thinkwell.channels import Delivery, DeliverySettings
    from thinkwell.channels.telegram import IncomingMessage
    from thinkwell.testing import Script

__all__ = ("CURSOR", "PATIENCE", "Stage", "delivered", "same_text", "staged")

CURSOR = "▌"

PATIENCE = 3_000.0
"""Seconds of virtual time after which a test has failed."""


@dataclass
class Stage:
    """What a test has to do with. Ada may talk to the bot, Bob may not."""

    api: BotApi
    channel: TelegramChannel
    tasks: TaskGroup
    http: httpx.AsyncClient
    """The way to the server."""
    heard: list[IncomingMessage] = field(default_factory=list["IncomingMessage"])
    """What the channel has handed over, where it listens."""

    @property
    def ada(self) -> Person:
        return self.api.user(7, "Ada")

    @property
    def bob(self) -> Person:
        return self.api.user(8, "Bob")

    @property
    def chat(self) -> Chat:
        """Ada's."""
        return self.ada.chat

    @property
    def post(self) -> Post:
        """The last message in Ada's chat."""
        return self.chat.messages[-1]

    @property
    def idle(self) -> bool:
        """Whether the channel keeps nothing of any chat."""
        return len(self.channel._chats) == 0

    def listen(self) -> None:
        """Take what people do, from now on."""
        self.tasks.start_soon(self._listen)

    async def _listen(self) -> None:
        async for message in self.channel.messages():
            self.heard.append(message)
            self.api.bell.ring()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that happens on the server, or that the channel has heard."""
        with anyio.fail_after(PATIENCE):
            await self.api.until(condition)

    async def settled(self) -> None:
        """Wait until the channel has nothing more to do in the background."""
        with anyio.fail_after(PATIENCE):
            await anyio.sleep(0.5)
            while not self.idle:  # noqa: ASYNC110 - nothing tells it
                await anyio.sleep(0.5)


@asynccontextmanager
async def staged(
    *,
    allowed: tuple[int, ...] = (7,),
    settings: DeliverySettings | None = None,
    markdown: bool = False,
    drafts: bool = False,
    limits: bool = True,
    reads_all: bool = True,
) -> AsyncGenerator[Stage]:
    """Open a channel for the time of a block."""
    api = BotApi(limits=limits, reads_all=reads_all)
    api.user(7, "Ada")
    async with (
        client(api) as http,
        TelegramChannel(
            TOKEN, allowed=allowed, settings=settings, markdown=markdown, drafts=drafts, client=http
        ) as channel,
        anyio.create_task_group() as tasks,
    ):
        yield Stage(api, channel, tasks, http)
        tasks.cancel_scope.cancel()


async def delivered(
    stage: Stage,
    played: Script,
    user_id: str = "7",
    *,
    settings: DeliverySettings | None = None,
    seconds: float = 900,
    complete: bool = True,
) -> Delivery:
    """Deliver an agent's run; its questions time out after `seconds`."""
    async with ScriptedAgent(played, complete=complete).open(
        permissions="ask", question_timeout=seconds
    ) as agent:
        return await deliver(agent.think().text("Go.").stream(), stage.channel, user_id, settings=settings)


def same_text(posts: list[Post], text: str) -> bool:
    """Return whether messages say a text: what a cut swallows is white space."""
    said = "".join(post.text for post in posts)
    return "".join(said.split()) == "".join(text.split())
