"""The facts about all files together."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Final, assert_never

from msgspec import Struct

from thinkwell.builtin._subjects import (
    Subject,
    counts_of,
    function_of,
    issues_of,
    part_of,
    quality_of,
    subject_of,
)
from thinkwell.builtin._words import listed, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from thinkwell.builtin._facts import FileFacts, Function
    from thinkwell.builtin._subjects import Kind

_GRAVITY: Final = {"high": 0, "medium": 1, "low": 2}


class Answer(Struct, frozen=True, kw_only=True):
    """The answer of one of the user's tools."""

    tool: str
    text: str
    value: object = None
    """The answer as JSON, if it is JSON."""


class Findings:
    """The findings of a turn."""

    def __init__(
        self, folder: str, files: Sequence[FileFacts], request: str = "", answers: Sequence[Answer] = ()
    ) -> None:
        self.folder = folder
        self.files = tuple(files)
        self.request = request
        self.answers = tuple(answers)

    def with_answers(self, answers: Sequence[Answer]) -> Findings:
        """Return the findings with the answers of tools."""
        return Findings(self.folder, self.files, self.request, answers)

    @cached_property
    def project(self) -> Subject:
        """All files as one subject."""
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
            advice=self.issues[0].advice if self.issues else self._where_to_begin(),
            quality=quality_of(self.files),
            counts=counts_of(self.files) | {"issue": len(self.issues)},
            modified=max((file.modified for file in self.files), default=0),
        )

    @cached_property
    def longest(self) -> tuple[FileFacts, Function] | None:
        """The longest function."""
        return max(self._functions, key=lambda pair: pair[1].lines, default=None)

    @property
    def _functions(self) -> list[tuple[FileFacts, Function]]:
        return [(file, function) for file in self.files for function in file.functions]

    @cached_property
    def issues(self) -> tuple[Subject, ...]:
        """Possible improvements, the most important first."""
        found = [issue for file in self.files for issue in issues_of(file)]
        return tuple(sorted(found, key=lambda issue: _GRAVITY[issue.severity]))

    def all(self, kind: Kind, within: Subject) -> tuple[Subject, ...]:
        """Return all subjects of a kind; those of one file if `within` is one."""
        subjects = self._by_kind(kind)
        if within.kind != "file":
            return subjects
        return tuple(item for item in subjects if item.path == within.path)

    def _by_kind(self, kind: Kind) -> tuple[Subject, ...]:
        match kind:
            case "project":
                return (self.project,)
            case "file":
                return tuple(map(subject_of, self.files))
            case "function":
                functions = (function_of(*found) for found in self._functions)
                return tuple(sorted(functions, key=lambda item: -item.counts["line"]))
            case "issue":
                return self.issues
            case "class":
                return self._named("class", lambda file: file.classes)
            case "heading":
                return self._named("heading", lambda file: file.headings)
            case "import":
                named = self._named("import", lambda file: file.imports)
                return tuple({item.name: item for item in named}.values())
        assert_never(kind)

    def _named(self, kind: Kind, names: Callable[[FileFacts], Iterable[str]]) -> tuple[Subject, ...]:
        return tuple(part_of(file, kind, name) for file in self.files for name in names(file))

    def _where_to_begin(self) -> str:
        if self.longest is None:
            return "Leave it as it is."
        file, function = self.longest
        return f"Begin with {function.name} in {file.path}: it is the longest function."

    def _language(self) -> str:
        lines = Counter[str]()
        for file in self.files:
            lines[file.language] += file.lines
        return max(lines, key=lambda language: lines[language], default="none")

    def _summary(self) -> str:
        if not self.files:
            return f"There is nothing to read in {self.folder}."
        counts = counts_of(self.files)
        parts = [
            number(counts[kind], kind)
            for kind in ("function", "class", "heading", "todo")
            if counts[kind] or kind == "todo"
        ]
        if len(self.files) == 1:
            what = f"{self.files[0].path} is {self._language()}"
        else:
            what = f"{number(len(self.files), 'file')}, mostly {self._language()}"
        summary = f"{what}: {number(counts['line'], 'line')}, {listed(parts)}."
        if self.longest:
            file, function = self.longest
            summary += f" The longest function is {function.name} in {file.path}"
            summary += f" with {number(function.lines, 'line')}."
        return summary
