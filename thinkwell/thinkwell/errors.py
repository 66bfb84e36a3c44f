"""The errors of a run, as one tree.

    ThinkwellError
    ├── AgentError              a problem with the agent
    │   ├── AgentNotFound           its program does not exist
    │   ├── AgentStartFailed        it was started, but cannot be used
    │   ├── AgentExited             its process ended
    │   ├── AgentClosed             open_agent was left; also a ThoughtCancelled
    │   │   └── SessionClosed           a session's block was left
    │   ├── SessionUnusable         a cancelled turn of the session never ended
    │   ├── LoginRequired           it requires a login first
    │   ├── LoginFailed             a login failed
    │   ├── CapabilityMissing       it does not support this; nothing was sent
    │   ├── ModelNotOffered         it does not offer that model; no prompt was sent
    │   ├── AgentReported           it answered with an error
    │   │   ├── SessionNotOpened        when asked to open a session
    │   │   ├── Overloaded              its model service is overloaded
    │   │   ├── QuotaExhausted          its quota or credit is used up
    │   │   ├── ContextFull             the conversation is too long for the model
    │   │   ├── ModelNotFound           its model service does not have the model
    │   │   └── LoginExpired            its login has expired; also a LoginRequired
    │   ├── SessionOpenTimeout      it did not open a session in time
    │   ├── SessionInUse            the session is already open
    │   ├── SessionIdReused         it gave two open sessions the same id
    │   ├── WrongEventLoop          it was used in another event loop, thread or process; also a RuntimeError
    │   └── AnswerUnreadable        its answer does not fit the protocol
    ├── ResultError             the turn ended without a result
    │   ├── ResultMissing           return_result was never called
    │   ├── ResultInvalid           every value was invalid
    │   ├── ResultRefused           the model refused
    │   └── ToolsNotSeen            the agent never fetched the list of tools
    ├── ThoughtCancelled        the run was cancelled
    ├── ThoughtTimeout          the run took too long
    ├── BudgetExceeded          the run used up its budget
    ├── RunEnded                the run is over; also a RuntimeError
    ├── SteeringUnsupported     the agent takes no message while it works
    ├── QuestionsStopped        a question handler ended the run
    ├── MessageInvalid          a message of the agent does not fit its handler
    ├── AnswerInvalid           an answer does not fit its question
    ├── QuestionNotOpen         the question does not exist, or is answered
    ├── PolicyError             a permission policy cannot be read
    ├── ProfileError            the profile of an agent cannot be read
    ├── BufferOverflow          the run's buffer is full, and its policy is "error"
    ├── RecordingError          a file cannot be replayed
    │   └── RecordingCut            a recording ends before its run does
    ├── ResultStoreError        the file of kept results cannot be used
    ├── RegistryError           a registry of agents cannot be used
    ├── RecordedFailure         the recorded run failed with an error of another class
    ├── McpServerError          an MCP server, or a file of them, cannot be used
    ├── SkillError              a skill cannot be used
    └── ToolError               raise it in a tool to send the agent a message

Every error has its details as attributes, can be pickled, and says what to do next.
"""

# ruff: noqa: N818 - the names say what happened

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping  # noqa: TC003 - a field's type, read at run time
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.events import JsonValue, TryFailed

__all__ = (
    "AgentClosed",
    "AgentError",
    "AgentExited",
    "AgentNotFound",
    "AgentReported",
    "AgentStartFailed",
    "AnswerInvalid",
    "AnswerUnreadable",
    "AuthMethod",
    "BudgetExceeded",
    "BufferOverflow",
    "CapabilityMissing",
    "ContextFull",
    "LoginExpired",
    "LoginFailed",
    "LoginRequired",
    "McpServerError",
    "MessageInvalid",
    "ModelNotFound",
    "ModelNotOffered",
    "Overloaded",
    "PolicyError",
    "ProfileError",
    "QuestionNotOpen",
    "QuestionsStopped",
    "QuotaExhausted",
    "RecordedFailure",
    "RecordingCut",
    "RecordingError",
    "RegistryError",
    "ResultError",
    "ResultInvalid",
    "ResultMissing",
    "ResultRefused",
    "ResultStoreError",
    "RunEnded",
    "SessionClosed",
    "SessionIdReused",
    "SessionInUse",
    "SessionNotOpened",
    "SessionOpenTimeout",
    "SessionUnusable",
    "SkillError",
    "SteeringUnsupported",
    "ThinkwellError",
    "ThoughtCancelled",
    "ThoughtTimeout",
    "ToolError",
    "ToolsNotSeen",
    "WrongEventLoop",
)


