"""What ``thinkwell telegram`` does: a bot, an agent behind it, and an end for both."""

from __future__ import annotations

import logging
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

import anyio
import typer
from msgspec import Struct
from msgspec.structs import replace

from thinkwell import PermissionPolicy, open_agent, wait_for_answer
from thinkwell._core.exit import QUESTION_TIMEOUT, background_tasks
from thinkwell._display import numbers
from thinkwell._display.text import clean
from thinkwell.channels import DeliverySettings, MessageRouter
from thinkwell.channels.telegram import (
    TelegramChannel,
    TelegramError,
    TelegramUnauthorized,
    serve,
)
from thinkwell.cli._ending import Ending, log_to_stderr
from thinkwell.cli._errors import tell
from thinkwell.cli._exit import OK, WRONG_USAGE
from thinkwell.cli._launching import launching_shown
from thinkwell.cli._task import chosen_agent, read_permissions
from thinkwell.cli._telegram_config import read_config, take_token
from thinkwell.cli._terminal import How, Style

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from thinkwell import Agent, PermissionMode
    from thinkwell.agents import AgentProfile
    from thinkwell.channels import Delivery
    from thinkwell.channels.telegram import BotUser
    from thinkwell.cli._telegram_config import Config

PATIENCE: Final = 4.0
"""Seconds that agents get after a signal: answers are ended before, and they leave by themselves after it.
Service managers wait for ten and more."""

FIRST_PAUSE: Final = 1.0
"""Seconds until Telegram is tried again, where it cannot be reached; twice as long after each further try."""

LONGEST_PAUSE: Final = 30.0

IDLE_AFTER: Final = 3600.0
"""Seconds after which an unused conversation ends."""

MAX_WAITING: Final = 8
"""Messages of a chat that wait, unless something else is said."""

NOBODY: Final = """\
No one may talk to it yet. Write to it in Telegram, and it tells you your number.
Then begin again with --allow NUMBER, or with a line  allow = [NUMBER]  in the file of --config."""


class _Server(TypedDict, total=False):
    base_url: str


class Bot(Struct, frozen=True, kw_only=True):
    """What is to run, and how. Everything in it can be used."""

    channel: TelegramChannel
    profile: AgentProfile
    cwd: Path | None
    permissions: PermissionMode | PermissionPolicy
    allowed: frozenset[int]
    config: Config
    verbose: bool


def read_bot(
    *,
    agent: str | None,
    command: str | None,
    config: Path | None,
    allow: Sequence[int],
    cwd: Path | None,
    permissions: str | None,
    verbose: bool,
) -> Bot:
    """Return what was asked for. The token is not in the environment any more then.

    Raises:
        typer.BadParameter: Something cannot be used.
        AgentNotFound: There is no such agent.
        ProfileError: What is known of it cannot be read.
    """
    file = read_config(config)
    for number in allow:
        if number <= 0:
            raise typer.BadParameter(
                f"{number} is no person's number; those are above 0", param_hint="--allow"
            )
    allowed = frozenset((*file.allow, *allow))
    if agent is None and command is None:
        agent, command = file.agent, file.command
    policy = _permissions(permissions, file)
    profile = chosen_agent(agent, command)
    folder = cwd or _folder(file)
    server: _Server = {"base_url": file.base_url} if file.base_url else {}
    try:
        channel = TelegramChannel(
            take_token(file),
            allowed=allowed,
            settings=_settings(file),
            markdown=file.markdown,
            drafts=file.drafts,
            **server,
        )
    except ValueError as exc:  # of the token, or of the address
        raise typer.BadParameter(str(exc)) from None
    return Bot(
        channel=channel,
        profile=profile,
        cwd=folder,
        # As rules: they leave questions of other kinds than permissions to the chat.
        permissions=PermissionPolicy(otherwise="deny") if policy == "deny" else policy,
        allowed=allowed,
        config=file,
        verbose=verbose,
    )


def _permissions(given: str | None, file: Config) -> PermissionMode | PermissionPolicy:
    if given is not None or file.permissions is None:
        return read_permissions(given, can_ask=True)
    try:
        return read_permissions(file.permissions, can_ask=True)
    except typer.BadParameter as exc:
        raise typer.BadParameter(f"permissions: {exc.message}", param_hint="--config") from None


def _folder(file: Config) -> Path | None:
    if file.cwd is None:
        return None
    folder = Path(file.cwd)
    if not folder.is_dir():
        raise typer.BadParameter(f"cwd: there is no folder {folder}", param_hint="--config")
    return folder.resolve()


