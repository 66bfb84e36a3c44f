"""What the commands of a chat do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from thinkwell._display.text import clean, line
from thinkwell._display.usage import usage_words
from thinkwell.cli._chat_commands import SWITCH, help_lines, values_of
from thinkwell.cli._chat_saving import as_text, save

if TYPE_CHECKING:
    from collections.abc import Iterable

    from thinkwell import SessionOption
    from thinkwell.sync import Agent, Session, ThoughtStream

__all__ = ("ChatDeeds", "UsageError")


class UsageError(Exception):
    """A command cannot be used like that; its text is for the person."""


class ChatDeeds:
    """The commands of a chat.

    Args:
        agent: The agent.
        session: What is talked in.
    """

    def __init__(self, agent: Agent, session: Session) -> None:
        self._agent = agent
        self._session = session
        self.stream: ThoughtStream[str] | None = None
        """The last turn."""
        self._deeds = {
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

    def do(self, name: str, rest: str) -> None:
        """Do what a command says.

        Raises:
            UsageError: It cannot be used like that.
            AgentError: The agent did not do its part.
            OSError: A file cannot be written.
        """
        self._deeds[name](rest)

    def _help(self, _rest: str) -> None:
        _show("\n".join(help_lines(self._session.commands, self._agent.name)))

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
        if value not in values_of(option):
            values = _listed(values_of(option))
            raise UsageError(f"The option {line(option.id)!r} cannot be {value!r}, but {values}")
        self._session.set_option(option.id, value == SWITCH[0] if option.type == "boolean" else value)
        _show(f"{line(option.id)} is {line(value)}")

    def _usage(self, _rest: str) -> None:
        if self.stream is None:
            raise UsageError("There was no turn yet")
        _show(usage_words(self.stream.view))

    def _history(self, _rest: str) -> None:
        _show(as_text(self._session.history()) or "Nothing was said yet")

    def _save(self, rest: str) -> None:
        if not rest:
            raise UsageError("/save FILE: give the name of a new file; .json for JSON")
        path = save(self._session.history(), rest, self._agent.name, self._session.title)
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
