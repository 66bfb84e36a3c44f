"""What can go wrong with a run, as one tree.

    ThinkwellError
    ├── AgentError              something about the agent
    │   ├── AgentNotFound           its program does not exist
    │   ├── AgentStartFailed        it did not get as far as a conversation
    │   ├── AgentExited             its process ended
    │   ├── AgentClosed             open_agent was left; also a ThoughtCancelled
    │   │   └── SessionClosed           a session's block was left
    │   ├── SessionUnusable         a cancelled turn of the session never ended
    │   ├── LoginRequired           it wants a login first
    │   ├── LoginFailed             a login was tried and did not work
    │   ├── CapabilityMissing       it cannot do what was asked; nothing was sent
    │   ├── AgentReported           it answered with an error
    │   │   └── SessionNotOpened        to a request to open a session
    │   ├── SessionOpenTimeout      it did not open a session in time
    │   ├── SessionInUse            the session is open already
    │   ├── SessionIdReused         it gave two open sessions one id
    │   ├── WrongEventLoop          it was used in another event loop, thread or process; also a RuntimeError
    │   └── AnswerUnreadable        it answered, but not in the protocol's form
    ├── ResultError             the turn is over, but there is no result
    │   ├── ResultMissing           return_result was never called
    │   ├── ResultInvalid           every value was invalid
    │   ├── ResultRefused           the model refused
    │   └── ToolsNotSeen            the agent never fetched our tools
    ├── ThoughtCancelled        the run was cancelled
    ├── ThoughtTimeout          the run took too long
    ├── BudgetExceeded          the run has used up its budget
    ├── QuestionsStopped        who was asked a question has ended the run
    ├── MessageInvalid          what an agent said does not fit the handler for it
    ├── AnswerInvalid           an answer does not fit its question
    ├── QuestionNotOpen         there is no such question, or it has its answer
    ├── PolicyError             a permission policy cannot be read
    ├── ProfileError            what is known of an agent cannot be read
    ├── BufferOverflow          the run's buffer is full and may not drop anything
    ├── RecordingError          a file cannot be replayed
    │   └── RecordingCut            a recording ends before its run does
    ├── RegistryError           a registry of agents cannot be used
    ├── RecordedFailure         the recorded run failed by an error of no class of these
    ├── McpServerError          an MCP server, or a file of them, cannot be used
    ├── SkillError              a skill cannot be used
    └── ToolError               raised in a tool, told to the agent

Every error carries what it knows as attributes, can be pickled, and says what to do next.
"""

# ruff: noqa: N818 - the names say what happened

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping  # noqa: TC003 - a field's type, read at run time
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.events import JsonValue

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
    "LoginFailed",
    "LoginRequired",
    "McpServerError",
    "MessageInvalid",
    "PolicyError",
    "ProfileError",
    "QuestionNotOpen",
    "QuestionsStopped",
    "RecordedFailure",
    "RecordingCut",
    "RecordingError",
    "RegistryError",
    "ResultError",
    "ResultInvalid",
    "ResultMissing",
    "ResultRefused",
    "SessionClosed",
    "SessionIdReused",
    "SessionInUse",
    "SessionNotOpened",
    "SessionOpenTimeout",
    "SessionUnusable",
    "SkillError",
    "ThinkwellError",
    "ThoughtCancelled",
    "ThoughtTimeout",
    "ToolError",
    "ToolsNotSeen",
    "WrongEventLoop",
)


class ThinkwellError(Exception):
    """Base of every error that thinkwell raises on its own account."""

    # Errors are dataclasses, except those that take more than they keep: a list, of which they keep a tuple.
    __match_args__: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        # Pickles and copies are made of these.
        self.args: tuple[object, ...] = tuple(getattr(self, name) for name in self.__match_args__)


class AgentError(ThinkwellError):
    """Something is wrong with the agent, or with the way to it."""


@dataclass(eq=False, repr=False)
class AgentNotFound(AgentError):
    """The agent's program does not exist.

    Attributes:
        agent: The name or command that was asked for.
        reason: What is missing, and what to do.
        next_command: What to type next; empty where nothing is known of the agent.
    """

    agent: str
    reason: str
    _: KW_ONLY
    next_command: str = ""

    def __str__(self) -> str:
        return f"Agent {self.agent!r} was not found: {self.reason}{_next(self.next_command)}"


