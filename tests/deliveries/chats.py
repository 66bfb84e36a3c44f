"""Runs that are delivered to chats of a Bot API that fails, in virtual time, and what came of it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

import anyio
from bot_api.server import BotApi
from bot_api.serving import client
from bot_api.values import Trouble

from thinkwell.channels import DeliveryFailed, DeliverySettings, deliver
from thinkwell.channels.telegram import TelegramChannel
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot_api.values import Chat, Post

    from thinkwell import Agent
    from thinkwell.channels import Delivery
    from thinkwell.testing import Script

ChatType = Literal["private", "group"]

TROUBLES: Final = (
    (Trouble.unreachable(), 0.04),
    (Trouble.lost(), 0.03),
    (Trouble.error(500), 0.03),
    (Trouble.error(502), 0.03),
    (Trouble.error(502, done=True), 0.01),
    (Trouble.throttled(3), 0.03),
    (Trouble.throttled(20), 0.01),
    (Trouble.slow(7), 0.03),
    (Trouble.garbage(), 0.01),
)
"""What goes wrong with requests, and how probable each is: more than one in five."""

WORDS: Final = (
    *("the", "table", "is", "read", "by", "one", "query.", "Why?", "It", "has", "no", "index;", "a < b & c"),
    *(
        "\n",
        "\n\n",
        "`make test`",
        "**all**",
        "naïve",
        "日本語",
        "👩‍👩‍👧",
        "—",
        "x" * 90,
        "  indented\n",
        "&amp;",
        "<b>",
    ),
)


COUNTS: Final = (
    *("deliveries", "reported", "edits", "throttled"),
    *("troubles", "requests", "messages", "unclean"),
)
"""What is counted of an `Outcome`."""


@dataclass(slots=True)
class Outcome:
    """What came of deliveries."""

    deliveries: int = 0
    lost: list[str] = field(default_factory=list[str])
    """Answers that are not in their chat, and of which nobody was told."""
    reported: int = 0
    """Answers that could not be delivered, as `DeliveryFailed` says."""
    differing: list[str] = field(default_factory=list[str])
    """Answers that are there, but not as the run's text."""
    edits: int = 0
    throttled: int = 0
    """How often the answer of the Bot API was 429."""
    troubles: int = 0
    requests: int = 0
    messages: int = 0
    unclean: int = 0
    """Messages that are still as they were while they were written, though their answer was delivered and
    every request was answered."""

    def add(self, other: Outcome) -> None:
        """Count another one in."""
        self.lost += other.lost
        self.differing += other.differing
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def some_text(dice: random.Random, length: int) -> str:
    """Return a text of words of all kinds."""
    words: list[str] = []
    while sum(map(len, words)) < length:
        words.append(dice.choice(WORDS) + " ")
    return "".join(words)


def some_turn(dice: random.Random) -> Script:
    """Return a turn in which an agent thinks, works and writes, at some pace."""
    played = script
    for _ in range(dice.randint(0, 3)):
        played = played.thinks(some_text(dice, dice.choice((20, 300)))).pauses(dice.choice((0.1, 1.5, 4)))
    for _ in range(dice.randint(1, 4)):
        text = some_text(dice, dice.choice((30, 300, 3_000)))
        at = 0
        while at < len(text):
            size = dice.randint(5, 400)
            played = played.says(text[at : at + size]).pauses(dice.choice((0.0, 0.05, 0.7)))
            at += size
        if dice.random() < 0.5:
            played = played.uses("make test", kind="execute", input={"command": "make test"})
            played = played.pauses(dice.choice((0.1, 6)))
    if dice.random() < 0.15:
        return played.fails(message="the model is overloaded")
    return played.stops()


def steady_turn(seconds: float) -> Script:
    """Return a turn in which an agent writes all the time, in lines, as many as fit into one message."""
    played = script
    for number in range(int(seconds / 0.5)):
        played = played.says(f"{number % 10}").pauses(0.5)
    return played.stops()


def chat_of(api: BotApi, number: int, kind: ChatType) -> Chat:
    """Return a chat that the bot may write to."""
    person = api.user(number, f"Person {number}")
    return person.chat if kind == "private" else api.group(-1_000 - number, f"Group {number}")


async def deliver_turns(
    turns: Sequence[Script],
    kind: ChatType,
    *,
    seed: int | None = None,
    settings: DeliverySettings | None = None,
    markdown: bool = False,
) -> Outcome:
    """Deliver turns at once, each to a chat of its own, by one channel and one agent.

    Args:
        turns: The turns.
        kind: What the chats are.
        seed: Decides what goes wrong; ``None``: nothing does.
        settings: How they are delivered.
        markdown: Whether the texts are read as Markdown.
    """
    api = BotApi()
    if seed is not None:
        api.chaos(seed, TROUBLES)
    outcome = Outcome()
    played = ScriptedAgent(sum(turns[1:], turns[0]))
    async with client(api) as http, played.open() as agent:
        channel = TelegramChannel(api.token, client=http, settings=settings, markdown=markdown)
        async with channel, anyio.create_task_group() as tasks:
            for number in range(1, len(turns) + 1):
                chat = chat_of(api, number, kind)
                tasks.start_soon(partial(_deliver, agent, channel, chat, outcome, strict=seed is None))
    outcome.throttled = api.throttled
    outcome.requests = len(api.calls)
    outcome.troubles = sum(call.trouble is not None for call in api.calls)
    return outcome


async def troubled(seed: int) -> Outcome:
    """Deliver an answer, or a few at once, where much goes wrong."""
    dice = random.Random(seed)
    turns = [some_turn(dice) for _ in range(dice.choice((1, 1, 1, 3)))]
    kind: ChatType = "group" if dice.random() < 0.2 else "private"
    return await deliver_turns(turns, kind, seed=seed, markdown=False)


async def _deliver(
    agent: Agent, channel: TelegramChannel, chat: Chat, outcome: Outcome, *, strict: bool
) -> None:
    stream = agent.think().text("Go.").stream()
    outcome.deliveries += 1
    try:
        delivery = await deliver(stream, channel, str(chat.id))
    except DeliveryFailed:
        outcome.reported += 1
        return
    outcome.edits += delivery.metrics.edits
    outcome.messages += len(chat.messages)
    _compare(delivery, chat, outcome, strict=strict)


def _compare(delivery: Delivery, chat: Chat, outcome: Outcome, *, strict: bool) -> None:
    """Compare what stands in a chat with the text of a run, white space apart, which a cut may swallow."""
    wanted = _compact(delivery.text)
    if strict:
        if "".join(_compact(_body(post)) for post in chat.messages) != wanted:
            outcome.differing.append(delivery.text)
        outcome.unclean += sum(bool(post.buttons) for post in chat.messages)
        return
    # Where an answer of the Bot API was lost, messages may stand there twice, or as they were half way.
    reached = {0}
    for post in chat.messages:
        body = _compact(_body(post))
        reached |= {at + len(body) for at in reached if wanted.startswith(body, at)}
    if len(wanted) not in reached:
        outcome.lost.append(delivery.text)


def _body(post: Post) -> str:
    """Return the text of a message without the thinking above it."""
    for entity in post.entities:
        if entity["type"] in ("blockquote", "expandable_blockquote") and entity["offset"] == 0:
            units = post.text.encode("utf-16-le")
            return units[2 * entity["length"] :].decode("utf-16-le")
    return post.text


def _compact(text: str) -> str:
    return "".join(text.split())
