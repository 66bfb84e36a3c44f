"""Chooses the value of an enum that fits the findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.builtin._findings import Findings
    from thinkwell.builtin._subjects import Subject
    from thinkwell_acp.schema import JsonValue

_WORDS: Final = {
    "high": "high critical severe major urgent error fatal blocker",
    "medium": "medium moderate normal warning average mid",
    "low": "low minor info trivial none note hint negligible",
}
_RANKS: Final = (
    (
        0.85,
        "excellent great good approve approved accept pass passed ok yes ready healthy positive a green keep",
    ),
    (0.5, "fair acceptable mixed neutral comment maybe average medium partial b c yellow refactor improve"),
    (
        0.0,
        "poor bad reject rejected request_changes fail failed no broken unhealthy negative d e f red rewrite",
    ),
)
_GRAVITY: Final = frozenset({"severity", "priority", "risk", "level", "importance", "urgency"})


def choose(
    options: Sequence[JsonValue], name: str, subject: Subject, findings: Findings
) -> tuple[JsonValue, str]:
    """Return one of the options, and why.

    A word that is a fact (a language, a kind, a path) is preferred, then one that rates the findings.
    Otherwise it is one that the request names, or the first.
    """
    texts = {str(option).lower(): option for option in options}
    for fact in (subject.language.lower(), subject.kind, subject.path.lower(), subject.name.lower()):
        if fact in texts:
            return texts[fact], f"{subject.path} is what I looked at, and it is {fact}"
    graded = _by_gravity(texts, subject) if name.lower() in _GRAVITY else None
    graded = graded or _by_quality(texts, subject) or _by_gravity(texts, subject)
    if graded is not None:
        return graded
    request = findings.request.lower()
    for text, option in texts.items():
        if text in request.split():
            return option, "the request names it"
    return options[0], "nothing that I found speaks for another one"


def _by_gravity(texts: dict[str, JsonValue], subject: Subject) -> tuple[JsonValue, str] | None:
    for word in _WORDS[subject.severity].split():
        if word in texts:
            return texts[word], f"the gravest thing that I found is of {subject.severity} severity"
    return None


def _by_quality(texts: dict[str, JsonValue], subject: Subject) -> tuple[JsonValue, str] | None:
    ranks = [(least, words.split()) for least, words in _RANKS]
    if sum(any(text in words for text in texts) for _, words in ranks) < 2:
        return None
    ordered = [words for least, words in ranks if subject.quality >= least]
    for words in ordered + [words for least, words in reversed(ranks) if subject.quality < least]:
        for word in words:
            if word in texts:
                return texts[word], f"the quality that I computed is {subject.quality:.2f}"
    return None  # pragma: no cover - two of the ranks have a word among the options
