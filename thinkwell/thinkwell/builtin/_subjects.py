"""Subjects of a result: things found in files, and what is known of each."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from thinkwell.builtin._words import listed, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from thinkwell.builtin._facts import FileFacts, Function

LONG_FUNCTION: Final = 50
"""Lines from which on a function counts as long."""

Severity: TypeAlias = Literal["low", "medium", "high"]
Kind: TypeAlias = Literal["project", "file", "function", "class", "issue", "heading", "import"]


class Subject(Struct, frozen=True, kw_only=True):
    """A subject, for an object or an item of a list."""

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
    """A suggestion, as a sentence."""
    quality: float = 1.0
    """From 0 to 1; see `quality_of`."""
    counts: Mapping[str, int] = {}
    """Counts by the singular of what was counted."""
    modified: float = 0


def counts_of(files: Sequence[FileFacts]) -> dict[str, int]:
    """Return counts of files by the singular of what was counted."""
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

    Half of it is the share of public functions that are documented, four tenths that of functions that are
    not long, and a tenth is for having no TODO. Texts without functions get the first two in full; a file
    that does not parse costs a half.
    """
    functions = [function for file in files for function in file.functions]
    public = [function for function in functions if function.public]
    documented = sum(function.documented for function in public) / len(public) if public else 1.0
    short = (
        sum(function.lines < LONG_FUNCTION for function in functions) / len(functions) if functions else 1.0
    )
    finished = 0.0 if any(file.marks for file in files) else 1.0
    score = 0.5 * documented + 0.4 * short + 0.1 * finished
    return score / 2 if any(file.broken for file in files) else score


def subject_of(file: FileFacts) -> Subject:
    """Return a file as a subject."""
    issues = issues_of(file)
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


def part_of(file: FileFacts, kind: Kind, name: str) -> Subject:
    """Return a subject of which only the name and the file are known."""
    return Subject(
        kind=kind,
        name=name,
        text=f"{name} in {file.path}.",
        path=file.path,
        absolute=file.absolute,
        language=file.language,
        modified=file.modified,
    )


def function_of(file: FileFacts, function: Function) -> Subject:
    """Return a function as a subject."""
    documented = "documented" if function.documented else "not documented"
    return replace(
        part_of(file, "function", function.name),
        text=f"{function.name} in {file.path} has {number(function.lines, 'line')} and is {documented}.",
        line=function.line,
        quality=(function.documented + (function.lines < LONG_FUNCTION)) / 2,
        counts={"line": function.lines, "documented": int(function.documented)},
    )


def issues_of(file: FileFacts) -> tuple[Subject, ...]:
    """Return possible improvements of a file, the most important first."""
    return (*_broken(file), *_long_functions(file), *_marks(file), *_undocumented(file))


def _issue(file: FileFacts, severity: Severity, line: int, name: str, text: str, advice: str) -> Subject:
    quality = {"low": 0.7, "medium": 0.4, "high": 0.0}[severity]
    return replace(
        part_of(file, "issue", name), severity=severity, line=line, text=text, advice=advice, quality=quality
    )


def _broken(file: FileFacts) -> Iterator[Subject]:
    if file.broken:
        line = file.broken_line
        text = f"{file.path}:{line} does not parse: {file.broken}."
        yield _issue(file, "high", line, "does not parse", text, f"Correct line {line} of {file.path}.")


def _long_functions(file: FileFacts) -> Iterator[Subject]:
    for function in file.functions:
        if function.lines >= LONG_FUNCTION:
            text = f"{function.name} at {file.path}:{function.line} has {function.lines} lines."
            issue = _issue(
                file, "medium", function.line, function.name, text, f"Split {function.name} in {file.path}."
            )
            yield replace(issue, counts={"line": function.lines})


def _marks(file: FileFacts) -> Iterator[Subject]:
    for mark in file.marks:
        text = f"{file.path}:{mark.line} says {mark.word}: {mark.text or '(nothing more)'}"
        yield _issue(file, "low", mark.line, mark.word, text, f"Do what {file.path}:{mark.line} leaves open.")


def _undocumented(file: FileFacts) -> Iterator[Subject]:
    bare = [function for function in file.functions if function.public and not function.documented]
    if bare and not PurePosixPath(file.path).name.startswith("test"):
        names = listed([function.name for function in bare[:3]])
        text = f"{number(len(bare), 'public function')} of {file.path} without a docstring, such as {names}."
        yield _issue(file, "low", bare[0].line, "no docstring", text, f"Document {names} in {file.path}.")
