"""The commands that a line really runs: in lists, groups, substitutions, and through other programs."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from thinkwell._core.policy.globs import words_glob
from thinkwell._core.policy.options import SELECTIVE, only_reads, words_of
from thinkwell._core.policy.shell import DEEPEST, Script, Unreadable, Word, read_script

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Argv = tuple[str, ...]


SHELLS: Final = words_of(
    "ash bash cmd csh dash fish ksh mksh nu powershell pwsh rbash sh tcsh xonsh yash zsh"
)
"""Programs that run code from an argument or from their input."""

_SHELL_CALLS: Final = frozenset(
    (folder + shell, flag)
    for folder in ("", "/bin/", "/usr/bin/")
    for shell in ("bash", "sh", "zsh")
    for flag in ("-c", "-lc")
)
"""How agents pass a line to a shell. codex does it with every command."""

WRAPPERS: Final = words_of("""
    builtin bunx busybox catchsegv chroot chrt command coproc dbus-run-session doas entr env exec firejail
    flock gosu ionice linux32 linux64 ltrace nice noglob nocorrect nohup npx nsenter numactl parallel pipx
    pkexec prlimit proot runuser script setarch setpriv setsid sg ssh start start-process stdbuf strace su
    su-exec sudo systemd-run taskset time timeout torsocks torify toybox unbuffer unshare uvx valgrind watch
    watchexec xargs xvfb-run
""")
"""Programs that run the program in their arguments, after options."""

_PROGRAM_FIRST: Final = words_of("""
    builtin bunx busybox command doas env exec gosu nice noglob nocorrect nohup npx pkexec setsid
    stdbuf sudo time timeout torsocks toybox unbuffer uvx xargs
