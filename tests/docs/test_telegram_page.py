"""The page about Telegram: what it shows is what happens."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import tomllib
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from bot_api.server import TOKEN, BotApi
from bot_api.serving import client, serving
from builtin_stage import open_builtin
from cli.typing_in import LIMIT, home, thinkwell
from docs.commands import check_unit, keys_of, refused
from docs.pages import DOCS, files, snippets

from thinkwell.channels.telegram import TelegramChannel

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from thinkwell import Agent

__all__ = ("home",)

PAGE = DOCS / "howto" / "telegram.md"
TEXT = PAGE.read_text("utf-8")

SHOWN = re.compile(r"^\$ thinkwell (telegram .*)\n((?:[^$`\n].*\n)*)", re.MULTILINE)
"""A line that is typed, and what the command says then."""


def test_the_table_has_every_key_and_no_other(tmp_path: Path) -> None:
    rows = TEXT.partition("| Key | |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE) == keys_of("telegram", tmp_path)


def test_the_file_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is wrong with it but that the file which it names is not here."""
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
    shown = files(PAGE)["bot.toml"]
    missing = f"permissions: {tmp_path / 'rules.toml'}: it is not deny, ask, allow or a file of rules"
    assert missing in refused("telegram", tmp_path / "bot.toml", shown)
    assert tomllib.loads(shown)["allow"] == [123456789, 987654321]


def test_the_unit_starts_a_command_that_there_is() -> None:
    check_unit(TEXT, "thinkwell-telegram.service")


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize(("line", "said"), [found for found in SHOWN.findall(TEXT) if found[1]])
def test_what_is_typed_brings_what_is_shown(line: str, said: str, home: Path) -> None:
    """With the built-in agent, and a server of this machine."""
    arguments = line.replace("--agent claude", "--agent builtin").replace("~/api", str(home)).split()
    api = BotApi(username="my_helper_bot")
    with serving(api) as address:
        (home / "bot.toml").write_text(f'base_url = "{address}"', "utf-8")
        with subprocess.Popen(
            thinkwell(*arguments, "--config", str(home / "bot.toml")),
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


def opened(_name: str, **options: Any) -> AbstractAsyncContextManager[Agent]:
    """Open the built-in agent, whatever is asked for."""
    return open_builtin(**options)


async def test_the_program_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    api = BotApi()
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")
    you = api.user(123456789, "You")
    names: dict[str, Any] = {"__name__": "page"}
    for line, code in snippets(PAGE):
        exec(compile("\n" * (line - 1) + code, str(PAGE), "exec"), names)  # the page's own text
    async with client(api) as http, anyio.create_task_group() as tasks:
        names["TelegramChannel"] = partial(TelegramChannel, client=http)
        names["open_agent"] = opened
        with anyio.fail_after(LIMIT):
            tasks.start_soon(names["bot"])
            you.says("/help")
            await api.until(lambda: len(you.chat.texts) == 1)
            assert you.chat.texts[0].startswith("Ask me about the API.\n")
            you.says("What is in this folder?")
            await api.until(lambda: len(you.chat.texts) > 1 and not you.chat.messages[-1].buttons)
            tasks.cancel_scope.cancel()
    async with client(api) as http, open_builtin() as agent:
        names["TelegramChannel"] = partial(TelegramChannel, client=http)
        before = len(you.chat.texts)
        with anyio.fail_after(LIMIT):
            await names["report"](agent)
        assert len(you.chat.texts) > before
