"""The commands of a chat: ours, beside those of the agent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from thinkwell._display.text import is_clean, line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from thinkwell import SessionMode, SessionOption
    from thinkwell.events import Command

__all__ = ("OURS", "Entry", "Ours", "Prompted", "Unknown", "completions", "help_lines", "understood")

OURS: Final = {
    "help": ("", "list the commands"),
    "exit": ("", "leave; so does Ctrl-D"),
    "mode": ("[ID]", "show the modes; or change to one"),
    "option": ("[ID VALUE]", "show what can be set, such as the model; or set it"),
    "usage": ("", "tokens and cost, as the agent reports them"),
    "history": ("", "show what was said"),
    "save": ("FILE", "write that to a new file: .json for JSON, else Markdown"),
}
"""Our commands: their arguments, and what they do."""

SWITCH: Final = ("on", "off")
"""What an option that is on or off can be set to."""

ROOM: Final = 24
"""Columns of a command in the list of them."""

_COMMAND: Final = re.compile(r"/([\w.:-]+)(?:\s+(.*))?", re.DOTALL)


class Ours(Struct, frozen=True):
    """A command of ours."""

    name: str
    rest: str


class Prompted(Struct, frozen=True):
    """A text for the agent, which may be a command of its own."""

    text: str


class Unknown(Struct, frozen=True):
    """A command that is not known: more likely a typing mistake than a text."""

    name: str


Entry: TypeAlias = Ours | Prompted | Unknown
"""What an entry means."""


def understood(entry: str, commands: Iterable[Command]) -> Entry:
    """Return what an entry means. After a second slash it is for the agent, whatever it is called.

    Args:
        entry: What was typed.
        commands: Those of the agent.
    """
    if entry.startswith("//"):
        return Prompted(entry[1:])
    found = _COMMAND.fullmatch(entry.rstrip())
    if found is None:  # a text, or one about a path
        return Prompted(entry)
    name, rest = found[1], (found[2] or "").strip()
    if name in OURS:
        return Ours(name, rest)
    return Prompted(entry) if any(command.name == name for command in commands) else Unknown(name)


def help_lines(commands: Sequence[Command], agent: str) -> list[str]:
    """Return what ``/help`` shows."""
    lines = [_help(f"/{name} {arguments}", about) for name, (arguments, about) in OURS.items()]
    theirs = [
        _help(f"/{line(command.name)} {line(command.hint or '')}", line(command.description))
        for command in commands
    ]
    if theirs:
        lines += ["", f"Of {line(agent)}:", *theirs]
    hidden = [command.name for command in commands if command.name in OURS]
    if hidden:
        lines.append(f"  (the agent's own /{line(hidden[0])} is //{line(hidden[0])} here)")
    return [
        *lines,
        "",
        'A line that ends with \\ goes on in the next one. Lines between two lines of """ are one text.',
        "Ctrl-C cancels what the agent does; a second one kills it.",
    ]


def _help(command: str, about: str) -> str:
    return f"  {command.strip():{ROOM}}  {about}".rstrip()


def completions(
    before: str,
    word: str,
    commands: Iterable[Command],
    modes: Iterable[SessionMode],
    options: Sequence[SessionOption],
) -> list[str]:
    """Return how a word can go on.

    Args:
        before: The line as far as the cursor.
        word: What of it is the word.
        commands: Those of the agent.
        modes: What ``/mode`` can be followed by.
        options: What ``/option`` can be followed by.
    """
    match before.split(" ")[:-1]:
        case [] if word.startswith("/"):
            names = [*OURS, *(command.name for command in commands)]
            ways = [f"/{name} " for name in dict.fromkeys(names)]
        case ["/mode"]:
            ways = [f"{mode.id} " for mode in modes]
        case ["/option"]:
            ways = [f"{option.id} " for option in options]
        case ["/option", wanted]:
            ways = [f"{value} " for option in options if option.id == wanted for value in values_of(option)]
        case _:
            ways = []
    # What an agent calls something is typed for the user: no name may hold more than what it shows.
    return [way for way in ways if way.startswith(word) and is_clean(way)]


def values_of(option: SessionOption) -> Sequence[str]:
    """Return what an option can be set to, as it is typed."""
    return SWITCH if option.type == "boolean" else [choice.value for choice in option.choices]
