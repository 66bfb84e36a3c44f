"""Printing a run in a terminal, for the examples."""

from __future__ import annotations

import os
import re
import sys

from thinkwell import Message, PlanUpdate, Thought, ThoughtEvent, ToolDone, ToolStart

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_COLOURS = sys.stdout.isatty() and "NO_COLOR" not in os.environ
_BOXES = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


class Printer:
    """Prints events as they come: thoughts dim, each step of the plan when it begins, a line for each tool."""

    def __init__(self) -> None:
        self._at_line_start = True
        self._titles: dict[str, str] = {}

    def show(self, event: ThoughtEvent) -> None:
        """Print one event."""
        match event:
            case Thought(text=text):
                self._write(text, dim=True)
            case Message(text=text):
                self._write(text)
            case ToolStart(id=id_, title=title):
                self._titles[id_] = title
            case ToolDone(id=id_, status=status, title=title):
                mark = "+" if status == "completed" else "!"
                self.line(f"  {mark} {title or self._titles.get(id_, 'a tool')}")
            case PlanUpdate(entries=entries):
                self.line("  ".join(f"{_BOXES[entry.status]} {entry.content}" for entry in entries))
            case _:
                pass

    def line(self, text: str) -> None:
        """Print a line of its own."""
        if not self._at_line_start:
            self._write("\n")
        self._write(text + "\n")

    def _write(self, text: str, *, dim: bool = False) -> None:
        # What comes from an agent is text of somebody else's: no escape sequence of it may reach the terminal.
        clean = _CONTROL.sub("", text)
        if clean:
            self._at_line_start = clean.endswith("\n")
            print(f"\x1b[2m{clean}\x1b[0m" if dim and _COLOURS else clean, end="", flush=True)
