"""The page about Telegram: what it shows is what happens."""

from __future__ import annotations

import configparser
import os
import re
import signal
import subprocess
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from bot_api.server import TOKEN, BotApi
from bot_api.serving import client, serving
from cli.typing_in import LIMIT, THINKWELL, home
from docs.pages import DOCS, files, snippets
from typer.core import TyperGroup
from typer.main import get_command

from thinkwell import open_agent
from thinkwell.channels.telegram import TelegramChannel
from thinkwell.cli._app import app
from thinkwell.cli._telegram_config import Config, read_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from thinkwell import Agent, PermissionMode

__all__ = ("home",)

PAGE = DOCS / "howto" / "telegram.md"
TEXT = PAGE.read_text("utf-8")

SHOWN = re.compile(r"^\$ thinkwell (telegram .*)\n((?:[^$`\n].*\n)*)", re.MULTILINE)
"""A line that is typed, and what the command says then."""


def test_the_table_has_every_key_and_no_other() -> None:
    rows = TEXT.partition("| Key | |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE) == list(Config.__struct_fields__)


def test_the_file_can_be_used(tmp_path: Path) -> None:
    path = tmp_path / "bot.toml"
    path.write_text(files(PAGE)["bot.toml"], "utf-8")
    config = read_config(path)
    assert config.allow == (123456789, 987654321)
    assert config.permissions == str(tmp_path / "rules.toml")


def test_the_unit_starts_a_command_that_there_is(tmp_path: Path) -> None:
    (text,) = re.findall(
        r'^```ini title="thinkwell-telegram.service"\n(.*?)^```$', TEXT, re.DOTALL | re.MULTILINE
    )
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # as its documentation has it
    unit.read_string(text)
    program, name, *arguments = unit["Service"]["ExecStart"].split()
    assert program.endswith("/bin/thinkwell")
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    command = group.commands[name]
    with command.make_context("thinkwell", [], resilient_parsing=True) as context:
        command.make_parser(context).parse_args(arguments)


@pytest.mark.parametrize(("line", "said"), [found for found in SHOWN.findall(TEXT) if found[1]])
def test_what_is_typed_brings_what_is_shown(line: str, said: str, home: Path) -> None:
    """With the built-in agent, and a server of this machine."""
    arguments = line.replace("--agent claude", "--agent builtin").replace("~/api", str(home)).split()
    api = BotApi(username="my_helper_bot")
    with serving(api) as address:
        (home / "bot.toml").write_text(f'base_url = "{address}"', "utf-8")
        with subprocess.Popen(
            [*THINKWELL, *arguments, "--config", str(home / "bot.toml")],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "TELEGRAM_BOT_TOKEN": TOKEN},
            encoding="utf-8",
        ) as process:
            give_up = threading.Timer(LIMIT, process.kill)
            give_up.start()
            try:
                assert process.stderr is not None
                assert "".join(process.stderr.readline() for _ in said.splitlines()) == said
                _until(api, lambda: api.polled)
                you = api.user(123456789, "You")
                you.says("/start")
                _until(api, lambda: bool(you.chat.texts))
                if "--allow" in line:
                    you.says("What is in this folder?")
                    shape = re.sub(r"[\d,.]+", r"[\\d,.]+", _shown_text("completed"))
                    assert re.fullmatch(shape.replace("edits", "edits?"), process.stderr.readline().strip())
                else:
                    assert you.chat.texts == [_shown_text("Sorry")]
                process.send_signal(signal.SIGINT)
                assert process.wait(LIMIT) == 130
            finally:
                give_up.cancel()
                process.kill()


def _shown_text(word: str) -> str:
    """Return the text of the page, in a block of its own, that has a word in it."""
    blocks: list[str] = re.findall(r"^```text\n(.*)\n```$", TEXT, re.MULTILINE)
    (found,) = [block for block in blocks if word in block]
    return found


def _until(api: BotApi, condition: Callable[[], bool]) -> None:
    async def wait() -> None:
        with anyio.fail_after(LIMIT):
            await api.until(condition)

    anyio.run(wait)


def builtin(_name: str, *, permissions: PermissionMode = "deny") -> AbstractAsyncContextManager[Agent]:
    """Open the built-in agent, whatever is asked for."""
    return open_agent("builtin", permissions=permissions, env={"THINKWELL_BUILTIN_PACE": "0"})


async def test_the_program_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    api = BotApi()
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
    you = api.user(123456789, "You")
    names: dict[str, Any] = {"__name__": "page"}
    for line, code in snippets(PAGE):
        exec(compile("\n" * (line - 1) + code, str(PAGE), "exec"), names)  # the page's own text
    async with client(api) as http, anyio.create_task_group() as tasks:
        names["TelegramChannel"] = partial(TelegramChannel, client=http)
        names["open_agent"] = builtin
        with anyio.fail_after(LIMIT):
            tasks.start_soon(names["bot"])
            you.says("/help")
            await api.until(lambda: len(you.chat.texts) == 1)
            assert you.chat.texts[0].startswith("Ask me about the API.\n")
            you.says("What is in this folder?")
            await api.until(lambda: len(you.chat.texts) > 1 and not you.chat.messages[-1].buttons)
            tasks.cancel_scope.cancel()
    async with client(api) as http, builtin("builtin") as agent:
        names["TelegramChannel"] = partial(TelegramChannel, client=http)
        before = len(you.chat.texts)
        with anyio.fail_after(LIMIT):
            await names["report"](agent)
        assert len(you.chat.texts) > before
