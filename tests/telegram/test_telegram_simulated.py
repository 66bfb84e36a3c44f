"""Many chats, calls in any order of tasks, cancelled at any time, while the network fails: what always holds.

Each seed is another world. In the end every answer is there, whole and once; no button and no cursor is left;
and nothing is kept of anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest
from bot_api.values import Trouble
from limits.virtual import Backend, virtual_backend
from telegram_stage import CURSOR, Stage, staged

from thinkwell.channels import ChannelChoice, ChannelQuestion
from thinkwell.channels.telegram import TelegramError

if TYPE_CHECKING:
    from anyio.abc import TaskGroup
    from bot_api.values import Chat, Post

SEEDS = range(8)
FEW = 2
"""Of them `make test` plays these."""

CHATS = (7, 9, 11, -5, -1_000_000_000_005)

WORDS = ("one ", "two, ", "three.\n", "<four> ", "five&\n\n", "six " * 40, "seven " * 300)

TROUBLES = [
    (Trouble.unreachable(), 0.05),
    (Trouble.error(502), 0.03),
    (Trouble.throttled(2), 0.03),
    (Trouble.slow(3.0), 0.1),
]


@pytest.fixture(
    params=[
        pytest.param((name, seed), id=f"{name}-{seed}", marks=pytest.mark.long if seed >= FEW else ())
        for name in ("asyncio", "trio")
        for seed in SEEDS
    ]
)
def world(request: pytest.FixtureRequest) -> tuple[str, int]:
    chosen: tuple[str, int] = request.param
    return chosen


@pytest.fixture
def anyio_backend(world: tuple[str, int]) -> Backend:
    name, seed = world
    return virtual_backend(name, seed)


@dataclass
class Play:
    """What goes on in one chat, one thing after another, as a router does it."""

    stage: Stage
    chat: Chat
    dice: Random
    expected: list[str] = field(default_factory=list[str])
    """What has to be there, in order."""

    @property
    def user_id(self) -> str:
        return str(self.chat.id)

    async def run(self, turns: int) -> None:
        for turn in range(turns):
            await self._turn(f"Turn {turn} of {self.chat.id}: ")

    async def _turn(self, text: str) -> None:
        channel, dice = self.stage.channel, self.dice
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(channel.wait_stop, self.user_id)
            await channel.on_stream_start(self.user_id)
            await channel.on_stream_chunk(self.user_id, text)
            for _ in range(dice.randint(0, 12)):
                await self._step(tasks)
                more = dice.choice(WORDS)
                text += more
                await channel.on_stream_chunk(self.user_id, more)
                await anyio.sleep(dice.choice((0.0, 0.05, 0.4, 2.0)))
            await self._finish(text)
            tasks.cancel_scope.cancel()

    async def _step(self, tasks: TaskGroup) -> None:
        channel, dice = self.stage.channel, self.dice
        match dice.randint(0, 9):
            case 0:
                await channel.on_stream_status(self.user_id, "Using: something")
            case 1:
                await channel.on_stream_thinking(self.user_id, "Hm. ")
                await anyio.sleep(1)
                await channel.on_stream_thinking_end(self.user_id, 1.0)
            case 2:
                tasks.start_soon(self._ask, dice.random() * 20)
            case 3:
                await anyio.sleep(30)
            case _:
                pass

    async def _ask(self, patience: float) -> None:
        """Ask, and give up after a while."""
        choices = (ChannelChoice(id="y", label="yes", style="accept"),)
        long = self.dice.random() < 0.3
        question = ChannelQuestion(
            id=str(self.dice.random()),
            text="Well?",
            code="rm\n" * (3_000 if long else 1),
            choices=choices,
            takes_text=self.dice.random() < 0.3,
        )
        with anyio.move_on_after(patience):
            try:
                await self.stage.channel.ask(self.user_id, question)
            except TelegramError:
                return
        await self.stage.channel.on_question_end(self.user_id, question, "over")

    async def _finish(self, text: str) -> None:
        """End the stream as deliver does: for bounded time, and again."""
        with anyio.move_on_after(self.dice.choice((0.5, 3.0, 100.0))) as scope:
            try:
                await self.stage.channel.on_stream_end(self.user_id, text)
            except TelegramError:
                scope.cancel()
                await anyio.lowlevel.checkpoint()
        while scope.cancelled_caught:
            with anyio.move_on_after(self.dice.choice((2.0, 100.0))) as scope:
                try:
                    await self.stage.channel.send(self.user_id, text)
                except TelegramError:
                    scope.cancel()
                    await anyio.lowlevel.checkpoint()
        self.expected.append(text)


async def press(stage: Stage, dice: Random) -> None:
    """Press buttons at any time."""
    person = stage.api.user(7)
    while True:
        await anyio.sleep(dice.random() * 4)
        posts = [post for post in stage.api.sent if post.markup and "inline_keyboard" in post.markup]
        questions = [post for post in posts if post.buttons and post.buttons[0] == ["yes"]]
        if questions:
            stage.api.press(dice.choice(questions), "yes", by=person)


def is_answer(post: Post) -> bool:
    return "Well?" not in post.text and not post.text.startswith(("Part ", "✎"))


async def test_everything_arrives_whole_and_once_and_nothing_is_left(world: tuple[str, int]) -> None:
    dice = Random(world[1])
    async with staged(allowed=(7, 9, 11)) as stage:
        stage.listen()
        plays: list[Play] = []
        for id_ in CHATS:
            chat = stage.api.group(id_) if id_ < 0 else stage.api.user(id_).chat
            plays.append(Play(stage, chat, Random(dice.random())))
        stage.api.chaos(world[1], TROUBLES)
        stage.tasks.start_soon(press, stage, Random(dice.random()))
        with anyio.fail_after(100_000):
            async with anyio.create_task_group() as tasks:
                for play in plays:
                    tasks.start_soon(play.run, 4)
        stage.api.no_trouble()
        await stage.settled()
        assert len(stage.channel._questions or ()) == 0
        assert len(stage.channel._left) == 0
        for play in plays:
            posts = play.chat.messages
            assert all(post.markup is None for post in posts)
            assert not [post.text for post in posts if CURSOR in post.text]
            said = [post for post in posts if is_answer(post)]
            whole = "".join("".join(post.text for post in said).replace("thought for 1s\n", "").split())
            for text in play.expected:
                assert whole.count("".join(text.split())) == 1, play.user_id
            assert not stage.heard
    assert stage.api.refused == []
