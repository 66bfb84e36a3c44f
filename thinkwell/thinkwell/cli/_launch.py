"""The agent of a command: which one, its permissions, and the display of its launch."""

from __future__ import annotations

import shutil
import sys
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Final, TypedDict

import typer

from thinkwell import PermissionPolicy, PhaseView, PolicyError, Reply, Retry, ThinkwellError
from thinkwell._display.cells import clip
from thinkwell._display.phases import phase_words
from thinkwell.agents import choose
from thinkwell.cli._options import Style

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from thinkwell import Agent, PermissionMode, Question
    from thinkwell.agents import AgentProfile
    from thinkwell.cli._options import How
    from thinkwell.events import PhaseChanged

NO_TERMINAL: Final = "there is no terminal to ask in; --permissions says what is allowed"

ERASED: Final = "\r\x1b[2K"


def chosen_agent(agent: str | None, command: str | None) -> AgentProfile:
    """Return the agent to start.

    Raises:
        typer.BadParameter: The command cannot be used.
        AgentNotFound: The agent does not exist.
        ProfileError: Its profile cannot be read.
    """
    try:
        return choose(agent, command)
    except ThinkwellError:
        raise
    except ValueError as exc:
        if command is None:  # the environment may name one
            raise typer.BadParameter(str(exc)) from None
        raise typer.BadParameter(str(exc).partition(": ")[2], param_hint="--command") from None


def read_permissions(given: str | None, *, can_ask: bool) -> PermissionMode | PermissionPolicy:
    """Return the agent's permissions; by default it asks, if there is a terminal.

    Raises:
        typer.BadParameter: The value is neither a mode nor a file of rules.
    """
    match given:
        case None:
            return "ask" if can_ask else "deny"
        case "deny" | "ask" | "allow":
            return given
        case _:
            try:
                return PermissionPolicy.load(given)
            except PolicyError as exc:
                told = str(exc)
            except OSError as exc:
                told = f"{given}: it is not deny, ask, allow or a file of rules ({exc.strerror})"
            raise typer.BadParameter(told, param_hint="--permissions")


class Asking(TypedDict):
    """The arguments of `open_agent` about questions."""

    permissions: PermissionMode | PermissionPolicy
    on_question: Callable[[Question], Awaitable[Reply]] | None


def asking(permissions: str | None, how: How) -> Asking:
    """Return the meaning of ``--permissions`` where the user may be in the terminal.

    Raises:
        typer.BadParameter: The value is neither a mode nor a file of rules.
    """
    policy = read_permissions(permissions, can_ask=how.can_ask)
    if isinstance(policy, PermissionPolicy):
        asks = "ask" in (policy.otherwise, *(rule.verdict for rule in policy.rules))
    else:
        asks = policy == "ask"
    return {"permissions": policy, "on_question": asked_in_vain if asks and not how.can_ask else None}


def as_rules(policy: PermissionMode | PermissionPolicy) -> PermissionMode | PermissionPolicy:
    """Return a policy under which an agent without permissions can still ask other questions."""
    return PermissionPolicy(otherwise="deny") if policy == "deny" else policy


def retrying(times: int) -> Retry | None:
    """Return the meaning of ``--retry``."""
    return Retry(attempts=times + 1) if times else None


def check_fallback(opening: Callable[[], object]) -> None:
    """Check the agents of ``--fallback`` by making what would open them, which starts nothing.

    Raises:
        typer.BadParameter: They cannot be used.
        AgentNotFound: One is unknown.
    """
    try:
        opening()
    except ValueError as exc:
        raise typer.BadParameter(str(exc), param_hint="--fallback") from None


async def asked_in_vain(_question: Question, /) -> Reply:
    """Deny at once a question that cannot be answered."""
    return Reply("deny", NO_TERMINAL)


class Launching:
    """Shows the phases of a launch. In a terminal the last one stays until it is over.

    Elsewhere only an installation is shown, as it may take minutes; the rest is shown with the run.
    """

    def __init__(self, name: str, how: How) -> None:
        self._name = name
        shown = not (how.quiet or how.as_json)
        dumb = how.style == Style.LINES or not sys.stderr.isatty()
        self._lines = shown and dumb
        self._live = shown and not dumb
        self._stands = False

    def __call__(self, event: PhaseChanged) -> None:
        """Show a phase."""
        words = phase_words(PhaseView(phase=event.phase, detail=event.detail), self._name)
        if self._live:
            self._stands = True
            sys.stderr.write(ERASED + clip(f" {words} …", shutil.get_terminal_size().columns - 1))
        elif self._lines and event.phase == "installing":
            sys.stderr.write(f"[phase]  {words}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Remove the shown phase."""
        if self._stands:
            self._stands = False
            sys.stderr.write(ERASED)
            sys.stderr.flush()


@asynccontextmanager
async def launched(
    name: str, how: How, opening: Callable[..., AbstractAsyncContextManager[Agent]]
) -> AsyncGenerator[Agent]:
    """Open an agent for a block, and show its launch.

    Args:
        name: The agent's name.
        how: How to show it.
        opening: `open_agent` with its arguments except ``on_phase``.
    """
    with closing(Launching(name, how)) as launching:
        async with opening(on_phase=launching) as agent:
            launching.close()
            yield agent
