"""A chat: entries go to the agent, turn by turn.

In a terminal, the prompt is always shown. It shares asyncio's event loop with the agent, because
prompt-toolkit needs asyncio. Without a terminal, the main thread waits for lines, and the agent has another
thread: a thread that waits for a line cannot be stopped, so the chat could not end before the next line.
"""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO, cast

import anyio
import typer
from anyio.from_thread import start_blocking_portal
from msgspec import Struct

from thinkwell import Injected, Refused
from thinkwell._display.text import line
from thinkwell.cli._errors import INTERRUPTED, OK, WRONG_USAGE, exit_code, is_expected, tell
from thinkwell.cli._launch import Launching
from thinkwell.cli._options import Style
from thinkwell.cli._output import write_result
from thinkwell.cli._process import Ending, log_held
from thinkwell.cli.chat._commands import ChatCommands, Ours, UsageError
from thinkwell.cli.chat._entries import read_entry, typed_ahead
from thinkwell.errors import (
    AgentClosed,
    AgentError,
    AgentExited,
    SessionUnusable,
    ThinkwellError,
    ThoughtCancelled,
)
from thinkwell.progress import Live

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractAsyncContextManager

    from anyio.from_thread import BlockingPortal
    from rich.console import Console

    from thinkwell import Agent, Retry, Session, ThoughtStream
    from thinkwell.agents import AgentProfile
    from thinkwell.cli._options import How
    from thinkwell.cli.chat._prompt import Prompt

__all__ = ("ChatOptions", "hold_chat")

FATAL: Final = (AgentExited, AgentClosed, SessionUnusable)
"""Errors after which no turn can follow."""


STEERED: Final = "(the agent reads this while it works)"

UNCLEAR: Final = "(the agent has not said whether it reads this: if it does not, type it again)"


class ChatOptions(Struct, frozen=True, kw_only=True):
    """The options of a chat."""

    profile: AgentProfile
    agent: tuple[str, ...]
    """The options that name the agent, for a command that the user can type."""
    opening: Callable[..., AbstractAsyncContextManager[Agent]]
    """`open_agent` with its arguments except ``on_phase``."""
    system: str | None
    load: str | None
    resume: str | None
    cwd: Path | None
    retry: Retry | None
    history: bool
    how: How


def hold_chat(options: ChatOptions) -> int:
    """Run a chat until its end, and return the exit code.

    Raises:
        ThinkwellError: The agent cannot be started, or does not open the session.
        OSError: The file for the recording cannot be written.
        typer.BadParameter: The session belongs to another folder.
    """
    if options.how.can_ask and os.environ.get("TERM") not in ("dumb", "unknown"):
        return anyio.run(_prompted, options)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(_opened(options)) as chat:
        return _line_by_line(portal, chat)


@asynccontextmanager
async def _opened(options: ChatOptions) -> AsyncGenerator[_Chat]:
    """Open an agent and a session during a block."""
    with (
        log_held(options.how.verbose) as write_log,
        closing(Launching(options.profile.name, options.how)) as launching,
    ):
        async with options.opening(on_phase=launching) as agent:
            await _check_folder(agent, options)
            async with agent.session(
                load=options.load,
                resume=options.resume,
                system=options.system,
                system_fallback=None if options.system is None else "prompt",
            ) as session:
                launching.close()
                yield _Chat(agent, session, options, write_log)


async def _check_folder(agent: Agent, options: ChatOptions) -> None:
    """Check that an old session continues in its own folder, if the agent reports that folder.

    The reported folder is not just used: rules for permissions depend on the folder, and an agent may report
    any.

    Raises:
        typer.BadParameter: It belongs to another folder.
    """
    wanted = options.load or options.resume
    if wanted is None or options.cwd is not None or agent.capabilities.session_capabilities.list is None:
        return
    with suppress(AgentError):  # it opens or fails, with the reason
        for info in await agent.list_sessions():
            if info.id == wanted and not _is_here(info.cwd):
                raise typer.BadParameter(
                    f"the session {line(wanted)!r} belongs to another folder; "
                    f"continue there: --cwd {shlex.quote(line(info.cwd))}"
                )


def _is_here(folder: str) -> bool:
    return os.path.abspath(folder) == str(Path.cwd())  # noqa: PTH100 - it may be gone


async def _prompted(options: ChatOptions) -> int:
    """Run a chat at a prompt, and return the exit code."""
    from thinkwell.cli.chat._completion import ChatCompleter
    from thinkwell.cli.chat._history import HistoryFile, history_path
    from thinkwell.cli.chat._prompt import Prompt, prompt_output
    from thinkwell.cli.chat._status import status_line

    ending, code = Ending(), OK
    with ending.signals(), ending.scope, prompt_output():
        async with _opened(options) as chat:
            prompt = Prompt(
                history=HistoryFile(history_path() if options.history else None),
                completer=ChatCompleter(chat.commands, chat.session.cwd),
                status=partial(status_line, chat.agent, chat.session),
                interrupt=chat.interrupt,
            )
            chat.shows_at(prompt)
            prompt.waiting.extend(filter(str.strip, typed_ahead()))
            async with anyio.create_task_group() as tasks:
                with prompt.beside():
                    tasks.start_soon(prompt.run)
                    try:
                        code = await _hold(prompt, chat)
                    finally:
                        prompt.close()
            chat.tell_how_to_go_on()
    return ending.exit_code or code


async def _hold(prompt: Prompt, chat: _Chat) -> int:
    chat.tell(chat.commands.greeting())
    while True:
        try:
            entry = await prompt.next_entry()
        except EOFError:
            return OK
        code = await chat.follow(entry)
        if code is not None:
            return code


