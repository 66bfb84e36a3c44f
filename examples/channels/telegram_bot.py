"""A Telegram bot: each user who is allowed to write to it has a conversation with an agent.

    TELEGRAM_BOT_TOKEN=… THINKWELL_AGENT=claude python examples/channels/telegram_bot.py 123456789

BotFather gives the token; see docs/howto/telegram.md. The numbers are those of the people who are allowed;
others who write to the bot get their own as an answer. ``thinkwell telegram`` is this, and more.
"""

from __future__ import annotations

import os
import sys

import anyio

from thinkwell import open_agent
from thinkwell.channels import AgentResponded, MessageRouter
from thinkwell.channels.telegram import TelegramChannel, serve


def note(answered: AgentResponded) -> None:
    print(f"{answered.user_id}: {answered.status}, {len(answered.text)} characters")


async def answer(bot: TelegramChannel) -> None:
    async with bot as channel, MessageRouter(lambda: open_agent(permissions="ask")) as router:
        router.on("agent_response", note)
        await serve(channel, router)  # until it is cancelled


async def main() -> None:
    token = os.environ.pop("TELEGRAM_BOT_TOKEN", None)  # else the agent would have it too
    await answer(TelegramChannel(token, allowed=[int(number) for number in sys.argv[1:]]))


if __name__ == "__main__":
    anyio.run(main)
