"""Text for a terminal with several writers, in which every line belongs to one of them."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from thinkwell._display.text import line

Kind: TypeAlias = Literal["say", "think", "note", "ask"]

PROMPT: Final = "> "
"""The prompt for a line of input."""

LABEL: Final = 40
"""Most characters of a user's name."""

_DIM: Final = "\x1b[2m"
_PLAIN: Final = "\x1b[0m"


class Page:
    """Texts to write, one line below the other.

    Once there are several users, each line begins with the user's name.

    Args:
        dim: Whether thinking and notes are dim. They differ from the answer without that too.
    """

    def __init__(self, *, dim: bool) -> None:
        self._dim = dim
        self._only: str | None = None
        """The only user so far."""
        self._several = False
        self._begun: tuple[str, Kind] | None = None
        """The user whose line is unfinished."""
        self.prompted = False
        """Whether it waits for a line of input, below everything else."""
        self._prompt_stands = False
        self._written: list[str] = []

    def add(self, user_id: str, kind: Kind, text: str) -> None:
        """Add to a text. If something else was written in between, it continues in a new line.

        Args:
            user_id: The user.
            kind: The kind of text.
            text: Clean text.
        """
        if self._only is None:
            self._only = user_id
        self._several = self._several or user_id != self._only
        if self._begun != (user_id, kind):
            text = text.lstrip("\n")
            if not text:
                return
            self.end_line()
        first, *rows = text.split("\n")
        self._add_row(user_id, kind, first)
        for row in rows:
            if self._begun is None:  # an empty one
                self._written.append(self._lead(user_id, kind).rstrip())
            self._written.append("\n")
            self._begun = None
            self._add_row(user_id, kind, row)

    def add_lines(self, user_id: str, kind: Kind, text: str) -> None:
        """Write whole lines."""
        self.end_line()
        self.add(user_id, kind, text)
        self.end_line()

    def end_line(self, of: str | None = None) -> None:
        """End the unfinished line.

        Args:
            of: Only if it is this user's.
        """
        if of is not None and (self._begun is None or self._begun[0] != of):
            return
        if self._begun is not None or self._prompt_stands:
            self._written.append("\n")
        self._begun, self._prompt_stands = None, False

    def typed(self, *, ended: bool) -> None:
        """End the wait for a line of input.

        Args:
            ended: Whether a line was typed, so that the cursor is in the next one.
        """
        self.prompted = False
        if ended:
            self._prompt_stands = False

    def take(self) -> str:
        """Return the text to write."""
        if self.prompted and not self._prompt_stands:
            self.end_line()
            self._written.append(PROMPT)
            self._prompt_stands = True
        text = "".join(self._written)
        self._written.clear()
        return text

    def _add_row(self, user_id: str, kind: Kind, row: str) -> None:
        if not row:
            return
        if self._begun is None:
            row = self._lead(user_id, kind) + row
            self._begun = user_id, kind
        self._written.append(f"{_DIM}{row}{_PLAIN}" if self._dim and kind in ("think", "note") else row)

    def _lead(self, user_id: str, kind: Kind) -> str:
        name = f"{line(user_id, LABEL)} │ " if self._several else ""
        return f"{name}┆ " if kind == "think" else name
