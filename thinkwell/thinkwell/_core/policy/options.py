"""Programs that only read, except with some options; and what a wildcard may match for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


class _Risks(NamedTuple):
    """Options that write files, run programs or name a configuration that does."""

    long: str = ""
    """Names; each may be abbreviated."""
    short: str = ""
    """Letters; they may be combined with others."""
    operands: int | None = None
    """With more words than these that are not options, one of them is written to."""


_READERS: Final = {
    "ack": _Risks("pager"),
    "ag": _Risks("pager"),
    "base64": _Risks("output", "o"),
    "bat": _Risks("pager"),
    "batcat": _Risks("pager"),
    "date": _Risks("set", "s"),
    "fd": _Risks("exec exec-batch", "xX"),
    "fdfind": _Risks("exec exec-batch", "xX"),
    "file": _Risks("compile", "C"),
    "iconv": _Risks("output", "o"),
    "less": _Risks("log-file LOG-FILE lesskey-file lesskey-src lesskey-content", "oOk"),
    "man": _Risks("pager html config-file", "PHC"),
    "rg": _Risks("pre hostname-bin"),
    "sdiff": _Risks("output diff-program", "o"),
    "shuf": _Risks("output", "o"),
    "sort": _Risks("output compress-program", "o"),
    "tree": _Risks("output", "oR"),
    "uniq": _Risks(operands=1),
    "xxd": _Risks(operands=1),
}

_FIND_RISKS: Final = re.compile(r"-(exec|ok)(dir)?|-delete|-f(print|ls).*", re.DOTALL)

_SED_OPTIONS: Final = re.compile(r"-[nErzu]+|--(quiet|silent|regexp-extended|null-data|unbuffered)")
_SED_SCRIPT: Final = re.compile(r"[\d$,;p ]+|s([/|#,:])(?:(?!\1)[^\\\n])*\1(?:(?!\1)[^\\\n])*\1[gpIi\d]*")
"""Scripts of sed that only print. Others may contain commands that write files or run programs."""

_GIT_READS: Final = words_of("""
    annotate blame cat-file check-attr check-ignore cherry count-objects describe diff diff-files diff-index
    diff-tree for-each-ref grep log ls-files ls-tree merge-base name-rev range-diff rev-list rev-parse
    shortlog show show-branch show-ref status version whatchanged
""")
"""Commands that change nothing."""

_GIT_LISTS: Final = {
    "branch": words_of("-a -r -v -vv -av --all --list --remotes --show-current --verbose"),
    "remote": words_of("-v --verbose"),
    "tag": words_of("-l --list"),
}
"""Commands that change nothing if they have only these arguments."""

_GIT_WRITES: Final = words_of("""
    add am apply branch checkout cherry-pick clean clone commit fetch gc init ls-remote merge mv notes pull
    push rebase remote reset restore revert rm stash switch tag worktree
""")
"""Commands that do what they say, except with some options. All others may run anything, even aliases."""

_GIT_TALKS: Final = words_of("clone fetch ls-remote pull push remote")
_GIT_HELPER: Final = re.compile(r"(--[\w-]+=)?[\w+.-]+::.*", re.DOTALL)
"""An address for which git runs a program."""

_GIT_GLOBALS: Final = words_of("-P --no-pager --no-optional-locks --literal-pathspecs --version")
"""Allowed before the command. Other options select another repository, whose settings may run programs."""
_GIT_VALUED: Final = words_of("-C -c --git-dir --work-tree --namespace")

_GIT_LONG: Final = """
    config exec ext-diff extcmd open-files-in-pager output output-directory receive-pack separate-git-dir
    template tool unsafe-paths upload-pack
"""
_GIT_SHORT: Final = {"clone": "uc", "grep": "O", "rebase": "x"}

SELECTIVE: Final = frozenset((*_READERS, "find", "git", "sed"))
"""Programs whose options matter."""


def only_reads(program: str, argv: Sequence[str], said: int) -> bool:
    """Return whether a command does no more than the pattern that allows it says.

    Args:
        program: The program's name without its folder.
        argv: The command.
        said: How many of its words are in the pattern; wildcards match the others.
    """
    if program == "git":
        return _git(argv, said)
    free = argv[max(said, 1) :]
    if program == "find":
        return not any(map(_FIND_RISKS.fullmatch, free))
    if program == "sed":
        return _sed(argv)
    risks = _READERS.get(program)
    return risks is None or (
        _harmless(free, risks) and (risks.operands is None or _operands(argv) <= risks.operands)
    )


def _harmless(words: Sequence[str], risks: _Risks) -> bool:
    for word in words:
        if word == "--":
            break
        name = word[2:].partition("=")[0]
        if word.startswith("--") and any(risk.startswith(name) for risk in risks.long.split()):
            return False
        if word[:1] in ("-", "+") and word[:2] != "--" and set(word[1:]) & {"!", *risks.short}:
            return False
    return True


def _operands(argv: Sequence[str]) -> int:
    return sum(not word.startswith(("-", "+")) for word in argv[1:])


def _sed(argv: Sequence[str]) -> bool:
    options = [word for word in argv[1:] if word.startswith("-")]
    script = next((word for word in argv[1:] if not word.startswith("-")), "p")
    return all(map(_SED_OPTIONS.fullmatch, options)) and _SED_SCRIPT.fullmatch(script) is not None


def _git(argv: Sequence[str], said: int) -> bool:
    at = 1
    while at < len(argv) and argv[at].startswith("-"):
        end = at + (2 if argv[at] in _GIT_VALUED else 1)
        if end > said and argv[at] not in _GIT_GLOBALS:
            return False
        at = end
    if at >= len(argv):
        return True
    command, arguments = argv[at], argv[at + 1 :]
    if command in _GIT_LISTS and _GIT_LISTS[command].issuperset(arguments):
        return True
    if command not in _GIT_READS and not (at < said and command in _GIT_WRITES):
        return False
    free = argv[max(said, at + 1) :]
    if command in _GIT_TALKS and any(map(_GIT_HELPER.fullmatch, free)):
        return False
    return _harmless(free, _Risks(_GIT_LONG, _GIT_SHORT.get(command, "")))
