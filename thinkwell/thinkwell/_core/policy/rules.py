"""A rule of a permission policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from thinkwell.events import ToolKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RuleVerdict: TypeAlias = Literal["allow", "deny", "ask"]
"""The verdict of a rule."""

VERDICTS: Final[tuple[RuleVerdict, ...]] = get_args(RuleVerdict)
KINDS: Final[tuple[ToolKind, ...]] = get_args(ToolKind)
_OPERATORS: Final = frozenset(("&&", "||", "|", ";", "&", "<", ">", ">>", "|&"))
CRITERIA: Final = ("kind", "tool", "path", "command", "server")


@dataclass(frozen=True, slots=True, init=False)
class Rule:
    """A verdict, and the calls it applies to. A call has to match one pattern of every criterion given.

    Rules that allow are strict, rules that deny or ask are generous. ``allow`` requires all paths
    and all commands of a call to match, and uses only fields that the agent's program fills in. For ``deny``
    and ``ask``, one path or command is enough, wherever it is hidden, and unreadable calls match.

    Attributes:
        verdict: ``allow``, ``deny`` or ``ask``.
        kind: Kinds of tools.
        tool: Globs for the tool's own name. To allow the tools of an MCP server, give `server` too.
        path: Globs for files: absolute, ``~/…``, or relative to the session's folder. ``**`` crosses folders.
            For ``deny`` and ``ask``, a folder includes everything in it.
        command: Patterns for commands, word by word: ``git status``, ``npm run *``.
        server: Globs for the name of the MCP server whose tool it is.
        why: The reason, for the log.
    """

    verdict: RuleVerdict
    kind: tuple[ToolKind, ...]
    tool: tuple[str, ...]
    path: tuple[str, ...]
    command: tuple[str, ...]
    server: tuple[str, ...]
    why: str

    def __init__(
        self,
        verdict: RuleVerdict,
        *,
        kind: ToolKind | Iterable[ToolKind] = (),
        tool: str | Iterable[str] = (),
        path: str | Iterable[str] = (),
        command: str | Iterable[str] = (),
        server: str | Iterable[str] = (),
        why: str = "",
    ) -> None:
        """Create a rule.

        Raises:
            ValueError: It has no criterion, or a value is unknown.
            TypeError: A value is not a string.
        """
        _must_be_one_of("verdict", verdict, VERDICTS)
        object.__setattr__(self, "verdict", verdict)
        for name, value in zip(CRITERIA, (kind, tool, path, command, server), strict=True):
            object.__setattr__(self, name, _patterns(name, value))
        for one in self.kind:
            _must_be_one_of("kind", one, KINDS)
        for pattern in self.path:
            _must_fit_paths(pattern)
        for pattern in self.command:
            _must_fit_commands(pattern)
        _must_be_text("why", why)
        object.__setattr__(self, "why", why)
        if not any(getattr(self, name) for name in CRITERIA):
            raise ValueError(
                f"a rule needs a criterion: {', '.join(CRITERIA)}; `otherwise` decides questions "
                "that match no rule"
            )

    def __str__(self) -> str:
        about = [f"{name} {' or '.join(getattr(self, name))}" for name in CRITERIA if getattr(self, name)]
        return f"{self.verdict} {', '.join(about)}" + (f": {self.why}" if self.why else "")


def _must_be_one_of(name: str, value: str, possible: Sequence[str]) -> None:
    if value not in possible:
        raise ValueError(f"{name}: {value!r:.100} is not one of {', '.join(possible)}")


def _patterns(name: str, value: str | Iterable[str]) -> tuple[str, ...]:
    patterns = (value,) if isinstance(value, str) else tuple(value)
    for pattern in patterns:
        _must_be_text(name, pattern)
        if not pattern.strip():
            raise ValueError(f"{name}: an empty pattern matches nothing")
    return patterns


def _must_fit_paths(pattern: str) -> None:
    if pattern.startswith(("!", "$")) or "{" in pattern:
        raise ValueError(
            f"path: {pattern!r:.100} matches nothing: negations, variables, braces do not work; write `~/…` "
            "for the home folder, and several patterns for several things"
        )


def _must_fit_commands(pattern: str) -> None:
    words = pattern.split()
    if _OPERATORS & set(words) or set("\"'`") & set(pattern) or "=" in words[0]:
        raise ValueError(
            f"command: {pattern!r:.100} matches nothing: a pattern is for one command, word by word, without "
            "quotes, operators or variables before it; the commands of a line are checked one by one"
        )


def _must_be_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name}: {value!r:.100} is not a text")
