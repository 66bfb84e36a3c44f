"""What the app says of its commands."""

from __future__ import annotations

from typing import Protocol, cast

from typer.main import get_command

from thinkwell.cli._app import app


class Parameter(Protocol):
    """An option or an argument."""

    opts: list[str]
    secondary_opts: list[str]


class Command(Protocol):
    """A command, or a group of them."""

    params: list[Parameter]


def command_at(path: tuple[str, ...]) -> Command:
    """Return a command."""
    command = cast("Command", get_command(app))
    for name in path:
        command = commands_of(command)[name]
    return command


def commands_of(command: Command) -> dict[str, Command]:
    """Return the commands of a group; none where it is none."""
    return getattr(command, "commands", {})


def paths() -> list[tuple[str, ...]]:
    """Return all commands, and those of them that have commands of their own."""
    found: list[tuple[str, ...]] = [()]
    for path in found:
        found += [(*path, name) for name in commands_of(command_at(path))]
    return found


def options(*path: str) -> set[str]:
    """Return the options and the names of the arguments of a command."""
    return {name for parameter in command_at(path).params for name in parameter.opts} - {"--help", "-h"}