MODELS_NAMED = 30
"""Most of an agent's models that an error names. All of them are in its attribute."""


class ThinkwellError(Exception):
    """Base of all errors of thinkwell."""

    tries: tuple[TryFailed, ...] = ()
    """The tries of the run that failed before; see `thinkwell.Retry` and `ThinkBuilder.fallback`."""

    # Errors are dataclasses, except those that take more than they keep: a list, of which they keep a tuple.
    __match_args__: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        # Pickles and copies are made from these.
        self.args: tuple[object, ...] = tuple(getattr(self, name) for name in self.__match_args__)


class AgentError(ThinkwellError):
    """A problem with the agent, or with the connection to it."""


@dataclass(eq=False, repr=False)
class AgentNotFound(AgentError):
    """The agent's program does not exist.

    Attributes:
        agent: The requested name or command.
        reason: What is missing, and what to do.
        next_command: The command to type next; empty for an unknown agent.
    """

    agent: str
    reason: str
    _: KW_ONLY
    next_command: str = ""

    def __str__(self) -> str:
        return f"Agent {self.agent!r} was not found: {self.reason}{_next(self.next_command)}"


class AgentStartFailed(AgentError):
    """The agent was started, but did not become ready.

    Attributes:
        agent: The agent's name.
        reason: What happened, and what to do.
        stderr_tail: The end of its standard error.
        exit_code: Its exit code if it has ended; if it could not be installed, that of the installation.
        command: The command that was started; empty if thinkwell did not start it.
        phase: The phase it reached: ``launching``, ``installing`` or ``initializing``.
        version: The requested version, such as ``0.61.0`` or ``latest``; ``None`` if you named none.
        next_command: The command to type for more details; empty if thinkwell did not start the agent.
    """

    def __init__(
        self,
        agent: str,
        reason: str,
        *,
        stderr_tail: str = "",
        exit_code: int | None = None,
        command: Sequence[str] = (),
        phase: str = "initializing",
        version: str | None = None,
        next_command: str = "",
    ) -> None:
        super().__init__(agent, reason)
        self.agent = agent
        self.reason = reason
        self.stderr_tail = stderr_tail
        self.exit_code = exit_code
        self.command: tuple[str, ...] = tuple(command)
        self.phase = phase
        self.version = version
        self.next_command = next_command

    def __str__(self) -> str:
        version = f" (version {self.version})" if self.version else ""
        line = shlex.join(self.command)
        how = f"\nIts command: {line}" if line not in ("", self.next_command) else ""
        return (
            f"Agent {self.agent!r}{version} could not be started: {self.reason}"
            f"{how}{_next(self.next_command)}{_quoted(self.stderr_tail)}"
        )


@dataclass(eq=False, repr=False)
class AgentExited(AgentError):
    """The agent's process ended, or closed its output, while it was in use.

    Attributes:
        exit_code: Its exit code, negative for a signal; ``None`` if unknown.
        stderr_tail: The end of its standard error.
        reason: Further details, such as that one of its messages was too long.
        agent: The agent's name.
        ended_because: Why thinkwell ended it; empty if thinkwell did not end it.
    """

    exit_code: int | None
    stderr_tail: str = ""
    reason: str = ""
    _: KW_ONLY
    agent: str = ""
    ended_because: str = ""

    def __str__(self) -> str:
        who = f"Agent {self.agent!r}" if self.agent else "The agent"
        why = f" ({self.reason})" if self.reason else ""
        what = f"{_how_it_ended(self.exit_code)}{why} before it had finished"
        if self.ended_because:
            what = f"was ended by thinkwell, because {self.ended_because}"
        return f"{who} {what}; open it again to go on{_quoted(self.stderr_tail)}"


class ThoughtCancelled(ThinkwellError):
    """The run was cancelled."""

    def __str__(self) -> str:
        return "The run was cancelled"


class AgentClosed(AgentError, ThoughtCancelled):
    """The agent was closed during the run, or before you started it."""

    def __str__(self) -> str:
        return (
            "The agent was closed: the block of open_agent(…) was left, close() was called, or its event "
            "loop has ended. Start runs, and wait for their results, before that"
        )