class AgentStartFailed(AgentError):
    """The agent was started, but no conversation came about.

    Attributes:
        agent: The agent's name.
        reason: What happened, and what to do.
        stderr_tail: The end of what it wrote to standard error.
        exit_code: Its exit code, where it has ended; that of the installation, where it was not installed.
        command: What was started; empty where it ran already.
        phase: How far it came: ``launching``, ``installing`` or ``initializing``.
        version: The version that was asked for, such as ``0.61.0`` or ``latest``; ``None`` where none was.
        next_command: What to type next, to see more than is told here; empty where it was not started by us.
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
    """The agent's process ended, or closed its output, while it was needed.

    Attributes:
        exit_code: Its exit code, negative for a signal, ``None`` where it is not known.
        stderr_tail: The end of what it wrote to standard error.
        reason: What else is known, such as that a message of it was too long.
        agent: The agent's name.
        ended_because: Why thinkwell ended it; empty where it ended by itself, or something else ended it.
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
    """The agent was closed while the run went on, or before it was asked for."""

    def __str__(self) -> str:
        return (
            "The agent was closed: the block of open_agent(…) was left, or close() was called. Start runs, "
            "and wait for their results, before that"
        )


class AuthMethod(msgspec.Struct, frozen=True, kw_only=True):
    """A way to log in that an agent offers.

    Attributes:
        id: The agent's name for it.
        name: What to call it.
        description: What the agent says of it.
        type: ``agent``: the agent goes it by itself, such as in a browser. ``terminal``: a program of the
            agent's asks in a terminal.
        command: The whole command of a terminal login: the agent's own, and what it adds. Empty for the
            other type, and where the agent was not started by us.
        env: Variables that the command wants on top of the agent's own.
    """

    id: str
    name: str
    description: str = ""
    type: Literal["agent", "terminal"] = "agent"
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


class LoginRequired(AgentError):
    """The agent wants a login first.

    Attributes:
        agent: The agent's name.
        methods: The ways that it offers.
        reason: What the agent says, or why none of the ways was gone.
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
    """The session was closed while a turn went on, or before it was asked for."""

    def __str__(self) -> str:
        return (
            "The session was closed: the block of agent.session(…) was left, or close() was called. Start "
            "turns, and wait for their results, before that"
        )


@dataclass(eq=False, repr=False)
class LoginFailed(AgentError):
    """A login was tried and did not work. Try again, or another way.

    Attributes:
        agent: The agent's name.
        method: The id of the way that was gone.
        reason: What happened.
        exit_code: How the command of a terminal login ended, negative for a signal; else ``None``.
    """

    agent: str
    method: str
    reason: str
    exit_code: int | None = None

    def __str__(self) -> str:
        return (
            f"The login {self.method!r} of agent {self.agent!r} failed: {self.reason}. "
            "Try again, or go another way"
        )


@dataclass(eq=False, repr=False)
class CapabilityMissing(AgentError):
    """The agent does not advertise what was asked of it. Nothing was sent.

    Attributes:
        capability: Path of the missing flag in the agent's capabilities.
        wanted_by: What needs it.
    """

    capability: str
    wanted_by: str

    def __str__(self) -> str:
        return f"This agent does not advertise {self.capability}, which is needed for {self.wanted_by}"


@dataclass(eq=False, repr=False)
class AgentReported(AgentError):
    """The agent answered with an error.

    Attributes:
        code: JSON-RPC or ACP error code.
        message: What the agent says.
        data: Whatever it added, as JSON.
    """

    code: int
    message: str
    data: JsonValue = None

    def __str__(self) -> str:
        extra = "" if self.data is None else f" ({self.data})"
        return (
            f"The agent reported: {self.message} [{self.code}]{extra}. "
            "This comes from the agent or its model service; its own log says more"
        )


class SessionNotOpened(AgentReported):
    """The agent answered a request to open a session with an error. No other session was opened instead.

    Attributes:
        how: ``new``, ``load``, ``resume`` or ``fork``.
        session_id: The session that was asked for; ``None`` for a new one.
        code: JSON-RPC or ACP error code.
        message: What the agent says.
        data: Whatever it added, as JSON.
    """

    def __init__(
        self, how: str, session_id: str | None, code: int, message: str, data: JsonValue = None
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
        session_id: The session that was asked for; ``None`` for a new one.
        seconds: The limit.
    """

    how: str
    session_id: str | None
    seconds: float

    def __str__(self) -> str:
        return (
            f"{_opening(self.how, self.session_id)} took longer than {self.seconds:g} seconds; "
            "raise open_timeout= where the agent needs longer"
        )


@dataclass(eq=False, repr=False)
class SessionInUse(AgentError):
    """The session is open already in this connection, so it cannot be opened again.

    Attributes:
        session_id: Which one.
    """

    session_id: str

    def __str__(self) -> str:
        return (
            f"Session {self.session_id!r} is open already; use the Session that you have, or leave its block "
            "first. A copy is made by fork"
        )


