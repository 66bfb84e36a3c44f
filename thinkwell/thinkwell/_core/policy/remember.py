"""Answers to permission questions for a whole session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from thinkwell._core.policy.arguments import telling
from thinkwell._core.policy.paths import MOST_PATHS

if TYPE_CHECKING:
    from collections.abc import Hashable

    from thinkwell.questions import PermissionQuestion, Verdict


class Remembered:
    """Answers that also apply to equal questions.

    Questions are equal if they have the same kind, tool, server, command and paths. The arguments count too
    if these are not enough: with a command, without a path, or for a kind of tool that does more than access
    files. But a denied command stays denied with other arguments.
    """

    def __init__(self) -> None:
        self._verdicts: dict[Hashable, Literal["allow", "deny"]] = {}
        self._denied: set[Hashable] = set()

    def remember(self, question: PermissionQuestion, verdict: Verdict) -> None:
        """Remember an answer, if it is for the whole session."""
        if verdict == "allow_session" and len(question.paths) <= MOST_PATHS:  # otherwise not all are known
            self._verdicts[_key(question)] = "allow"
        elif verdict == "deny_session":
            self._verdicts[_key(question)] = "deny"
            if question.command is not None:
                self._denied.add(_facts(question))

    def recall(self, question: PermissionQuestion) -> Literal["allow", "deny"] | None:
        """Return the answer to an equal question."""
        verdict = self._verdicts.get(_key(question))
        return "deny" if verdict is None and _facts(question) in self._denied else verdict


def _facts(question: PermissionQuestion) -> tuple[Hashable, ...]:
    return (
        question.kind,
        question.name,
        question.server,
        question.command,
        tuple(sorted(set(question.paths))),
    )


def _key(question: PermissionQuestion) -> Hashable:
    known = _facts(question)
    if question.command is not None:
        return (*known, msgspec.json.encode(telling(question.input), order="sorted"))
    if question.kind in ("read", "edit", "delete", "move", "search") and question.paths:
        return known
    arguments = msgspec.json.encode(question.input, order="sorted")
    nameless = question.name is None and question.server is None
    return (*known, arguments, question.title if nameless else "")
