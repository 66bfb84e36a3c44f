"""The finished checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from thinkwell._core.diagnosis import PLAINEST_FIRST
from thinkwell.doctor import _words as words
from thinkwell.doctor._check import Check, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell._recording._redact import Redactor
    from thinkwell.agents import AgentProfile
    from thinkwell.doctor._limits import Limits
    from thinkwell.errors import LoginRequired

BEFORE_THE_END: Final = (
    "found",
    "installed",
    "starts",
    "version",
    "protocol",
    "capabilities",
    "login",
    "session",
    *(f"tools over {way}" for way in PLAINEST_FIRST),
    "answer",
    "typed result",
)
"""The checks of a running agent, in order."""


@dataclass
class Report:
    """Collects the checks, and reports each."""

    on_check: Callable[[Check], None] | None
    redactor: Redactor
    """Removes secrets: people show a doctor's output to others."""
    limits: Limits
    _checks: dict[str, Check] = field(default_factory=dict, init=False)

    @property
    def checks(self) -> tuple[Check, ...]:
        """All checks, in order."""
        return tuple(self._checks.values())

    def status(self, name: str) -> Status:
        """Return the outcome of a finished check."""
        return self._checks[name].status

    def __contains__(self, name: str) -> bool:
        return name in self._checks

    def take(self, check: Check) -> None:
        """Add a check, without its secrets."""
        clean = self.redactor.text
        check = replace(check, detail=clean(check.detail), hint=clean(check.hint), stderr=clean(check.stderr))
        self._checks[check.name] = check
        if self.on_check is not None:
            self.on_check(check)

    def add(
        self, name: str, status: Status, detail: str, *, seconds: float | None = None, hint: str = ""
    ) -> None:
        """Add a finding."""
        self.take(Check(name=name, status=status, detail=detail, seconds=seconds, hint=hint))

    def fail(self, name: str, error: Exception, seconds: float | None = None) -> None:
        """Add a check that failed with an error."""
        self.take(self.failure(name, error, seconds))

    def failure(self, name: str, error: Exception, seconds: float | None = None) -> Check:
        """Return a check that failed with an error, without adding it."""
        return words.failure(name, error, self.limits, seconds)

    def wants_login(self, error: LoginRequired, profile: AgentProfile | None) -> None:
        """Report that the agent requires a login, and skip the remaining checks."""
        self.add("login", "failed", words.short(error.reason), hint=words.logins(error.methods, profile))
        self.skip_rest("it wants a login before that")

    def skip_rest(self, why: str) -> None:
        """Skip the remaining checks."""
        for name in BEFORE_THE_END:
            if name not in self:
                self.add(name, "skipped", why)
