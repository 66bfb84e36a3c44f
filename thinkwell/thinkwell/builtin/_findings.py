"""What the files come to together: things found, each with what can be said of it."""

from __future__ import annotations

from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from thinkwell.builtin._facts import FileFacts, Function

LONG_FUNCTION: Final = 50
"""From how many lines on a function counts as long."""

Severity: TypeAlias = Literal["low", "medium", "high"]
Kind: TypeAlias = Literal["project", "file", "function", "class", "issue", "mark", "heading", "import", "advice"]

_SEVERITIES: Final[tuple[Severity, ...]] = ("high", "medium", "low")


class Subject(Struct, frozen=True, kw_only=True):
    """One thing that was found: what an object, or an item of a list, can tell about."""

    kind: Kind
    name: str
    text: str
    """A sentence about it."""
    path: str
    absolute: str | None = None
    line: int = 1
    language: str = ""
    severity: Severity = "low"
    advice: str = ""
    """A sentence about what to do."""
    quality: float = 1.0
    """From 0 to 1; see `quality_of`."""
    counts: Mapping[str, int] = {}
    """Numbers about it, by the singular of what was counted."""
    modified: float = 0


class Answer(Struct, frozen=True, kw_only=True):
    """What a tool of the user's has answered."""

    tool: str
    text: str
    value: object = None
    """The answer as JSON, where it is."""


class Findings:
    """Everything that a turn has found."""

    def __init__(
        self, folder: str, files: Sequence[FileFacts], request: str = "", answers: Sequence[Answer] = ()
    ) -> None:
        self.folder = folder
        self.files = tuple(files)
        self.request = request
        self.answers = tuple(answers)

    @cached_property
    def project(self) -> Subject:
        """All files as one thing."""
        first = self.files[0] if self.files else None
        return Subject(
            kind="project",
            name=(first and first.title) or (first.path if len(self.files) == 1 and first else self.folder),
            text=self._summary(),
            path=first.path if first else ".",
            absolute=first.absolute if first else None,
            line=self.longest[1].line if self.longest else 1,
            language=self._language(),
            severity=self.issues[0].severity if self.issues else "low",
            advice=self.issues[0].advice if self.issues else "Leave it as it is.",
            quality=quality_of(self.files),
            counts=counts_of(self.files) | {"issue": len(self.issues)},
            modified=max((file.modified for file in self.files), default=0),
        )

    @cached_property
    def longest(self) -> tuple[FileFacts, Function] | None:
        """The longest function."""
        functions = [(file, function) for file in self.files for function in file.functions]
        return max(functions, key=lambda pair: pair[1].lines, default=None)

    @cached_property
    def issues(self) -> tuple[Subject, ...]:
        """What could be better, the gravest first."""
        found = [issue for file in self.files for issue in _issues(file)]
        return tuple(sorted(found, key=lambda issue: _SEVERITIES.index(issue.severity)))

    def all(self, kind: Kind, within: Subject) -> tuple[Subject, ...]:
        """Return all things of a kind; those of one file, where `within` is one."""
        subjects = self._by_kind(kind)
        return tuple(item for item in subjects if item.path == within.path) if within.kind == "file" else subjects

    def _by_kind(self, kind: Kind) -> tuple[Subject, ...]:
        match kind:
            case "file":
                return tuple(map(_file_subject, self.files))
            case "function":
                functions = [_function_subject(file, function) for file in self.files for function in file.functions]
                return tuple(sorted(functions, key=lambda item: -item.counts["line"]))
            case "issue":
                return self.issues
            case "mark":
                return tuple(issue for issue in self.issues if "mark" in issue.counts)
            case "advice":
                return tuple({issue.advice: issue for issue in self.issues}.values())
            case "class":
                return self._named("class", lambda file: file.classes)
            case "heading":
                return self._named("heading", lambda file: file.headings)
            case "import":
                return tuple({item.name: item for item in self._named("import", lambda file: file.imports)}.values())
            case "project":
                return (self.project,)

    def _named(self, kind: Kind, names: _Names) -> tuple[Subject, ...]:
        return tuple(
            _of_file(file, kind=kind, name=name, text=f"{name} in {file.path}.") for file in self.files for name in names(file)
        )

    def _language(self) -> str:
        lines: dict[str, int] = {}
        for file in self.files:
            lines[file.language] = lines.get(file.language, 0) + file.lines
        return max(lines, key=lambda language: lines[language], default="none")

    def _summary(self) -> str:
        if not self.files:
            return f"There is nothing to read in {self.folder}."
        counts = counts_of(self.files)
        parts = [
            number(counts[kind], kind) for kind in ("function", "class", "heading", "todo") if counts[kind] or kind == "todo"
        ]
        what = self.files[0].path if len(self.files) == 1 else number(len(self.files), "file")
        summary = f"{what}, mostly {self._language()}: {number(counts['line'], 'line')}, {listed(parts)}."
        if self.longest:
            file, function = self.longest
            summary += f" The longest function is {function.name} in {file.path} with {number(function.lines, 'line')}."
        return summary


