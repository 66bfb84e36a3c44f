"""Our own commands of a chat, and what an entry means.

Two of them, /history and /save, turn the conversation into a text.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from thinkwell import history_to_json
from thinkwell._display.cells import clip, wrap
from thinkwell._display.summary import summary
from thinkwell._display.text import clean, line
from thinkwell._display.usage import usage_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from thinkwell import (
        Agent,
        HistoryMessage,
        OptionChoice,
        Session,
        SessionMode,
        SessionOption,
        ThoughtStream,
    )

__all__ = ("ChatCommands", "Ours", "UsageError")

OURS: Final = {
    "help": ("", "list the commands"),
    "exit": ("", "leave; so does Ctrl-D"),
    "mode": ("[ID]", "show the modes; or change to one"),
    "option": ("[ID VALUE]", "show what can be set, such as the model; or set it"),
    "usage": ("", "tokens and cost, as the agent reports them"),
    "history": ("", "show what was said"),
    "save": ("FILE", "write that to a new file: .json for JSON, else Markdown"),
}
"""Our commands, with their arguments and their effects."""

SWITCH: Final = ("on", "off")
"""The values of an option that is on or off."""

ROOM: Final = 24
"""Columns of a command's name in the list."""

WIDEST: Final = 100
"""Most columns of a line."""

DEEP: Final = "    "
"""Precedes the second line of a long command."""

NAME: Final = 10
"""Columns of the names in the report of a turn."""

THOUGHT: Final = 54
"""Columns of a thought in the history."""

FILES: Final = "as @name of those in the agent's folder"

_COMMAND: Final = re.compile(r"/([\w.:-]+)(?:\s+(.*))?", re.DOTALL)


class Ours(Struct, frozen=True):
    """An entry that is one of our commands."""

    name: str
    rest: str


class UsageError(Exception):
    """A command was used wrongly; the text is for the user."""