class AuthMethod(msgspec.Struct, frozen=True, kw_only=True):
    """A way to log in that an agent offers.

    Attributes:
        id: The agent's id for it.
        name: The name to show.
        description: The agent's description of it.
        type: ``agent``: the agent logs in by itself, such as in a browser. ``terminal``: a program of the
            agent asks in a terminal.
        command: The complete command of a terminal login: the agent's own, and the arguments it adds. Empty
            for the other type, or if thinkwell did not start the agent.
        env: Environment variables for the command, in addition to the agent's own.
    """

    id: str
    name: str
    description: str = ""
    type: Literal["agent", "terminal"] = "agent"
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


class LoginRequired(AgentError):
    """The agent requires a login first.

    Attributes:
        agent: The agent's name.
        methods: The login methods that it offers.
        reason: The agent's message, or why no login was attempted.
    """

    def __init__(
        self, agent: str, methods: Sequence[AuthMethod], reason: str = "it wants a login first"
    ) -> None:
        super().__init__(agent, tuple(methods), reason)
        self.agent = agent
        self.methods: tuple[AuthMethod, ...] = tuple(methods)
        self.reason = reason

    def __str__(self) -> str:
        head = f"Agent {self.agent!r}: {self.reason}"
        if not self.methods:
            return f"{head}. It offers no way: log in with its own program"
        return f"{head}. It offers:{''.join(_way(method) for method in self.methods)}"


class SessionClosed(AgentClosed):
    """The session was closed during the turn, or before you started it."""

    def __str__(self) -> str:
        return (
            "The session was closed: the block of agent.session(…) was left, or close() was called. Start "
            "turns, and wait for their results, before that"
        )


@dataclass(eq=False, repr=False)
class LoginFailed(AgentError):
    """A login failed. Try again, or try another method.

    Attributes:
        agent: The agent's name.
        method: The id of the login method.
        reason: What happened.
        exit_code: The exit code of the command of a terminal login, negative for a signal; else ``None``.
    """

    agent: str
    method: str
    reason: str
    exit_code: int | None = None

    def __str__(self) -> str:
        return (
            f"The login {self.method!r} of agent {self.agent!r} failed: {self.reason}. "
            "Try again, or use another method"
        )


@dataclass(eq=False, repr=False)
class CapabilityMissing(AgentError):
    """The agent does not advertise a capability that you need. Nothing was sent.

    Attributes:
        capability: Path of the missing flag in the agent's capabilities.
        wanted_by: The feature that needs it.
    """

    capability: str
    wanted_by: str

    def __str__(self) -> str:
        return f"This agent does not advertise {self.capability}, which is needed for {self.wanted_by}"


class ModelNotOffered(AgentError):
    """The agent does not offer the requested model. No prompt was sent.

    Attributes:
        model: The requested model.
        models: The ids of the models that the agent offers; empty if it offers no choice.
    """

    def __init__(self, model: str, models: Sequence[str] = ()) -> None:
        super().__init__(model, tuple(models))
        self.model = model
        self.models: tuple[str, ...] = tuple(models)

    def __str__(self) -> str:
        wanted = f"{self.model!r:.80}"
        if not self.models:
            return (
                f"This agent offers no choice of models, so it cannot be given {wanted}; "
                "leave the model out, and its own settings choose one"
            )
        some = ", ".join(f"{model!r:.80}" for model in self.models[:MODELS_NAMED])
        more = f" and {len(self.models) - MODELS_NAMED} more" if len(self.models) > MODELS_NAMED else ""
        return f"This agent has no model {wanted}. It offers {some}{more}"


@dataclass(eq=False, repr=False)
class AgentReported(AgentError):
    """The agent answered with an error, or ended its turn with one as its message.

    Attributes:
        code: JSON-RPC or ACP error code; ``None`` for an error that came as a message.
        message: The agent's message.
        data: Any further data from the agent, as JSON.
    """

    code: int | None
    message: str
    data: JsonValue = None

    def __str__(self) -> str:
        return (
            f"The agent reported: {self._said}. "
            "This comes from the agent or its model service; its own log says more"
        )

    @property
    def _said(self) -> str:
        code = "" if self.code is None else f" [{self.code}]"
        extra = "" if self.data is None else f" ({self.data})"
        return f"{self.message}{code}{extra}"


