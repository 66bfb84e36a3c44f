"""Real agents: installed once into a cache, started with the stand-in as their model service."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Literal

from interop.pins import PINS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = (
    "AGENTS",
    "CLAUDE",
    "CLAUDE_CUT_OFF",
    "CLAUDE_DIRECT",
    "CLAUDE_ONCE",
    "CLAUDE_SUBSCRIBED",
    "CODEX",
    "CODEX_ASKING",
    "CODEX_CUT_OFF",
    "CODEX_ONCE",
    "GEMINI",
    "GEMINI_CUT_OFF",
    "GEMINI_ONCE",
    "OPENCODE",
    "OPENCODE_ASKING",
    "OPENCODE_CUT_OFF",
    "VENDOR_PREFIXES",
    "AgentRecipe",
    "Launch",
    "NpmAgent",
)

CACHE = Path(os.environ.get("THINKWELL_INTEROP_CACHE", Path(__file__).parents[2] / ".cache" / "interop"))
"""Where the packages are kept between runs, one folder per package and version."""

VENDOR_PREFIXES = ("ANTHROPIC_", "CLAUDE", "CODEX_", "GEMINI_", "GOOGLE_", "OPENAI_", "OPENCODE_")
"""Variables of the caller's environment that would lead an agent to a real account or service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start an agent: hand both to `open_agent`."""

    command: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRecipe(ABC):
    """A pinned package, and the settings that tie it to a stand-in.

    In `env` and `files` stand `$HOME` for the scratch home and `$MODEL` for the stand-in's URL.
    """

    name: str
    package: str
    executable: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Contents by path below the scratch home."""
    shell: str = ""
    """The name of its own tool that runs a command."""
    shell_args: Mapping[str, str] = field(default_factory=dict[str, str])
    """That tool's arguments; `$COMMAND` stands for the command."""
    hides_commands: bool = False
    """Whether its permission requests show a command in the title alone, which is no field to trust."""
    checks_arguments: bool = False
    """Whether it checks the arguments of tools against their schemas itself, and calls with no others."""
    cut_off_from: Literal["http"] | None = None
    """The way to our tools that its settings bar, where they bar only one."""
    profile: str = ""
    """Its name in `open_agent`, where it has one."""
    title: str = ""
    """What the matrix calls it, whatever its settings are; by default as its package."""

    @property
    def version(self) -> str:
        """The version that is pinned."""
        return PINS.versions[self.package]

    @property
    def column(self) -> str:
        """The head of its column in the matrix."""
        return f"{self.heading} {self.version}"

    @property
    def heading(self) -> str:
        """The same without the version."""
        return self.title or self._short_name

    @property
    def _short_name(self) -> str:
        return self.package.rpartition("/")[2]

    def shell_call(self, command: str) -> tuple[str, dict[str, str]]:
        """Return name and arguments of a call with which its model has it run a command."""
        args = self.shell_args.items()
        return self.shell, {name: value.replace("$COMMAND", command) for name, value in args}

    @abstractmethod
    def fetch(self, folder: Path) -> None:
        """Install the package into a folder that is there.

        Raises:
            FileNotFoundError: If the program that installs is not on the machine.
            subprocess.CalledProcessError: If it fails.
        """

    @abstractmethod
    def resolve(self, version: str | None, until: str) -> dict[str, str]:
        """Return the versions by package of all that would be installed, without installing it.

        Args:
            version: The agent's version; `None` stands for its newest.
            until: The point in time after which nothing may have been published.

        Raises:
            FileNotFoundError: If the program that installs is not on the machine.
            subprocess.CalledProcessError: If it fails.
        """

    @property
    @abstractmethod
    def programs(self) -> str:
        """Where the programs are, below the folder."""

    def install(self, cache: Path) -> Path:
        """Install the package unless the cache has it, and return the program.

        Raises:
            FileNotFoundError: If the program that installs is not on the machine.
            subprocess.CalledProcessError: If it fails.
        """
        folder = cache / f"{self._short_name}-{self.version}-{PINS.until[:10]}"
        complete = folder / "complete"
        if not complete.exists():
            folder.mkdir(parents=True, exist_ok=True)
            self.fetch(folder)
            complete.touch()
        program = shutil.which(self.executable, path=str(folder / self.programs))
        if program is None:
            raise FileNotFoundError(f"{folder} holds no program {self.executable}")
        return Path(program)

    def launch(self, *, home: Path, model_url: str, cache: Path = CACHE) -> Launch:
        """Install, write the settings below `home` and return how to start the agent."""
        program = self.install(cache)
        return Launch(command=(str(program), *self.args), env=self.settle(home, model_url))

    def settle(self, home: Path, model_url: str) -> dict[str, str]:
        """Write the settings below `home`, and return the variables with which the agent finds them."""
        names = {"HOME": str(home), "MODEL": model_url}
        for name, text in self.files.items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(Template(text).substitute(names), encoding="utf-8")
        own = {name: Template(value).substitute(names) for name, value in self.env.items()}
        return {**_sealed(home, model_url), **own}


