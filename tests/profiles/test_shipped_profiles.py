"""The profiles that come with thinkwell: each is whole and pinned, and dates what it says of its agent."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import thinkwell.agents
from thinkwell import errors
from thinkwell.agents import AgentProfile, Binary, Npx, Program, Uvx, find_agent, known_agents

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


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def file(request: pytest.FixtureRequest) -> Path:
    chosen: Path = request.param
    return chosen


def table(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text("utf-8"))


def profile(file: Path) -> AgentProfile:
    return find_agent(file.stem)


def test_the_agents_that_people_use_have_a_profile() -> None:
    assert {file.stem for file in FILES} >= REQUIRED


def test_all_of_them_are_known() -> None:
    assert [profile.name for profile in known_agents()] == [file.stem for file in FILES]


def test_no_two_stand_for_the_same_entry_of_the_registry() -> None:
    entries = [table(file)["registry"] for file in FILES if "registry" in table(file)]
    assert len(entries) == len(set(entries))


def test_it_is_named_as_a_user_would_type_it(file: Path) -> None:
    assert re.fullmatch("[a-z][a-z0-9-]*", file.stem)


def test_it_says_what_it_is_and_how_it_is_launched(file: Path) -> None:
    read = table(file)
    assert read["title"].strip() == read["title"] != ""
    assert read["website"].startswith("https://")
    assert len(LAUNCHES & read.keys()) == 1


def test_it_is_pinned_or_says_how_it_is_installed(file: Path) -> None:
    match profile(file).launch:
        case Npx(version=version) | Uvx(version=version) | Binary(version=version):
            assert VERSION.fullmatch(version)
        case Program(command=command, install=install):
            assert command
            assert install


def test_every_archive_has_a_known_platform_a_secure_address_and_a_checksum(file: Path) -> None:
    launch = profile(file).launch
    for platform, archive in launch.archives.items() if isinstance(launch, Binary) else ():
        assert re.fullmatch("(darwin|linux|windows)-(aarch64|x86_64)", platform)
        assert archive.archive.startswith("https://")
        assert re.fullmatch("[0-9a-f]{64}", archive.sha256 or "")


def test_its_quirks_say_when_they_were_seen_and_with_which_version(file: Path) -> None:
    for quirk in profile(file).quirks:
        assert VERSION.fullmatch(quirk.version)
        assert dt.date(2026, 1, 1) <= quirk.seen <= dt.date(2100, 1, 1)
        assert quirk.about.endswith(".")


def test_a_hint_belongs_to_an_error_that_there_is(file: Path) -> None:
    for quirk in profile(file).quirks:
        assert (quirk.error is None) == (quirk.hint == "")
        if quirk.error is not None:
            assert issubclass(getattr(errors, quirk.error), errors.ThinkwellError)
            assert profile(file).hints(quirk.error).count(quirk.hint) == 1


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