""")
"""Those whose first word is the program, apart from numbers and assignments, if no options come before it."""

FIRST: Final = ""
"""The placeholder for a program of that kind."""

_LEAST_WORDS: Final = dict.fromkeys(("doas", "parallel", "script", "su", "sudo", "unshare"), 1) | {"ssh": 2}
"""Least words for which they run no shell that reads its commands."""

_BEGINS_ANOTHER: Final = dict.fromkeys(
    words_of("bun bundle conda deno direnv hatch mamba mise nix npm pdm pipenv pnpm pixi poetry rye uv yarn"),
    words_of("run exec x dlx"),
) | {"find": words_of("-exec -execdir -ok -okdir")}
"""Arguments after which another program follows."""

_WITH_CODE: Final = re.compile(r"-[a-z]*c[a-z]*$|/[ck]|-comm|--command|-e(nc.*|c)?$")

READ_LIMIT: Final = 200_000
"""Most characters that are read for one line, including the code in its arguments."""

_CODE_TAKERS: Final = words_of("alias bind complete eval trap")
"""Shell commands whose arguments are code."""

_SOURCES: Final = frozenset((".", "source"))

_RESERVED: Final = words_of("! { } if then elif else fi while until do done")
_ASSIGNMENT: Final = re.compile(r"\w+(\[[^\]]*\])?\+?=", re.ASCII)


class Reading(NamedTuple):
    """What is known about a command line."""

    simple: tuple[Argv, ...]
    """The commands, if it is certain that nothing else runs; else empty."""
    programs: tuple[Argv, ...]
    """Every command that may run. Some may be just arguments."""
    files: tuple[str, ...]
    """Files of redirections."""
    opaque: bool
    """Whether something unknown may run."""


@lru_cache(maxsize=256)
def read_command(line: str) -> Reading:
    """Find out what a command line runs."""
    try:
        script = read_script(line)
        found = _Finder()
        found.script(script, 0)
    except Unreadable:
        return Reading((), (), (), opaque=True)
    simple = _simple(script)
    return Reading(simple, tuple(dict.fromkeys(found.programs)), tuple(found.files), opaque=found.opaque)


def _simple(script: Script) -> tuple[Argv, ...]:
    """Return the commands of a script if it is certain that nothing else runs."""
    if not script.plain:
        return ()
    argvs = [tuple(word.text for word in command) for command in script.commands]
    if len(argvs) == 1 and len(argvs[0]) == 3 and argvs[0][:2] in _SHELL_CALLS:
        script = read_script(argvs[0][2])
        argvs = [tuple(word.text for word in command) for command in script.commands]
    certain = script.plain and all(map(_runs_only_itself, script.commands))
    return tuple(argvs) if certain else ()


def _runs_only_itself(command: Sequence[Word]) -> bool:
    first, *arguments = command
    name = program_name(first.text)
    if not first.certain or "=" in first.text or name in _RESERVED | WRAPPERS | _CODE_TAKERS | _SOURCES:
        return False
    texts = [word.text for word in arguments]
    if name in SHELLS:
        return bool(texts) and not texts[0].startswith(("-", "+", "/c", "/C", "/k", "/K"))
    # A pattern for file names may become an option, if there is such a file.
    return name not in SELECTIVE or all(word.certain or word.text[:1] not in "-*?[" for word in arguments)


def program_name(word: str) -> str:
    """Return the name of a program without its folder, as case-insensitive file systems know it."""
    return re.split(r"[/\\]", word.strip().lstrip("="))[-1].casefold().removesuffix(".exe")


class _Finder:
    """Collects the commands that may run."""

    def __init__(self) -> None:
        self.programs: list[Argv] = []
        self.files: list[str] = []
        self.opaque = False
        self._seen: set[tuple[str, bool]] = set()
        self._length = 0

    def script(self, script: Script, depth: int) -> None:
        self.files.extend(script.targets)
        for command in script.commands:
            self._command(command, depth)

    def _code(self, line: str, depth: int, *, certain: bool) -> None:
        """Read code, or text that may be code: then it need not be readable."""
        if (line, certain) in self._seen:
            return
        self._seen.add((line, certain))
        self._spend(len(line))
        try:
            script = read_script(line, depth)
        except Unreadable:
            if certain:
                raise
            return
        before = self.opaque
        self.script(script, depth + 1)
        if not certain:
            self.opaque = before

    def _spend(self, length: int) -> None:
        self._length += length + 10
        if self._length > READ_LIMIT:
            raise Unreadable

    def _command(self, words: Sequence[Word], depth: int) -> None:
        rest = self._bare(words, depth)
        self.opaque |= bool(rest) and rest[0].text == "{}"  # xargs and find replace it
        self._program(rest, depth)

    def _bare(self, words: Sequence[Word], depth: int) -> Sequence[Word]:
        """Return a command without the assignments and reserved words before it."""
        while words:
            text = words[0].text
            if text == "function":
                words = words[2:]
            elif text in _RESERVED:
                words = words[1:]
            elif _ASSIGNMENT.match(text):
                self._code(text.partition("=")[2], depth, certain=False)
                words = words[1:]
            else:
                break
        return words

    def _program(self, words: Sequence[Word], depth: int) -> None:
        if not words:
            return
        first, *arguments = words
        if depth > DEEPEST:
            raise Unreadable(first.text)
        if not first.certain:
            self.opaque = True
            return
        self._spend(sum(len(word.text) for word in words))
        self.programs.append(tuple(word.text for word in words))
        name = program_name(first.text)
        if name in SHELLS:
            self._shell(name, arguments, depth)
        elif name in _CODE_TAKERS:
            self._code(" ".join(word.text for word in arguments), depth, certain=name == "eval")
            for word in arguments:
                self._code(word.text.partition("=")[2], depth, certain=False)
        elif name in _SOURCES:
            self._wrapped(FIRST, arguments, depth)
        elif name in WRAPPERS:
            self._wrapped(name, arguments, depth)
        else:
            begins = _BEGINS_ANOTHER.get(name, ())
            for number, word in enumerate(arguments):
                if word.text in begins:
                    self._wrapped(FIRST, arguments[number + 1 :], depth)

    def _shell(self, name: str, arguments: Sequence[Word], depth: int) -> None:
        texts = [word.text for word in arguments]
        options = [text.casefold() for text in texts if text.startswith(("-", "+", "/"))]
        words = [text for text in texts if not text.startswith(("-", "+"))]
        if any(map(_WITH_CODE.match, options)):
            for text in texts:
                self._hidden_code(text, depth)
            for text in (*words, " ".join(words)):
                self._code(text, depth, certain=text in words)
        else:
            self._wrapped(name, arguments, depth)
            self.opaque |= not words
        reads_input = any(re.fullmatch("-[a-z]*s[a-z]*", option) for option in options)
        encoded = name in ("powershell", "pwsh") and any(option.startswith("-e") for option in options)
        self.opaque |= reads_input or encoded

    def _wrapped(self, name: str, arguments: Sequence[Word], depth: int) -> None:
        """Find the program among the arguments of one that runs it.

        The options of most of these programs are unknown here, so a program may begin at each word after one.
        """
        first = _PROGRAM_FIRST | {FIRST}
        starts: list[int] = []
        with_options = False
        for number, word in enumerate(arguments):
            if not (starts and name in first and not with_options):
                self._hidden_code(word.text, depth)
            if not starts and word.text.startswith("-"):
                with_options = True
            elif not re.fullmatch(r"-.*|[\d.]+[a-z]?|[^=]*=.*", word.text, re.DOTALL) and not (
                number and arguments[number - 1].text == "-I"
            ):
                starts.append(number)
        if name in first and not with_options:
            starts = starts[:1]
        for number in starts:
            word = arguments[number]
            if not word.certain or (number == starts[0] and word.text == "{}"):
                self.opaque = True
            else:
                self._program(self._bare(arguments[number:], depth), depth + 1)
        names = {program_name(arguments[number].text) for number in starts}
        self.opaque |= (
            len(starts) < _LEAST_WORDS.get(name, 0)
            # these read words from their input, which may be a program or code
            or (name in ("xargs", "parallel") and bool(names & (SHELLS | WRAPPERS)))
        )

    def _hidden_code(self, text: str, depth: int) -> None:
        """Read a word that may be code, or contain it after an option's letter or an equals sign."""
        for piece in (text, text.partition("=")[2], text[2:] if text.startswith("-") else ""):
            if re.search(r"[\s$`]", piece):
                self._code(piece, depth, certain=True)