@dataclass(eq=False, repr=False)
class Overloaded(AgentReported):
    """The agent's model service is overloaded, for all or for this account. Try again later.

    Attributes:
        code: JSON-RPC or ACP error code; ``None`` for an error that came as a message.
        message: The agent's message.
        data: Any further data from the agent, as JSON.
        retry_after: Seconds to wait, if the agent says so; most do not.
    """

    _: KW_ONLY
    retry_after: float | None = None

    def __str__(self) -> str:
        when = "later" if self.retry_after is None else f"in {self.retry_after:g} seconds"
        return f"The agent's model service is overloaded: {self._said}; try again {when}"


@dataclass(eq=False, repr=False)
class QuotaExhausted(AgentReported):
    """The quota or the credit of the agent's account is used up.

    Attributes:
        code: JSON-RPC or ACP error code; ``None`` for an error that came as a message.
        message: The agent's message.
        data: Any further data from the agent, as JSON.
        resets_at: When it is renewed, in seconds since 1970, if the agent says so; most do not.
    """

    _: KW_ONLY
    resets_at: float | None = None

    def __str__(self) -> str:
        when = "" if self.resets_at is None else _utc(self.resets_at)
        return (
            f"The quota of the agent's account is used up: {self._said}; wait until it is renewed{when}, or "
            "take another account or agent"
        )


@dataclass(eq=False, repr=False)
class ContextFull(AgentReported):
    """The conversation is too long for the model. Another turn in the session fails, too.

    Attributes:
        code: JSON-RPC or ACP error code; ``None`` for an error that came as a message.
        message: The agent's message.
        data: Any further data from the agent, as JSON.
    """

    def __str__(self) -> str:
        return f"The model takes no longer conversation: {self._said}; begin a new session, or send less"


@dataclass(eq=False, repr=False)
class ModelNotFound(AgentReported):
    """The agent's model service does not have the model, or not for this account.

    Attributes:
        code: JSON-RPC or ACP error code; ``None`` for an error that came as a message.
        message: The agent's message.
        data: Any further data from the agent, as JSON.
    """

    def __str__(self) -> str:
        return f"The agent's model service does not have the model: {self._said}; choose another model"


class LoginExpired(AgentReported, LoginRequired):
    """The agent's model service no longer accepts its login or key.

    Attributes:
        code: JSON-RPC or ACP error code; ``None`` for an error that came as a message.
        message: The agent's message.
        data: Any further data from the agent, as JSON.
        agent: The agent's name.
        methods: The login methods that it offers.
        reason: The same as `message`.
    """

    def __init__(
        self,
        code: int | None,
        message: str,
        data: JsonValue = None,
        *,
        agent: str = "",
        methods: Sequence[AuthMethod] = (),
    ) -> None:
        super().__init__(code, message, data)
        self.agent: str = agent
        self.methods: tuple[AuthMethod, ...] = tuple(methods)
        self.reason: str = message

    def __str__(self) -> str:
        ways = "".join(_way(method) for method in self.methods)
        how = f". It offers:{ways}" if ways else " with its own program"
        return f"Agent {self.agent!r} is not logged in any more: {self._said}; log in again{how}"


class SessionNotOpened(AgentReported):
    """The agent answered a request to open a session with an error. No other session was opened instead.

    Attributes:
        how: ``new``, ``load``, ``resume`` or ``fork``.
        session_id: The requested session; ``None`` for a new one.
        code: JSON-RPC or ACP error code.
        message: The agent's message.
        data: Any further data from the agent, as JSON.
    """

    def __init__(
        self, how: str, session_id: str | None, code: int | None, message: str, data: JsonValue = None
    ) -> None:
        super().__init__(code, message, data)
        self.args: tuple[object, ...] = (how, session_id, code, message, data)
        self.how = how
        self.session_id = session_id

    def __str__(self) -> str:
        return f"{_opening(self.how, self.session_id)} failed. {super().__str__()}"


@dataclass(eq=False, repr=False)
class SessionOpenTimeout(AgentError):
    """The agent did not open a session in time; the request was cancelled.

    Attributes:
        how: ``new``, ``load``, ``resume`` or ``fork``.
        session_id: The requested session; ``None`` for a new one.
        seconds: The timeout, in seconds.
    """

    how: str
    session_id: str | None
    seconds: float

    def __str__(self) -> str:
        return (
            f"{_opening(self.how, self.session_id)} took longer than {self.seconds:g} seconds; "
            "raise open_timeout= if the agent needs longer"
        )


