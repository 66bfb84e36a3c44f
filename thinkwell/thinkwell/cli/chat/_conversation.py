"""A chat: what is typed goes to the agent, turn by turn.

It is built on `thinkwell.sync`, whose event loop runs in a thread of its own, and not on that loop, with a
worker thread that waits for the keyboard. The line editor has to be in the main thread: only there does
Ctrl-C interrupt it, and a thread that waits for the keyboard cannot be stopped, so that leaving the chat
would wait for one more line.
"""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, assert_never

import typer
from msgspec import Struct

from thinkwell._display.text import line
from thinkwell.cli._errors import INTERRUPTED, OK, WRONG_USAGE, exit_code, is_expected, tell
from thinkwell.cli._launch import asked_in_vain, launching_shown, leaves_open
from thinkwell.cli._options import Style
from thinkwell.cli._output import write_result
from thinkwell.cli._process import log_held
from thinkwell.cli.chat._commands import (
    ChatCommands,
    Ours,
    Prompted,
    Unknown,
    UsageError,
)
from thinkwell.cli.chat._entries import LineReader, Lines, read_entry
from thinkwell.errors import AgentClosed, AgentError, AgentExited, SessionUnusable, ThoughtCancelled
from thinkwell.sync import open_agent
from thinkwell.sync.progress import Live

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell import PermissionMode, PermissionPolicy
    from thinkwell.agents import AgentProfile
    from thinkwell.cli._options import How
    from thinkwell.sync import Agent, Session

__all__ = ("ChatOptions", "hold_chat")

FATAL: Final = (AgentExited, AgentClosed, SessionUnusable)
"""What no other turn can follow."""


class ChatOptions(Struct, frozen=True, kw_only=True):
    """What was asked for."""

    profile: AgentProfile
    agent: tuple[str, ...]
    """The options that name the agent, to be typed again."""
    model: str | None
    load: str | None
    resume: str | None
    cwd: Path | None
    permissions: PermissionMode | PermissionPolicy
    record: Path | None
    history: bool
    how: How


def hold_chat(options: ChatOptions) -> int:
    """Hold a chat until its end, and return the exit code.

    Raises:
        ThinkwellError: The agent cannot be started, or does not open the session.
        OSError: The file for the recording cannot be written.
        typer.BadParameter: The session was begun in another folder.
    """
    in_vain = leaves_open(options.permissions) and not options.how.can_ask
    with ExitStack() as stack:
        write_log = stack.enter_context(log_held(options.how.verbose))
        with launching_shown(options.profile.name, options.how) as on_phase:
            opened = open_agent(
                options.profile,
                cwd=options.cwd,
                permissions=options.permissions,
                on_question=asked_in_vain if in_vain else None,
                record=options.record,
                model=options.model,
                on_phase=on_phase,
            )
            agent = stack.enter_context(opened)
            _check_folder(agent, options)
            session = stack.enter_context(agent.session(load=options.load, resume=options.resume))
        return _Chat(agent, session, options, write_log).hold()


def _check_folder(agent: Agent, options: ChatOptions) -> None:
    """Check that an old session is gone on with in its own folder, as far as the agent tells which that is.

    It is not just taken: the folder decides what rules for permissions mean, and an agent may say any.

    Raises:
        typer.BadParameter: It is another one.
    """
    wanted = options.load or options.resume
    if wanted is None or options.cwd is not None or agent.capabilities.session_capabilities.list is None:
        return
    here = Path.cwd()
    with suppress(AgentError):  # then it opens, or does not, and says why
        for info in agent.list_sessions():
            if info.id == wanted and os.path.abspath(info.cwd) != str(here):  # noqa: PTH100 - it may be gone
                raise typer.BadParameter(
                    f"the session {line(wanted)!r} was begun in another folder; "
                    f"go on there: --cwd {shlex.quote(line(info.cwd))}"
                )


class _Left(Exception):  # noqa: N818 - not an error
    """The person leaves."""


class _Killed(Exception):  # noqa: N818 - not an error
    """The person has killed the agent."""