@dataclass(eq=False, repr=False)
class SessionIdReused(AgentError):
    """The agent gave a new session the id of another one that is open. That is a fault of the agent.

    Attributes:
        agent: The agent's name.
        session_id: The id that it gave twice.
    """

    agent: str
    session_id: str

    def __str__(self) -> str:
        return (
            f"Agent {self.agent!r} gave the same session id twice: {self.session_id!r} is that of another "
            "open session, so nothing tells what belongs to which. That is a fault of the agent: have one "
            "session open at a time, or open the agent once for each"
        )


@dataclass(eq=False, repr=False)
class WrongEventLoop(AgentError, RuntimeError):
    """An agent, a session or a run was used outside of the event loop in which the agent was opened.

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
    """The agent answered, but not in the protocol's form. Another version of it may help.

    Attributes:
        reason: What is wrong with the answer.
    """

    reason: str

    def __str__(self) -> str:
        return f"The agent's answer cannot be read: {self.reason}. Try another version of the agent"


@dataclass(eq=False, repr=False)
class SessionUnusable(AgentError):
    """A cancelled turn of this session never ended, so no other can follow it. Open another session.

    Attributes:
        session_id: The agent's name for the session.
    """

    session_id: str

    def __str__(self) -> str:
        return (
            f"Session {self.session_id!r} has a cancelled turn that the agent never ended; "
            "open another session"
        )


class ResultError(ThinkwellError):
    """The turn is over, but there is no result."""


class ResultMissing(ResultError):
    """The agent ended its turn without calling ``return_result``, reminders included.

    Attributes:
        stop_reason: Why the turn ended, in the protocol's words, such as ``end_turn`` or ``max_tokens``.
        text: What the agent said instead.
        denied: The titles of what it has asked for and was denied, which may be why.
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
        errors: What is wrong with it, one line each.
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
        text: What it said.
    """

    text: str

    def __str__(self) -> str:
        return f"The agent refused: {self.text!r}"


class ToolsNotSeen(ResultError):
    """The agent never fetched the list of our tools, so it could not call ``return_result``.

    Attributes:
        via: The ways to the agent that were tried: ``acp``, ``http``, ``stdio``.
        text: What the agent said instead.
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
    """The run took too long, or nothing was heard of the agent for too long, and it was cancelled.

    Attributes:
        seconds: The limit.
        idle: Whether it was the limit for silence.
    """

    seconds: float
    _: KW_ONLY
    idle: bool = False

    def __str__(self) -> str:
        if self.idle:
            return (
                f"Nothing was heard of the agent for {self.seconds:g} seconds, and the run was cancelled; "
                "raise idle_timeout= where it needs longer"
            )
        return f"The run took longer than {self.seconds:g} seconds and was cancelled"


@dataclass(eq=False, repr=False)
class BudgetExceeded(ThinkwellError):
    """The run has used up its budget, and was cancelled or not begun.

    Attributes:
        what: ``tokens``, ``cost``, ``tool_calls`` or ``seconds``.
        limit: How much there was.
        spent: How much was used, by all runs that share the budget.
    """

    what: str
    limit: float
    spent: float

    def __str__(self) -> str:
        # The call beyond the limit was stopped.
        used = min(self.spent, self.limit) if self.what == "tool_calls" else self.spent
        return (
            f"The budget is used up: {used:g} of {self.limit:g} {self.what.replace('_', ' ')}; "
            "give the run another Budget to go on"
        )


@dataclass(eq=False, repr=False)
class QuestionsStopped(ThinkwellError):
    """A handler that was asked a question has ended the run.

    Attributes:
        reason: Why.
        question_id: Which question it was.
    """

    reason: str
    question_id: str = ""

    def __str__(self) -> str:
        return f"The run was ended over question {self.question_id}: {self.reason}"