@dataclass(eq=False, repr=False)
class SessionInUse(AgentError):
    """The session is already open in this connection, so you cannot open it again.

    Attributes:
        session_id: The id of the session.
    """

    session_id: str

    def __str__(self) -> str:
        return (
            f"Session {self.session_id!r} is already open; use the Session that you have, or leave its block "
            "first. A copy is made by fork"
        )


@dataclass(eq=False, repr=False)
class SessionIdReused(AgentError):
    """The agent gave a new session the id of another open session. This is a bug in the agent.

    Attributes:
        agent: The agent's name.
        session_id: The id that it used twice.
    """

    agent: str
    session_id: str

    def __str__(self) -> str:
        return (
            f"Agent {self.agent!r} gave the same session id twice: {self.session_id!r} is that of another "
            "open session, so their messages cannot be distinguished. That is a fault of the agent: open one "
            "session at a time, or open the agent once for each"
        )


@dataclass(eq=False, repr=False)
class WrongEventLoop(AgentError, RuntimeError):
    """An agent, session or run was used outside the event loop in which the agent was opened.

    Attributes:
        agent: The agent's name.
        opened_in: The event loop, thread and process to which it belongs.
        used_in: The event loop, thread and process in which it was used.
    """

    agent: str
    opened_in: str
    used_in: str

    def __str__(self) -> str:
        return (
            f"Agent {self.agent!r} was opened in {self.opened_in}, and used in {self.used_in}. An agent, its "
            "sessions and its runs belong to the event loop in which it was opened. In a thread, call back "
            "into that loop: anyio.from_thread.run(task.run), or portal.call(task.run) with a BlockingPortal "
            "of AnyIO. For code without an event loop, open the agent with thinkwell.sync"
        )


@dataclass(eq=False, repr=False)
class AnswerUnreadable(AgentError):
    """The agent's answer does not fit the protocol. Another version of the agent may help.

    Attributes:
        reason: What is wrong with the answer.
    """

    reason: str

    def __str__(self) -> str:
        return f"The agent's answer cannot be read: {self.reason}. Try another version of the agent"


@dataclass(eq=False, repr=False)
class SessionUnusable(AgentError):
    """A cancelled turn of this session never ended, so no other turn can follow. Open another session.

    Attributes:
        session_id: The agent's id for the session.
    """

    session_id: str

    def __str__(self) -> str:
        return (
            f"Session {self.session_id!r} has a cancelled turn that the agent never ended; "
            "open another session"
        )


class ResultError(ThinkwellError):
    """The turn ended without a result."""


class ResultMissing(ResultError):
    """The agent ended its turn without calling ``return_result``, even after reminders.

    Attributes:
        stop_reason: Why the turn ended, in the protocol's words, such as ``end_turn`` or ``max_tokens``.
        text: The agent's message instead.
        denied: The titles of its denied permission requests, which may be the cause.
    """

    def __init__(self, stop_reason: str, text: str, *, denied: Sequence[str] = ()) -> None:
        super().__init__(stop_reason, text)
        self.stop_reason = stop_reason
        self.text = text
        self.denied: tuple[str, ...] = tuple(denied)

    def __str__(self) -> str:
        said = f"; it said: {self.text[-500:]!r}" if self.text else "; it said nothing"
        hint = {
            "max_tokens": "the model ran out of tokens: ask for less, or for a smaller result",
            "max_turn_requests": "the agent ran out of model requests: ask for less",
            "cancelled": "it cancelled the turn itself, as some do when something is denied",
        }.get(self.stop_reason, "say in the prompt what the result is")
        what = f"The agent ended its turn ({self.stop_reason}) without a result"
        return f"{what}; {hint}{said}{_denied(self.denied)}"


class ResultInvalid(ResultError):
    """Every value that the agent returned was invalid.

    Attributes:
        raw: The last value.
        errors: Its problems, one line each.
        attempts: How often the agent tried.
    """

    def __init__(self, raw: JsonValue, errors: Sequence[str], attempts: int) -> None:
        super().__init__(raw, tuple(errors), attempts)
        self.raw = raw
        self.errors: tuple[str, ...] = tuple(errors)
        self.attempts = attempts

    def __str__(self) -> str:
        wrong = "".join(f"\n- {line}" for line in self.errors)
        return (
            f"The agent returned no valid result in {self.attempts} attempt{'s' * (self.attempts != 1)}. "
            f"The last one was {self.raw!r}:{wrong}"
        )


