"""`Session`: many turns in one conversation, for callers who block."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from thinkwell import Session as AsyncSession
from thinkwell import events as ev
from thinkwell._core.exit import OPEN_TIMEOUT
from thinkwell._core.schema.misuse import refuse_prompt
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

    from thinkwell import HistoryMessage, OptionChoice, SessionMode, SessionOption, SessionUsage
    from thinkwell._core.schema.output import Form, JsonSchema
    from thinkwell.mcp_servers import McpServer
    from thinkwell.questions import Answer
    from thinkwell.sync._loop import Held

T = TypeVar("T")


class Session(Opened[AsyncSession]):
    """A conversation with an agent. Created by `Agent.session`.

    Turns run one at a time, in the order in which you start them. Each may have its own tools and output
    type. You can use it from several threads at once.
    """

    def __init__(self, held: Held[AsyncSession], session: AsyncSession, owner: object) -> None:
        super().__init__(held)
        self._session = session
        self._owner = owner  # an agent without users is closed

    def __repr__(self) -> str:
        return repr(self._session)

    @property
    def id(self) -> str:
        """The agent's id for the session.

        It may change before the first turn begins, but not later: if the agent does not fetch changed
        tools, thinkwell opens another session with the same modes and options.
        """
        return self._held.loop.ask(lambda: self._session.id)

    @property
    def cwd(self) -> str:
        """The session's folder."""
        return self._session.cwd

    @property
    def title(self) -> str | None:
        """The agent's title for the conversation."""
        return self._held.loop.ask(lambda: self._session.title)

    @property
    def commands(self) -> tuple[ev.Command, ...]:
        """The commands that you can prompt as ``/name``."""
        return self._held.loop.ask(lambda: self._session.commands)

    @property
    def usage(self) -> SessionUsage | None:
        """Tokens and cost, as last reported by the agent; ``None`` if never."""
        return self._held.loop.ask(lambda: self._session.usage)

    @property
    def modes(self) -> tuple[SessionMode, ...]:
        """The modes that the agent offers."""
        return self._held.loop.ask(lambda: self._session.modes)

    @property
    def mode(self) -> str | None:
        """The id of the current mode; ``None`` if the agent has no modes."""
        return self._held.loop.ask(lambda: self._session.mode)

    @property
    def options(self) -> tuple[SessionOption, ...]:
        """The options that you can set, in the agent's order."""
        return self._held.loop.ask(lambda: self._session.options)

    @property
    def models(self) -> tuple[OptionChoice, ...]:
        """The models that the agent offers; empty if it offers no choice."""
        return self._held.loop.ask(lambda: self._session.models)

    @property
    def model(self) -> str | None:
        """The name of the current model; ``None`` if the agent does not report it."""
        return self._held.loop.ask(lambda: self._session.model)

    def set_model(self, model: str) -> None:
        """Change the model, even while a turn runs. If it is already set, nothing is sent.

        Args:
            model: The ``value`` or the ``name`` of one of `models`.

        Raises:
            ModelNotOffered: The agent does not offer it, or offers no choice.
            AgentError: The agent did not change it.
        """
        self._call(lambda: self._session.set_model(model))

    def set_mode(self, mode_id: str) -> None:
        """Change the mode, even while a turn runs.

        If one of the `options` is the mode, this sets that option.

        Raises:
            ValueError: The mode does not exist.
            CapabilityMissing: The agent has no modes.
            AgentError: The agent did not change it.
        """
        self._call(lambda: self._session.set_mode(mode_id))

    def set_option(self, option_id: str, value: str | bool) -> None:
        """Change an option, even while a turn runs.

        Args:
            option_id: The id of one of the `options`.
            value: The value of one of its choices, or a bool for a switch.

        Raises:
            ValueError: The option or the value does not exist.
            TypeError: The option takes a value of another type.
            CapabilityMissing: The agent has no options.
            AgentError: The agent did not change it.
        """
        self._call(lambda: self._session.set_option(option_id, value))

    def fork(
        self,
        *,
        cwd: str | os.PathLike[str] | None = None,
        mcp_servers: Sequence[McpServer] = (),
        additional_directories: Sequence[str | os.PathLike[str]] = (),
        model: str | None = None,
        output: object = None,
        system: str | None = None,
        system_mode: Literal["append", "replace"] = "append",
        system_fallback: Literal["prompt"] | None = None,
        open_timeout: float = OPEN_TIMEOUT,
    ) -> Opener[Session]:
        """Open another session that begins with a copy of this conversation; see `Agent.session`.

        Args:
            cwd: The folder to work in; by default that of this session.
            mcp_servers: MCP servers for the agent, in addition to those of `open_agent`.
            additional_directories: More folders to work in.
            model: Its model, by id or name; by default that of this session.
            output: The output type, if all typed turns have the same one.
            system: Instructions for the whole session; by default those of this session.
            system_mode: See `Agent.session`.
            system_fallback: See `Agent.session`.
            open_timeout: Seconds for the agent to open the session.

        Raises:
            CapabilityMissing: The agent does not advertise this.
            McpServerError: The program of an MCP server is missing.
            ModelNotOffered: The agent does not offer that model.
            AgentError: The agent did not open it.
            NotADirectoryError: The folder does not exist.
            TypeError: The output type cannot be used.
        """
        manager = partial(
            self._session.fork,
            cwd=cwd,
            mcp_servers=mcp_servers,
            additional_directories=additional_directories,
            model=model,
            output=output,
            system=system,
            system_mode=system_mode,
            system_fallback=system_fallback,
            open_timeout=open_timeout,
        )
        return Opener(partial(start_session, manager, self._held, self._owner))

    def history(self) -> tuple[HistoryMessage, ...]:
        """Return the conversation so far as messages: prompts, thoughts, answers and tool calls, in order.

        It is complete whatever a turn's ``stream(include=…)`` keeps. Of a loaded session it contains what the
        agent repeats.
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

    def think(self, output: object = None, /, *prompt: object) -> ThinkBuilder[Any]:
        """Begin a turn; see `Agent.think`.

        Raises:
            TypeError: The output type cannot be used, or is not that of the session.
        """
        refuse_prompt(prompt, "think")
        builder = self._session.think(cast("type[Any]", output))
        return ThinkBuilder(Starter(self._held.loop, builder._starter, self), builder._spec)

    def answer(self, question_id: str, answer: Answer, *, by: str = "human") -> None:
        """Answer any open question of the session. `ThoughtStream.answer` only takes questions of its run.

        Raises:
            QuestionNotOpen: The session has no such open question.
            AnswerInvalid: The answer does not fit the question, which stays open.
        """
        self._held.loop.ask(lambda: self._session.answer(question_id, answer, by=by))

    def events(self, *, include: ev.Include = "all", after: int = 0) -> Iterator[ev.ThoughtEvent]:
        """Return an iterator over the events between turns. It ends with the session."""
        ev.included(include)
        read = partial(self._session.events, include=include, after=after)
        return EventIterator(self._held.loop, read, self)


def start_session(
    manager: Callable[[], AbstractAsyncContextManager[AsyncSession]], within: Held[Any], owner: object
) -> Session:
    """Open a session.

    Args:
        manager: Opens the session.
        within: The agent, or the session to fork.
        owner: Stays open as long as the session may be used.
    """
    try:
        held, session = hold(manager, within=within)
    except LoopEnded:
        raise AgentClosed from None
    return Session(held, session, owner)
