"""Deliver runs to users: to a terminal, to a chat, to anything that can send a text.

::

    await deliver(agent.think().text("Review this module.").stream(), TerminalChannel(), "me")

A class with ``async def send(self, user_id, text)`` is a channel. Further methods add features: see
`StreamingChannel` and the other protocols.
"""

from __future__ import annotations

from thinkwell._conversations.errors import ConversationBusy, DeliveryError, RouterClosed
from thinkwell.channels._delivery import deliver
from thinkwell.channels._outcome import Delivery, DeliveryFailed, DeliveryMetrics, DeliveryStatus
from thinkwell.channels._protocols import (
    AskingChannel,
    CapableChannel,
    Channel,
    ChannelCapabilities,
    ChannelChoice,
    ChannelCounts,
    ChannelQuestion,
    ConfiguredChannel,
    CountingChannel,
    DeliverySettings,
    DraftingChannel,
    HtmlChannel,
    NotifyingChannel,
    OutcomeChannel,
    StoppingChannel,
    StreamingChannel,
    ThinkingChannel,
    TypingChannel,
)
from thinkwell.channels._router import MessageRouter
from thinkwell.channels._router_events import AgentResponded, RouterEvent, UserMessageReceived
from thinkwell.channels._terminal import TerminalChannel

__all__ = (
    "AgentResponded",
    "AskingChannel",
    "CapableChannel",
    "Channel",
    "ChannelCapabilities",
    "ChannelChoice",
    "ChannelCounts",
    "ChannelQuestion",
    "ConfiguredChannel",
    "ConversationBusy",
    "CountingChannel",
    "Delivery",
    "DeliveryError",
    "DeliveryFailed",
    "DeliveryMetrics",
    "DeliverySettings",
    "DeliveryStatus",
    "DraftingChannel",
    "HtmlChannel",
    "MessageRouter",
    "NotifyingChannel",
    "OutcomeChannel",
    "RouterClosed",
    "RouterEvent",
    "StoppingChannel",
    "StreamingChannel",
    "TerminalChannel",
    "ThinkingChannel",
    "TypingChannel",
    "UserMessageReceived",
    "deliver",
)