@dataclass(frozen=True, slots=True, kw_only=True)
class NpmAgent(AgentRecipe):
    """An agent from npm."""

    def fetch(self, folder: Path) -> None:
        """Install the package with npm."""
        self._npm(folder, self.version, PINS.until)

    def resolve(self, version: str | None, until: str) -> dict[str, str]:
        """Have npm write a lock, and read it."""
        with tempfile.TemporaryDirectory() as folder:
            self._npm(Path(folder), version or "latest", until, "--package-lock-only")
            lock = json.loads(Path(folder, "package-lock.json").read_text("utf-8"))
        found: dict[str, set[str]] = {}
        for path, entry in lock["packages"].items():
            if path:
                found.setdefault(path.rpartition("node_modules/")[2], set()).add(entry["version"])
        return {package: ", ".join(sorted(versions)) for package, versions in found.items()}

    def _npm(self, folder: Path, version: str, until: str, *options: str) -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise FileNotFoundError("npm is needed to install agents; it comes with Node.js")
        quiet = ("--no-audit", "--no-fund", "--loglevel=error")
        package = f"{self.package}@{version}"
        install = [npm, "install", "--prefix", str(folder), *quiet, f"--before={until}", *options, package]
        # Scripts of packages leave files where temporary ones go.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            env = {**os.environ, "TMPDIR": temporary}
            subprocess.run(install, check=True, stdout=subprocess.DEVNULL, env=env)

    @property
    def programs(self) -> str:
        """Where npm links them."""
        return "node_modules/.bin"


def _sealed(home: Path, model_url: str) -> dict[str, str]:
    """Keep an agent to its scratch home and to loopback: the stand-in is its proxy, and refuses."""
    places = {
        "HOME": home,
        "USERPROFILE": home,
        "XDG_CACHE_HOME": home / ".cache",
        "XDG_CONFIG_HOME": home / ".config",
        "XDG_DATA_HOME": home / ".local" / "share",
        "XDG_STATE_HOME": home / ".local" / "state",
    }
    proxies = {"HTTP_PROXY": model_url, "HTTPS_PROXY": model_url, "NO_PROXY": "127.0.0.1,localhost"}
    both_cases = proxies | {name.lower(): value for name, value in proxies.items()}
    return {name: str(path) for name, path in places.items()} | both_cases


def _opencode_settings(**more: object) -> str:
    model = {
        "name": "scripted",
        "reasoning": True,
        "tool_call": True,
        "limit": {"context": 200_000, "output": 8_000},
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Stand-in",
        "options": {"baseURL": "$MODEL/v1", "apiKey": "none"},
        "models": {"scripted": model},
    }
    settings = {
        "model": "standin/scripted",
        "small_model": "standin/scripted",
        "provider": {"standin": provider},
        "autoupdate": False,
        "share": "disabled",
    }
    return json.dumps({**settings, **more})


def _gemini_settings(*, ask_for_trust: bool, **general: object) -> str:
    return json.dumps(
        {
            # In a folder it does not trust it silently leaves out the session's MCP servers.
            "security": {
                "auth": {"selectedType": "gemini-api-key"},
                "folderTrust": {"enabled": ask_for_trust},
            },
            "general": {"enableAutoUpdate": False, **general},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
        }
    )


CLAUDE = NpmAgent(
    name="claude",
    profile="claude",
    package="@agentclientprotocol/claude-agent-acp",
    executable="claude-agent-acp",
    env={
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": "$MODEL",
        "ANTHROPIC_MODEL": "claude-sonnet-4-5",
        # After the second answer of a session it asks for a next prompt, with all tools: that took a step.
        "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CONFIG_DIR": "$HOME/.claude",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        # Any value but 1 makes the adapter offer root a mode that the program below it refuses to start in.
        "IS_SANDBOX": "",
    },
    shell="Bash",
    shell_args={"command": "$COMMAND", "description": "A command"},
)