_PLURALS: Final = {"class": "classes", "todo": "TODOs"}


def number(count: int, noun: str) -> str:
    """Return a number and what it counts."""
    if count == 1:
        return f"1 {noun.upper() if noun == 'todo' else noun}"
    return f"{count} {_PLURALS.get(noun, noun + 's')}"


def listed(parts: Sequence[str]) -> str:
    """Return the parts as one would say them."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def counts_of(files: Sequence[FileFacts]) -> dict[str, int]:
    """Return numbers about files, by the singular of what was counted."""
    functions = [function for file in files for function in file.functions]
    return {
        "file": len(files),
        "line": sum(file.lines for file in files),
        "word": sum(file.words for file in files),
        "byte": sum(file.size for file in files),
        "function": len(functions),
        "class": sum(len(file.classes) for file in files),
        "import": len({name for file in files for name in file.imports}),
        "heading": sum(len(file.headings) for file in files),
        "todo": sum(len(file.marks) for file in files),
        "longest": max((function.lines for function in functions), default=0),
        "documented": sum(function.documented for function in functions),
        "test": sum(function.name.startswith("test") for function in functions),
    }


def quality_of(files: Sequence[FileFacts]) -> float:
    """Return a score from 0 to 1.

    A half is the share of public functions that are documented, four tenths that of functions which are not long, a tenth
    is for having no TODO. Texts without functions have the first two in full; a file that does not parse costs a half.
    """
    functions = [function for file in files for function in file.functions]
    public = [function for function in functions if function.public]
    documented = sum(function.documented for function in public) / len(public) if public else 1.0
    short = sum(function.lines < LONG_FUNCTION for function in functions) / len(functions) if functions else 1.0
    finished = 0.0 if any(file.marks for file in files) else 1.0
    score = 0.5 * documented + 0.4 * short + 0.1 * finished
    return score / 2 if any(file.broken for file in files) else score


def _file_subject(file: FileFacts) -> Subject:
    issues = _issues(file)
    counts = counts_of([file])
    words = f"{file.path} is {file.language}: {number(file.lines, 'line')}"
    parts = [number(counts[kind], kind) for kind in ("function", "class", "heading", "todo") if counts[kind]]
    return Subject(
        kind="file",
        name=PurePosixPath(file.path).name,
        text=f"{words}, {listed(parts)}." if parts else f"{words}.",
        path=file.path,
        absolute=file.absolute,
        language=file.language,
        severity=issues[0].severity if issues else "low",
        advice=issues[0].advice if issues else f"Leave {file.path} as it is.",
        quality=quality_of([file]),
        counts=counts | {"issue": len(issues)},
        modified=file.modified,
    )


def _function_subject(file: FileFacts, function: Function) -> Subject:
    documented = "documented" if function.documented else "not documented"
    return _of_file(
        file,
        kind="function",
        name=function.name,
        text=f"{function.name} in {file.path} has {number(function.lines, 'line')} and is {documented}.",
        line=function.line,
        quality=(function.documented + (function.lines < LONG_FUNCTION)) / 2,
        counts={"line": function.lines, "documented": int(function.documented)},
    )


def _of_file(file: FileFacts, **fields: object) -> Subject:
    defaults: dict[str, object] = {
        "path": file.path,
        "absolute": file.absolute,
        "language": file.language,
        "modified": file.modified,
    }
    return Subject(**(defaults | fields))  # type: ignore[arg-type]


def _issues(file: FileFacts) -> list[Subject]:
    found: list[Subject] = []

    def add(severity: Severity, line: int, name: str, text: str, advice: str, **counts: int) -> None:
        found.append(
            _of_file(
                file,
                kind="issue",
                name=name,
                text=text,
                line=line,
                severity=severity,
                advice=advice,
                quality={"low": 0.7, "medium": 0.4, "high": 0.0}[severity],
                counts=counts,
            )
        )

    where = file.path
    if file.broken:
        text = f"{where}:{file.broken_line} does not parse: {file.broken}."
        add("high", file.broken_line, "does not parse", text, f"Correct line {file.broken_line} of {where}.")
    for function in file.functions:
        if function.lines >= LONG_FUNCTION:
            text = f"{function.name} at {where}:{function.line} has {function.lines} lines."
            add("medium", function.line, function.name, text, f"Split {function.name} in {where}.", line=function.lines)
    for mark in file.marks:
        text = f"{where}:{mark.line} says {mark.word}: {mark.text or '(nothing more)'}"
        add("low", mark.line, mark.word, text, f"Do what {where}:{mark.line} leaves open.", mark=1)
    bare = [function for function in file.functions if function.public and not function.documented]
    if bare and not where.rpartition("/")[2].startswith("test"):
        names = listed([function.name for function in bare[:3]])
        text = f"{number(len(bare), 'public function')} of {where} without a docstring: {names}."
        add("low", bare[0].line, "no docstring", text, f"Document {names} in {where}.", function=len(bare))
    return sorted(found, key=lambda issue: _SEVERITIES.index(issue.severity))
