"""The commands of a chat, beside those of the agent: what an entry means, and what our commands do.

Two of them, /history and /save, make a text of what was said.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from thinkwell import history_to_json
from thinkwell._display.text import clean, is_clean, line
from thinkwell._display.usage import usage_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from thinkwell import HistoryMessage, SessionOption
    from thinkwell.sync import Agent, Session, ThoughtStream

__all__ = ("ChatCommands", "Entry", "Ours", "Prompted", "Unknown", "UsageError")

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


class UsageError(Exception):
    """A command cannot be used like that; its text is for the person."""


class ChatCommands:
    """What can be typed in a chat.

    Args:
        agent: The agent.
        session: What is talked in.
    """

    def __init__(self, agent: Agent, session: Session) -> None:
        self._agent = agent
        self._session = session
        self.stream: ThoughtStream[str] | None = None
        """The last turn."""
        self._functions = {
            "help": self._help,
            "mode": self._mode,
            "option": self._option,
            "usage": self._usage,
            "history": self._history,
            "save": self._save,
        }

    def greeting(self) -> str:
        """Return what is said at the beginning."""
        info = self._agent.info
        version = "" if info is None else f" {line(info.version)}"
        mode = "" if self._session.mode is None else f", mode {line(self._session.mode)}"
        said = len(self._session.history())
        old = f" · {said} messages of before; /history shows them" if said else ""
        return (
            f"{line(self._agent.name)}{version} in {line(self._session.cwd)}{mode}{old}\n"
            "/help lists the commands; Ctrl-D leaves"
        )

    def meaning(self, entry: str) -> Entry:
        """Return what an entry means. After a second slash it is for the agent, whatever it is called."""
        if entry.startswith("//"):
            return Prompted(entry[1:])
        found = _COMMAND.fullmatch(entry.rstrip())
        if found is None:  # a text, or one about a path
            return Prompted(entry)
        name, rest = found[1], (found[2] or "").strip()
        if name in OURS:
            return Ours(name, rest)
        is_theirs = any(command.name == name for command in self._session.commands)
        return Prompted(entry) if is_theirs else Unknown(name)

    def completions(self, before: str, word: str) -> list[str]:
        """Return how a word can go on.

        Args:
            before: The line as far as the cursor.
            word: What of it is the word.
        """
        session = self._session
        match before.split(" ")[:-1]:
            case [] if word.startswith("/"):
                names = [*OURS, *(command.name for command in session.commands)]
                ways = [f"/{name} " for name in dict.fromkeys(names)]
            case ["/mode"]:
                ways = [f"{mode.id} " for mode in session.modes]
            case ["/option"]:
                ways = [f"{option.id} " for option in session.options]
            case ["/option", wanted]:
                options = (option for option in session.options if option.id == wanted)
                ways = [f"{value} " for option in options for value in _values_of(option)]
            case _:
                ways = []
        # What an agent calls something is typed for the user: no name may hold more than what it shows.
        return [way for way in ways if way.startswith(word) and is_clean(way)]

    def do(self, name: str, rest: str) -> None:
        """Do what a command says.

        Raises:
            UsageError: It cannot be used like that.
            AgentError: The agent did not do its part.
            OSError: A file cannot be written.
        """
        self._functions[name](rest)

    def _help(self, _rest: str) -> None:
        lines = [_help_line(f"/{name} {arguments}", about) for name, (arguments, about) in OURS.items()]
        theirs = [
            _help_line(f"/{line(command.name)} {line(command.hint or '')}", line(command.description))
            for command in self._session.commands
        ]
        if theirs:
            lines += ["", f"Of {line(self._agent.name)}:", *theirs]
        hidden = [command.name for command in self._session.commands if command.name in OURS]
        if hidden:
            lines.append(f"  (the agent's own /{line(hidden[0])} is //{line(hidden[0])} here)")
        lines += [
            "",
            'A line that ends with \\ goes on in the next one. Lines between two lines of """ are one text.',
            "Ctrl-C cancels what the agent does; a second one kills it.",
        ]
        _show("\n".join(lines))

    def _mode(self, rest: str) -> None:
        modes = self._session.modes
        if not modes:
            raise UsageError("This agent has no modes")
        if not rest:
            for mode in modes:
                about = f": {line(mode.description)}" if mode.description else ""
                _show(f"{_mark(mode.id == self._session.mode)} {line(mode.id)}  {line(mode.name)}{about}")
            return
        if rest not in {mode.id for mode in modes}:
            raise UsageError(f"There is no mode {rest!r}, but {_listed(mode.id for mode in modes)}")
        self._session.set_mode(rest)
        _show(f"The mode is {line(rest)}")

    def _option(self, rest: str) -> None:
        options = {option.id: option for option in self._session.options}
        if not options:
            raise UsageError("This agent has no options")
        name, _, value = rest.partition(" ")
        if not name:
            for option in options.values():
                _show(_summary(option))
        elif name not in options:
            raise UsageError(f"There is no option {name!r}, but {_listed(options)}")
        elif not value:
            _show_choices(options[name])
        else:
            self._set(options[name], value.strip())

    def _set(self, option: SessionOption, value: str) -> None:
        if value not in _values_of(option):
            values = _listed(_values_of(option))
            raise UsageError(f"The option {line(option.id)!r} cannot be {value!r}, but {values}")
        self._session.set_option(option.id, value == SWITCH[0] if option.type == "boolean" else value)
        _show(f"{line(option.id)} is {line(value)}")

    def _usage(self, _rest: str) -> None:
        if self.stream is None:
            raise UsageError("There was no turn yet")
        _show(usage_words(self.stream.view))

    def _history(self, _rest: str) -> None:
        _show(_as_text(self._session.history()) or "Nothing was said yet")

    def _save(self, rest: str) -> None:
        if not rest:
            raise UsageError("/save FILE: give the name of a new file; .json for JSON")
        path = _saved(self._session.history(), rest, self._agent.name, self._session.title)
        _show(f"Saved: {path}")