CLAUDE_DIRECT = replace(CLAUDE, name="claude-direct", env={**CLAUDE.env, "ENABLE_TOOL_SEARCH": "0"})
"""The same agent, set to offer all tools at once, not behind a search: so does `open_agent("claude")`."""

OPENCODE = NpmAgent(
    name="opencode",
    profile="opencode",
    package="opencode-ai",
    executable="opencode",
    args=("acp",),
    env={
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    },
    files={".config/opencode/opencode.json": _opencode_settings()},
    shell="bash",
    shell_args={"command": "$COMMAND", "description": "A command"},
)

OPENCODE_ASKING = replace(
    OPENCODE,
    name="opencode-asking",
    files={".config/opencode/opencode.json": _opencode_settings(permission={"*": "ask"})},
)
"""The same agent, set to ask for permission before every tool."""

GEMINI = NpmAgent(
    name="gemini",
    profile="gemini",
    package="@google/gemini-cli",
    executable="gemini",
    args=("--acp",),
    env={
        "GEMINI_API_KEY": "none",
        "GEMINI_TELEMETRY_ENABLED": "false",
        "GOOGLE_GEMINI_BASE_URL": "$MODEL",
    },
    files={".gemini/settings.json": _gemini_settings(ask_for_trust=False)},
    hides_commands=True,
    checks_arguments=True,
    shell="run_shell_command",
    shell_args={"command": "$COMMAND", "description": "A command"},
)

CODEX = NpmAgent(
    name="codex",
    profile="codex",
    package="@agentclientprotocol/codex-acp",
    executable="codex-acp",
    env={"CODEX_HOME": "$HOME/.codex", "OPENAI_API_KEY": "none"},
    files={
        ".codex/config.toml": """\
model = "gpt-5"
model_provider = "standin"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.standin]
name = "Stand-in"
base_url = "$MODEL/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
supports_websockets = false
"""
    },
    shell="exec_command",
    # Without the two it runs the command in a sandbox that not every machine has.
    shell_args={"cmd": "$COMMAND", "sandbox_permissions": "require_escalated", "justification": "A reason"},
)

CODEX_ASKING = replace(CODEX, name="codex-asking", env={**CODEX.env, "INITIAL_AGENT_MODE": "read-only"})
"""The same agent, in the mode in which it asks before it runs commands; without it, its model judges them."""

CLAUDE_ONCE = replace(
    CLAUDE_DIRECT, name="claude-once", env={**CLAUDE_DIRECT.env, "CLAUDE_CODE_MAX_RETRIES": "0"}
)
CLAUDE_SUBSCRIBED = replace(
    CLAUDE_ONCE,
    name="claude-subscribed",
    env={**CLAUDE_ONCE.env, "ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "none"},
)
CODEX_ONCE = replace(
    CODEX,
    name="codex-once",
    files={
        name: f"{text}request_max_retries = 0\nstream_max_retries = 0\n" for name, text in CODEX.files.items()
    },
)
GEMINI_ONCE = replace(
    GEMINI,
    name="gemini-once",
    files={".gemini/settings.json": _gemini_settings(ask_for_trust=False, maxAttempts=1)},
)
"""Agents that do not try a failed request again themselves; one of them has a subscription."""

NO_LOOPBACK = {"NO_PROXY": "localhost", "no_proxy": "localhost"}
"""The settings of a proxy that make no exception for 127.0.0.1, so that our tool server is behind it."""

CLAUDE_CUT_OFF = replace(
    CLAUDE_DIRECT, name="claude-cut-off", env={**CLAUDE_DIRECT.env, **NO_LOOPBACK}, cut_off_from="http"
)
CODEX_CUT_OFF = replace(CODEX, name="codex-cut-off", env={**CODEX.env, **NO_LOOPBACK}, cut_off_from="http")
OPENCODE_CUT_OFF = replace(
    OPENCODE,
    name="opencode-cut-off",
    env={**OPENCODE.env, **NO_LOOPBACK},
    # It speaks to itself over HTTP, which must not be behind the proxy as well.
    args=(*OPENCODE.args, "--hostname", "localhost"),
    cut_off_from="http",
)
GEMINI_CUT_OFF = replace(
    GEMINI,
    name="gemini-untrusting",
    files={".gemini/settings.json": _gemini_settings(ask_for_trust=True)},
)
"""The four, each set up by its user in a way in which our tools do not reach it: over HTTP, or at all."""

AGENTS = (CLAUDE, CLAUDE_DIRECT, OPENCODE, OPENCODE_ASKING, GEMINI, CODEX)
