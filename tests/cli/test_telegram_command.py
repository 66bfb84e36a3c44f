"""``thinkwell telegram`` as a program, before a server of the Bot API on a port of this machine."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from bot_api.server import TOKEN, BotApi
from bot_api.serving import serving
from bot_api.values import Trouble
from cli.command import run_command
from cli.running import Running, given_up
from cli.typing_in import LIMIT, home, scripted, thinkwell

from thinkwell.testing import Script, script

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

if sys.platform == "win32":
    pytest.skip("signals of POSIX systems", allow_module_level=True)

from cli.terminal import processes_with
from warm import TRUE

__all__ = ("home",)


class Bot(Running):
    """The command, running, and the server that it talks to."""

    secrets = ("a-token-of-the-tests",)

    def __init__(self, api: BotApi, process: subprocess.Popen[str]) -> None:
        super().__init__(process)
        self.api = api
        self.ada = api.user(7, "Ada")

    @property
    def texts(self) -> list[str]:
        """What stands in Ada's chat."""
        return self.ada.chat.texts

    @property
    def answered(self) -> bool:
        """Whether the last message in Ada's chat is a whole one of the bot's."""
        last = self.ada.chat.everything[-1]
        return last.by is None and not last.buttons

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds on the server."""

        async def wait() -> None:
            with anyio.fail_after(LIMIT):
                await self.api.until(condition)

        anyio.run(wait)


@contextmanager
def running(
    *arguments: str, config: str = "", api: BotApi | None = None, token: str = TOKEN, ready: bool = True
) -> Generator[Bot]:
    """Run the command for the time of a block. Ada may talk to it.

    Args:
        arguments: Of the command.
        config: Lines for its file.
        api: The server.
        token: What the environment has.
        ready: Whether to wait until it takes messages.
    """
    api = BotApi() if api is None else api
    with serving(api) as address:
        file = Path("bot.toml")
        file.write_text(f'base_url = "{address}"\n{config}', "utf-8")
        with (
            subprocess.Popen(
                thinkwell("telegram", "--config", str(file), *arguments),
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**os.environ, "TELEGRAM_BOT_TOKEN": token},
                encoding="utf-8",
            ) as process,
            given_up(process),
        ):
            bot = Bot(api, process)
            if ready:
                bot.until_told("Ready as @test_bot")
                bot.until(lambda: api.polled)
            yield bot
            if process.poll() is None:
                assert bot.end_with(signal.SIGTERM) == 143


def play(home: Path, played: Script) -> tuple[str, str]:
    """Return the options for an agent that plays a script."""
    return "--command", scripted(home, played)


def test_from_the_first_message_to_the_end(home: Path) -> None:
    with running("--allow", "7") as bot:
        assert bot.told == ["Ready as @test_bot, for 1 person. Ctrl-C ends it."]
        bot.ada.says("What does parser.py do?")
        line = bot.until_told("7: completed")
        assert re.fullmatch(r"7: completed, \d+ characters in \d+\.\ds, \d+ edits?", line)
        assert "parser.py" in bot.texts[-1]
        assert "▌" not in bot.texts[-1]
        bot.api.user(8, "Bob").says("And me?")
        bot.until(lambda: bool(bot.api.user(8).chat.texts))
        assert bot.end_with(signal.SIGINT) == 130
    assert not any("parser.py" in line for line in bot.told), "no texts of people"
    assert bot.api.pending == 0
    assert bot.api.refused == []


@pytest.mark.long
def test_what_is_being_written_at_the_end_is_delivered(home: Path) -> None:
    with running("--allow", "7", *play(home, script.says("So far, so good").hangs())) as bot:
        bot.ada.says("Go.")
        bot.until(lambda: bool(bot.texts))
        assert bot.end_with(signal.SIGTERM) == 143
    assert bot.texts == ["So far, so good\n\n⏹ Stopped."]
    assert bot.told[-1].startswith("7: cancelled, ")
    assert processes_with(str(home)) == []


@pytest.mark.long
def test_a_second_signal_ends_it_at_once(home: Path) -> None:
    with running("--allow", "7", *play(home, script.says("Hm").hangs(deaf=True))) as bot:
        bot.ada.says("Go.")
        bot.until(lambda: bool(bot.texts))
        bot.send(signal.SIGINT)
        bot.until(lambda: not bot.api.polled)
        assert bot.end_with(signal.SIGINT) == 130
    assert processes_with(str(home)) == []


def test_a_signal_while_the_agent_starts(home: Path) -> None:
    waits = f"{sys.executable} -c 'import time; time.sleep(600)  # {home}'"
    with running("--allow", "7", "--command", waits) as bot:
        bot.ada.says("Go.")
        bot.until(lambda: processes_with(str(home)) != [])
        assert bot.end_with(signal.SIGINT) == 130
    assert processes_with(str(home)) == []


@pytest.mark.long
def test_an_agent_that_was_killed_is_started_again(home: Path) -> None:
    played = script.says("First.").stops().says("Second.")
    command = scripted(home, played).replace(sys.executable, TRUE)  # a process of its own, to be killed
    with running("--allow", "7", "--command", command) as bot:
        bot.ada.says("One")
        bot.until_told("7: completed")
        (pid,) = [
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if str(home).encode() in (words := path.read_bytes())
            and b"thinkwell.testing" in words.split(b"\0")
        ]
        os.kill(pid, signal.SIGKILL)
        bot.ada.says("Two")
        if "failed" in bot.until_told("7: "):  # its end came to be known only when the message was sent
            bot.ada.says("Two, again")
            bot.until_told("7: completed")
        assert bot.texts[0] == "First."
        anew = "The agent had to be restarted."
        bot.until(lambda: any(text.startswith(anew) for text in bot.texts[1:]))


def test_a_question_has_buttons(home: Path) -> None:
    played = script.asks("make test", kind="execute", input={"command": "make test"}).says("Done.")
    with running("--allow", "7", *play(home, played)) as bot:
        bot.ada.says("Test it.")
        bot.until(lambda: bool(bot.texts) and len(bot.ada.chat.messages[-1].buttons) > 0)
        assert "make test" in bot.texts[-1]
        bot.api.press(bot.ada.chat.messages[-1], "once")
        bot.until_told("7: completed")
        assert bot.texts[-1] == "Done."


def test_no_users_are_allowed(home: Path) -> None:
    with running() as bot:
        assert bot.told[0].startswith("Ready as @test_bot. No user is allowed yet.")
        bot.until_told("--allow NUMBER")
        bot.ada.says("Hello?")
        bot.until(lambda: bool(bot.texts))
        assert "your number: 7" in bot.texts[0]


@pytest.mark.long
def test_the_agent_does_not_get_the_token(home: Path) -> None:
    agent = shlex.split(scripted(home, script.says("Hi.")))
    tells = "import json, os, sys; json.dump(dict(os.environ), open('seen.json', 'w')); "
    command = shlex.join([sys.executable, "-c", f"{tells}os.execv(sys.argv[1], sys.argv[1:])", *agent])
    with running("--allow", "7", "--command", command) as bot:
        bot.ada.says("Hello")
        bot.until_told("7: completed")
    seen = json.loads(Path("seen.json").read_text("utf-8"))
    assert TOKEN not in seen.values()
    assert "PATH" in seen


# Settings of the file


@pytest.mark.long
def test_settings_of_how_it_is_written(home: Path) -> None:
    config = """
        allow = [7]
        greeting = "I am the bot of the tests."
        markdown = false
        streaming = false
        thinking = false
        busy = "refuse"
        max_waiting = 3
        idle_after = false
        stalled_after = false
        timeout = 60
    """
    played = script.thinks("Hm.").pauses(2.5).says("**So**")
    with running(*play(home, played), config=config) as bot:
        bot.ada.says("/help")
        bot.until(lambda: bool(bot.texts))
        assert bot.texts[0].startswith("I am the bot of the tests.\n")
        bot.ada.says("Go.")
        bot.ada.says("And?")
        bot.until(lambda: len(bot.texts) == 2)
        assert bot.texts[1].startswith("I am still busy")
        bot.until_told("7: completed")
        assert bot.texts[2] == "**So**"
        assert [post.edits for post in bot.ada.chat.messages] == [0, 0, 0]


@pytest.mark.long
def test_settings_of_how_long_things_take(home: Path) -> None:
    config = """
        allow = [7]
        drafts = true
        question_timeout = 0.5
        stalled_after = 4
        idle_after = 3
    """
    played = (
        script.asks("make test", kind="execute", expect="reject_once")
        .says("Not tested.")
        .stops()
        .says("Hm")
        .hangs()
    )
    with running(*play(home, played), config=config) as bot:
        bot.ada.says("Test it.")
        bot.until_told("7: completed")
        assert bot.texts[-1] == "Not tested."
        bot.ada.says("Go on.")
        bot.until(lambda: bool(bot.api.drafts))  # 1.1 s after the message before, as Telegram takes them
        bot.until_told("7: stalled")
        assert bot.texts[-1].startswith("Hm\n\n⏳")


def test_the_folder_the_rules_and_the_token_are_found_beside_the_file(home: Path) -> None:
    (home / "work").mkdir()
    (home / "work" / "lexer.py").write_text("", "utf-8")
    (home / "rules.toml").write_text('otherwise = "deny"\n', "utf-8")
    (home / "token").write_text(f"{TOKEN}\n", "utf-8")
    (home / "token").chmod(0o600)
    config = (
        'allow = [7]\nagent = "builtin"\ncwd = "work"\npermissions = "rules.toml"\ntoken_file = "token"\n'
    )
    with running(config=config, token="") as bot:
        bot.ada.says("What is here?")
        bot.until_told("7: completed")
        assert "lexer.py" in "".join(bot.texts)
        assert "parser.py" not in "".join(bot.texts)


def test_another_variable_has_the_token(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    with running("--permissions", "deny", config='allow = [7]\ntoken_env = "MY_TOKEN"', token="") as bot:
        assert bot.process.poll() is None


# What goes wrong


@pytest.mark.long
def test_telegram_cannot_be_reached_at_first(home: Path) -> None:
    api = BotApi()
    api.trouble("getMe", Trouble.error(502), Trouble.throttled(1))
    api.trouble("setMyCommands", Trouble.error(500))
    with running(api=api) as bot:
        first, second, _ready = (line.partition(":")[0] for line in bot.told)
        assert first == "Telegram cannot be reached; trying again in 1 s"
        assert second == "Telegram cannot be reached; trying again in 2 s"
        assert bot.end_with(signal.SIGTERM) == 143
    assert any(line.startswith("Warning: The menu of the bot was not set: ") for line in bot.told)


def test_a_signal_while_telegram_cannot_be_reached(home: Path) -> None:
    api = BotApi()
    api.chaos(0, [(Trouble.error(502), 1.0)])
    with running(api=api, ready=False) as bot:
        bot.until_told("cannot be reached")
        assert bot.end_with(signal.SIGTERM) == 143


def test_telegram_does_not_say_who_the_bot_is(home: Path) -> None:
    api = BotApi()
    api.trouble("getMe", Trouble.error(400))
    with running(api=api, ready=False) as bot:
        assert bot.end() == 1
        assert bot.told[0].startswith("Error: Telegram, getMe: ")


def test_a_token_that_telegram_does_not_know(home: Path) -> None:
    with running(token="42:another-token-of-the-tests-it-is", ready=False) as bot:
        assert bot.end() == 2
        assert bot.told[0] == "Error: Telegram, getMe: Unauthorized (401)"
        assert bot.told[1].startswith("Next: use the token that BotFather shows for the bot")


def test_another_program_gets_the_messages(home: Path) -> None:
    api = BotApi()
    api.webhook = "https://elsewhere.example/"
    with running("--verbose", api=api, ready=False) as bot:
        assert bot.end() == 1
        assert any(line.startswith("Error: Telegram, getUpdates: Conflict") for line in bot.told)


@pytest.mark.long
def test_standard_error_without_a_reader(home: Path) -> None:
    with running("--allow", "7") as bot:
        assert bot.process.stderr is not None
        bot.process.stderr.close()
        for text in ("Hello", "Hello again"):
            bot.ada.says(text)
            bot.until(lambda: bot.answered)
        bot.send(signal.SIGINT)
        assert bot.process.wait(LIMIT) == 130


@pytest.fixture
def wrong(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run the command, which is not to start anything, and return what it says."""

    def wrong(*arguments: str, config: str | bytes | None = None, code: int = 2, token: str = TOKEN) -> str:
        monkeypatch.setenv("TELEGRAM_BOT_TOKEN", token)
        if config is not None:
            data = config if isinstance(config, bytes) else config.encode()
            Path("bot.toml").write_bytes(data)
            arguments = ("--config", "bot.toml", *arguments)
        done = run_command("telegram", *arguments)
        assert (done.code, done.out) == (code, "")
        assert TOKEN not in done.err
        return " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.err).split())

    return wrong


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("allow = 7", "bot.toml: allow: give a list of the numbers of people, such as [123456789]"),
        ('allow = ["@ada"]', "allow: give a list of the numbers"),
        ("allow = [-100]", "allow: give a list of the numbers"),
        ("allow = [true]", "allow: give a list of the numbers"),
        ("alow = [7]", "'alow': there is no such key; do you mean allow?"),
        ("colour = 7", "'colour': there is no such key. Those are agent, command, cwd, "),
        (
            f'token = "{TOKEN}"',
            "'token': a token does not belong into this file. Put it into the environment",
        ),
        (f'agent = ["{TOKEN}"]', "agent: give a text"),
        ('greeting = " "', "greeting: give a text"),
        ('markdown = "yes"', "markdown: give true or false"),
        ("busy = 1", 'busy: give "steer", "queue" or "refuse"'),
        ("max_waiting = -1", "max_waiting: give a whole number, 0 or more"),
        ("max_waiting = true", "max_waiting: give a whole number, 0 or more"),
        ("timeout = 0", "timeout: give a number of seconds above 0"),
        ("timeout = false", "timeout: give a number of seconds above 0"),
        ("timeout = inf", "timeout: give a number of seconds above 0"),
        ("timeout = nan", "timeout: give a number of seconds above 0"),
        ("idle_after = true", "idle_after: give a number of seconds above 0, or false"),
        (f"timeout = 1{'0' * 400}", "timeout: give a number of seconds above 0"),
        ('idle_after = "1h"', "idle_after: give a number of seconds above 0, or false"),
        ('agent = "claude@1"\ncommand = "x"', "the command says which version; leave @… out"),
        ('token_env = "A"\ntoken_file = "b"', "give token_env or token_file, not both"),
        ('cwd = "nowhere"', "cwd: there is no folder "),
        ('cwd = "~nobody-of-that-name/api"', "cwd: ~nobody-of-that-name/api: "),
        ('permissions = "~nobody-of-that-name/rules"', "permissions: ~nobody-of-that-name/rules: "),
        ('token_file = "~nobody-of-that-name/token"', "token_file: ~nobody-of-that-name/token: "),
        ('permissions = "nowhere.toml"', "permissions: "),
        ('base_url = "ftp://x"', "base_url"),
        ("allow = [", "bot.toml: it is not TOML: "),
        (b"greeting = '\xff'", "it is not TOML: its text is not UTF-8"),
        ("#" * 1_000_001, "it is larger than 1,000,000 bytes"),
        ('token_file = "nowhere"', "token_file: "),
        ('token_file = "."', "token_file: "),
        ('token_file = "bot.toml"', "token_file: others can read "),
        ('token_file = "empty"', "empty is empty"),
        ('token_file = "picture"', "picture is no text"),
    ],
)
def test_a_file_that_cannot_be_used(config: str | bytes, told: str, wrong: Callable[..., str]) -> None:
    for name, data in (("empty", b"\n"), ("picture", b"\xff\xd8")):
        Path(name).write_bytes(data)
        Path(name).chmod(0o400)
    assert told in wrong(config=config)


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o440, 0o404, 0o602])
def test_who_can_read_the_token(mode: int, wrong: Callable[..., str]) -> None:
    file = Path("token")
    file.write_text("secret words", "utf-8")
    file.chmod(mode)
    groups = 0 if file.stat().st_gid == 0 else 0o070
    told = wrong(config='token_file = "token"')
    assert ("others can read" in told) == bool(mode & (groups | 0o007))


