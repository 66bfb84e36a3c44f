"""What was answered to permission questions for a whole session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Hashable

    from thinkwell.questions import PermissionQuestion, Verdict


class Remembered:
    """Answers that hold for equal questions, too.

    Questions are equal if kind, tool, server, command and paths are. The arguments count as well where those
    do not say it all: there is no command, and no path or a kind of tool that does more than touch files.
    """

    def __init__(self) -> None:
        self._verdicts: dict[Hashable, Literal["allow", "deny"]] = {}

    def remember(self, question: PermissionQuestion, verdict: Verdict) -> None:
        """Remember an answer, if it is for the whole session."""
        if verdict == "allow_session":
            self._verdicts[_key(question)] = "allow"
        elif verdict == "deny_session":
            self._verdicts[_key(question)] = "deny"

    def recall(self, question: PermissionQuestion) -> Literal["allow", "deny"] | None:
        """Return what was answered to an equal question."""
        return self._verdicts.get(_key(question))


def _key(question: PermissionQuestion) -> Hashable:
    known = (
        question.kind,
        question.name,
        question.server,
        question.command,
        tuple(sorted(set(question.paths))),
    )
    touches_files = question.kind in ("read", "edit", "delete", "move", "search") and bool(question.paths)
    if question.command is not None or touches_files:
        return known
    arguments = msgspec.json.encode(question.input, order="sorted")
    nameless = question.name is None and question.server is None
    return (*known, arguments, question.title if nameless else "")