def _show(text: str) -> None:
    sys.stdout.write(f"{clean(text)}\n")
    sys.stdout.flush()


def _mark(chosen: bool) -> str:
    return "*" if chosen else " "


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(line, names))


def _summary(option: SessionOption) -> str:
    value = SWITCH[not option.value] if isinstance(option.value, bool) else option.value
    about = f"  ({line(option.name)})" if option.name != option.id else ""
    return f"  {line(option.id)} = {line(value)}{about}"


def _show_choices(option: SessionOption) -> None:
    """Show what an option can be set to."""
    if option.type == "boolean":
        _show(_summary(option))
        return
    for choice in option.choices:
        about = f": {line(choice.description)}" if choice.description else ""
        _show(f"{_mark(choice.value == option.value)} {line(choice.value)}  {line(choice.name)}{about}")


def _help_line(command: str, about: str) -> str:
    return f"  {command.strip():{ROOM}}  {about}".rstrip()


def _values_of(option: SessionOption) -> Sequence[str]:
    """Return what an option can be set to, as it is typed."""
    return SWITCH if option.type == "boolean" else [choice.value for choice in option.choices]


def _as_text(history: Sequence[HistoryMessage]) -> str:
    """Return a conversation as a chat shows it; thoughts are left out."""
    blocks: list[str] = []
    for message in history:
        if message.role == "user":
            blocks.append("\n".join(f"> {part}" for part in clean(message.text).splitlines()))
        elif message.role == "assistant":
            blocks.append(clean(message.text).strip())
        elif message.tool is not None:
            blocks.append(f"  {line(message.tool.title)} ({message.tool.status})")
    return "\n\n".join(blocks)


def _as_markdown(history: Sequence[HistoryMessage], agent: str, title: str | None) -> str:
    """Return a conversation as a page; thoughts are left out."""
    return "\n\n".join([f"# {line(title or f'A chat with {agent}')}", *_sections(history, agent)]) + "\n"


def _sections(history: Sequence[HistoryMessage], agent: str) -> Iterator[str]:
    speaker = ""
    for message in history:
        if message.role == "thought":
            continue
        who = "You" if message.role == "user" else line(agent)
        if who != speaker or message.role == "user":
            yield f"## {who}"
            speaker = who
        if message.tool is None:
            yield clean(message.text).strip()
        else:
            yield f"- *{line(message.tool.title)}* ({message.tool.status})"


def _saved(history: Sequence[HistoryMessage], name: str, agent: str, title: str | None) -> Path:
    """Write a conversation to a new file, which only its owner can read, and return its path.

    Raises:
        OSError: There is such a file already, or it cannot be written.
    """
    path = Path(name).expanduser()
    is_json = path.suffix.lower() == ".json"
    data = history_to_json(history) if is_json else _as_markdown(history, agent, title).encode()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123
        file.write(data)
    return path
