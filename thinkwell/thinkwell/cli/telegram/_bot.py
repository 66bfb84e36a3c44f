"""Runs a Telegram bot and its agent until a signal comes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, TypedDict

import anyio
import typer
from msgspec.structs import replace

from thinkwell._core.exit import background_tasks
from thinkwell._display import numbers
from thinkwell.channels import DeliverySettings, MessageRouter
from thinkwell.channels.telegram import (
    TelegramChannel,
    TelegramError,
    TelegramUnauthorized,
    serve,
)
from thinkwell.cli._errors import WRONG_USAGE, tell
from thinkwell.cli._process import Ending, log_to_stderr, say
from thinkwell.cli.telegram._config import take_token

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from thinkwell import Agent
    from thinkwell.channels import Delivery
    from thinkwell.channels.telegram import BotUser
    from thinkwell.cli.telegram._config import Config

PATIENCE: Final = 4.0
"""Seconds that agents get after a signal: answers are ended first, and agents leave by themselves after it.
Service managers wait ten or more."""

FIRST_PAUSE: Final = 1.0
"""Seconds until the next try if Telegram cannot be reached; doubled after each try."""

LONGEST_PAUSE: Final = 30.0

NO_USERS: Final = """\
No user is allowed yet. Write to the bot in Telegram: it replies with your number.
Then begin again with --allow NUMBER, or with a line  allow = [NUMBER]  in the file of --config."""


class _Server(TypedDict, total=False):
    base_url: str


def run_bot(
    config: Config, opened: Callable[[], AbstractAsyncContextManager[Agent]], *, verbose: bool
) -> int:
    """Answer messages until a signal comes, and return the exit code.

    The token must not be in the environment any more.

    Args:
        config: The settings.
        opened: Opens the agent.
        verbose: Whether to log more.

    Raises:
        typer.BadParameter: There is no token, or a value in the file cannot be used.
        TelegramError: The bot cannot get messages any more.
    """
    channel = _channel(config)
    log_to_stderr(logging.INFO if verbose else logging.WARNING)
    return anyio.run(_run, channel, config, opened)


def _channel(config: Config) -> TelegramChannel:
    server: _Server = {"base_url": config.base_url} if config.base_url else {}
    settings = DeliverySettings(streaming=config.streaming, thinking=config.thinking)
    if config.stalled_after is not None:
        settings = replace(settings, stalled_after=config.stalled_after or None)
    try:
        return TelegramChannel(
            take_token(config),
            allowed=config.allow,
            settings=settings,
            markdown=config.markdown,
            drafts=config.drafts,
            **server,
        )
    except ValueError as exc:  # about the token, or the address
        raise typer.BadParameter(str(exc)) from None


async def _run(
    channel: TelegramChannel, config: Config, opened: Callable[[], AbstractAsyncContextManager[Agent]]
) -> int:
    ending = Ending()
    everything = anyio.CancelScope()
    router = MessageRouter(  # opens the agent with the first message, and again after it died
        ending.counting(opened),
        idle_after=config.idle_after or None,
        busy=config.busy,
        max_waiting=config.max_waiting,
        timeout=config.timeout,
    )

    def end_at_once() -> None:
        ending.kill()
        everything.cancel()

    with ending.signals():
        async with background_tasks() as tasks:
            tasks.start_soon(ending.hurry, end_at_once, PATIENCE)
            with everything:
                async with channel, router:
                    with ending.scope:
                        await _serve(channel, router, config)
    return ending.exit_code


async def _serve(channel: TelegramChannel, router: MessageRouter, config: Config) -> None:
    me = await _introduction(channel)
    people = numbers.plural(len(set(config.allow)), "person", "people")
    reached = f", for {people}. Ctrl-C ends it." if config.allow else f". {NO_USERS}"
    say(f"Ready as @{me.username}{reached}")
    greeting = {"greeting": config.greeting} if config.greeting else {}
    await serve(channel, router, **greeting, on_delivery=_tell_delivery)


async def _introduction(channel: TelegramChannel) -> BotUser:
    """Return the bot's own user, once Telegram can be reached.

    Raises:
        typer.Exit: The bot does not exist; the user was told.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return await channel.bot()
        except TelegramUnauthorized as exc:
            tell(exc)
            raise typer.Exit(WRONG_USAGE) from None
        except TelegramError as exc:
            if not exc.temporary:
                raise
            seconds = max(pause, exc.retry_after or 0.0)
            say(f"Telegram cannot be reached; trying again in {seconds:.0f} s: {exc}")
        await anyio.sleep(seconds)
        pause = min(2 * pause, LONGEST_PAUSE)


def _tell_delivery(delivery: Delivery) -> None:
    """Log a delivery, but nothing of its text."""
    took = delivery.metrics
    words = [
        delivery.status,
        f"{numbers.plural(len(delivery.run_text), 'character')} in {numbers.seconds(took.total)}",
        numbers.plural(took.edits, "edit"),
        *([numbers.plural(took.retries, "retry", "retries")] if took.retries else []),
        *([type(delivery.error).__name__] if delivery.status == "failed" else []),
    ]
    say(f"{delivery.user_id}: {', '.join(words)}")
