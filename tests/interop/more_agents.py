"""Further agents, from npm and PyPI, that nothing in the product was made for."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from interop.agents import AgentRecipe, NpmAgent
from interop.pins import PINS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = (
    "ADDED",
    "CLINE",
    "CODEX_ZED",
    "COPILOT",
    "DEEPAGENTS",
    "FAST_AGENT",
    "HERMES",
    "KILO",
    "KIMI",
    "MORE_AGENTS",
    "OPENHANDS",
    "QWEN",
    "STAYS",
    "VIBE",
    "WAYS",
    "WITHOUT_TOOLS",
    "PypiAgent",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PypiAgent(AgentRecipe):
    """An agent from PyPI."""

    python: str = "3.12"
    """The version of Python to run it with; it must be on the machine."""
    extras: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    """Packages that it needs and does not bring."""
    below: str = ""
    """The first version that is no longer this agent."""

    def fetch(self, folder: Path) -> None:
        """Make a virtual environment and install the package into it, with uv."""
        make = ("venv", "--quiet", "--clear", "--no-python-downloads", "--python", _python(self.python))
        _uv(*make, str(folder / "venv"))
        python = folder / self.programs / "python"
        add = ("pip", "install", "--quiet", "--exclude-newer", PINS.until, "--python", str(python))
        _uv(*add, *self._required(self.version))

    def resolve(self, version: str | None, until: str) -> dict[str, str]:
        """Have uv print what it would install."""
        with tempfile.TemporaryDirectory() as folder:
            wanted = Path(folder, "wanted.txt")
            wanted.write_text("\n".join(self._required(version)), "utf-8")
            plain = ("--quiet", "--no-header", "--no-annotate", "--no-python-downloads")
            which = ("--exclude-newer", until, "--python-version", self.python)
            lines = _uv("pip", "compile", *plain, *which, str(wanted)).split()
        return dict(line.split("==") for line in lines if "==" in line)

    def _required(self, version: str | None) -> tuple[str, ...]:
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        newest = f"<{self.below}" if self.below else ""
        return (f"{self.package}{extras}{f'=={version}' if version else newest}", *self.beside)

    @property
    def programs(self) -> str:
        """Where a virtual environment has them."""
        return "venv/bin"


def _python(version: str) -> str:
    """Return an interpreter of a version, or else the version, for uv to say what it lacks."""
    found = (shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    # A shim of pyenv for a version that is not selected is found, but does not run; uv gives up at it.
    works = (str(python) for python in found if python and not _status(str(python), "-c", ""))
    return next(works, version)


def _status(*command: str) -> int:
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode


def _uv(*arguments: str) -> str:
    # The one that `make interop` installs is beside Python.
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        raise FileNotFoundError("uv is needed to install agents from PyPI; `pip install uv` brings it")
    return subprocess.run([uv, *arguments], check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


QWEN = NpmAgent(
    name="qwen",
    package="@qwen-code/qwen-code",
    executable="qwen",
    args=("--acp",),
    env={"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "$MODEL/v1", "OPENAI_MODEL": "scripted"},
    files={
        ".qwen/settings.json": json.dumps(
            {
                "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
                "general": {"enableAutoUpdate": False},
                # In the mode "auto" its model judges commands by a tool for the verdict: that takes steps.
                "tools": {"approvalMode": "default"},
                # After a turn it asks its model for a next prompt and for what to remember, with tools too.
                "ui": {"enableFollowupSuggestions": False},
                "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
                "privacy": {"usageStatisticsEnabled": False},
                "telemetry": {"enabled": False},
            }
        )
    },
    shell="run_shell_command",
    shell_args={"command": "$COMMAND", "description": "A command", "is_background": "false"},
)

KIMI = PypiAgent(
    name="kimi",
    package="kimi-cli",
    # A stub that says that another program has taken its place.
    below="1.52",
    python="3.13",
    executable="kimi",
    args=("acp",),
    env={"KIMI_CLI_NO_AUTO_UPDATE": "1"},
    files={
        ".kimi/config.toml": """\
default_model = "scripted"
telemetry = false
[models.scripted]
provider = "standin"
model = "scripted"
max_context_size = 200000
[providers.standin]
type = "openai_legacy"
base_url = "$MODEL/v1"
api_key = "none"
""",
        # It opens no session before somebody has logged in, whichever service its model is of.
        ".kimi/credentials/kimi-code.json": json.dumps(
            {
                "access_token": "none",
                "refresh_token": "",
                "expires_at": 0,
                "expires_in": 0,
                "scope": "",
                "token_type": "Bearer",
            }
        ),
    },
    shell="Shell",
    shell_args={"command": "$COMMAND"},
)

VIBE = PypiAgent(
    name="vibe",
    package="mistral-vibe",
    executable="vibe-acp",
    env={"STANDIN_API_KEY": "none", "MISTRAL_API_KEY": "none", "VIBE_HOME": "$HOME/.vibe"},
    files={
        ".vibe/config.toml": """\
active_model = "scripted"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false
[[providers]]
name = "standin"
api_base = "$MODEL/v1"
api_key_env_var = "STANDIN_API_KEY"
backend = "generic"
[[models]]
name = "scripted"
alias = "scripted"
provider = "standin"
"""
    },
    shell="bash",
    shell_args={"command": "$COMMAND"},
)

FAST_AGENT = PypiAgent(
    name="fast-agent",
    title="fast-agent-acp",
    # The package of that name brings the same command without its module, and may put it over this one's.
    package="fast-agent-mcp",
    python="3.13",
    executable="fast-agent-acp",
    args=("--model", "generic.scripted", "--shell"),
    env={"GENERIC_API_KEY": "none", "GENERIC_BASE_URL": "$MODEL/v1"},
    shell="bash",
    shell_args={"command": "$COMMAND"},
)

HERMES = PypiAgent(
    name="hermes",
    package="hermes-agent",
    extras=("acp", "mcp"),
    executable="hermes-acp",
    files={
        ".hermes/config.yaml": """\
