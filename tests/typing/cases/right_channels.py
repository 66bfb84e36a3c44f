"""What type checkers say of channels. Checked by test_typing.py, and never run."""

from __future__ import annotations

from typing import assert_type

from pydantic import BaseModel

from thinkwell import Agent, ThoughtStream
from thinkwell.channels import (
    AgentResponded,
    AskingChannel,
    CapableChannel,
    Channel,
    ChannelCapabilities,
    ChannelQuestion,
    ConfiguredChannel,
    Delivery,
    DeliverySettings,
    MessageRouter,
    OutcomeChannel,
    StreamingChannel,
    TerminalChannel,
    UserMessageReceived,
    deliver,
)


class Review(BaseModel):
    score: int


class Mail:
    settings = DeliverySettings(streaming=False)
    capabilities = ChannelCapabilities(max_length=70)

    async def send(self, user_id: str, text: str) -> None: ...


class Page(Mail):
    async def on_stream_start(self, user_id: str) -> None: ...
    async def on_stream_chunk(self, user_id: str, chunk: str) -> None: ...
    async def on_stream_status(self, user_id: str, status: str) -> None: ...
    async def on_stream_end(self, user_id: str, full_text: str) -> None: ...
    async def ask(self, user_id: str, question: ChannelQuestion) -> str | None: ...
    async def on_question_end(self, user_id: str, question: ChannelQuestion, outcome: str) -> None: ...


def declared(mail: Mail, page: Page) -> None:
    channels: list[Channel] = [mail, page, TerminalChannel()]
    streaming: list[StreamingChannel] = [page, TerminalChannel()]
    asking: AskingChannel = page
    told: OutcomeChannel = page
    capable: CapableChannel = mail
    configured: ConfiguredChannel = mail
    del channels, streaming, asking, told, capable, configured


async def delivered(agent: Agent, mail: Mail) -> None:
    stream = agent.think(Review).text("Go").stream()
    assert_type(await deliver(stream, mail, "ada"), Delivery)
    await deliver(stream, mail, "ada", text=lambda review: f"{review.score} of 10")
    await deliver(agent.think().text("Go").stream(), mail, "ada", text=str.upper)


def note(answered: AgentResponded) -> None:
    del answered


async def ask(written: UserMessageReceived) -> None:
    del written


async def routed(agent: Agent, mail: Mail) -> None:
    async with MessageRouter(agent, cwd=lambda user_id: f"/srv/{user_id}") as router:
        assert_type(router, MessageRouter)
        assert_type(await router.handle_user_message("Go", "ada", mail), Delivery | None)
        router.on("agent_response", note)
        router.on("user_message", ask)
        async with router.streaming("Go", user_id="ada") as stream:
            assert_type(stream, ThoughtStream[str])
