"""A rule of a permission policy, and what it fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from thinkwell._policy.commands import Reading, allows, read_command, touches
from thinkwell._policy.globs import literal_start, name_glob
from thinkwell._policy.paths import any_path, folded, lies_in, path_forms, path_patterns
from thinkwell.events import ToolKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from thinkwell.questions import PermissionQuestion

RuleVerdict: TypeAlias = Literal["allow", "deny", "ask"]
"""What a rule says."""

VERDICTS: Final[tuple[RuleVerdict, ...]] = get_args(RuleVerdict)
KINDS: Final[tuple[ToolKind, ...]] = get_args(ToolKind)
CRITERIA: Final = ("kind", "tool", "path", "command", "server")

_CHANGES_FILES: Final = frozenset(("edit", "delete", "move"))
_FILE_KINDS: Final = _CHANGES_FILES | {"read", "search"}
_COMMAND_KINDS: Final = frozenset(("execute", "read", "search"))
"""codex calls commands that only read by what they do."""


@dataclass(frozen=True, slots=True, init=False)
class Rule:
    """A verdict, and what it is about. Every criterion that is given has to fit, by one of its patterns.

    A rule that allows is hard to fit, one that denies or asks is easily hit. So ``allow`` wants all the paths
    and all the commands of a call to fit, and goes only by what the agent's program says; for ``deny`` and
    ``ask``, one path or command is enough, wherever it is hidden, and what cannot be read fits.

    Attributes:
        verdict: ``allow``, ``deny`` or ``ask``.
        kind: Kinds of tools.
        tool: Globs for the tool's own name. To allow the tools of an MCP server, give `server` too.
        path: Globs for files: absolute, ``~/…``, or relative to the session's folder. ``**`` crosses folders.
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
        """Make a rule.

        Raises:
            ValueError: It is about nothing, or a value is none of the possible ones.
            TypeError: A value is no text.
        """
        _must_be_one_of("verdict", verdict, VERDICTS)
        object.__setattr__(self, "verdict", verdict)
        for name, value in zip(CRITERIA, (kind, tool, path, command, server), strict=True):
            object.__setattr__(self, name, _patterns(name, value))
        for one in self.kind:
            _must_be_one_of("kind", one, KINDS)
        _must_be_text("why", why)
        object.__setattr__(self, "why", why)
        if not any(getattr(self, name) for name in CRITERIA):
            raise ValueError(
                f"a rule has to say what it is about: {', '.join(CRITERIA)}; what no rule fits is decided by "
                "the policy's `otherwise`"
            )

    def __str__(self) -> str:
        about = [f"{name} {' or '.join(getattr(self, name))}" for name in CRITERIA if getattr(self, name)]
        return f"{self.verdict} {', '.join(about)}" + (f": {self.why}" if self.why else "")

    def fits(self, question: PermissionQuestion, cwd: str) -> bool:
        """Return whether all that the agent asks for is surely what this rule is about."""
        return (
            (not self.kind or question.kind in self.kind)
            and (not self.server or _any_name(self.server, (question.server,)))
            and (not self.tool or self._fits_tool(question))
            and (not self.command or self._fits_command(question))
            and (not self.path or self._fits_paths(question, cwd))
        )

    def hits(self, question: PermissionQuestion, cwd: str) -> bool:
        """Return whether anything that the agent asks for may be what this rule is about."""
        return (
            (not self.kind or question.kind in self.kind)
            and (not self.server or _hits_server(self.server, question))
            and (not self.tool or _hits_tool(self.tool, question))
            and (not self.command or _hits_command(self.command, question))
            and (not self.path or _hits_paths(self.path, question, cwd))
        )

    def _fits_tool(self, question: PermissionQuestion) -> bool:
        # Anybody may write an MCP server that has a tool by the name of one that is trusted.
        return (bool(self.server) or question.server is None) and _any_name(self.tool, (question.name,))

    def _fits_command(self, question: PermissionQuestion) -> bool:
        return (
            question.command is not None
            and question.server is None
            and question.kind in _COMMAND_KINDS
            and allows(self.command, read_command(question.command))
        )

    def _fits_paths(self, question: PermissionQuestion, cwd: str) -> bool:
        if question.command is not None and not self.command:
            return False  # the files that an agent names do not bound what its command does
        if question.kind not in _FILE_KINDS and question.kind not in self.kind:
            return False
        globs = path_patterns(self.path, cwd)
        return bool(question.paths) and all(
            "\0" not in path and all(any_path(globs, form) for form in path_forms(path, cwd))
            for path in question.paths
        )


