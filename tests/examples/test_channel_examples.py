"""The examples of channels run, and what they promise arrives."""

from __future__ import annotations

import importlib
import re
import sys
from mailbox import Maildir
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from bot_api.server import TOKEN, BotApi
from bot_api.serving import client
from builtin_stage import builtin_in_memory
from suite.tiers import LOOPS

from thinkwell.channels.telegram import TelegramChannel

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell.channels import AgentResponded

EXAMPLES = Path(__file__).parents[2] / "examples" / "channels"

ON_EACH_LOOP = pytest.mark.parametrize("backend", LOOPS)


def test_every_example_of_a_channel_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "log_file",
        "mail",
        "conversations",
        "telegram_bot",
    }


@ON_EACH_LOOP
def test_a_log_file_gets_the_whole_text(backend: str, project: Path, run: Callable[..., str]) -> None:
    said = run("channels/log_file.py", backend=backend)
    written = (project / "answers.log").read_text("utf-8").splitlines()
    assert said == f"completed: {len(written)} lines in answers.log\n"
    assert {line.partition(": ")[0] for line in written} == {"ada"}
    assert "parser.py" in "\n".join(written)


@ON_EACH_LOOP
def test_a_mail_has_the_result_in_words(backend: str, project: Path, run: Callable[..., str]) -> None:
    said = run("channels/mail.py", backend=backend)
    assert said == "completed after 1 attempt: a mail to ada@example.org\n"
    [mail] = Maildir(project / "outbox")
    title, empty, *suggestions = str(mail.get_payload()).splitlines()
    assert (mail["To"], mail["Subject"], empty) == ("ada@example.org", title[:70], "")
    assert all(line.startswith("- ") for line in suggestions)


@ON_EACH_LOOP
def test_two_conversations_at_once(backend: str, project: Path, run: Callable[..., str]) -> None:
    said = run("channels/conversations.py", backend=backend)
    assert re.fullmatch(
        r"ada has seen \d+ pieces, and the last message begins: '.{40}'\nben has 2 letters\n", said
    ), said


async def test_a_telegram_bot_answers_only_allowed_people(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    builtin_in_memory(monkeypatch)
    example = importlib.import_module("telegram_bot")
    answered, note = anyio.Event(), example.note

    def noted(response: AgentResponded) -> None:
        note(response)
        answered.set()

    monkeypatch.setattr(example, "note", noted)
    api = BotApi()
    ada, eve = api.user(7, "Ada"), api.user(8, "Eve")
    with anyio.fail_after(60):
        async with client(api) as http, anyio.create_task_group() as tasks:
            tasks.start_soon(example.answer, TelegramChannel(TOKEN, allowed=[7], client=http))
            ada.says("What is in this folder?")
            eve.says("And what is in yours?")
            await answered.wait()
            await api.until(lambda: bool(eve.chat.texts))
            tasks.cancel_scope.cancel()
    assert "parser.py" in "".join(ada.chat.texts)
    assert eve.chat.texts[0].endswith("tell my owner your number: 8")
    assert re.fullmatch(r"7: completed, \d+ characters\n", capsys.readouterr().out)


def test_a_telegram_bot_needs_a_token(monkeypatch: pytest.MonkeyPatch, run: Callable[..., str]) -> None:
    monkeypatch.delenv("TELEGRAM_BOT_TOKEN", raising=False)
    with pytest.raises(ValueError, match="set the environment variable TELEGRAM_BOT_TOKEN"):
        run("channels/telegram_bot.py", "7")