def _settings(file: Config) -> DeliverySettings:
    settings = DeliverySettings(streaming=file.streaming, thinking=file.thinking)
    if file.stalled_after is not None:
        return replace(settings, stalled_after=file.stalled_after or None)
    return settings


def run_bot(bot: Bot) -> int:
    """Answer what people write until a signal comes, and return the exit code.

    Raises:
        TelegramError: The bot cannot get messages any more.
    """
    log_to_stderr(logging.INFO if bot.verbose else logging.WARNING)
    return anyio.run(_run, bot)


async def _run(bot: Bot) -> int:
    ending = Ending()
    agents: set[Agent] = set()
    everything = anyio.CancelScope()

    def end_at_once() -> None:
        for agent in agents:
            agent.kill()
        everything.cancel()

    with ending.signals():
        async with background_tasks() as tasks:
            tasks.start_soon(ending.hurry, end_at_once, PATIENCE)
            try:
                with everything:
                    async with bot.channel, _router(bot, agents) as router:
                        with ending.scope:
                            await _serve(bot, router)
            except _Unknown as exc:
                tell(exc.error)
                return WRONG_USAGE
    return OK if ending.signal is None else 128 + ending.signal


async def _serve(bot: Bot, router: MessageRouter) -> None:
    me = await _introduction(bot.channel)
    if bot.allowed:
        people = numbers.plural(len(bot.allowed), "person", "people")
        _say(f"Ready as @{me.username}, for {people}. Ctrl-C ends it.")
    else:
        _say(f"Ready as @{me.username}. {NOBODY}")
    greeting = {"greeting": bot.config.greeting} if bot.config.greeting else {}
    await serve(bot.channel, router, **greeting, on_delivery=_tell_delivery)


async def _introduction(channel: TelegramChannel) -> BotUser:
    """Return who the bot is, as soon as Telegram can be reached.

    Raises:
        _Unknown: There is no such bot.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return await channel.bot()
        except TelegramUnauthorized as exc:
            raise _Unknown(exc) from None
        except TelegramError as exc:
            if not exc.temporary:
                raise
            seconds = max(pause, exc.retry_after or 0.0)
            _say(f"Telegram cannot be reached; trying again in {seconds:.0f} s: {exc}")
        await anyio.sleep(seconds)
        pause = min(2 * pause, LONGEST_PAUSE)


class _Unknown(Exception):  # noqa: N818 - it goes no further
    """Nothing was begun, as Telegram does not know the token."""

    def __init__(self, error: TelegramUnauthorized) -> None:
        self.error = error


def _router(bot: Bot, agents: set[Agent]) -> MessageRouter:
    """Return a router, which opens the agent with the first message, and again where it has died."""
    config = bot.config
    return MessageRouter(
        lambda: _opened(bot, agents),
        idle_after=(IDLE_AFTER if config.idle_after is None else config.idle_after) or None,
        busy=config.busy,
        max_waiting=MAX_WAITING if config.max_waiting is None else config.max_waiting,
        timeout=config.timeout,
    )


@asynccontextmanager
async def _opened(bot: Bot, agents: set[Agent]) -> AsyncGenerator[Agent]:
    with launching_shown(bot.profile.name, How(style=Style.LINES)) as launching:
        opening = open_agent(
            bot.profile,
            cwd=bot.cwd,
            permissions=bot.permissions,
            on_question=wait_for_answer,  # which is given in the chat
            question_timeout=bot.config.question_timeout or QUESTION_TIMEOUT,
            on_phase=launching,
        )
        async with opening as agent:
            launching.done()
            agents.add(agent)
            try:
                yield agent
            finally:
                agents.discard(agent)


def _tell_delivery(delivery: Delivery) -> None:
    """Say what was delivered, but nothing of what was said."""
    took = delivery.metrics
    words = [
        delivery.status,
        f"{numbers.plural(len(delivery.run_text), 'character')} in {numbers.seconds(took.total)}",
        numbers.plural(took.edits, "edit"),
        *([numbers.plural(took.retries, "retry", "retries")] if took.retries else []),
        *([type(delivery.error).__name__] if delivery.status == "failed" else []),
    ]
    _say(f"{delivery.user_id}: {', '.join(words)}")


def _say(text: str) -> None:
    with suppress(OSError):  # it has no reader any more; the bot goes on
        sys.stderr.write(clean(f"{text}\n"))
        sys.stderr.flush()