class MessageInvalid(ThinkwellError, ValueError):
    """What an agent has said does not fit the annotation of the handler for it.

    Attributes:
        type: The type of the message, such as ``question``.
        errors: What is wrong, by the name of the field; ``""`` for the whole message.
        agent: The agent's name.
        handler: The handler, and where it stands.
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
            "Annotate it with what the agent sends, or take a mapping, which is not checked"
        )


class AnswerInvalid(ThinkwellError, ValueError):
    """An answer does not fit its question, which stays open.

    Attributes:
        question_id: Which question.
        errors: What is wrong, by the name of the form's field; ``""`` for the whole answer.
    """

    def __init__(self, question_id: str, errors: Mapping[str, str]) -> None:
        super().__init__(question_id, dict(errors))
        self.question_id = question_id
        self.errors: dict[str, str] = dict(errors)

    def __str__(self) -> str:
        return f"The answer to question {self.question_id} is not valid: {_by_field(self.errors)}"


class QuestionNotOpen(ThinkwellError, LookupError):
    """There is no such question, or it has its answer already.

    Attributes:
        question_id: What was asked for.
        open: The ids of the questions that are open.
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
        max_events: The limit.
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
        problem: What is wrong, and what would be right.
        source: The file; ``None`` where it was a text.
        where: The key, such as ``rules[1].kind``; empty where the text is no TOML.
    """

    problem: str
    _: KW_ONLY
    source: str | None = None
    where: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.source, self.where, self.problem) if part)


class ProfileError(ThinkwellError, ValueError):
    """What is known of an agent cannot be read, or is not enough to start it.

    Attributes:
        agent: The agent's name.
        reason: What is wrong, and what would be right.
        files: Where it was read, the most general first.
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
        reason: What is wrong with it.
    """

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path} cannot be replayed: {self.reason}"


class RecordingCut(RecordingError):
    """A recording ends before its run does. Everything before the cut was replayed.

    Attributes:
        path: The file.
        reason: Where it ends.
    """

    def __str__(self) -> str:
        return f"The recording {self.path} is cut: {self.reason}. What stands before that was replayed"


@dataclass(eq=False, repr=False)
class RecordedFailure(ThinkwellError):
    """The recorded run failed by an error that is none of thinkwell's own classes.

    Attributes:
        name: Name of its class.
        message: What it said.
    """

    name: str
    message: str

    def __str__(self) -> str:
        return f"The recorded run failed by {self.name}: {self.message}"


@dataclass(eq=False, repr=False)
class RegistryError(ThinkwellError):
    """A registry of agents cannot be read. The copy that was stored before is kept.

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
    """An MCP server of the caller's cannot be used, or a file of them cannot be read. Nothing was sent.

    No value of a variable, a header or an argument is in it.

    Attributes:
        problem: What is wrong, and what to do.
        server: The server's name; ``None`` where it is about the whole file.
        source: The file; ``None`` where the server comes from none.
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
        skill: Where it is, or its name where it is in no file.
        reason: What is wrong with it, and what to do.
    """

    skill: str
    reason: str

    def __str__(self) -> str:
        return f"Skill {self.skill!r} cannot be used: {self.reason}"


class ToolError(ThinkwellError):
    """Raise it in a tool: the agent is told the message, and may try something else."""


def _opening(how: str, session_id: str | None) -> str:
    """Return what was tried, in words."""
    return "session/new" if session_id is None else f"session/{how} of {session_id!r}"


def _how_it_ended(exit_code: int | None) -> str:
    """Return what an agent's process did, in words."""
    if exit_code is None:
        return "closed the connection"
    return f"was killed by signal {-exit_code}" if exit_code < 0 else f"exited with code {exit_code}"


def _way(method: AuthMethod) -> str:
    """Return what to say of a way to log in."""
    text = f" ({method.description})" if method.description else ""
    return f"\n- {method.id}: {method.name}{text}: {_how_to_log_in(method)}"


def _how_to_log_in(method: AuthMethod) -> str:
    """Return what a person does, or a program."""
    if method.type == "agent":
        return f"`await agent.authenticate({_string(method.id)})`, or open_agent(login={_string(method.id)})"
    if not method.command:
        return "with the agent's own program, in a terminal"
    line = _login_line(method)
    return f"`await thinkwell.login(…, {_string(method.id)})` in a terminal, or type there: {line}"


def _login_line(method: AuthMethod) -> str:
    """Return what to type for a terminal login; empty where it is not known.

    All of it is quoted, the names of variables too: an agent wrote it, and people paste it into shells.
    """
    variables = ["env", *(f"{name}={value}" for name, value in method.env.items())] if method.env else []
    return shlex.join([*variables, *method.command]) if method.command else ""


def _string(text: str) -> str:
    """Return a string as source code."""
    return json.dumps(text, ensure_ascii=False)


def _denied(titles: Sequence[str]) -> str:
    """Return what to say of permissions that were denied."""
    if not titles:
        return ""
    first = ", ".join(f"{title[:80]!r}" for title in titles[:3])
    more = f" and {len(titles) - 3} more" if len(titles) > 3 else ""
    return f". It asked for {first}{more}, and that was denied: `permissions=` says what is allowed"


def _by_field(errors: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {text}" if name else text for name, text in errors.items())


def _next(command: str) -> str:
    return f"\nNext, type: {command}" if command else ""


def _quoted(stderr_tail: str) -> str:
    return f"\nThe end of its standard error:\n{stderr_tail.rstrip()}" if stderr_tail.strip() else ""