@dataclass(eq=False, repr=False)
class ResultRefused(ResultError):
    """The model refused.

    Attributes:
        text: Its message.
    """

    text: str

    def __str__(self) -> str:
        return f"The agent refused: {self.text!r}"


class ToolsNotSeen(ResultError):
    """The agent never fetched the list of tools, so it could not call ``return_result``.

    Attributes:
        via: The transports that were tried: ``acp``, ``http``, ``stdio``.
        text: The agent's message instead.
    """

    def __init__(self, via: Sequence[str], text: str = "") -> None:
        super().__init__(tuple(via), text)
        self.via: tuple[str, ...] = tuple(via)
        self.text = text

    def __str__(self) -> str:
        said = f"; it said: {self.text[-500:]!r}" if self.text else ""
        return (
            f"The agent never asked for our tools over {', '.join(self.via)}. Its settings may forbid MCP "
            f"servers in this folder; its log says more{said}"
        )


@dataclass(eq=False, repr=False)
class ThoughtTimeout(ThinkwellError):
    """The run took too long, or the agent was silent for too long, and the run was cancelled.

    Attributes:
        seconds: The timeout, in seconds.
        idle: Whether it was the ``idle_timeout``.
    """

    seconds: float
    _: KW_ONLY
    idle: bool = False

    def __str__(self) -> str:
        if self.idle:
            return (
                f"Nothing was heard of the agent for {self.seconds:g} seconds, and the run was cancelled; "
                "raise idle_timeout= if it needs longer"
            )
        return f"The run took longer than {self.seconds:g} seconds and was cancelled"


@dataclass(eq=False, repr=False)
class BudgetExceeded(ThinkwellError):
    """The run used up its budget, and was cancelled or not started.

    Attributes:
        what: ``tokens``, ``cost``, ``tool_calls`` or ``seconds``.
        limit: The limit of the budget.
        spent: The usage of all runs that share the budget.
    """

    what: str
    limit: float
    spent: float

    def __str__(self) -> str:
        # The call beyond the limit was stopped.
        used = min(self.spent, self.limit) if self.what == "tool_calls" else self.spent
        return (
            f"The budget is used up: {used:g} of {self.limit:g} {self.what.replace('_', ' ')}; "
            "give the run another Budget to continue"
        )


@dataclass(eq=False, repr=False)
class RunEnded(ThinkwellError, RuntimeError):
    """`ThoughtStream.steer` came too late: the run is over, or was cancelled.

    Attributes:
        run_id: The run.
    """

    run_id: str

    def __str__(self) -> str:
        return (
            f"Run {self.run_id} has ended, so its agent cannot be steered; start another run, in a session "
            "where the agent should remember this one"
        )


@dataclass(eq=False, repr=False)
class SteeringUnsupported(ThinkwellError):
    """The agent does not advertise that it accepts a message while it works. Nothing was sent.

    Attributes:
        agent: Name of the agent.
    """

    agent: str

    def __str__(self) -> str:
        return (
            f"Agent {self.agent!r} cannot be steered: it does not advertise steering. "
            'steer(…, otherwise="queue") prompts it when the run is over; "interrupt" ends its turn for that'
        )


@dataclass(eq=False, repr=False)
class QuestionsStopped(ThinkwellError):
    """A question handler ended the run.

    Attributes:
        reason: Why it ended the run.
        question_id: The id of the question.
    """

    reason: str
    question_id: str = ""

    def __str__(self) -> str:
        return f"The run was ended over question {self.question_id}: {self.reason}"


class MessageInvalid(ThinkwellError, ValueError):
    """A message of the agent does not fit the annotation of its handler.

    Attributes:
        type: The type of the message, such as ``question``.
        errors: The problems, by the name of the field; ``""`` for the whole message.
        agent: The agent's name.
        handler: The handler, with its source location.
    """

    def __init__(
        self,
        type: str,  # noqa: A002 - what it is
        errors: Mapping[str, str],
        *,
        agent: str = "",
        handler: str = "its handler",
    ) -> None:
        super().__init__(type, dict(errors))
        self.type = type
        self.errors: dict[str, str] = dict(errors)
        self.agent = agent
        self.handler = handler

    def __str__(self) -> str:
        who = f"agent {self.agent!r}" if self.agent else "the agent"
        return (
            f"A message {self.type!r:.100} of {who} does not fit the annotation of {self.handler}: "
            f"{_by_field(self.errors)}. "
            "Annotate it with the fields that the agent sends, or use a mapping, which is not checked"
        )


