"""The profiles that come with thinkwell: each is whole and pinned, and dates what it says of its agent."""

from __future__ import annotations

import datetime as dt
import inspect
import itertools
import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

import thinkwell.agents
from thinkwell import errors, open_agent, sync
from thinkwell.agents import (
    AgentName,
    AgentProfile,
    Binary,
    KnownError,
    Program,
    Quirk,
    find_agent,
    known_agents,
)
from thinkwell.web import served_agent

FOLDER = Path(thinkwell.agents.__file__).parent / "profiles"
FILES = sorted(FOLDER.glob("*.toml"))
LAUNCHES = {"npx", "uvx", "program", "binary"}
REQUIRED = {
    *("claude", "codex", "gemini", "opencode", "qwen", "copilot", "kiro", "auggie", "goose", "cursor"),
    *("vibe", "kimi", "hermes", "cline"),
}
"""The agents that there has to be a profile of."""
VERSION = re.compile(r"\d+(\.\d+)+")


@pytest.fixture(autouse=True)
def nothing_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the user's own profiles and copy of the registry away."""
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)


def table(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text("utf-8"))


def shipped() -> list[AgentProfile]:
    return [find_agent(file.stem) for file in FILES]


def test_the_agents_that_people_use_have_a_profile() -> None:
    assert {file.stem for file in FILES} >= REQUIRED


def test_all_of_them_are_known() -> None:
    assert [profile.name for profile in known_agents()] == [file.stem for file in FILES]


def test_editors_complete_their_names() -> None:
    assert get_args(AgentName) == ("builtin", *(file.stem for file in FILES))
    for function in (open_agent, sync.open_agent, served_agent):
        assert "AgentName" in str(inspect.signature(function).parameters["agent"].annotation)


def test_no_two_stand_for_the_same_entry_of_the_registry() -> None:
    entries = [table(file)["registry"] for file in FILES if "registry" in table(file)]
    assert len(entries) == len(set(entries))


def test_each_says_what_it_is_and_how_it_is_launched() -> None:
    for file in FILES:
        assert re.fullmatch("[a-z][a-z0-9-]*", file.stem)  # as a user would type it
        read = table(file)
        assert read["title"].strip() == read["title"] != "", file
        assert read["website"].startswith("https://"), file
        assert len(LAUNCHES & read.keys()) == 1, file


def test_each_is_pinned_or_says_how_it_is_installed() -> None:
    for profile in shipped():
        match profile.launch:
            case Program(command=command, install=install):
                assert command
                assert install, profile
            case launch:
                assert VERSION.fullmatch(launch.version), profile


def test_every_archive_has_a_known_platform_a_secure_address_and_a_checksum() -> None:
    launches = (profile.launch for profile in shipped())
    for platform, archive in (
        each for launch in launches if isinstance(launch, Binary) for each in launch.archives.items()
    ):
        assert re.fullmatch("(darwin|linux|windows)-(aarch64|x86_64)", platform)
        assert archive.archive.startswith("https://")
        assert re.fullmatch("[0-9a-f]{64}", archive.sha256 or ""), archive


def test_what_is_known_of_quirks_and_errors_is_dated_and_says_what_to_do() -> None:
    for profile in shipped():
        dated: tuple[Quirk | KnownError, ...] = (*profile.quirks, *profile.errors)
        for known in dated:
            assert VERSION.fullmatch(known.version), known
            assert dt.date(2026, 1, 1) <= known.seen <= dt.date(2100, 1, 1), known
            assert (known.about if isinstance(known, Quirk) else known.hint).endswith("."), known
        assert all(known.error for known in profile.errors), profile.name


NO_MODEL = "\nModel Configuration Error:\nNo model configured\n\nDetails:\nSet an agent model, --model, …"
NOT_INSTALLED = (
    "Internal error: Could not start pi: executable not found (command: pi). Pi needs to be installed"
)
OLD_NODE = """\
import zlib, { createZstdDecompress, gzip } from "node:zlib";
               ^^^^^^^^^^^^^^^^^^^^
SyntaxError: The requested module 'node:zlib' does not provide an export named 'createZstdDecompress'
    at ModuleJob._instantiate (node:internal/modules/esm/module_job:213:21)

Node.js v20.20.2
"""
OLD_PYTHON = (
    "the current Python version (3.11.7) does not satisfy Python>=3.12 and mistral-vibe==3.0.2 depends on it"
)
NO_PROVIDER = {"details": "No LLM provider configured. Run `hermes model` to select a provider, or …"}
DROID_ENDS = {"details": "Droid process exited unexpectedly (exit code 1)"}
OFFLINE = (
    "error: Request failed after 3 retries\n  cause: dns error\n  failed to lookup address information\n"
)


def not_started(agent: str, stderr: str) -> errors.AgentStartFailed:
    return errors.AgentStartFailed(agent, "it exited with code 1", stderr_tail=stderr)


@pytest.mark.parametrize(
    ("agent", "error", "hint"),
    [
        ("droid", errors.AgentReported(-32603, "Internal error", DROID_ENDS), "FACTORY_API_KEY"),
        ("fast-agent", not_started("fast-agent", NO_MODEL), "FAST_AGENT_MODEL"),
        ("hermes", errors.AgentReported(-32603, "Internal error", NO_PROVIDER), "hermes model"),
        ("kimi", not_started("kimi", OLD_NODE), "Node.js 24.15"),
        ("openhands", errors.ResultMissing("end_turn", "", denied=[""]), "--always-approve"),
        ("pi", errors.AgentReported(-32603, NOT_INSTALLED, {"code": "ENOENT"}), "npm install -g"),
        ("vibe", not_started("vibe", OLD_PYTHON), "UV_PYTHON=3.12"),
        ("codex", errors.ToolsNotSeen(("http", "stdio")), "over HTTP"),
    ],
)
def test_what_an_agent_was_seen_to_say_is_known(agent: str, error: errors.ThinkwellError, hint: str) -> None:
    (known,) = find_agent(agent).hints(error)
    assert hint in known


OTHERS = (
    not_started("any", OFFLINE),
    errors.AgentReported(-32603, "Internal error: getaddrinfo ENOTFOUND api.example.com"),
    errors.SessionNotOpened("new", None, -32603, "Internal error"),
    errors.CapabilityMissing("promptCapabilities.image", "an image in a prompt"),
    errors.ResultMissing("max_tokens", "The answer is"),
)


def test_a_hint_belongs_to_no_error_that_it_has_nothing_to_do_with() -> None:
    for profile, error in itertools.product(shipped(), OTHERS):
        assert profile.hints(error) == (), profile.name


def test_the_model_of_claude_sees_the_schemas_of_our_tools_at_once() -> None:
    assert find_agent("claude").env.applied({"ENABLE_TOOL_SEARCH": "1"})["ENABLE_TOOL_SEARCH"] == "0"


def test_claude_does_not_take_itself_for_a_part_of_another_one_and_keeps_its_account() -> None:
    inherited = {
        "CLAUDE_CODE_CHILD_SESSION": "1",
        "CLAUDE_CODE_SESSION_ID": "x",
        "CLAUDE_CODE_OAUTH_TOKEN": "x",
    }
    kept = find_agent("claude").env.applied(inherited)
    assert "CLAUDE_CODE_OAUTH_TOKEN" in kept
    assert not {"CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ID"} & kept.keys()