def _line_by_line(portal: BlockingPortal, chat: _Chat) -> int:
    """Run a chat whose lines come from a file, a pipe or a simple terminal."""
    chat.tell(chat.commands.greeting())
    while True:
        try:
            entry = read_entry(sys.stdin, sys.stderr if chat.person else None)
            code = _followed(portal, chat, entry) if entry.strip() else None
        except EOFError:
            chat.tell("")
            code = OK
        except KeyboardInterrupt:
            if not chat.person:
                raise
            chat.tell("\n(Ctrl-D or /exit leaves)")
            continue
        if code is not None:
            chat.tell_how_to_go_on()
            return code


def _followed(portal: BlockingPortal, chat: _Chat, entry: str) -> int | None:
    """Run an entry; Ctrl-C cancels it, and a second one kills the agent."""
    following = portal.start_task_soon(chat.follow, entry)
    while True:
        try:
            return following.result()
        except KeyboardInterrupt:
            portal.call(chat.interrupt)


class _Chat:
    """A running chat.

    Args:
        agent: The agent.
        session: The session.
        options: The options.
        write_log: Writes the library's log of the time while a turn was displayed.
    """

    def __init__(
        self, agent: Agent, session: Session, options: ChatOptions, write_log: Callable[[], None]
    ) -> None:
        self.agent = agent
        self.session = session
        self._options = options
        self._write_log = write_log
        self.person = options.how.can_ask
        """Whether there is a user."""
        self._plain = not (self.person and sys.stdout.isatty())
        """Whether standard output gets the answers and nothing else."""
        self._prompt: Prompt | None = None
        self._console: Console | None = None
        self.commands = ChatCommands(agent, session, self._write, self._columns)
        self._turns = 0
        self._live: Live | None = None
        """The display of the current turn."""
        self._doing: anyio.CancelScope | None = None
        """The scope of the current command."""

    def shows_at(self, prompt: Prompt) -> None:
        """Show everything above a prompt from now on."""
        from rich.console import Console

        self._prompt = prompt
        self._console = Console(file=cast("TextIO", prompt.terminal), force_terminal=True)

    def interrupt(self) -> bool:
        """Act as on Ctrl-C, and return whether anything was running."""
        if self._live is not None:
            self._live.press_ctrl_c()
        elif self._doing is not None:
            self._doing.cancel()
        return (self._live or self._doing) is not None

    async def follow(self, entry: str) -> int | None:
        """Run an entry; return an exit code if the chat is over."""
        try:
            match self.commands.meaning(entry):
                case str(text):
                    return await self._turn(text)
                case Ours("exit"):
                    return OK
                case Ours(name, rest):  # pragma: no branch - the last of the union
                    with anyio.CancelScope() as self._doing:
                        await self.commands.do(name, rest)
                    return INTERRUPTED if self._doing.cancelled_caught and not self.person else None
        except UsageError as exc:
            sys.stderr.write(f"{exc}\n")
            return None if self.person else WRONG_USAGE
        except Exception as exc:
            if not is_expected(exc):  # pragma: no cover - a bug
                raise
            return self._failed(exc)
        finally:
            self._doing = None

    async def _turn(self, text: str) -> int | None:
        """Let the agent answer; return an exit code if the user has killed it."""
        how = self._options.how
        style = how.style if self.person or how.style is not Style.AUTO else Style.LINES
        stream = self.session.think().text(text).stream(retry=self._options.retry)
        self._turns += 1
        self.commands.stream = stream
        live = Live(stream, console=self._console, style=style.value, verbose=how.verbose, result=False)
        self._live = live
        try:
            async with live, anyio.create_task_group() as tasks:
                if self._prompt is not None:
                    tasks.start_soon(self._prompt.tell_each, partial(self._steer, stream))
                await stream.wait()
                self._live = None  # there is nothing left to cancel
                tasks.cancel_scope.cancel()
        finally:
            self._live = None
        self._write_log()
        if live.killed:
            self.tell("Killed")
            return INTERRUPTED
        answer = await stream.result
        if self._plain:
            write_result(answer)
        return None

    async def _steer(self, stream: ThoughtStream[str], entry: str) -> bool:
        """Steer the agent with a text, and return whether the agent takes it. Commands wait."""
        if entry.startswith("/"):
            return False
        try:
            came_to = await stream.steer(entry)
        except ThinkwellError:  # the agent cannot be steered, or it or the run has ended
            return False
        unclear = isinstance(came_to, Refused) and came_to.unclear
        taken = unclear or came_to == Injected()
        if taken:
            self.tell(UNCLEAR if unclear else STEERED)
        return taken

    def _failed(self, error: Exception) -> int | None:
        """Report an error; return an exit code if the chat is over."""
        fatal = isinstance(error, FATAL)
        if self.person and isinstance(error, ThoughtCancelled) and not fatal:
            self.tell("Cancelled")
            return None
        tell(error)
        return exit_code(error) if fatal or not self.person else None

    def tell_how_to_go_on(self) -> None:
        """Print the command that continues the session, if the agent loads sessions."""
        if self._turns and self.agent.capabilities.load_session:
            taken_over = self.agent.name != self._options.profile.name
            named = ("--agent", self.agent.name) if taken_over else self._options.agent
            again = ["thinkwell", "chat", *named, "--load", line(self.session.id)]
            self.tell(f"To continue later, type: {shlex.join(again)}")

    def tell(self, text: str) -> None:
        """Print a text for the user, if there is one."""
        if self.person:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def _write(self, text: str) -> None:
        """Write the output of a command."""
        out = sys.stdout
        out.write(text)
        out.flush()

    def _columns(self) -> int | None:
        return None if self._prompt is None or self._plain else self._prompt.terminal.size[0]