# Matching


def allows(patterns: Iterable[str], reading: Reading) -> bool:
    """Return whether everything that runs is certain, and matches one of the patterns.

    A wildcard does not match options that make a reading program write; see `only_reads`.
    """
    patterns = tuple(patterns)
    return bool(reading.simple) and all(
        any(_allows(pattern, argv) for pattern in patterns) for argv in reading.simple
    )


def _allows(pattern: str, argv: Argv) -> bool:
    if not words_glob(pattern).fullmatch(_joined(argv)):
        return False
    words = pattern.split()
    said = next((number for number, word in enumerate(words) if set(word) & set("*?[")), None)
    return said is None or only_reads(program_name(argv[0]), argv, said)


def touches(patterns: Iterable[str], reading: Reading) -> bool:
    """Return whether anything that may run matches one of the patterns, or is unknown."""
    if reading.opaque or any(_has_many_options(argv) for argv in reading.programs):
        return True
    forms = {
        _joined((name, *words))
        for argv in reading.programs
        for words in _behind_options(argv[1:])
        for name in (argv[0], program_name(argv[0]))
    }
    return any(words_glob(pattern, fold=True).fullmatch(form) for pattern in patterns for form in forms)


MOST_OPTIONS: Final = 30
"""Options before the first argument, each of which may take the next word. With more, any may be the
argument."""


def _has_many_options(argv: Argv) -> bool:
    return len(argv) > 2 * MOST_OPTIONS and len(_option_starts(argv[1:])) > 2 * MOST_OPTIONS


def _option_starts(words: Argv) -> list[int]:
    starts = [0]
    for start in starts:
        if start < len(words) and words[start].startswith("-"):
            starts += [after for after in (start + 1, start + 2) if after not in starts[-2:]]
        if len(starts) > 2 * MOST_OPTIONS:
            break
    return starts


def _behind_options(words: Argv) -> list[Argv]:
    """Return the words, and the words without leading options and their values.

    ``git -C folder push`` is a push, and so is ``git --no-pager push``.
    """
    return [words[start:] for start in _option_starts(words)]


def _joined(argv: Argv) -> str:
    return "".join("\0" + word for word in argv)