@dataclass
class ChatCommands:
    """The commands of a chat."""

    agent: Agent
    session: Session
    """The session of the chat."""
    write: Callable[[str], object]
    """Shows lines without control characters."""
    columns: Callable[[], int | None]
    """Returns the columns of the terminal; ``None`` without a terminal."""
    stream: ThoughtStream[str] | None = None
    """The last turn."""

    def greeting(self) -> str:
        """Return the greeting."""
        info = self.agent.info
        version = "" if info is None else f" {line(info.version)}"
        mode = "" if self.session.mode is None else f", mode {line(self.session.mode)}"
        said = len(self.session.history())
        old = f" · {said} messages of before; /history shows them" if said else ""
        return (
            f"{line(self.agent.name)}{version} in {line(self.session.cwd)}{mode}{old}\n"
            "/help lists the commands; Ctrl-D leaves"
        )

    def meaning(self, entry: str) -> Ours | str:
        """Return the meaning of an entry: one of our commands, or a text for the agent.

        The text may be one of the agent's commands. After a second slash, everything is a text.

        Raises:
            UsageError: It is an unknown command: more likely a typing error than a text.
        """
        if entry.startswith("//"):
            return entry[1:]
        found = _COMMAND.fullmatch(entry.rstrip())
        if found is None:  # a text, or one about a path
            return entry
        name, rest = found[1], (found[2] or "").strip()
        if name in OURS:
            return Ours(name, rest)
        if any(command.name == name for command in self.session.commands):
            return entry
        raise UsageError(f"There is no command /{name}: see /help. //{name} is sent as it is")

    def completions(self, before: str, word: str) -> list[tuple[str, str]] | None:
        """Return the possible values of a word, each with a description; ``None`` if it may be anything.

        Args:
            before: The line as far as the cursor.
            word: The part of it that is the word.
        """
        session = self.session
        match before.split(" ")[:-1]:
            case [] if word.startswith("/"):
                theirs = {f"/{command.name}": line(command.description) for command in session.commands}
                return [*{**theirs, **{f"/{name}": about for name, (_, about) in OURS.items()}}.items()]
            case ["/mode"]:
                return [(mode.id, line(mode.name)) for mode in session.modes]
            case ["/option"]:
                return [(option.id, line(option.name)) for option in session.options]
            case ["/option", wanted]:
                options = (option for option in session.options if option.id == wanted)
                return [(value, "") for option in options for value in _values_of(option)]
            case _:
                return None

    async def do(self, name: str, rest: str) -> None:
        """Run a command.

        Raises:
            UsageError: It was used wrongly.
            AgentError: The agent failed.
            OSError: A file cannot be written.
        """
        match name:
            case "mode":
                await self._mode(rest)
            case "option":
                await self._option(rest)
            case "usage":
                self._usage()
            case "history":
                self._show(_as_text(self.session.history()) or "Nothing was said yet")
            case "save":
                self._save(rest)
            case _:
                self._help()

    def _show(self, text: str) -> None:
        self.write(f"{clean(text)}\n")

    def _help(self) -> None:
        columns = self.columns()
        room = ROOM if columns is None else min(ROOM, columns // 3)

        def row(command: str, about: str) -> str:
            return _hanging(f"  {command.strip():{room}}  ", about, columns)

        lines = [row(f"/{name} {arguments}", about) for name, (arguments, about) in OURS.items()]
        theirs = [
            row(f"/{line(command.name)} {line(command.hint or '')}", line(command.description))
            for command in self.session.commands
        ]
        if theirs:
            lines += ["", f"Of {line(self.agent.name)}:", *theirs]
        hidden = [command.name for command in self.session.commands if command.name in OURS]
        if hidden:
            lines.append(f"  (the agent's own /{line(hidden[0])} is //{line(hidden[0])} here)")
        about = [
            'A line that ends with \\ continues in the next. Lines between two lines of """ are one text.',
            "Ctrl-C cancels what the agent does; a second one kills it.",
        ]
        if columns is not None:
            about.insert(0, f"Alt-Enter begins a new line, Tab completes commands and files, {FILES}.")
        lines += ["", *(_hanging("", each, columns) for each in about)]
        self._show("\n".join(lines))

    async def _mode(self, rest: str) -> None:
        modes = self.session.modes
        if not modes:
            raise UsageError("This agent has no modes")
        if not rest:
            for mode in modes:
                self._show_choice(mode.id, mode, chosen=mode.id == self.session.mode)
            return
        if rest not in {mode.id for mode in modes}:
            raise UsageError(f"There is no mode {rest!r}, but {_listed(mode.id for mode in modes)}")
        await self.session.set_mode(rest)
        self._show(f"The mode is {line(rest)}")

    async def _option(self, rest: str) -> None:
        options = {option.id: option for option in self.session.options}
        if not options:
            raise UsageError("This agent has no options")
        name, _, value = rest.partition(" ")
        if not name:
            for option in options.values():
                self._show(_summary(option))
        elif name not in options:
            raise UsageError(f"There is no option {name!r}, but {_listed(options)}")
        elif not value:
            self._show_choices(options[name])
        else:
            await self._set(options[name], value.strip())

    async def _set(self, option: SessionOption, value: str) -> None:
        if value not in _values_of(option):
            values = _listed(_values_of(option))
            raise UsageError(f"The option {line(option.id)!r} cannot be {value!r}, but {values}")
        await self.session.set_option(option.id, value == SWITCH[0] if option.type == "boolean" else value)
        self._show(f"{line(option.id)} is {line(value)}")

    def _show_choices(self, option: SessionOption) -> None:
        """Show the values of an option."""
        if option.type == "boolean":
            self._show(_summary(option))
            return
        for choice in option.choices:
            self._show_choice(choice.value, choice, chosen=choice.value == option.value)

    def _show_choice(self, value: str, choice: SessionMode | OptionChoice, *, chosen: bool) -> None:
        about = f": {line(choice.description)}" if choice.description else ""
        self._show(f"{'*' if chosen else ' '} {line(value)}  {line(choice.name)}{about}")

    def _usage(self) -> None:
        stream = self.stream
        if stream is None:
            raise UsageError("There was no turn yet")
        columns = self.columns()
        if columns is None:
            self._show(usage_words(stream.view))
            return
        recording = None if stream.recording is None else str(stream.recording)
        told = summary(stream.view, stream.elapsed, recording)
        facts = (_hanging(f"  {name:{NAME}}", value, columns) for name, value in told.facts)
        self._show("\n".join([_hanging("  ", told.end, columns), *facts]))

    def _save(self, rest: str) -> None:
        if not rest:
            raise UsageError("/save FILE: give the name of a new file; .json for JSON")
        path = Path(rest).expanduser()
        history = self.session.history()
        if path.suffix.lower() == ".json":
            data = history_to_json(history)
        else:
            data = _as_markdown(history, self.agent.name, self.session.title).encode()
        # A new file, readable by its owner only.
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123
            file.write(data)
        self._show(f"Saved: {path}")


def _hanging(before: str, text: str, columns: int | None) -> str:
    """Return a text beside its label, broken at words in a terminal."""
    if columns is None:
        return f"{before}{text}".rstrip()
    if len(before) > ROOM + len(DEEP):  # it takes the place of the text
        before = f"{before.rstrip()}\n{DEEP}"
    indent = " " * len(before.rpartition("\n")[2])
    rows = wrap(text, min(columns, WIDEST) - len(indent) - 1)
    return "\n".join(f"{indent if number else before}{row}".rstrip() for number, row in enumerate(rows))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(line, names))


def _summary(option: SessionOption) -> str:
    value = SWITCH[not option.value] if isinstance(option.value, bool) else option.value
    about = f"  ({line(option.name)})" if option.name != option.id else ""
    return f"  {line(option.id)} = {line(value)}{about}"


def _values_of(option: SessionOption) -> Sequence[str]:
    """Return the values of an option, as they are typed."""
    return SWITCH if option.type == "boolean" else [choice.value for choice in option.choices]


def _as_text(history: Sequence[HistoryMessage]) -> str:
    """Return a conversation as it is shown in a chat, with the first words of each thought."""
    blocks: list[str] = []
    for message in history:
        if message.role == "user":
            blocks.append("\n".join(f"> {part}" for part in clean(message.text).splitlines()))
        elif message.role == "assistant":
            blocks.append(clean(message.text).strip())
        elif message.role == "thought":
            blocks.append(f"  ┆ {clip(line(message.text), THOUGHT)}")
        elif message.tool is not None:  # pragma: no branch - the last role
            blocks.append(f"  {line(message.tool.title)} ({message.tool.status})")
    return "\n\n".join(blocks)


def _as_markdown(history: Sequence[HistoryMessage], agent: str, title: str | None) -> str:
    """Return a conversation as a Markdown page, without thoughts."""
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
