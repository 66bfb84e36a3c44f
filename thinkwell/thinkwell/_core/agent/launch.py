"""From an agent's profile to a connection, phase by phase."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from thinkwell import events as ev
from thinkwell._core.log.run_log import running_clock
from thinkwell.agents._preparing import Preparing
from thinkwell.errors import AgentNotFound, AgentStartFailed
from thinkwell.view import PhaseView
from thinkwell_acp import (
    ProgramNotFound,
    ProgramNotStarted,
    stdio_transport,
)
from thinkwell_acp.stdio import EXIT_GRACE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence

    from thinkwell._core.log.run_log import RunLog
    from thinkwell.agents import AgentProfile
    from thinkwell_acp import Transport

_told_next: Final[ContextVar[Callable[[ev.PhaseChanged], None] | None]] = ContextVar(
    "_told_next", default=None
)
"""A callback for the next launch in this task, besides the caller's own."""


@contextmanager
def launch_told_to(on_phase: Callable[[ev.PhaseChanged], None]) -> Generator[None]:
    """Report the phases of the first launch in a block, whichever code calls `open_agent` there."""
    token = _told_next.set(on_phase)
    try:
        yield
    finally:
        _told_next.reset(token)


LONGEST: Final = 64 * 1024
"""Bytes of a line of standard error; a longer one is told in pieces."""


class LaunchLog:
    """The phases of a launch, each with its time.

    Args:
        on_phase: Called with each.
    """

    def __init__(self, on_phase: Callable[[ev.PhaseChanged], None] | None) -> None:
        self._listeners = [each for each in (on_phase, _told_next.get()) if each is not None]
        _told_next.set(None)  # agents opened while this one is open are other launches
        self._clock = running_clock()
        self._began = self._clock()
        self._phases: list[ev.PhaseChanged] = []
        self._ended_at: float | None = None
        self._told = False
        self._before: tuple[ev.ThoughtEvent, ...] = ()

    def begin_with(self, events: Sequence[ev.ThoughtEvent]) -> None:
        """Tell the first run what happened before: other agents could not be started."""
        self._before = (*events, *self._before)

    def reach(self, phase: ev.Phase, detail: str = "") -> None:
        """Enter a phase."""
        event = ev.PhaseChanged(at=self._clock() - self._began, phase=phase, detail=detail)
        self._phases.append(event)
        for listener in self._listeners:
            listener(event)

    def end(self) -> None:
        """End the launch: the agent can be used."""
        self._ended_at = self._clock() - self._began

    def views(self) -> tuple[PhaseView, ...]:
        """Return the phases and their durations."""
        ends = [*(event.at for event in self._phases[1:]), self._ended_at]
        return tuple(
            PhaseView(
                phase=event.phase,
                detail=event.detail,
                at=event.at,
                seconds=None if end is None else end - event.at,
            )
            for event, end in zip(self._phases, ends, strict=True)
        )

    def tell(self, log: RunLog) -> None:
        """Add the launch to the first run's log, before its beginning."""
        if self._told:
            return
        self._told = True
        for event in self._before:
            log.adopt(event, log.now() - (self._clock() - self._began))
        for view in self.views():
            log.recall(
                ev.PhaseChanged,
                self._began + view.at,
                phase=view.phase,
                detail=view.detail,
                seconds=view.seconds,
            )


class Launcher(Struct, frozen=True, kw_only=True):
    """The program to start, and its environment."""

    profile: AgentProfile
    env: Mapping[str, str]
    cwd: str
    keep_daemons: bool = False

    @asynccontextmanager
    async def open(self, log: LaunchLog) -> AsyncGenerator[Transport]:
        """Run the agent's program during a block. It is installed first if necessary.

        Raises:
            AgentNotFound: Its program, or the one that downloads it, is missing.
            AgentStartFailed: The installation failed, or the operating system refuses to run it.
        """

        def installing(what: str) -> None:
            log.reach("installing", what)

        log.reach("launching")
        profile = self.profile
        command = await Preparing(profile, self.env, self.cwd, installing).prepare()
        async with AsyncExitStack() as stack:
            try:
                process = await stack.enter_async_context(
                    stdio_transport(
                        command,
                        env=self.env,
                        cwd=self.cwd,
                        exit_grace=EXIT_GRACE if profile.ends_on_eof else 0,
                        keep_daemons=self.keep_daemons,
                    )
                )
            except ProgramNotStarted as exc:
                raise AgentStartFailed(
                    profile.name, exc.reason, command=command, phase="launching", version=profile.version
                ) from exc
            except ProgramNotFound as exc:  # it existed a moment ago
                raise AgentNotFound(profile.name, exc.reason) from exc
            yield process


class StderrLines:
    """Cuts what is fed to it into lines.

    Args:
        tell: Called with each line, without its end.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._begun = b""

    def feed(self, data: bytes) -> None:
        """Take the next bytes; none are the end."""
        *lines, self._begun = (self._begun + data).split(b"\n") if data else (self._begun, b"")
        while len(self._begun) > LONGEST:
            lines.append(self._begun[:LONGEST])
            self._begun = self._begun[LONGEST:]
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\r")
            if text:
                self._tell(text)
