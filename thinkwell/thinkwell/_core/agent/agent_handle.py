"""`Agent`: an agent that runs, and what to ask of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from thinkwell._core.agent.account import AuthStatus, Provider, as_provider
from thinkwell._core.agent.outcomes import mapped
from thinkwell._core.agent.session_handle import (
    OPEN_TIMEOUT,
    Session,
    open_session,
    session_plan,
)
from thinkwell._core.agent.session_list import listed_sessions
from thinkwell._core.agent.starters import AgentStarter
from thinkwell._core.schema.misuse import hints, refuse_prompt
from thinkwell._core.schema.output import output_type
from thinkwell._core.task.builder import Spec, ThinkBuilder
from thinkwell._core.task.system_prompt import session_system
from thinkwell.errors import AgentReported, AnswerUnreadable, CapabilityMissing, LoginFailed, LoginRequired
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pydantic import TypeAdapter
    from typing_extensions import TypeForm, Unpack

    from thinkwell import events as ev
    from thinkwell._core.agent.agent import RunningAgent
    from thinkwell._core.agent.opening import Hold, Opening
    from thinkwell._core.agent.outcomes import Outcomes, RunOptions
    from thinkwell._core.agent.runs import AgentStatistics
    from thinkwell._core.schema.output import Form, JsonSchema
    from thinkwell._core.session.state import SessionInfo
    from thinkwell._mcp.servers import McpServer
    from thinkwell.errors import AuthMethod
    from thinkwell.questions import Answer, Question
    from thinkwell.view import PhaseView

T = TypeVar("T")
In = TypeVar("In")


@hints(
    __await__="an agent cannot be awaited: write `await agent.think(…).text(…).run()`",
    __aenter__="the agent is open: use it in the block of `async with open_agent(…) as agent:`",
    __aexit__="",
    __aiter__="an agent has no events: write `async for event in agent.think(…).text(…).stream()`",
)
class Agent:
    """A running agent. Created by `open_agent`."""

    def __init__(self, agent: RunningAgent, hold: Hold) -> None:
        self._agent = agent
        self._hold = hold
        self._starter = AgentStarter(agent)

    def __repr__(self) -> str:
        return f"<Agent {self.name}>"

    @property
    def name(self) -> str:
        """The name under which you opened the agent, such as ``claude``, or the name of its program."""
        return self._agent.host.name

    @property
    def info(self) -> s.Implementation | None:
        """The name and version that the agent reports."""
        return self._agent.client.agent.agent_info

    @property
    def capabilities(self) -> s.AgentCapabilities:
        """The capabilities that the agent advertises."""
        return self._agent.client.capabilities

    @property
    def launch_phases(self) -> tuple[PhaseView, ...]:
        """The phases of the agent's launch, with times in seconds since its block was entered."""
        return self._agent.host.launch_log.views()

    @property
    def auth_methods(self) -> tuple[AuthMethod, ...]:
        """The login methods that the agent offers, whether or not it requires a login."""
        return self._agent.host.errors.methods

    @property
    def questions(self) -> tuple[Question, ...]:
        """The open questions of the agent, in all its sessions."""
        return self._agent.questions.asker.open.waiting

    def statistics(self) -> AgentStatistics:
        """Return statistics of the agent's current work: its runs, their events, and its open questions."""
        return self._agent.statistics()

    def answer(self, question_id: str, answer: Answer, *, by: str = "human") -> None:
        """Answer any open question of the agent. `ThoughtStream.answer` only takes questions of its run.

        Raises:
            QuestionNotOpen: The agent has no such open question.
            AnswerInvalid: The answer does not fit the question, which stays open.
        """
        self._agent.questions.asker.open.answer(question_id, answer, by)

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
        """Begin a task in a new session.

        Args:
            output: The type of the result: a pydantic model, dataclass, TypedDict, list, scalar, Literal or
                union of those; a `pydantic.TypeAdapter`, for type checkers that do not know `TypeForm`; a
                `JsonSchema`; or nothing (or ``str``) for the text of the agent's last message.
            prompt: Nothing. The prompt follows, as in ``think(Model).text("…")``.

        Raises:
            TypeError: The output type cannot be used; the message says what to give instead.
        """
        refuse_prompt(prompt, "think")
        return ThinkBuilder(self._starter, Spec(output=output_type(output, "think({})")))

    def map(
        self,
        task: ThinkBuilder[T] | Callable[[In], ThinkBuilder[T]],
        inputs: Iterable[In],
        *,
        limit: int = 4,
        ordered: bool = False,
        **options: Unpack[RunOptions],
    ) -> Outcomes[In, T]:
        """Run a task for each of many inputs, each in a session of its own, and return their outcomes.

        For example:

            async for outcome in agent.map(thinkwell.think(Review).text("Review "), files):
                print(outcome.input, outcome.error or outcome.result)

        Args:
            task: The task, to which each input is added by ``.text(str(input))``; or a function that returns
                the task of an input.
            inputs: The inputs. They are read as runs start.
            limit: How many runs go on at a time.
            ordered: Deliver the outcomes in the order of the inputs; by default as the runs end.
            options: Those of `ThinkBuilder.stream`, for each run. All share the `budget`.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: The limit is less than 1.
            AgentClosed: You have left the agent's block.
        """
        return mapped(task, inputs, self._agent, self._starter, options, limit=limit, ordered=ordered)

    def session(
        self,
        *,
        cwd: str | os.PathLike[str] | None = None,
        mcp_servers: Sequence[McpServer] = (),
        additional_directories: Sequence[str | os.PathLike[str]] = (),
        load: str | None = None,
        resume: str | None = None,
        fork: str | None = None,
        model: str | None = None,
        output: object = None,
        system: str | None = None,
        system_mode: Literal["append", "replace"] = "append",
        system_fallback: Literal["prompt"] | None = None,
        open_timeout: float = OPEN_TIMEOUT,
    ) -> Opening[Session]:
        """Open a session of many turns: a new one, or one that the agent remembers.

        If an old session cannot be opened, this raises an error; it never opens a new one instead.

        Args:
            cwd: The folder to work in; by default that of `open_agent`. For an old session, the folder in
                which it began.
            mcp_servers: MCP servers for the agent, in addition to those of `open_agent`.
            additional_directories: More folders to work in. An agent does not remember them: pass them
                again for an old session.
            load: The id of an old session to continue. The agent repeats the conversation on
                `Session.events`.
            resume: The same, without repeating it.
            fork: The id of a session to copy.
            model: Its model, by id or name, an old session's too; by default that of `open_agent`, else the
                agent's own choice. `Session.models` has those that the agent offers.
            output: The output type, if all typed turns have the same one: the agent then sees its schema in
                the tool instead of in each prompt.
            system: Instructions for the whole session (ACP's system prompt). Give them again for an old
                session, unless the agent is known to keep them: then that is an error.
            system_mode: ``append`` adds them to the agent's own; ``replace`` uses them instead of its own.
            system_fallback: ``prompt`` puts them before the first prompt if the agent does not support them
                in this mode. Without it, that is an error.
            open_timeout: Seconds for the agent to open the session.

        Raises:
            CapabilityMissing: The agent does not advertise this. Nothing was sent.
            ModelNotOffered: The agent does not offer that model. No prompt was sent.
            McpServerError: The program of an MCP server is missing.
            SessionNotOpened: The agent answered with an error.
            SessionOpenTimeout: The agent did not answer in time.
            SessionInUse: The old session is already open.
            AgentError: The agent did not open it for another reason.
            NotADirectoryError: The folder does not exist.
            TypeError: The output type cannot be used, or an argument has the wrong type.
            ValueError: An argument is invalid, or you passed more than one of `load`, `resume` and `fork`.
        """
        plan = session_plan(
            self._agent,
            cwd=cwd,
            mcp_servers=mcp_servers,
            additional_directories=additional_directories,
            sources={"load": load, "resume": resume, "fork": fork},
            model=self._agent.setup.model if model is None else model,
            output=output,
            system=session_system(system, system_mode, system_fallback),
            open_timeout=open_timeout,
        )
        return open_session(self._agent, plan)

    async def close(self) -> None:
        """Close the agent, as leaving its block does. No effect if it is already closed.

        Raises:
            WrongEventLoop: You called this outside the agent's event loop.
        """
        await self._hold.close()

    def kill(self) -> None:
        """Kill the agent's processes at once. Use it if leaving the block takes too long.

        Its runs fail with `AgentExited`. If thinkwell did not start the agent, it closes the connection.
        """
        if self._agent.client.connection.error is None:
            self._agent.host.owner.check()
        self._agent.kill("agent.kill() was called")

    async def list_sessions(self, cwd: str | os.PathLike[str] | None = None) -> list[SessionInfo]:
        """Return the sessions that the agent remembers, in the agent's order.

        Args:
            cwd: Only sessions of this folder.

        Raises:
            CapabilityMissing: The agent does not advertise this. Nothing was sent.
            AgentError: The agent did not list them.
        """
        self._agent.check_open()
        return await self._agent.host.errors.call(listed_sessions(self._agent, cwd))

    async def delete_session(self, session_id: str) -> None:
        """Make the agent forget a session. An unknown session is not an error (ACP, Session Delete).

        Raises:
            CapabilityMissing: The agent does not advertise this. Nothing was sent.
            AgentError: The agent did not delete it.
        """
        self._agent.check_open()
        await self._agent.host.errors.call(
            self._agent.client.delete_session(s.DeleteSessionRequest(session_id=session_id))
        )

    def auth_status(self) -> AuthStatus | None:
        """Return the agent's login status, as last reported; ``None`` if it was never reported.

        Agents report it when a session is opened, and when it changes.

        Raises:
            CapabilityMissing: The agent does not advertise ``_meta.authStatus``, which is not part of ACP.
        """
        if (self.capabilities.meta or {}).get("authStatus") is None:
            with self._agent.host.errors.advising():
                raise CapabilityMissing("_meta.authStatus", "auth_status()")
        return self._agent.incoming.auth_status

    async def logout(self) -> None:
        """Log out of the model service. Requests that need a login are refused from then on.

        Raises:
            CapabilityMissing: The agent does not advertise this. Nothing was sent.
            AgentError: The agent did not log out.
        """
        self._agent.check_open()
        await self._agent.host.errors.call(self._agent.client.logout())

    async def providers(self) -> list[Provider]:
        """Return the model services that the agent can use.

        Raises:
            CapabilityMissing: The agent does not advertise this. Nothing was sent.
            AgentError: The agent did not list them.
        """
        self._agent.check_open()
        answer = await self._agent.host.errors.call(self._agent.client.list_providers())
        return [as_provider(info) for info in answer.providers]

    async def use_provider(
        self, provider_id: str, /, *, api_type: str, base_url: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Set the address to which the agent sends a provider's requests, from its next session on.

        Args:
            provider_id: The id of one of the `providers`.
            api_type: The API there: one of its ``api_types``.
            base_url: The address.
            headers: Sent with each request; they replace all earlier ones.

        Raises:
            CapabilityMissing: The agent does not advertise this. Nothing was sent.
            AgentError: The agent did not change it.
        """
        self._agent.check_open()
        request = s.SetProviderRequest(
            provider_id=provider_id, api_type=api_type, base_url=base_url, headers=dict(headers or {})
        )
        await self._agent.host.errors.call(self._agent.client.set_provider(request))

    async def authenticate(self, method_id: str) -> None:
        """Log in with a method of type ``agent``, such as in a browser.

        Args:
            method_id: Its id, as in `LoginRequired.methods`.

        Raises:
            CapabilityMissing: The agent does not offer the method, or it is for a terminal: see `login`.
            LoginFailed: The login failed.
            AgentError: The agent has ended.
        """
        self._agent.check_open()
        with self._agent.host.errors.advising():
            try:
                await self._agent.host.errors.call(self._agent.authenticate(method_id))
            except (AgentReported, AnswerUnreadable, LoginRequired) as exc:
                raise LoginFailed(self.name, method_id, str(exc.__cause__)) from exc.__cause__
