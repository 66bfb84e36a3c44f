"""An agent's own descriptions and errors, in few words, on one line and short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell._core.diagnosis import shown
from thinkwell.doctor._check import Check
from thinkwell.errors import (
    AgentExited,
    AgentNotFound,
    AgentReported,
    AgentStartFailed,
    SessionOpenTimeout,
    _how_it_ended,
    _login_line,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from thinkwell import Session
    from thinkwell.agents import AgentProfile
    from thinkwell.doctor._check import Status
    from thinkwell.doctor._limits import Limits
    from thinkwell.errors import AuthMethod
    from thinkwell_acp import schema as s
    from thinkwell_acp.stdio import Ending

LISTED: Final = 8
"""Most items of an agent that are named; the rest are counted."""

TEXT: Final = 1000
"""Most characters of an error: an agent may send any amount."""

STDERR: Final = 4000
"""Most characters of standard error, the last ones."""


ENDINGS: Final[Mapping[Ending | None, tuple[Status, str]]] = {
    "eof": ("ok", "it exits by itself when its input is closed"),
    "terminate": ("ok", "by SIGTERM: it does not exit when its input is closed"),
    "kill": ("warning", "by SIGKILL: it exits neither when its input is closed nor by SIGTERM"),
    None: ("failed", "the system does not end its process, which still runs"),
}
"""How an agent's process ended, and the status of that."""


def failure(name: str, error: Exception, limits: Limits, seconds: float | None = None) -> Check:
    """Return a check that failed with an error. Its message is shorter than the error's own text."""
    next_line, stderr = "", ""
    hints: list[str] = list(getattr(error, "__notes__", ()))
    match error:
        case AgentNotFound():
            detail, next_line = error.reason, error.next_command
        case AgentStartFailed():
            detail, next_line, stderr = error.reason, error.next_command, error.stderr_tail
            if isinstance(error.__cause__, TimeoutError):
                detail = detail.replace("startup_timeout=", limits.startup_name)
        case AgentExited():
            why = f" ({error.reason})" if error.reason else ""
            detail, stderr = f"the agent {_how_it_ended(error.exit_code)}{why}", error.stderr_tail
        case SessionOpenTimeout():
            detail = f"session/{error.how} was not answered within {error.seconds:g} seconds"
            hints.append(f"raise {limits.opening_name} if it needs longer")
        case AgentReported():
            data = "" if error.data is None else f" ({error.data})"
            code = "" if error.code is None else f" {error.code}"
            detail = f"it answered with error{code}: {error.message}{data}"
        case _:
            detail = str(error)
    if next_line:
        hints.append(next_line if "://" in next_line.partition(" ")[0] else f"$ {next_line}")
    return Check(
        name=name,
        status="failed",
        detail=short(detail),
        seconds=seconds,
        hint="\n".join(hints),
        stderr=end(stderr),
    )


def capabilities(flags: s.AgentCapabilities) -> str:
    """Return an agent's capabilities in words."""
    sessions = flags.session_capabilities
    prompts, mcp = flags.prompt_capabilities, flags.mcp_capabilities
    able = {
        "load": flags.load_session,
        "resume": sessions.resume is not None,
        "list": sessions.list is not None,
        "fork": sessions.fork is not None,
        "close": sessions.close is not None,
        "delete": sessions.delete is not None,
    }
    takes = {"images": prompts.image, "audio": prompts.audio, "embedded context": prompts.embedded_context}
    reaches = {"acp": mcp.acp, "http": mcp.http, "sse": mcp.sse, "stdio": True}
    return (
        f"sessions: {_those(able) or 'new ones only'}; prompts: {_those({'text': True, **takes})}; "
        f"MCP: {_those(reaches)}"
    )


def session(opened: Session) -> str:
    """Return a session's features in words."""
    return "; ".join(_session_parts(opened)) or "it has no modes and no options"


def _session_parts(opened: Session) -> Iterator[str]:
    if opened.modes:
        now = f" (now {shown(opened.mode)})" if opened.mode else ""
        yield f"modes: {listed(mode.id for mode in opened.modes)}{now}"
    options = [option for option in opened.options if option.category != "mode"]
    for option in options[:LISTED]:
        value = option.value if isinstance(option.value, str) else str(option.value).lower()
        choices = f" (of {len(option.choices)})" if option.choices else ""
        yield f"{shown(option.name)}: {shown(value)}{choices}"
    if len(options) > LISTED:
        yield f"{len(options) - LISTED} more options"


def logins(methods: Sequence[AuthMethod], profile: AgentProfile | None) -> str:
    """Return how to log in: for a person, and for a program."""
    lines: list[str] = []
    by_itself: list[str] = []
    if profile is not None and profile.login:
        lines += ["with its own program:", f"$ {profile.login}"]
    for method in methods[:LISTED]:
        name = f"{shown(method.id)} ({shown(method.name)})"
        if line := _login_line(method):
            lines += [f"{name}, in a terminal:", f"$ {line}"]
        else:
            by_itself.append(name)
    if by_itself:
        lines.append(
            f"by open_agent(…, login=ID), or thinkwell.login(…, ID), with ID = {', '.join(by_itself)}"
        )
    if len(methods) > LISTED:
        lines.append(f"or by one of {len(methods) - LISTED} more ways")
    return "\n".join(lines) or "it offers no way to log in: do that with its own program"


def listed(names: Iterable[str]) -> str:
    """Return names, of many only the first."""
    known = [shown(name) for name in names]
    more = [f"{len(known) - LISTED} more"] if len(known) > LISTED else []
    return ", ".join([*known[:LISTED], *more])


def _those(flags: dict[str, bool]) -> str:
    return ", ".join(name for name, there in flags.items() if there)


def short(text: str) -> str:
    """Return a text, or its beginning."""
    return text if len(text) <= TEXT else f"{text[:TEXT]}…"


def end(text: str) -> str:
    """Return the last lines of a text, whole ones if possible."""
    text = text.strip()
    return text if len(text) <= STDERR else text[-STDERR:].partition("\n")[2] or text[-STDERR:]