class AnswerInvalid(ThinkwellError, ValueError):
    """An answer does not fit its question, which stays open.

    Attributes:
        question_id: The id of the question.
        errors: The problems, by the name of the form's field; ``""`` for the whole answer.
    """

    def __init__(self, question_id: str, errors: Mapping[str, str]) -> None:
        super().__init__(question_id, dict(errors))
        self.question_id = question_id
        self.errors: dict[str, str] = dict(errors)

    def __str__(self) -> str:
        return f"The answer to question {self.question_id} is not valid: {_by_field(self.errors)}"


class QuestionNotOpen(ThinkwellError, LookupError):
    """The question does not exist, or already has an answer.

    Attributes:
        question_id: The requested id.
        open: The ids of the open questions.
    """

    def __init__(self, question_id: str, open: Sequence[str] = ()) -> None:  # noqa: A002 - what they are
        super().__init__(question_id, tuple(open))
        self.question_id = question_id
        self.open: tuple[str, ...] = tuple(open)

    def __str__(self) -> str:
        known = f"open are: {', '.join(self.open)}" if self.open else "none is open"
        return f"There is no open question {self.question_id!r}, it may have been answered; {known}"


@dataclass(eq=False, repr=False)
class BufferOverflow(ThinkwellError):
    """The run's buffer is full, and its policy is ``error``.

    Attributes:
        max_events: The limit of the buffer.
    """

    max_events: int

    def __str__(self) -> str:
        return (
            f'The run kept more than {self.max_events} events (Buffer(overflow="error")) and was cancelled; '
            "give it a larger max_events, or another overflow"
        )


@dataclass(eq=False, repr=False)
class PolicyError(ThinkwellError, ValueError):
    """A permission policy cannot be read.

    Attributes:
        problem: The problem, and how to fix it.
        source: The file; ``None`` if the policy was a text.
        where: The key, such as ``rules[1].kind``; empty if the text is not TOML.
    """

    problem: str
    _: KW_ONLY
    source: str | None = None
    where: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.source, self.where, self.problem) if part)


class ProfileError(ThinkwellError, ValueError):
    """The profile of an agent cannot be read, or does not say how to start it.

    Attributes:
        agent: The agent's name.
        reason: The problem, and how to fix it.
        files: The files it was read from, the most general first.
    """

    def __init__(self, agent: str, reason: str, files: Sequence[str] = ()) -> None:
        super().__init__(agent, reason, tuple(files))
        self.agent = agent
        self.reason = reason
        self.files: tuple[str, ...] = tuple(files)

    def __str__(self) -> str:
        where = f" (from {', '.join(self.files)})" if self.files else ""
        return f"The profile of agent {self.agent!r}{where}: {self.reason}"


@dataclass(eq=False, repr=False)
class RecordingError(ThinkwellError):
    """A file cannot be replayed.

    Attributes:
        path: The file.
        reason: The problem.
    """

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path} cannot be replayed: {self.reason}"


@dataclass(eq=False, repr=False)
class ResultStoreError(ThinkwellError):
    """The file of ``run(key=…, store=…)`` cannot be used, or what is in it is not of the task's type.

    Attributes:
        path: The file.
        key: The key of the result.
        reason: The problem.
        result: The result that could not be kept; ``None`` if nothing has run.
    """

    path: str
    key: str
    reason: str
    result: object = None

    def __str__(self) -> str:
        return f"The results in {self.path}: {self.reason}"


class RecordingCut(RecordingError):
    """A recording ends before its run does. Everything before the cut was replayed.

    Attributes:
        path: The file.
        reason: Where it ends.
    """

    def __str__(self) -> str:
        return f"The recording {self.path} is cut: {self.reason}. Everything before that was replayed"