class _Chat:
    """A chat that goes on.

    Args:
        agent: The agent.
        session: What is talked in.
        options: What was asked for.
        write_log: Writes what the library has logged while a turn was displayed.
    """

    def __init__(
        self, agent: Agent, session: Session, options: ChatOptions, write_log: Callable[[], None]
    ) -> None:
        self._agent = agent
        self._session = session
        self._options = options
        self._write_log = write_log
        self._person = options.how.can_ask
        """Whether there is a person."""
        self._plain = not (self._person and sys.stdout.isatty())
        """Whether answers go to standard output by themselves, and nothing else does."""
        self._commands = ChatCommands(agent, session)
        self._turns = 0
        self._reader = self._line_reader()

    def _line_reader(self) -> LineReader:
        # The line editor writes to standard output; and there is none on Windows, whose console has its own.
        if self._plain or find_spec("readline") is None:
            return Lines(sys.stdin, echo=sys.stderr if self._person else None)
        from thinkwell.cli.chat._keyboard import Keyboard, history_path

        return Keyboard(history_path() if self._options.history else None, self._commands.completions)

    def hold(self) -> int:
        """Go on until the person leaves, or the agent is gone; return the exit code."""
        self._tell(self._commands.greeting())
        while True:
            try:
                entry = read_entry(self._reader)
                self._reader.remember(entry)
                code = self._follow(entry) if entry.strip() else None
            except EOFError:
                self._tell("")
                return self._leave()
            except KeyboardInterrupt:  # at the prompt, or in the moment before what was typed is done
                if not self._person:
                    raise
                self._tell("\n(Ctrl-D or /exit leaves)")
                continue
            if code is not None:
                return code

    def _follow(self, entry: str) -> int | None:
        """Do what was typed; return an exit code where the chat is over."""
        try:
            self._do(entry)
        except _Left:
            return self._leave()
        except _Killed:  # pragma: no cover - tested in a terminal, where Ctrl-C is pressed twice
            self._tell(f"Killed\n{self._how_to_go_on() or ''}".rstrip())
            return INTERRUPTED
        except KeyboardInterrupt:
            if not self._person:
                raise  # pragma: no cover - tested; it may come a moment later, where a line is waited for
        except UsageError as exc:
            sys.stderr.write(f"{exc}\n")
            return None if self._person else WRONG_USAGE
        except Exception as exc:
            if not is_expected(exc):  # pragma: no cover - a mistake of ours
                raise
            return self._failed(exc)
        return None

    def _do(self, entry: str) -> None:
        meant = self._commands.meaning(entry)
        match meant:
            case Prompted(text):
                self._turn(text)
            case Ours("exit"):
                raise _Left
            case Ours(name, rest):
                self._commands.do(name, rest)
            case Unknown(name):
                raise UsageError(f"There is no command /{name}: see /help. //{name} is sent as it is")
            case _:
                assert_never(meant)

    def _turn(self, text: str) -> None:
        how = self._options.how
        style = how.style if self._person or how.style is not Style.AUTO else Style.LINES
        # Ctrl-C in the moment before the display receives it cancels the turn, too.
        with self._session.think().text(text).stream() as stream:
            self._turns += 1
            self._commands.stream = stream
            with Live(stream, style=style.value, verbose=how.verbose, result=False, ctrl_c=True) as live:
                stream.wait()
        self._write_log()
        if live.killed:
            raise _Killed
        answer = stream.result()
        if self._plain:
            write_result(answer)
        else:
            self._tell("")

    def _failed(self, error: Exception) -> int | None:
        """Tell of an error; return an exit code where the chat is over."""
        fatal = isinstance(error, FATAL)
        if self._person and isinstance(error, ThoughtCancelled) and not fatal:
            self._tell("Cancelled")
            return None
        tell(error)
        if fatal:
            self._tell(self._how_to_go_on())
        return exit_code(error) if fatal or not self._person else None

    def _leave(self) -> int:
        self._tell(self._how_to_go_on())
        return OK

    def _how_to_go_on(self) -> str | None:
        """Return what to type to go on another time; nothing where the agent does not load sessions."""
        if not self._turns or not self._agent.capabilities.load_session:
            return None
        again = ["thinkwell", "chat", *self._options.agent, "--load", line(self._session.id)]
        return f"To go on another time, type: {shlex.join(again)}"

    def _tell(self, text: str | None) -> None:
        """Tell a person something, if there is one."""
        if self._person and text is not None:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
