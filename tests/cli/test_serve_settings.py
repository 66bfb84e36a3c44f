"""What ``thinkwell serve`` cannot be asked for. Nothing is started here."""

from __future__ import annotations

import errno
import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli.command import run_command
from cli.serve_process import ADA, BOB
from cli.typing_in import home

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("home",)


@pytest.fixture
def wrong(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run the command, which is not to start anything, and return what it says."""

    def wrong(
        *arguments: str, config: str | bytes | None = None, code: int = 2, env: dict[str, str] | None = None
    ) -> str:
        for name, value in (env or {}).items():
            monkeypatch.setenv(name, value)
        if config is not None:
            Path("serve.toml").write_bytes(config if isinstance(config, bytes) else config.encode())
            arguments = ("--config", "serve.toml", *arguments)
        done = run_command("serve", *arguments)
        assert (done.code, done.out) == (code, "")
        assert ADA not in done.err
        assert "word-of-redis" not in done.err
        return " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.err).split())

    return wrong


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("prot = 80", "serve.toml: 'prot': there is no such key; do you mean port?"),
        ("colour = 7", "'colour': there is no such key. Those are host, port, journal, "),
        (f'token = "{ADA}"', "'token': a secret does not belong into this file. Put it into an environment"),
        ('port = "80"', "port: expected a whole number, got a text"),
        ("port = 70000", "port: expected a whole number <= 65535"),
        ("port = true", "port: expected a whole number, got true or false"),
        ('hosts = "a"', "hosts: expected a list, got a text"),
        ('hosts = ["https://a"]', "Invalid value for --config: serve.toml: hosts: 'https://a' is not a name"),
        ('origins = ["*"]', "serve.toml: origins: '*' is not an origin"),
        ('proxies = ["proxy"]', "serve.toml: proxies: 'proxy' is not an address"),
        ("page = 1", "page: expected true or false, got a whole number"),
        ("session_age = 0", "session_age: expected a number > 0.0"),
        ("session_age = nan", "session_age: expected a number > 0.0"),
        ("abandoned_after = inf", "abandoned_after: expected a number <= 10000000000.0"),
        ("idle_after = true", "idle_after: give a number of seconds above 0, or false"),
        ("agents = 1", "agents: give a table, such as [agents]"),
        ("[agents]\nclaude = 1", "agents.claude: expected a table, got a whole number"),
        ('[agents."a/b"]', "'agents.a/b': a name has up to 64 letters, digits, and - . _ within"),
        ("[agents.nobody]", "was not found"),
        ("[agents.x]\nagnet = 1", "agents.x.'agnet': there is no such key; do you mean agent?"),
        (
            '[agents.x]\nagent = "claude@1"\ncommand = "b"',
            "agents.x: the command says which version; leave @… out",
        ),
        ('[agents.x]\ncommand = "\'"', "serve.toml: agents.x: No closing quotation"),
        ("[agents.builtin]\npermissions = []", "agents.builtin.permissions: give at least one"),
        ('[agents.builtin]\npermissions = ["careful"]', "there are no 'careful'; name them in [permissions]"),
        ('[agents.builtin]\nfolders = { api = "nowhere" }', "agents.builtin.folders: there is no folder "),
        (
            '[agents.builtin]\nfolders = { api = "~nobody-of-that-name" }',
            "agents.builtin.folders: ~nobody-of",
        ),
        (
            "[agents.builtin]\nfolders = { api = 1 }",
            "agents.builtin.folders[...]: expected a text, got a whole number",
        ),
        (
            "[agents.builtin]\ntimeout = true",
            "agents.builtin.timeout: give a number of seconds above 0, or false",
        ),
        ("[agents.builtin]\nmodels = [1]", "agents.builtin.models[0]: expected a text, got a whole number"),
        ("[agents.builtin]\nretry = -1", "agents.builtin.retry: expected a whole number >= 0"),
        ('[agents.builtin]\nfallback = ["builtin"]', "agents.builtin.fallback: builtin is the agent itself"),
        ("[agents.builtin]\nmax_tokens = 0", "agents.builtin.max_tokens: expected a whole number >= 1"),
        ('[permissions]\nask = "deny"', "permissions.ask: that name has its own meaning; take another"),
        (
            '[permissions]\ncareful = "nowhere.toml"\n[agents.builtin]\npermissions = ["careful"]',
            "agents.builtin: permissions: careful: ",
        ),
        ("[callers.ada]", "callers.ada: give token_env or token_file"),
        (
            '[callers.ada]\ntoken_env = "NOT_SET"',
            "serve.toml: callers.ada.token_env: the environment variable NOT_SET is not set",
        ),
        ('[callers.ada]\ntoken_file = "nowhere"', "callers.ada.token_file: "),
        (
            '[callers.ada]\ntoken_env = "SHORT"',
            "serve.toml: callers.ada.token_env: the token in SHORT has 5 characters; it needs 16 to 512;",
        ),
        (
            '[callers.ada]\ntoken_file = "short"',
            "short has 5 characters; it needs 16 to 512; this makes a good one: python3 -c",
        ),
        ('[callers.""]\ntoken_env = "ADAS"', "serve.toml: tokens: a caller's name has 1 to 100 characters"),
        ('token_file = "~/nowhere"', "nowhere: No such file or directory"),
        (
            '[callers.ada]\ntoken_env = "ADAS"\n[callers.bob]\ntoken_env = "SAME"',
            "ada and bob have the same token; give each its own",
        ),
        ('token_env = "NOT_SET"', "token_env: the environment variable NOT_SET is not set, or is empty"),
        ('token_file = "readable"', "token_file: others can read "),
        ("limits = 1", "limits: give a table"),
        ("[limits]\nmax_run = 1", "limits.'max_run': there is no such key; do you mean max_runs?"),
        ("[limits]\nmax_runs = 0", "limits.max_runs: give a whole number above 0"),
        ("[limits]\nmax_runs = true", "limits.max_runs: give a whole number above 0"),
        ("[limits]\nmax_runs = 1.5", "limits.max_runs: give a whole number above 0"),
        ("[retention]\nmax_age = -1", "retention.max_age: give a whole number above 0"),
        (
            'journal = "redis"',
            "there is no address of Redis; put it into the environment variable THINKWELL_SERVE",
        ),
        ('journal = "redis"\nredis_env = "MY_REDIS"', "into the environment variable MY_REDIS"),
        ('journal = "redis"\nredis_env = "NO_REDIS"', "the environment variable NO_REDIS has no address"),
        ("host = [", "serve.toml: it is not TOML: "),
        (b"host = '\xff'", "it is not TOML: its text is not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_used(config: str | bytes, told: str, wrong: Callable[..., str]) -> None:
    Path("readable").write_text(ADA, "utf-8")
    Path("readable").chmod(0o644)
    Path("short").write_text("short", "utf-8")
    Path("short").chmod(0o600)
    env = {"ADAS": ADA, "SAME": ADA, "SHORT": "short", "NO_REDIS": "http://:word-of-redis@localhost"}
    code = 3 if "not found" in told else 2
    assert told in wrong(config=config, env=env, code=code)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--port", "65536"], "Invalid value for '--port'"),
        (["--port", "-1"], "Invalid value for '--port'"),
        (
            ["--host", "0.0.0.0"],
            "0.0.0.0 is not this machine alone, so callers have to have a token",
        ),
        (["--host", "::"], "Put one into the environment variable THINKWELL_SERVE_TOKEN"),
        (["--host", "myhost"], 'python3 -c "import secrets; print(secrets.token_urlsafe(32))"'),
        (["--agent", "builtin", "--agent", "builtin"], "two agents are called builtin"),
        (["--agent", "builtin", "--agent", "claude", "--model", "m"], "it is that of one agent"),
        (["--agent", "builtin", "--agent", "claude", "--fallback", "codex"], "it is that of one agent"),
        (["--agent", "builtin", "--fallback", "builtin"], "builtin is the agent itself"),
        (["--command", "'"], "No closing quotation"),
        (["--permissions", "perhaps"], "it is not deny, ask, allow or a file of rules"),
        (["--cwd", "nowhere"], "does not exist"),
        (["--token-file", "nowhere"], "nowhere: No such file or directory"),
        (["--journal", "redis"], "there is no address of Redis"),
        (["--journal", "redis://:word@localhost"], "an address may have a password in it"),
        (["--config", "nowhere.toml"], "nowhere.toml: No such file or directory"),
        (
            ["--config", "~nobody-of-that-name/a.toml"],
            "~nobody-of-that-name/a.toml: No such file or directory",
        ),
    ],
)
def test_options_that_cannot_be_used(arguments: list[str], told: str, wrong: Callable[..., str]) -> None:
    assert told in wrong(*arguments)


@pytest.mark.parametrize("option", ["--cwd", "--permissions", "--model", "--fallback"])
def test_agents_of_the_file_have_their_own(option: str, wrong: Callable[..., str]) -> None:
    config = "[agents.builtin]\n"
    assert "the agents of the file have their own" in wrong(
        option, "." if option == "--cwd" else "ask", config=config
    )


def test_an_unknown_agent(wrong: Callable[..., str]) -> None:
    assert "was not found" in wrong("--agent", "nobody", code=3)


def test_a_token_that_can_be_guessed(wrong: Callable[..., str]) -> None:
    told = wrong(env={"THINKWELL_SERVE_TOKEN": "secret"})
    assert "the token in THINKWELL_SERVE_TOKEN has 6 characters; it needs 16 to 512; this makes" in told
    assert "operator" not in told
    assert os.environ.get("THINKWELL_SERVE_TOKEN") is None


def test_an_address_of_redis_is_not_told(wrong: Callable[..., str]) -> None:
    told = wrong("--journal", "redis", env={"THINKWELL_SERVE_REDIS": "http://:word-of-redis@localhost"})
    assert "Invalid value for --journal" in told


def test_one_token_for_two_names(wrong: Callable[..., str]) -> None:
    config = '[callers.ada]\ntoken_env = "ADAS"\n'
    told = wrong(config=config, env={"ADAS": BOB, "THINKWELL_SERVE_TOKEN": BOB})
    assert "operator and ada have the same token" in told


# Ports and files


@pytest.mark.parametrize(
    ("error", "port", "told"),
    [
        (errno.EADDRINUSE, 65_535, "--port 65534, or 0 for any"),
        (errno.EACCES, 80, "needs administrator rights; give one from 1024 on"),
        (errno.ENETDOWN, 80, "it cannot be listened on port 80 of localhost: Network is down"),
    ],
)
def test_ports_that_cannot_be_listened_on(
    error: int, port: int, told: str, wrong: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(socket.socket, "bind", refused)
    options = ("--host", "localhost", "--port", str(port), "--journal", "memory", "--agent", "builtin")
    assert told in wrong(*options, code=1)