@dataclass(eq=False, repr=False)
class RecordedFailure(ThinkwellError):
    """The recorded run failed with an error that is not one of thinkwell's own.

    Attributes:
        name: The name of its class.
        message: Its message.
    """

    name: str
    message: str

    def __str__(self) -> str:
        return f"The recorded run failed with {self.name}: {self.message}"


@dataclass(eq=False, repr=False)
class RegistryError(ThinkwellError):
    """A registry of agents cannot be read. The previously stored copy is kept.

    Attributes:
        source: The file or address.
        reason: What happened, and what to do.
    """

    source: str
    reason: str

    def __str__(self) -> str:
        return f"The agent registry {self.source} cannot be used: {self.reason}"


@dataclass(eq=False, repr=False)
class McpServerError(ThinkwellError, ValueError):
    """One of your MCP servers cannot be used, or a file of them cannot be read. Nothing was sent.

    The error contains no values of variables, headers or arguments.

    Attributes:
        problem: The problem, and what to do.
        server: The server's name; ``None`` if the problem is the whole file.
        source: The file; ``None`` if the server does not come from a file.
        where: The key in the file, such as ``mcpServers.files.env.TOKEN``.
    """

    problem: str
    _: KW_ONLY
    server: str | None = None
    source: str | None = None
    where: str = ""

    def __str__(self) -> str:
        about = () if self.server is None or self.where else (f"MCP server {self.server!r:.100}",)
        return ": ".join(part for part in (self.source, *about, self.where, self.problem) if part)


@dataclass(eq=False, repr=False)
class SkillError(ThinkwellError):
    """A skill cannot be used.

    Attributes:
        skill: The path of the skill, or its name if it has no file.
        reason: The problem, and what to do.
    """

    skill: str
    reason: str

    def __str__(self) -> str:
        return f"Skill {self.skill!r} cannot be used: {self.reason}"


class ToolError(ThinkwellError):
    """Raise it in a tool to send the agent a message. The agent may then try something else."""


def _opening(how: str, session_id: str | None) -> str:
    """Return a description of the request."""
    return "session/new" if session_id is None else f"session/{how} of {session_id!r}"


def _how_it_ended(exit_code: int | None) -> str:
    """Return a description of the end of an agent's process."""
    if exit_code is None:
        return "closed the connection"
    return f"was killed by signal {-exit_code}" if exit_code < 0 else f"exited with code {exit_code}"


def _way(method: AuthMethod) -> str:
    """Return the line of a login method."""
    text = f" ({method.description})" if method.description else ""
    return f"\n- {method.id}: {method.name}{text}: {_how_to_log_in(method)}"


def _how_to_log_in(method: AuthMethod) -> str:
    """Return how to use a login method."""
    if method.type == "agent":
        return f"`await agent.authenticate({_string(method.id)})`, or open_agent(login={_string(method.id)})"
    if not method.command:
        return "with the agent's own program, in a terminal"
    line = _login_line(method)
    return f"`await thinkwell.login(…, {_string(method.id)})` in a terminal, or type there: {line}"


def _login_line(method: AuthMethod) -> str:
    """Return the command of a terminal login; empty if it is unknown.

    All of it is quoted, even names of variables: an agent wrote it, and users paste it into shells.
    """
    variables = ["env", *(f"{name}={value}" for name, value in method.env.items())] if method.env else []
    return shlex.join([*variables, *method.command]) if method.command else ""


def _string(text: str) -> str:
    """Return a string as source code."""
    return json.dumps(text, ensure_ascii=False)


def _denied(titles: Sequence[str]) -> str:
    """Return a note about denied permissions."""
    if not titles:
        return ""
    first = ", ".join(f"{title[:80]!r}" for title in titles[:3])
    more = f" and {len(titles) - 3} more" if len(titles) > 3 else ""
    return f". It asked for {first}{more}, and that was denied: `permissions=` says what is allowed"


def _by_field(errors: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {text}" if name else text for name, text in errors.items())


def _utc(seconds: float) -> str:
    """Return a time as text; an agent's value may be invalid."""
    try:
        return time.strftime(" on %Y-%m-%d at %H:%M UTC", time.gmtime(seconds))
    except (OverflowError, OSError, ValueError):
        return ""


def _next(command: str) -> str:
    return f"\nNext, type: {command}" if command else ""


def _quoted(stderr_tail: str) -> str:
    return f"\nThe end of its standard error:\n{stderr_tail.rstrip()}" if stderr_tail.strip() else ""
