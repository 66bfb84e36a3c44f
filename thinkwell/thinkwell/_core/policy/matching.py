"""Which rules match a question."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from thinkwell._core.policy.arguments import says_no_more
from thinkwell._core.policy.commands import Reading, allows, read_command, touches
from thinkwell._core.policy.globs import literal_start, name_glob
from thinkwell._core.policy.paths import (
    LONGEST_PATH,
    MOST_PATHS,
    any_path,
    folded,
    lies_in,
    path_forms,
    path_patterns,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from thinkwell._core.policy.rules import Rule
    from thinkwell.questions import PermissionQuestion

_CHANGES_FILES: Final = frozenset(("edit", "delete", "move"))
_FILE_KINDS: Final = _CHANGES_FILES | {"read", "search"}
_COMMAND_KINDS: Final = frozenset(("execute", "read", "search"))
"""codex names commands that only read by what they do."""


class Asked:
    """A question being decided. Links are resolved once for all rules.

    Args:
        question: The agent's question.
        cwd: The session's folder.
    """

    def __init__(self, question: PermissionQuestion, cwd: str) -> None:
        self._question = question
        self._cwd = cwd

    def fits(self, rule: Rule) -> bool:
        """Return whether a rule certainly covers everything that the agent asks for."""
        question = self._question
        return (
            (not rule.kind or question.kind in rule.kind)
            and (not rule.server or _any_name(rule.server, (question.server,)))
            # Any MCP server may have a tool with the name of a trusted one.
            and (not rule.tool or bool(rule.server) or question.server is None)
            and (not rule.tool or _any_name(rule.tool, (question.name,)))
            and (not rule.command or self._fits_command(rule))
            and (not rule.path or self._fits_paths(rule))
        )

    def hits(self, rule: Rule) -> bool:
        """Return whether a rule may cover anything that the agent asks for."""
        question = self._question
        return _says_nothing(question) or (
            (not rule.kind or question.kind in rule.kind)
            and (not rule.server or _hits_server(rule.server, question))
            and (not rule.tool or _hits_tool(rule.tool, question))
            and (not rule.command or _hits_command(rule.command, question))
            and (not rule.path or self._hits_paths(rule.path))
        )

    # Commands and files

    def _fits_command(self, rule: Rule) -> bool:
        question = self._question
        return (
            question.command is not None
            and question.server is None
            and question.kind in _COMMAND_KINDS
            and says_no_more(question.input, None if rule.path else self._cwd)
            and allows(rule.command, read_command(question.command))
        )

    def _fits_paths(self, rule: Rule) -> bool:
        question = self._question
        if question.command is not None and not rule.command:
            return False  # the named files do not limit what a command does
        if question.kind not in _FILE_KINDS and question.kind not in rule.kind:
            return False
        if not 0 < len(question.paths) <= MOST_PATHS:
            return False
        if any("\0" in path or len(path) > LONGEST_PATH for path in question.paths):
            return False
        globs = path_patterns(rule.path, self._cwd)
        return all(any_path(globs, form) for form in self._forms)

    def _hits_paths(self, patterns: Sequence[str]) -> bool:
        kind = self._question.kind
        if not self._question.paths and kind in _CHANGES_FILES:
            return True  # something unknown is changed
        if self._folded is None:
            return True
        # A rule for a folder applies to everything in it.
        globs = [folded(f"{glob.rstrip('/')}/**") for glob in path_patterns(patterns, self._cwd)]
        starts = [literal_start(glob) for glob in globs] if kind in ("delete", "move") else []
        return any(
            any_path(globs, form, fold=True) or any(lies_in(start, form) for start in starts)
            for form in self._folded
        )

    @cached_property
    def _forms(self) -> set[str]:
        """The paths of the question."""
        return self._all_forms(self._question.paths)

    @cached_property
    def _folded(self) -> set[str] | None:
        """The paths and possible paths in the command, for comparison without case; ``None``: too many."""
        question = self._question
        words: set[str] = set()
        if question.command is not None:
            words = _words_like_paths(read_command(question.command)).difference(question.paths)
        if len(question.paths) + len(words) > MOST_PATHS:
            return None
        return set(map(folded, self._forms | self._all_forms(words)))

    def _all_forms(self, paths: Iterable[str]) -> set[str]:
        return {form for path in paths for form in path_forms(path, self._cwd)}


def _says_nothing(question: PermissionQuestion) -> bool:
    """Return whether the question has no details. Some agents show only the id of a call."""
    return question.kind == "other" and not (
        question.title
        or question.name
        or question.server
        or question.input
        or question.content
        or question.command
        or question.paths
    )


def _any_name(patterns: Iterable[str], names: Iterable[str | None], *, fold: bool = False) -> bool:
    return any(
        name_glob(pattern, fold=fold).fullmatch(name)
        for pattern in patterns
        for name in names
        if name is not None
    )


# Possible meanings


def _hits_server(patterns: Sequence[str], question: PermissionQuestion) -> bool:
    if question.server is None and _has_many_readings(question):
        return True
    names = (
        {question.server} if question.server is not None else {server for server, _ in _mcp_names(question)}
    )
    return _any_name(patterns, names, fold=True)


def _hits_tool(patterns: Sequence[str], question: PermissionQuestion) -> bool:
    if question.server is None and _has_many_readings(question):
        return True
    names = {question.name} if question.name is not None else {question.title}
    if question.server is not None:
        names |= {f"mcp__{question.server}__{question.name}"}
    else:
        names |= {tool for _, tool in _mcp_names(question)}
    return _any_name(patterns, names, fold=True)


MOST_READINGS: Final = 100
"""Most places in a tool's name at which its server's name may end. With more, any may be meant."""


def _has_many_readings(question: PermissionQuestion) -> bool:
    text = question.title if question.name is None else question.name
    return max(map(text.count, "_.")) > MOST_READINGS and not any(map(str.isspace, text))


def _mcp_names(question: PermissionQuestion) -> set[tuple[str, str]]:
    """Return the servers and tools that a tool's name may mean; without a name, the title is used.

    Agents write them as ``mcp__SERVER__TOOL``, ``TOOL (SERVER MCP Server)``, ``mcp.SERVER.TOOL`` and
    ``SERVER_TOOL``; the boundary between them is not certain.
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
    # Some agents show a command only in the title.
    reading = read_command(question.title)
    if question.kind == "other":
        return touches(patterns, reading._replace(opaque=False))
    return not question.title or touches(patterns, reading)


def _words_like_paths(reading: Reading) -> set[str]:
    words = {word for argv in reading.programs for word in argv}
    words |= {word.partition("=")[2] for word in words}
    return {*reading.files, *(word for word in words if "/" in word or "." in word)}