def _must_be_one_of(name: str, value: str, possible: Sequence[str]) -> None:
    if value not in possible:
        raise ValueError(f"{name}: {value!r:.100} is none of {', '.join(possible)}")


def _patterns(name: str, value: str | Iterable[str]) -> tuple[str, ...]:
    patterns = (value,) if isinstance(value, str) else tuple(value)
    for pattern in patterns:
        _must_be_text(name, pattern)
        if not pattern.strip():
            raise ValueError(f"{name}: an empty pattern fits nothing")
    return patterns


def _must_be_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name}: {value!r:.100} is no text")


def _any_name(patterns: Iterable[str], names: Iterable[str | None], *, fold: bool = False) -> bool:
    return any(
        name_glob(pattern, fold=fold).fullmatch(name)
        for pattern in patterns
        for name in names
        if name is not None
    )


# What may be meant


def _hits_server(patterns: Sequence[str], question: PermissionQuestion) -> bool:
    names = (
        {question.server} if question.server is not None else {server for server, _ in _mcp_names(question)}
    )
    return _any_name(patterns, names, fold=True)


def _hits_tool(patterns: Sequence[str], question: PermissionQuestion) -> bool:
    names = {question.name} if question.name is not None else {question.title}
    if question.server is not None:
        names |= {f"mcp__{question.server}__{question.name}"}
    else:
        names |= {tool for _, tool in _mcp_names(question)}
    return _any_name(patterns, names, fold=True)


def _mcp_names(question: PermissionQuestion) -> set[tuple[str, str]]:
    """Return which servers and tools a tool's name may mean; the title stands in for it where there is none.

    Agents write them as ``mcp__SERVER__TOOL``, ``TOOL (SERVER MCP Server)``, ``mcp.SERVER.TOOL`` and
    ``SERVER_TOOL``; where one ends is not certain.
    """
    text = question.title if question.name is None else question.name
    found: set[tuple[str, str]] = set()
    if text.endswith(" MCP Server)"):
        tool, _, server = text.removesuffix(" MCP Server)").rpartition(" (")
        found.add((server, tool))
    for start, joint in (("mcp__", "__"), ("mcp.", "."), ("", "_")):
        if text.startswith(start) and not any(map(str.isspace, text)):
            pieces = text.removeprefix(start).split(joint)
            found |= {
                (joint.join(pieces[:number]), joint.join(pieces[number:])) for number in range(1, len(pieces))
            }
    return found


def _hits_command(patterns: Sequence[str], question: PermissionQuestion) -> bool:
    if question.command is not None:
        return touches(patterns, read_command(question.command))
    if question.server is not None or question.kind not in ("execute", "other"):
        return False
    # Some agents show a command in the title alone.
    reading = read_command(question.title)
    if question.kind == "other":
        return touches(patterns, reading._replace(opaque=False))
    return not question.title or touches(patterns, reading)


def _hits_paths(patterns: Sequence[str], question: PermissionQuestion, cwd: str) -> bool:
    if not question.paths and question.kind in _CHANGES_FILES:
        return True  # something is changed, and nobody says what
    paths = list(question.paths)
    if question.command is not None:
        paths.extend(_words_like_paths(read_command(question.command)))
    globs = [folded(glob) for glob in path_patterns(patterns, cwd)]
    for path in paths:
        for form in map(folded, path_forms(path, cwd)):
            if any_path(globs, form, fold=True):
                return True
            if question.kind in ("delete", "move") and any(lies_in(literal_start(g), form) for g in globs):
                return True
    return False


def _words_like_paths(reading: Reading) -> set[str]:
    words = {word for argv in reading.programs for word in argv}
    words |= {word.partition("=")[2] for word in words}
    return {*reading.files, *(word for word in words if "/" in word or "." in word)}