def test_a_file_that_is_not_there(wrong: Callable[..., str]) -> None:
    assert "bot.toml: No such file or directory" in wrong("--config", "bot.toml")


def test_a_file_of_the_folder_is_not_read_unless_it_is_named(wrong: Callable[..., str]) -> None:
    for name in ("thinkwell-telegram.toml", "bot.toml"):
        Path(name).write_text("allow = 7", "utf-8")
    assert "there is no token" in wrong(token="")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--allow", "0"], "0 is not a user's number; those are above 0"),
        (["--allow", "@ada"], "Invalid value for '--allow'"),
        (["--agent", "claude@1", "--command", "x"], "the command says which version; leave @… out"),
        (["--permissions", "perhaps"], "it is not deny, ask, allow or a file of rules"),
        (["--cwd", "nowhere"], "does not exist"),
    ],
)
def test_options_that_cannot_be_used(arguments: list[str], told: str, wrong: Callable[..., str]) -> None:
    assert told in wrong(*arguments)


def test_an_unknown_agent(wrong: Callable[..., str]) -> None:
    assert "was not found" in wrong("--agent", "nobody", code=3)
    assert "was not found" in wrong(config='agent = "nobody"', code=3)


@pytest.mark.parametrize("option", ["--agent", "--command"])
def test_the_agent_of_the_options_goes_before_that_of_the_file(
    option: str, wrong: Callable[..., str]
) -> None:
    for config in ('agent = "nobody"', 'command = "\'"'):
        assert "there is no token" in wrong(option, "builtin", config=config, token="")


@pytest.mark.parametrize("token", ["", " "])
def test_there_is_no_token(token: str, wrong: Callable[..., str]) -> None:
    told = wrong(token=token)
    assert "there is no token for the bot. Write /newbot to @BotFather" in told
    assert "the environment variable TELEGRAM_BOT_TOKEN" in told
    assert "the environment variable MINE" in wrong(config='token_env = "MINE"')


def test_what_is_no_token_is_not_told(wrong: Callable[..., str]) -> None:
    assert "secret words" not in wrong(token="secret words")
