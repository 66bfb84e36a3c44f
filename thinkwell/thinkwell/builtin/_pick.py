"""Chooses the fact that a property means, by the words of its name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from thinkwell.builtin._findings import Findings
    from thinkwell.builtin._subjects import Kind, Subject


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SYNONYMS: Final = {
    "bug": "issue",
    "character": "byte",
    "concern": "issue",
    "dependency": "import",
    "document": "file",
    "error": "issue",
    "finding": "issue",
    "fixme": "todo",
    "loc": "line",
    "method": "function",
    "module": "file",
    "package": "import",
    "problem": "issue",
    "risk": "issue",
    "section": "heading",
    "size": "byte",
    "smell": "issue",
    "source": "file",
    "symbol": "function",
    "topic": "heading",
    "type": "class",
    "undocumented": "issue",
    "warning": "issue",
    "weakness": "issue",
}
_KINDS: Final[tuple[Kind, ...]] = ("function", "class", "import", "heading", "issue", "file", "project")
_ADVICE: Final = _words("action advice change fix improvement next recommendation step suggestion todo")
_SCORES: Final = _words("confidence grade probability quality rating ratio score share star percent")
_TEXTS: Final = _words("summary description detail explanation message reason text why")
_PATHS: Final = _words("file filename location path where")
_NAMES: Final = _words("headline heading id identifier keyword name query subject term title topic word")
_VAGUE: Final = _words("answer output response result value")
_GOOD: Final = _words("approve approved clean correct good healthy ok pass passed passing ready valid")
_SHARES: Final = _words("confidence probability ratio share")
_FILLERS: Final = _words("a count find get look of the to up")


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a name or a sentence, in lower case and singular."""
    return tuple(_singular(word.lower()) for word in _WORD.findall(text))


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > len("dies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _meanings(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(_SYNONYMS.get(word, word) for word in words)


class Picker:
    """Chooses facts. `words` are those of a property, the most telling first."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._request = words_of(findings.request)

    def hints(self, name: str, schema_text: Sequence[str]) -> tuple[str, ...]:
        """Return the words to choose by: those of the name and the schema's texts, or else of the request."""
        words = tuple(word for text in (name, *schema_text) for word in words_of(text))
        return words if set(words) - _VAGUE else (*words, *self._request)

    def answer(self, name: str) -> object:
        """Return the answer of a tool whose name shares an unusual word with the property's."""
        words = set(words_of(name)) - _FILLERS
        for answer in self._findings.answers:
            if words & (set(words_of(answer.tool)) - _FILLERS):
                return answer.text if answer.value is None else answer.value
        return None

    def items(self, words: Sequence[str], within: Subject) -> tuple[Subject, ...]:
        """Return the subjects of a list."""
        kind = self._kind(words)
        if kind in (None, "issue") and _ADVICE & set(words):
            return self._findings.all("issue", within) or (within,)
        if kind is None:
            kind = "file" if within.kind == "project" else "issue"
        return self._findings.all(kind, within)

    def subject(self, name: str, within: Subject) -> Subject:
        """Return the subject of an object with this name."""
        kind = self._kind(words_of(name))
        found = self._findings.all(kind, within) if kind else ()
        return found[0] if found else within

    def string(self, words: Sequence[str], subject: Subject) -> str:
        """Return a text."""
        for word in words:
            if word in _ADVICE:
                return subject.advice or self._findings.project.advice
            if word in _TEXTS:
                return subject.text
            if word in _PATHS or (_SYNONYMS.get(word) == "file" and subject.kind != "import"):
                return subject.path
            if word in _NAMES:
                return subject.name
            if word == "language":
                return subject.language
            if word in {"severity", "priority", "level"}:
                return subject.severity
            kind = self._kind([word])
            found = self._findings.all(kind, subject) if kind and kind != subject.kind else ()
            if found:
                return found[0].text if kind == "issue" else found[0].name
        return subject.text

    def label(self, words: Sequence[str], subject: Subject) -> str:
        """Return a short text: an item of a list of texts."""
        if _ADVICE & set(words):
            return subject.advice or subject.text
        if {"path", "location"} & set(words):
            return subject.path
        return {"issue": subject.text, "file": subject.path}.get(subject.kind, subject.name)

    def count(self, words: Sequence[str], subject: Subject) -> int | None:
        """Return the number that the words mean, or ``None``."""
        if "line" in words and subject.kind != "project" and not {"count", "total", "length"} & set(words):
            return subject.counts.get("line", 0) if subject.kind == "file" else subject.line
        if {"longest", "biggest", "maximum", "max"} & set(words) and "longest" in subject.counts:
            return subject.counts["longest"]
        for word in _meanings(words):
            if word in subject.counts and word != subject.kind:
                return subject.counts[word]
        if {"count", "total", "number", "length"} & set(words):
            return next(iter(subject.counts.values()), 1)
        return None

    def scored(self, words: Sequence[str]) -> bool:
        """Return whether a number is a rating."""
        return bool(_SCORES & set(words))

    def share(self, words: Sequence[str]) -> bool:
        """Return whether a number is a share."""
        return bool(_SHARES & set(words))

    def truth(self, words: Sequence[str], subject: Subject) -> bool:
        """Return whether the statement in the words is true."""
        if _GOOD & set(words):
            return subject.quality >= 0.5 and subject.severity != "high"
        if {"documented", "docstring"} & set(words):
            return subject.counts.get("documented", 0) >= subject.counts.get("function", 1)
        return any(subject.counts.get(word, 0) > 0 for word in _meanings(words))

    def _kind(self, words: Sequence[str]) -> Kind | None:
        for word in _meanings(words):
            for kind in _KINDS:
                if word == kind:
                    return kind
        return "issue" if "todo" in words else None
