"""What is written to a terminal by several at once, so that every line is of one of them."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from thinkwell._display.text import line

Kind: TypeAlias = Literal["say", "think", "note", "ask"]

PROMPT: Final = "> "
"""Stands where a line is to be typed."""

LABEL: Final = 40
"""Characters of the name of a user."""

_DIM: Final = "\x1b[2m"
_PLAIN: Final = "\x1b[0m"


class Page:
    """Texts as they are to be written, one line below the other.

    Lines have the name of their user before them as soon as there are several users.

    Args:
        dim: Whether thinking and notes are dim. They can be told from the answer all the same.
    """

    def __init__(self, *, dim: bool) -> None:
        self._dim = dim
        self._only: str | None = None
        """The one user that there is."""
        self._several = False
        self._begun: tuple[str, Kind] | None = None
        """Whose line has begun, and not ended."""
        self._prompted = False
        self._prompt_stands = False
        self._written: list[str] = []

    @property
    def prompted(self) -> bool:
        """Whether a line is to be typed."""
        return self._prompted

    def add(self, user_id: str, kind: Kind, text: str) -> None:
        """Go on with a text. Where something else was written meanwhile, it does so in a new line.

        Args:
            user_id: Whose it is.
            kind: What it is.
            text: It is clean.
        """
        self._meet(user_id)
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
        """End the line that has begun.

        Args:
            of: Only where it is this user's.
        """
        if of is not None and (self._begun is None or self._begun[0] != of):
            return
        if self._begun is not None or self._prompt_stands:
            self._written.append("\n")
        self._begun, self._prompt_stands = None, False

    def prompt(self) -> None:
        """Ask for a line to be typed, below everything else, until `typed`."""
        self._prompted = True

    def typed(self, *, ended: bool) -> None:
        """Know that no line is to be typed any more.

        Args:
            ended: Whether one was, so that the next one has begun.
        """
        self._prompted = False
        if ended:
            self._prompt_stands = False

    def take(self) -> str:
        """Return what is to be written."""
        if self._prompted and not self._prompt_stands:
            self.end_line()
            self._written.append(PROMPT)
            self._prompt_stands = True
        text = "".join(self._written)
        self._written.clear()
        return text

    def _meet(self, user_id: str) -> None:
        if self._only is None:
            self._only = user_id
        elif user_id != self._only:
            self._several = True

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
