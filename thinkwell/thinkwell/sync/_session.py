"""`Session`: many turns in one conversation, for callers who block."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from thinkwell import Session as AsyncSession
from thinkwell import events as ev
from thinkwell._core.exit import OPEN_TIMEOUT
from thinkwell.errors import AgentClosed
from thinkwell.sync._builder import Starter, ThinkBuilder
from thinkwell.sync._loop import LoopEnded, hold
from thinkwell.sync._opening import Opened, Opener
from thinkwell.sync._stream import EventIterator

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from pydantic import TypeAdapter
    from typing_extensions import TypeForm

    from thinkwell import HistoryMessage, SessionMode, SessionOption, SessionUsage
    from thinkwell._core.schema.output import Form, JsonSchema
    from thinkwell.mcp_servers import McpServer
    from thinkwell.questions import Answer
    from thinkwell.sync._loop import Held

T = TypeVar("T")


class Session(Opened[AsyncSession]):
    """A conversation with an agent. Made by `Agent.session`.

    Turns run one at a time, in the order in which they were started. Each may have tools and an output type
    of its own. It may be used in several threads at once.
    """

    def __init__(self, held: Held[AsyncSession], session: AsyncSession, owner: object) -> None:
        super().__init__(held)
        self._session = session
        self._owner = owner  # an agent is closed when it cannot be used any more

    def __repr__(self) -> str:
        return repr(self._session)

    @property
    def id(self) -> str:
        """The agent's name for the session.

        It may change before the first turn has begun, and not after: an agent that does not fetch changed
        tools is given another session then, with the same modes and options.
        """
        return self._held.loop.ask(lambda: self._session.id)

    @property
    def cwd(self) -> str:
        """The folder that it works in."""
        return self._session.cwd

    @property
    def title(self) -> str | None:
        """What the agent calls the conversation."""
        return self._held.loop.ask(lambda: self._session.title)

    @property
    def commands(self) -> tuple[ev.Command, ...]:
        """The commands that can be prompted as ``/name``."""
        return self._held.loop.ask(lambda: self._session.commands)

    @property
    def usage(self) -> SessionUsage | None:
        """Tokens and cost, as the agent reported them last; ``None`` where it has not."""
        return self._held.loop.ask(lambda: self._session.usage)

    @property
    def modes(self) -> tuple[SessionMode, ...]:
        """The modes that the agent offers."""
        return self._held.loop.ask(lambda: self._session.modes)

    @property
    def mode(self) -> str | None:
        """The id of the mode that it is in; ``None`` where the agent has no modes."""
        return self._held.loop.ask(lambda: self._session.mode)

    @property
    def options(self) -> tuple[SessionOption, ...]:
        """What can be set, in the agent's order."""
        return self._held.loop.ask(lambda: self._session.options)

    def set_mode(self, mode_id: str) -> None:
        """Change the mode, also while a turn runs.

        Where one of the `options` is the mode, that is set.

        Raises:
            ValueError: There is no such mode.
            CapabilityMissing: The agent has no modes.
            AgentError: It did not change it.
        """
        self._call(lambda: self._session.set_mode(mode_id))

    def set_option(self, option_id: str, value: str | bool) -> None:
        """Change an option, also while a turn runs.

        Args:
            option_id: Which of `options`.
            value: The value of one of its choices, or a bool where it is on or off.

        Raises:
            ValueError: There is no such option, or it cannot be that.
            TypeError: It takes a value of another type.
            CapabilityMissing: The agent has no options.
            AgentError: It did not change it.
        """
        self._call(lambda: self._session.set_option(option_id, value))

    def fork(
        self,
        *,
        cwd: str | os.PathLike[str] | None = None,
        mcp_servers: Sequence[McpServer] = (),
        additional_directories: Sequence[str | os.PathLike[str]] = (),
        output: object = None,
        open_timeout: float = OPEN_TIMEOUT,
    ) -> Opener[Session]:
        """Open another session that begins with what was said in this one; see `Agent.session`.

        Args:
            cwd: The folder to work in; by default that of this session.
            mcp_servers: MCP servers for the agent, beside those of `open_agent`.
            additional_directories: More folders to work in.
            output: The output type of every typed turn, where it is always the same one.
            open_timeout: Seconds until the agent has opened it.

        Raises:
            CapabilityMissing: The agent does not advertise that.
            McpServerError: The program of an MCP server is not there.
            AgentError: The agent did not open it.
            NotADirectoryError: There is no such folder.
            TypeError: The output type cannot be used.
        """
        manager = partial(
            self._session.fork,
            cwd=cwd,
            mcp_servers=mcp_servers,
            additional_directories=additional_directories,
            output=output,
            open_timeout=open_timeout,
        )
        return Opener(partial(start_session, manager, self._held, self._owner))

    def history(self) -> tuple[HistoryMessage, ...]:
        """Return the conversation until now as messages: prompts, thoughts, answers and tool calls, in order.

        It is complete whatever a turn's ``stream(include=…)`` keeps. What a loaded session said before is in
        it as far as the agent repeats it.
        """
        return self._held.loop.ask(self._session.history)

    @overload
    def think(self, output: None = None, /) -> ThinkBuilder[str]: ...
    @overload
    def think(self, output: type[T], /) -> ThinkBuilder[T]: ...
    @overload
    def think(self, output: TypeAdapter[T], /) -> ThinkBuilder[T]: ...
    @overload
    def think(self, output: JsonSchema, /) -> ThinkBuilder[ev.JsonValue]: ...
    @overload
    def think(self, output: TypeForm[Form], /) -> ThinkBuilder[Form]: ...

    def think(self, output: object = None, /) -> ThinkBuilder[Any]:
        """Begin a turn; see `Agent.think`.

        Raises:
            TypeError: The output type cannot be used, or is not the one that the session was opened with.
        """
        builder = self._session.think(cast("type[Any]", output))
        return ThinkBuilder(Starter(self._held.loop, builder._starter, self), builder._spec)

    def answer(self, question_id: str, answer: Answer, *, by: str = "human") -> None:
        """Answer any open question of the session. See `ThoughtStream.answer`, which takes its run's alone.

        Raises:
            QuestionNotOpen: The session has no such open question.
            AnswerInvalid: The answer does not fit the question, which stays open.
        """
        self._held.loop.ask(lambda: self._session.answer(question_id, answer, by=by))

    def events(self, *, include: ev.Include = "all", after: int = 0) -> Iterator[ev.ThoughtEvent]:
        """Return an iterator over what the agent sends between the turns. It ends with the session."""
        ev.included(include)
        read = partial(self._session.events, include=include, after=after)
        return EventIterator(self._held.loop, read, self)


def start_session(
    manager: Callable[[], AbstractAsyncContextManager[AsyncSession]], within: Held[Any], owner: object
) -> Session:
    """Open a session.

    Args:
        manager: Opens it.
        within: The agent, or the session that it is a fork of.
        owner: What stays open as long as it may be used.
    """
    try:
        held, session = hold(manager, within=within)
    except LoopEnded:
        raise AgentClosed from None
    return Session(held, session, owner)
