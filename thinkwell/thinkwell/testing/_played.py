"""`ScriptedAgent`: an agent that plays a script, in memory and as a process."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypedDict, cast

import msgspec
from msgspec import Struct
from typing_extensions import Unpack

from thinkwell.testing._journal import Begun, Failure, FileJournal, Returned
from thinkwell.testing._memory import PlayedAgent
from thinkwell.testing._player import CAPABILITIES, INFO, Play, serve
from thinkwell.testing._script import Script, refuse_functions, telling
from thinkwell.testing._steps import Fails, Step
from thinkwell_acp import RpcError
from thinkwell_acp.interpreter import python_command
from thinkwell_acp.schema.methods import REQUESTS

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from thinkwell.testing._player import Answer
    from thinkwell_acp import AgentSide, Transport
    from thinkwell_acp import schema as s

FAILING: Final = tuple(name for name, method in REQUESTS.items() if method.side != "client")
"""The requests of a client."""


class Unplayed(Struct, frozen=True, kw_only=True):
    """A step that was never started."""

    turn: int
    """The number of its turn, from 1."""
    step: int
    """Its number in the turn, from 1."""
    what: Step

    def __str__(self) -> str:
        return f"turn {self.turn}, step {self.step}: {self.what}"


class ScriptFailed(AssertionError):  # noqa: N818 - says what happened
    """The client deviated from the script.

    Attributes:
        failures: The deviations, with their places in the script.
        unplayed: The steps that were never begun.
        unasked: The methods with an error in ``fails_at`` that the client never asked for.
    """

    __module__ = "thinkwell.testing"

    def __init__(
        self, failures: Sequence[str], unplayed: Sequence[Unplayed], unasked: Sequence[str] = ()
    ) -> None:
        super().__init__(failures, unplayed, unasked)
        self.failures: tuple[str, ...] = tuple(failures)
        self.unplayed: tuple[Unplayed, ...] = tuple(unplayed)
        self.unasked: tuple[str, ...] = tuple(unasked)

    def __str__(self) -> str:
        parts: list[str] = []
        if self.failures:
            parts += ["the script failed:", *(f"  {failure}" for failure in self.failures)]
        if self.unplayed:
            left = "1 step was" if len(self.unplayed) == 1 else f"{len(self.unplayed)} steps were"
            parts += [f"{left} not played:", *(f"  {step}" for step in self.unplayed)]
        if self.unasked:
            parts += ["fails_at is for what was never asked:", *(f"  {method}" for method in self.unasked)]
        return "\n".join(parts)


class ScriptNotFinished(ScriptFailed):
    """The run ended before the script did."""

    __module__ = "thinkwell.testing"


class ScriptedOptions(TypedDict, total=False):
    """The options of `ScriptedAgent`."""

    capabilities: s.AgentCapabilities | None
    info: s.Implementation | None
    before_session: Script | None
    lists_tools: bool
    relists: bool
    fails_at: Mapping[str, RpcError] | None
    answers: Mapping[str, Answer] | None
    steering: bool
    repeats: bool
    models: Sequence[str]
    complete: bool


class ScriptedAgentFactory(Protocol):
    """Creates a `ScriptedAgent` that is checked when the test ends: the fixture ``scripted_agent``."""

    def __call__(self, script: Script, **options: Unpack[ScriptedOptions]) -> ScriptedAgent:
        """Create one. The arguments are those of `ScriptedAgent`."""
        ...


class ScriptedAgent(PlayedAgent):
    """An agent that follows a script, for any number of connections and processes.

    They all share the script: a prompt to any of them begins the next turn.

    Args:
        script: The script.
        capabilities: The advertised capabilities; by default MCP over ACP, and closing sessions.
        info: The agent's name and version.
        before_session: Steps sent before ``session/new`` is answered, as some agents do. They may only tell.
        lists_tools: Whether it fetches the client's tools. Otherwise it cannot call them.
        relists: Whether it fetches them again when they have changed.
        fails_at: Errors to answer with, by method: ``{"session/new": RpcError(-32603, "no")}``.
        answers: Functions that answer requests instead, by method: ``async def slow(request, proceed)``,
            where ``await proceed(request)`` returns the usual answer. In memory only.
        steering: Whether it takes messages in a turn; see `Script.hears`.
        models: The models that it offers, by an option of every session. A session begins with the first.
        repeats: Whether to play the last turn again for each further prompt, instead of failing.
        complete: Whether `check` requires that every step was played, and every error of `fails_at` was
            returned.
        folder: Where `program` keeps the script by default.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `before_session` does not only tell, or `fails_at` or `answers` does not name a request
            of a client.
    """

    name = "scripted"

    def __init__(
        self,
        script: Script,
        *,
        capabilities: s.AgentCapabilities | None = None,
        info: s.Implementation | None = None,
        before_session: Script | None = None,
        lists_tools: bool = True,
        relists: bool = True,
        fails_at: Mapping[str, RpcError] | None = None,
        answers: Mapping[str, Answer] | None = None,
        steering: bool = False,
        repeats: bool = False,
        models: Sequence[str] = (),
        complete: bool = True,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(cast("object", script), Script):
            raise TypeError(f'ScriptedAgent({script!r:.100}): give a script, such as script.says("Hello")')
        self.script = script
        self.client: AgentSide
        """The latest connection to a client, for what an agent does outside of turns. It is only set after a
        client has connected."""
        self.checked: bool = False
        """Whether `check` was called."""
        self._answers = dict(answers or {})
        for method, answer in self._answers.items():
            _check_answer(method, answer)
        self._complete = complete
        self._folder = folder
        self._command: tuple[str, ...] | None = None
        self._play = Play(
            steps=script.steps,
            capabilities=capabilities or CAPABILITIES,
            info=info or INFO,
            before_session=() if before_session is None else telling(before_session, "before_session"),
            lists_tools=lists_tools,
            relists=relists,
            fails_at={method: _fails(method, error) for method, error in (fails_at or {}).items()},
            repeats=repeats,
            models=tuple(models),
            steering=steering,
        )

    def __repr__(self) -> str:
        return f"<ScriptedAgent, {len(self.unplayed)} of {len(self.script.steps)} steps to play>"

    # Playing

    async def serve(self, transport: Transport) -> None:
        """Play to the client at the other end of a transport, until it leaves."""

        def connected(client: AgentSide) -> None:
            self.client = client

        await serve(transport, self._play, self._journal, answers=self._answers, connected=connected)

    def _left(self) -> None:
        __tracebackhide__ = True
        self.check()

    def program(self, folder: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
        """Return the command of a process that plays the script, for ``open_agent(command=…)``.

        Args:
            folder: Where to create a folder for the script and its log, at the first call; by default that of
                the constructor. It is made if it does not exist.

        Raises:
            OSError: The folder cannot be made.
            ProgramNotStarted: No Python is available to run it, as in a frozen program.
            ValueError: No folder is given, the agent was already connected in memory, or a step or one
                of `answers` is a function.
        """
        refuse_functions(self.script, "program()")
        if self._answers:
            raise ValueError("program(): answers= are functions of this program; open the agent in memory")
        if self._command is None:
            folder = folder or self._folder
            if folder is None:
                raise ValueError("program(): give a folder to keep the script and what comes of it in")
            if self._journal.entries():
                raise ValueError("program(): call it before the agent is opened in memory")
            Path(folder).mkdir(parents=True, exist_ok=True)
            own = Path(tempfile.mkdtemp(prefix="scripted-", dir=folder)).absolute()
            (own / "script.json").write_bytes(msgspec.json.encode(self._play))
            self._journal = FileJournal(own)
            self._command = tuple(
                python_command("-P", "-m", "thinkwell.testing", str(own / "script.json"), str(own))
            )
        return self._command

    # Checking the outcome

    @property
    def failures(self) -> tuple[str, ...]:
        """The deviations from the script so far."""
        return tuple(entry.reason for entry in self._journal.entries() if isinstance(entry, Failure))

    @property
    def unplayed(self) -> tuple[Unplayed, ...]:
        """The steps that have not begun so far. A step counts as played once it begins.

        Steps after a result that the client has accepted are left out, since it may leave then.
        """
        entries = self._journal.entries()
        begun = {(entry.turn, entry.step) for entry in entries if isinstance(entry, Begun)}
        returned = {entry.turn for entry in entries if isinstance(entry, Returned)}
        return tuple(
            Unplayed(turn=turn, step=number, what=step)
            for turn, steps in enumerate(self.script.turns, 1)
            if turn not in returned
            for number, step in enumerate(steps, 1)
            if (turn, number) not in begun
        )

    @property
    def unasked(self) -> tuple[str, ...]:
        """The methods with an error in `fails_at` that no client has called so far."""
        given = self._play.fails_at
        asked = set(self.sent.methods) if given else set[str]()
        return tuple(method for method in given if method not in asked)

    @property
    def problem(self) -> ScriptFailed | None:
        """The error that `check` would raise now."""
        failures = self.failures
        unplayed, unasked = (self.unplayed, self.unasked) if self._complete else ((), ())
        if failures:
            return ScriptFailed(failures, unplayed, unasked)
        return ScriptNotFinished(failures, unplayed, unasked) if unplayed or unasked else None

    def check(self) -> None:
        """Check that the whole script was played, without deviations.

        Raises:
            ScriptNotFinished: Steps remain, or errors of `fails_at`.
            ScriptFailed: The client deviated from the script: an unmet expectation, a tool that it does not
                offer, more prompts than turns.
        """
        __tracebackhide__ = True
        self.checked = True
        if (problem := self.problem) is not None:
            raise problem


def _check_method(argument: str, method: str) -> None:
    if method not in FAILING:
        raise ValueError(f"{argument}={{{method!r}: …}}: the methods are {', '.join(FAILING)}")


def _check_answer(method: str, answer: Answer) -> None:
    _check_method("answers", method)
    if not callable(cast("object", answer)):
        raise TypeError(f"answers={{{method!r}: {answer!r:.100}}}: give an async function")


def _fails(method: str, error: RpcError) -> Fails:
    _check_method("fails_at", method)
    if not isinstance(cast("object", error), RpcError):
        raise TypeError(f"fails_at={{{method!r}: {error!r:.100}}}: give an RpcError")
    return Fails(code=error.code, message=error.message, data=error.data)