model:
  provider: custom
  default: scripted
  base_url: $MODEL/v1
  api_key: none
"""
    },
    shell="terminal",
    shell_args={"command": "$COMMAND"},
)

OPENHANDS = PypiAgent(
    name="openhands",
    package="openhands",
    executable="openhands",
    # By itself it asks before every action and does not say which: our tools cannot be told from others then.
    args=("acp", "--llm-approve"),
    env={"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENHANDS_SUPPRESS_BANNER": "1"},
    files={
        # What it takes for a login: that settings are there.
        ".openhands/agent_settings.json": json.dumps(
            {
                "kind": "Agent",
                "llm": {
                    "model": "openai/scripted",
                    "api_key": "none",
                    "base_url": "$MODEL/v1",
                    "usage_id": "agent",
                },
            }
        )
    },
    shell="terminal",
    shell_args={"command": "$COMMAND", "security_risk": "HIGH", "summary": "A command"},
)

_KILO_SETTINGS = {
    "model": "standin/scripted",
    "small_model": "standin/scripted",
    "provider": {
        "standin": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Stand-in",
            "options": {"baseURL": "$MODEL/v1", "apiKey": "none"},
            "models": {
                "scripted": {
                    "name": "scripted",
                    "reasoning": True,
                    "tool_call": True,
                    "limit": {"context": 200_000, "output": 8_000},
                }
            },
        }
    },
    "autoupdate": False,
    "share": "disabled",
    # Its own rule for commands, which allows all of them, counts more than one for everything.
    "permission": {"*": "ask", "bash": "ask"},
}

KILO = NpmAgent(
    name="kilo",
    title="kilo",
    package="@kilocode/cli",
    executable="kilo",
    args=("acp",),
    env={
        "KILO_DISABLE_AUTOUPDATE": "1",
        "KILO_DISABLE_DEFAULT_PLUGINS": "1",
        "KILO_DISABLE_LSP_DOWNLOAD": "1",
        "KILO_DISABLE_MODELS_FETCH": "1",
        "KILO_TELEMETRY_LEVEL": "off",
    },
    files={".config/kilo/kilo.json": json.dumps(_KILO_SETTINGS)},
    shell="bash",
    shell_args={"command": "$COMMAND", "description": "A command"},
)

CLINE = NpmAgent(
    name="cline",
    package="cline",
    executable="cline",
    args=("--acp",),
    # It opens no session without a key of its own service, whichever service its model is of.
    env={
        "CLINE_API_KEY": "none",
        "CLINE_PROVIDER": "openai-compatible",
        "CLINE_NO_AUTO_UPDATE": "1",
        "CLINE_TELEMETRY_DISABLED": "1",
    },
    files={
        ".cline/data/settings/providers.json": json.dumps(
            {
                "version": 1,
                "lastUsedProvider": "openai-compatible",
                "modes": {},
                "providers": {
                    "openai-compatible": {
                        "settings": {
                            "provider": "openai-compatible",
                            "apiKey": "none",
                            "model": "scripted",
                            "baseUrl": "$MODEL/v1",
                        },
                        "updatedAt": "2026-01-01T00:00:00.000Z",
                        "tokenSource": "manual",
                    }
                },
            }
        )
    },
    shell="run_commands",
    shell_args={"commands": "$COMMAND"},
)

COPILOT = NpmAgent(
    name="copilot",
    package="@github/copilot",
    executable="copilot",
    args=("--acp", "--no-auto-update"),
    env={
        "COPILOT_MODEL": "scripted",
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_API_KEY": "none",
        "COPILOT_PROVIDER_BASE_URL": "$MODEL/v1",
    },
    shell="bash",
    shell_args={"command": "$COMMAND", "description": "A command", "mode": "sync"},
)

CODEX_ZED = NpmAgent(
    name="codex-zed",
    title="codex-acp-of-zed",
    package="@zed-industries/codex-acp",
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
    shell_args={"cmd": "$COMMAND", "sandbox_permissions": "require_escalated", "justification": "A reason"},
)

DEEPAGENTS = PypiAgent(
    name="deepagents",
    package="deepagents-acp",
    beside=("langchain-openai",),
    executable="python",
    args=("-m", "deepagents_acp"),
    env={"LANGSMITH_TRACING": "false", "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "$MODEL/v1"},
    # It runs no commands; in its place a file is written.
    shell="write_file",
    shell_args={"file_path": "/marker", "content": "$COMMAND"},
)

MORE_AGENTS = (QWEN, KIMI, VIBE, FAST_AGENT, HERMES, OPENHANDS, KILO, CLINE, COPILOT, CODEX_ZED, DEEPAGENTS)
"""In the order of their tests."""

WAYS: Final[Mapping[str, tuple[Literal["http", "stdio"], ...]]] = {
    "cline": ("stdio",),
    "copilot": ("http",),
    "deepagents": ("stdio",),
    "hermes": ("stdio",),
    "openhands": ("stdio",),
    "vibe": ("stdio",),
}
"""The ways for our tools that work, where not both do."""

ADDED: Final[Mapping[str, Mapping[str, object]]] = {"openhands": {"security_risk": "LOW"}}
"""Arguments that an agent demands of every call of a tool."""

STAYS: Final[frozenset[str]] = frozenset({"cline", "openhands"})
"""Agents that leave a process of a session of its own behind: a hub of theirs, or a tmux server."""

WITHOUT_TOOLS: Final[frozenset[str]] = frozenset({"cline", "deepagents"})
"""Agents that do nothing with the MCP servers of a session."""
