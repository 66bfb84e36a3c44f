"""What is known of agents, where it is read, and which of it counts."""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import pickle
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from thinkwell import AgentNotFound, AgentStartFailed, ProfileError, errors, open_agent
from thinkwell.agents import (
    AgentProfile,
    Archive,
    Binary,
    EnvironmentRules,
    KnownError,
    Npx,
    Program,
    Quirk,
    Uvx,
    find_agent,
    known_agents,
    update_agents,
)
from thinkwell_acp import memory_transport_pair

if TYPE_CHECKING:
    from collections.abc import Sequence

ODD_AGENT = str(Path(__file__).parents[1] / "agent" / "programs" / "odd_agent.py")
RUNS = f"program = {{ command = {json.dumps([sys.executable, ODD_AGENT, 'works'])} }}\n"
"""A line of a profile: an agent that tells what it is, started by Python."""


@pytest.fixture(autouse=True)
def places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let nothing of this machine's user count, and work in an empty project."""
    for name in ("THINKWELL_AGENT", "THINKWELL_AGENT_CMD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "project" / "folder").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "folder")


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The folder of the user's profiles."""
    folder = tmp_path / "config" / "thinkwell" / "agents"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project's file."""
    return tmp_path / "project" / "pyproject.toml"


def inline(value: Any) -> str:
    """Return a value as TOML, in one line."""
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        pairs = (f"{key} = {inline(inner)}" for key, inner in table.items() if inner is not None)
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(inline, cast('Sequence[Any]', value)))}]"
    return json.dumps(value) if isinstance(value, str | bool) else str(value)


def wrong(name: str) -> ProfileError:
    """Return why a profile cannot be read."""
    with pytest.raises(ProfileError) as caught:
        find_agent(name)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.files) == (str(caught.value), caught.value.files)
    return caught.value


# Names and versions


def test_an_agent_has_a_profile_of_its_own() -> None:
    profile = find_agent("claude")
    assert profile.name == "claude"
    assert profile.title == "Claude Code"
    assert profile.npx is not None
    assert profile.launch is profile.npx
    assert profile.version == profile.npx.version
    assert profile.command == profile.npx.command
    assert f"@agentclientprotocol/claude-agent-acp@{profile.version}" in profile.command
    assert [Path(file).name for file in profile.files] == ["claude.toml"]


def test_all_known_agents_are_there_in_order() -> None:
    names = [profile.name for profile in known_agents()]
    assert names == sorted(names)
    assert {"claude", "codex", "gemini", "opencode"} <= set(names)
    assert "builtin" not in names
    assert [find_agent(name) for name in names] == list(known_agents())


def test_what_is_no_name() -> None:
    for name in (
        *("", " ", "../x", "/etc/passwd", "A B", "claude@", "@latest", "@", ".hidden", "a/b", "claude\n"),
        *("a" * 65, "Claude", "cläude", "\x1b[31mred"),
    ):
        with pytest.raises(AgentNotFound, match="not the name of an agent") as caught:
            find_agent(name)
        assert caught.value.agent == name
        assert str(caught.value).isprintable()


def test_an_unknown_name_has_a_suggestion() -> None:
    for name in ("cloude", "cloude@latest"):
        with pytest.raises(AgentNotFound, match=r"did you mean 'claude'\? For another"):
            find_agent(name)


def test_another_version_of_it() -> None:
    pinned = find_agent("claude")
    for version in ("latest", "1.2.3", "1.0.0-rc.1+build", "next"):
        profile = find_agent(f"claude@{version}")
        assert profile == pinned.at(version)
        assert profile.version == version
        assert f"@agentclientprotocol/claude-agent-acp@{version}" in profile.command
        assert (profile.name, profile.env, profile.quirks) == (pinned.name, pinned.env, pinned.quirks)


def test_a_version_is_no_address() -> None:
    for version in (
        *("npm:other", "file:../x", "https://example.invalid/x.tgz", "../x", "1 2", "^1", "--x", "a@b"),
    ):
        assert f"version = {version!r}: give a version" in str(wrong(f"claude@{version}"))


def test_a_version_that_cannot_be_chosen(user: Path) -> None:
    (user / "mine.toml").write_text('[program]\ncommand = ["mine"]\n', "utf-8-sig")
    assert find_agent("mine").version is None
    assert "@1.2.3 works for agents that npx or uvx download; this one you install yourself" in str(
        wrong("mine@1.2.3")
    )
    assert "@latest works for agents that npx or uvx download" in str(wrong("builtin@latest"))


def test_a_version_of_what_uvx_fetches(user: Path) -> None:
    (user / "mine.toml").write_text('[uvx]\npackage = "mine-cli"\nargs = ["acp"]\n')
    assert find_agent("mine").command == ("uvx", "mine-cli@latest", "acp")
    assert find_agent("mine@1.2").command == ("uvx", "mine-cli@1.2", "acp")
    (user / "mine.toml").write_text('[uvx]\npackage = "mine-cli[all]"\nprogram = "mine"\nversion = "1"\n')
    assert find_agent("mine").command == ("uvx", "--from", "mine-cli[all]@1", "mine")


def test_the_builtin_agent_is_found_and_no_file_changes_it(user: Path, project: Path) -> None:
    (user / "builtin.toml").write_text('[program]\ncommand = ["mine"]\n')
    project.write_text('[tool.thinkwell.agents.builtin.program]\ncommand = ["mine"]\n')
    assert find_agent("builtin").command[1:] == ("-P", "-m", "thinkwell.builtin")
    assert "builtin" not in [profile.name for profile in known_agents()]


def test_the_registrys_name_of_an_agent_is_as_good(user: Path) -> None:
    assert find_agent("claude-acp") == find_agent("claude")
    assert find_agent("claude-acp@latest") == find_agent("claude@latest")
    (user / "claude-acp.toml").write_text('[program]\ncommand = ["mine"]\n')
    assert find_agent("claude-acp").command == ("mine",)


# Layers


def test_the_project_wins_over_the_user_over_what_is_shipped(user: Path, project: Path) -> None:
    shipped = find_agent("claude")
    (user / "claude.toml").write_text(
        'title = "The user\'s"\ncold_start = 7\nnpx.version = "7.0.0"\nenv.set = { A = "user", B = "user" }\n'
    )
    profile = find_agent("claude")
    assert shipped.npx is not None
    assert profile.npx == replace(shipped.npx, version="7.0.0")
    assert (profile.title, profile.cold_start, profile.website) == ("The user's", 7, shipped.website)
    assert profile.env.set == {**shipped.env.set, "A": "user", "B": "user"}
    project.write_text(
        '[tool.thinkwell.agents.claude]\ntitle = "The project\'s"\nnpx.args = ["-x"]\nenv.set.A = "project"\n'
    )
    profile = find_agent("claude")
    assert profile.npx == replace(shipped.npx, version="7.0.0", args=("-x",))
    assert (profile.title, profile.cold_start) == ("The project's", 7)
    assert profile.env.set == {**shipped.env.set, "A": "project", "B": "user"}
    assert profile.files == (*shipped.files, str(user / "claude.toml"), str(project))
    assert profile in known_agents()


def test_another_way_to_start_it_replaces_the_one_before(user: Path, project: Path) -> None:
    shipped = find_agent("claude")
    (user / "claude.toml").write_text('[program]\ncommand = ["my-claude", "--acp"]\n')
    profile = find_agent("claude")
    assert (profile.npx, profile.command) == (None, ("my-claude", "--acp"))
    assert profile.env == shipped.env
    project.write_text('[tool.thinkwell.agents.claude.npx]\npackage = "claude-fork"\n')
    profile = find_agent("claude")
    assert profile.program is None
    assert profile.npx == Npx(package="claude-fork")


def test_names_of_launches_are_no_launches_further_in(user: Path, project: Path) -> None:
    (user / "mine.toml").write_text('[program]\ncommand = ["mine"]\n[env]\nset = { npx = "1" }\n')
    project.write_text('[tool.thinkwell.agents.mine.env]\nset = { uvx = "2" }\n')
    assert find_agent("mine").env.set == {"npx": "1", "uvx": "2"}


def test_lists_are_replaced(user: Path, project: Path) -> None:
    (user / "mine.toml").write_text('[program]\ncommand = ["mine"]\n[env]\nstrip = ["A*", "B*"]\n')
    project.write_text('[tool.thinkwell.agents.mine]\nenv.strip = ["C*"]\n')
    assert find_agent("mine").env.strip == ("C*",)


def test_agents_of_the_users_own(user: Path, project: Path) -> None:
    (user / "mine.toml").write_text('[program]\ncommand = ["mine"]\ninstall = "brew install mine"\n')
    (user / "Not a name.toml").write_text("[program]\ncommand = []\n")
    project.write_text(
        '[tool.thinkwell.agents.ours.uvx]\npackage = "ours"\n[tool.thinkwell.agents."No name"]\nx = 1\n'
    )
    assert find_agent("mine").program == Program(command=("mine",), install="brew install mine")
    assert find_agent("ours").uvx == Uvx(package="ours")
    assert find_agent("ours").files == (str(project),)
    names = [profile.name for profile in known_agents()]
    assert {"mine", "ours"} <= set(names)
    assert not {"No name", "Not a name"} & set(names)
    with pytest.raises(AgentNotFound, match=r"known: .*mine, .*ours"):
        find_agent("nobody")


def test_only_the_nearest_project_counts(project: Path, tmp_path: Path) -> None:
    outer = tmp_path / "pyproject.toml"
    outer.write_text('[tool.thinkwell.agents.claude]\ntitle = "Outer"\n')
    assert find_agent("claude").title == "Outer"
    project.write_text("[project]\n")
    assert find_agent("claude").title == "Claude Code"


async def test_the_folder_that_the_agent_works_in_does_not_choose_what_is_started(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").unlink(missing_ok=True)
    work = tmp_path / "work"
    work.mkdir()
    (work / "pyproject.toml").write_text(f"[tool.thinkwell.agents.evil]\n{RUNS}")
    with pytest.raises(AgentNotFound, match="no known agent has that name"):
        async with open_agent("evil", cwd=work):
            pass


def test_a_current_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert find_agent("claude").name == "claude"
    assert "claude" in [profile.name for profile in known_agents()]


def test_a_file_where_the_users_folder_would_be(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("")
    assert find_agent("claude").name == "claude"


# The registry


def listed(id_: str, package: str, version: str = "", **more: object) -> dict[str, object]:
    """Return an entry of the registry, of an agent from npm."""
    way = {"npx": {"package": package, "args": ["--theirs"], **more}}
    return {
        "id": id_,
        "name": id_.title(),
        "version": version or "0.0.1",
        "description": "",
        "distribution": way,
    }


async def update(tmp_path: Path, *entries: dict[str, object]) -> str:
    """Have a copy of a registry; return where it is."""
    file = tmp_path / "registry.json"
    file.write_text(json.dumps({"version": "1.0.0", "agents": entries, "extensions": []}))
    return str((await update_agents(file)).path)


async def test_the_registry_knows_newer_versions(tmp_path: Path, user: Path) -> None:
    shipped = find_agent("claude")
    assert shipped.npx is not None
    package = shipped.npx.package
    env = {"ENABLE_TOOL_SEARCH": "theirs", "MORE": "theirs"}
    copy = await update(tmp_path, listed("claude-acp", f"{package}@99.0.0", env=env))
    profile = find_agent("claude")
    assert profile.npx == replace(shipped.npx, version="99.0.0")
    assert profile.env.set == {"MORE": "theirs", **shipped.env.set}
    assert (profile.files, profile.quirks) == ((*shipped.files, copy), shipped.quirks)
    assert profile.quirks
    assert find_agent("claude-acp") == profile
    assert [known.name for known in known_agents()].count("claude") == 1
    assert "claude-acp" not in [known.name for known in known_agents()]
    (user / "claude.toml").write_text('npx.version = "7.0.0"\nenv.set.MORE = "user"\n')
    profile = find_agent("claude")
    assert (profile.version, profile.env.set["MORE"]) == ("7.0.0", "user")


async def test_the_registry_undoes_nothing_that_was_tried(tmp_path: Path) -> None:
    shipped = find_agent("claude")
    assert shipped.npx is not None
    versions = ("0.0.1", shipped.version, f"{shipped.version}-rc.1", "9" * 65, "9" * 5000, "x")
    target = {"archive": "https://example.com/x.zip", "cmd": "./x"}
    ways: list[object] = [{"npx": {"package": f"{shipped.npx.package}@{version}"}} for version in versions]
    ways += [{"npx": {"package": "another-agent@99.0.0"}}, {"uvx": {"package": "claude-agent-acp@99.0.0"}}]
    ways += [{"binary": {"linux-x86_64": target}}]
    for way in ways:
        entry = {**listed("claude-acp", "x", "99.0.0"), "distribution": way}
        await update(tmp_path, entry, listed("other", "x"))
        assert find_agent("claude") == shipped, way


async def test_agents_that_only_the_registry_knows(tmp_path: Path, project: Path) -> None:
    entries = (listed("newcomer", "newcomer-acp@1.2.3"), listed("builtin", "evil@1"))
    copy = await update(tmp_path, *entries)
    profile = find_agent("newcomer")
    assert profile.npx == Npx(package="newcomer-acp", version="1.2.3", args=("--theirs",))
    assert (profile.title, profile.registry, profile.files) == ("Newcomer", "newcomer", (copy,))
    assert profile in known_agents()
    assert find_agent("newcomer@latest").version == "latest"
    assert find_agent("builtin").npx is None
    project.write_text('[tool.thinkwell.agents.newcomer]\ntitle = "Ours"\n')
    assert find_agent("newcomer") == replace(profile, title="Ours", files=(copy, str(project)))
    (tmp_path / "cache" / "thinkwell" / "registry.json").unlink()
    assert "give exactly one of" in wrong("newcomer").reason


# What is wrong with a profile


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("title = ", "it cannot be read: "),
        ("title = 'a'\ntitle = 'b'", "it cannot be read: "),
        ("titel = 'x'\n[npx]\npackage = 'x'", "unknown field `titel`"),
        ("[npx]\npackage = 'x'\npin = '1'", "unknown field `pin` - at `$.npx`"),
        ("name = 'x'\n[npx]\npackage = 'x'", "a profile has no key 'name'"),
        ("files = ['x']\n[npx]\npackage = 'x'", "a profile has no key 'files'"),
        ("title = 'x'", "give exactly one of npx, uvx, program, binary"),
        ("[npx]\npackage = 'x'\n[uvx]\npackage = 'x'", "give exactly one of npx, uvx, program, binary"),
        ("[npx]\nversion = '1'", "missing required field `package` - at `$.npx`"),
        ("npx = 'x'", "got `str` - at `$.npx`"),
        ("[npx]\npackage = 1", "Expected `str`, got `int` - at `$.npx.package`"),
        ("[npx]\npackage = 'x'\nargs = '--acp'", "at `$.npx.args`"),
        ("[npx]\npackage = 'x'\nversion = 1.5", "at `$.npx.version`"),
        ("[npx]\npackage = 'x'\nversion = ''", "version = ''"),
        ("[npx]\npackage = 'x'\nversion = 'npm:y'", "version = 'npm:y'"),
        ("[npx]\npackage = '--registry=x'", "npx.package = '--registry=x': give the name of an npm package"),
        ("[npx]\npackage = '../x'", "npx.package = '../x'"),
        ("[npx]\npackage = 'github:x/y'", "npx.package = 'github:x/y'"),
        ("[npx]\npackage = 'x@1'", "npx.package = 'x@1'"),
        ("[npx]\npackage = '@x/../y'", "npx.package = '@x/../y'"),
        ("[npx]\npackage = ''", "npx.package = ''"),
        ("[uvx]\npackage = '-x'", "uvx.package = '-x': give the name of a PyPI package"),
        ("[uvx]\npackage = 'git+https://x'", "uvx.package = 'git+https://x'"),
        ("[uvx]\npackage = 'x'\nprogram = '--python'", "uvx.program = '--python'"),
        ("[uvx]\npackage = 'x'\nprogram = ''", "uvx.program = ''"),
        ("[program]\ncommand = []", "program.command is empty"),
        ("[program]\ncommand = 'x y'", "at `$.program.command`"),
        ("[binary]\nversion = '1'", "missing required field `archives` - at `$.binary`"),
        ("[binary]\nversion = '../..'\narchives = {}", "version = '../..'"),
        ("cold_start = 0\n[npx]\npackage = 'x'", "cold_start = 0: give seconds"),
        ("cold_start = -1.5\n[npx]\npackage = 'x'", "cold_start = -1.5"),
        ("cold_start = nan\n[npx]\npackage = 'x'", "cold_start = nan"),
        ("cold_start = 'long'\n[npx]\npackage = 'x'", "at `$.cold_start`"),
        ("tools_via = ['smoke']\n[npx]\npackage = 'x'", "'smoke' - at `$.tools_via[0]`"),
        ("ends_on_eof = 'no'\n[npx]\npackage = 'x'", "at `$.ends_on_eof`"),
        ("[npx]\npackage = 'x'\n[env]\nset = { A = 1 }", "at `$.env.set[...]`"),
        ("[npx]\npackage = 'x'\n[env]\nset = { A = \"x\\u0000\" }", "env.set.A has a zero byte"),
        ("[npx]\npackage = 'x'\n[env]\nunset = []", "unknown field `unset` - at `$.env`"),
        (
            "[npx]\npackage = 'x'\n[[quirks]]\nabout = 'x'",
            "missing required field `version` - at `$.quirks[0]`",
        ),
        (
            "[npx]\npackage = 'x'\n[[quirks]]\nabout = 'x'\nversion = '1'\nseen = 'today'",
            "at `$.quirks[0].seen`",
        ),
        (
            "[npx]\npackage = 'x'\n[[errors]]\nhint = 'x'\nversion = '1'\nseen = 2026-11-22\nsaid = '('",
            "said = '(' is not a regular expression",
        ),
    ],
)
def test_what_is_wrong_is_said_with_file_and_key(text: str, reason: str, user: Path, project: Path) -> None:
    file = user / "mine.toml"
    file.write_text(text)
    error = wrong("mine")
    assert reason in error.reason
    assert (error.agent, error.files) == ("mine", (str(file),))
    assert str(error).startswith(f"The profile of agent 'mine' (from {file}): ")
    # The same in the project, where the file is TOML at all.
    if "it cannot be read" not in reason:
        file.unlink()
        project.write_text(f"[tool.thinkwell.agents]\nmine = {inline(tomllib.loads(text))}\n")
        assert reason in wrong("mine").reason
        assert wrong("mine").files == (str(project),)


def test_all_files_of_a_profile_that_makes_no_sense_are_named(user: Path, project: Path) -> None:
    (user / "mine.toml").write_text("[npx]\npackage = 'x'\n")
    project.write_text("[tool.thinkwell.agents.mine]\ntitle = 1\n")
    assert wrong("mine").files == (str(user / "mine.toml"), str(project))


def test_a_file_that_is_no_text(user: Path) -> None:
    (user / "mine.toml").write_bytes(b"title = '\xff'\n")
    assert "it cannot be read" in str(wrong("mine"))
    (user / "folder.toml").mkdir()
    assert "it cannot be read" in str(wrong("folder"))


def test_a_link_to_nowhere(user: Path) -> None:
    (user / "mine.toml").symlink_to(user / "nothing")
    with pytest.raises(AgentNotFound):
        find_agent("mine")
    assert "mine" not in [profile.name for profile in known_agents()]


def test_a_project_that_makes_no_sense(project: Path) -> None:
    for text, reason in (
        ("[tool", "it cannot be read"),
        ("tool = 1", "[tool] is not a table"),
        ("[tool]\nthinkwell = []", "[tool.thinkwell] is not a table"),
        ("[tool.thinkwell]\nagents = 'claude'", "[tool.thinkwell.agents] is not a table"),
    ):
        project.write_text(text)
        error = wrong("claude")
        assert f"(from {project}): {reason}" in str(error)
        assert error.files == (str(project),)
        with pytest.raises(ProfileError):
            known_agents()
        with pytest.raises(AgentNotFound, match=r"known: .*claude"):
            find_agent("A B")


def test_a_broken_profile_is_logged_and_others_work(
    user: Path, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (user / "other.toml").write_text("title = ")
    project.write_text("[tool.thinkwell.agents]\nmine = 'x'\n")
    assert "[tool.thinkwell.agents.mine] is not a table" in str(wrong("mine"))
    assert find_agent("claude").name == "claude"
    assert "claude" in [profile.name for profile in known_agents()]
    assert "[tool.thinkwell.agents.mine] is not a table" in caplog.text
    assert str(wrong("other")) in caplog.text


def test_where_a_profile_comes_from_is_logged(user: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "thinkwell")
    (user / "claude.toml").write_text("title = 'x'")
    profile = find_agent("claude")
    assert f"Agent claude: its profile comes from {', '.join(profile.files)}" in caplog.text


# Profiles as values

MINE = AgentProfile(
    name="mine",
    title="Mine",
    website="https://example.com",
    registry="mine-acp",
    binary=Binary(
        version="1.2.3",
        archives={"linux-x86_64": Archive(archive="https://example.com/x.zip", cmd="./x", env={"A": "1"})},
    ),
    env=EnvironmentRules(set={"B": "2"}, strip=("C_*",)),
    tools_via=("http", "stdio"),
    cold_start=10,
    ends_on_eof=False,
    login="mine login",
    quirks=(Quirk(about="It sulks.", version="1", seen=dt.date(2026, 11, 22)),),
    errors=(KnownError(said="^sulk", hint="Wait.", version="1", seen=dt.date(2026, 11, 22)),),
    files=("/a.toml",),
)


@pytest.mark.parametrize(
    "profile",
    [
        MINE,
        AgentProfile(name="a", npx=Npx(package="@a/b", version="1", args=("x",))),
        AgentProfile(name="a", uvx=Uvx(package="a", program="b")),
        AgentProfile(name="a", program=Program(command=("a",), install="b")),
    ],
)
def test_profiles_round_trip(profile: AgentProfile) -> None:
    assert msgspec.convert(msgspec.to_builtins(profile), AgentProfile) == profile
    assert msgspec.json.decode(msgspec.json.encode(profile), type=AgentProfile) == profile
    assert pickle.loads(pickle.dumps(profile)) == profile


def test_a_profile_that_is_written_as_toml_is_read_again(user: Path) -> None:
    table = msgspec.to_builtins(MINE, builtin_types=(dt.date,))
    del table["name"], table["files"]
    lines = (f"{key} = {inline(value)}\n" for key, value in table.items() if value is not None)
    (user / "mine.toml").write_text("".join(lines))
    profile = find_agent("mine")
    assert profile == replace(MINE, files=(str(user / "mine.toml"),))


def test_what_a_binary_is_started_by_is_not_known_before() -> None:
    assert (MINE.command, MINE.version) == ((), "1.2.3")
    with pytest.raises(ProfileError, match="this one is downloaded"):
        MINE.at("2")


def test_types_are_checked_in_python_too() -> None:
    good: dict[str, Any] = {"name": "mine", "program": Program(command=("mine",))}
    bad: list[tuple[dict[str, Any], str]] = [
        ({"program": Program(command=cast("Any", "python x"))}, "program = .*Expected `array`, got `str`"),
        ({"program": {"command": ["a"]}}, "program = .*give a value of the class for it"),
        ({"tools_via": "stdio"}, "tools_via = 'stdio': Expected `array`"),
        ({"tools_via": ("sse",)}, "tools_via = .*Invalid enum value 'sse'"),
        ({"env": {"A": "b"}}, "env = .*unknown field `A`"),
        ({"env": {"set": {"A": "b"}}}, "env = .*give a value of the class for it"),
        ({"cold_start": "long"}, "cold_start = 'long': Expected `float`"),
        ({"title": object()}, "title = "),
    ]
    for fields, reason in bad:
        with pytest.raises(ProfileError, match=reason):
            AgentProfile(**{**good, **fields})


def test_settings_of_unknown_agents_are_ignored_and_logged(
    user: Path, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (user / "Our Agent.toml").write_text("", "utf-8")
    project.write_text(
        '[tool.thinkwell.agent.gemini]\ntitle = "x"\n[tool.thinkwell.agents.Ours_X]\n'
        '[tool.thinkwell.agents.builtin]\ntitle = "x"\n',
        "utf-8",
    )
    known_agents()
    for part in (
        "[tool.thinkwell.agent] is unknown",
        "'Our Agent' is ignored: use small letters",
        "'Ours_X' is ignored",
        "'builtin' is ignored: the built-in agent cannot be changed",
    ):
        assert part in caplog.text


def test_values_are_checked_too() -> None:
    with pytest.raises(ProfileError, match="give exactly one of"):
        AgentProfile(name="mine")
    with pytest.raises(ProfileError, match="give exactly one of"):
        replace(find_agent("claude"), program=Program(command=("mine",)))
    with pytest.raises(ProfileError, match=r"variable in env\.set = 'A=B'"):
        AgentProfile(name="x", npx=Npx(package="x"), env=EnvironmentRules(set={"A=B": "secret"}))
    with pytest.raises(ProfileError, match=r"name = '\.\./x'"):  # it is the name of a folder too
        replace(MINE, name="../x")
    profile = replace(find_agent("claude"), npx=None, program=Program(command=("mine",)))
    assert profile.command == ("mine",)


# Which agent is started


async def told(*arguments: Any, **options: Any) -> dict[str, Any]:
    """Start an agent that tells what it is."""
    with anyio.fail_after(30):
        async with open_agent(*arguments, **options) as agent:
            facts: dict[str, Any] = json.loads(await agent.think().text("Who are you?").run())
            return {**facts, "name": agent.name}


async def test_a_profile_is_given_as_a_value(user: Path) -> None:
    profile = AgentProfile(name="mine", program=Program(command=(sys.executable, ODD_AGENT, "works", "-x")))
    facts = await told(profile)
    assert (facts["name"], facts["args"]) == ("mine", ["-x"])
    (user / "mine.toml").write_text(RUNS)
    assert (await told("mine"))["name"] == "mine"


@pytest.mark.parametrize("wanted", ["claude@1.2.3", "claude@latest"])
async def test_the_version_comes_from_the_environment(
    wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THINKWELL_AGENT", wanted)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "npx").write_text("no program")
    (tmp_path / "npx").chmod(0o755)
    with pytest.raises(errors.AgentStartFailed) as caught:
        async with open_agent():
            pass
    assert caught.value.version == wanted.partition("@")[2]


async def test_wrong_profiles_from_the_environment(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_AGENT", "claude@")
    with pytest.raises(AgentNotFound, match="comes from the environment variable THINKWELL_AGENT"):
        async with open_agent():
            pass
    (user / "mine.toml").write_text("title = 'x'")
    monkeypatch.setenv("THINKWELL_AGENT", "mine")
    with pytest.raises(ProfileError):
        async with open_agent():
            pass


@pytest.mark.parametrize("given", ["name", "profile"])
async def test_a_command_of_yours_for_a_known_agent_has_what_is_known_of_it(user: Path, given: str) -> None:
    row = "[[errors]]\nsaid = 'key'\nhint = 'Set one.'\nversion = '1'\nseen = 2026-11-22\n"
    (user / "mine.toml").write_text(f"npx = {{ package = 'x' }}\nends_on_eof = false\n{row}")
    agent = "mine" if given == "name" else find_agent("mine")
    with anyio.fail_after(30), pytest.raises(AgentStartFailed) as caught:
        async with open_agent(agent, command=[sys.executable, ODD_AGENT, "exit"]):
            pass
    assert caught.value.agent == "mine"
    assert caught.value.version is None
    assert caught.value.command == (sys.executable, ODD_AGENT, "exit")
    assert caught.value.__notes__ == ["Set one."]
    started = find_agent("mine").started_by(["x", "--acp"])
    assert (started.command, started.ends_on_eof) == (("x", "--acp"), False)


async def test_an_agent_that_is_not_known_is_not_started_by_a_command(user: Path) -> None:
    with pytest.raises(AgentNotFound, match="no known agent has that name"):
        async with open_agent("cluade", command="x"):
            pass


async def test_a_command_or_a_connection() -> None:
    ours, _ = memory_transport_pair()
    with pytest.raises(ValueError, match="give a command or a connection, not both"):
        async with open_agent(command="x", transport=ours):
            pass


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("goose acp", "goose"),
        ("/opt/bin/goose acp", "goose"),
        (["/opt/my tools/goose"], "goose"),
        ("python -m my.agent --acp", "my.agent"),
        ("python3.12 -u -X dev -W error -m agent", "agent"),
        ("python -um agent -c x", "agent"),
        ("python -magent", "agent"),
        ("python -Wm agent.py", "agent.py"),
        ("python -X dev", "python"),
        ("python -X", "python"),
        ("python -m", "python"),
        ("/usr/bin/python -P /x/agent.py -m gpt", "agent.py"),
        (["python", "-c", "import secrets; main('key')"], "python"),
        (["python", "-Ic", "main('key')"], "python"),
        (["python", "-cmain('key')\nx"], "python"),
        ("python -", "python"),
        ("python .", "python"),
        ("python", "python"),
        ("npx -y @a/b@1 --acp", "b"),
        ("npx a@latest", "a"),
        ("npx --yes @a/b", "b"),
        ("npx", "npx"),
        ("npx @a/", "npx"),
        ("uvx c", "c"),
        ("uvx --from d@1 c", "d"),
        (["uvx", ""], "uvx"),
    ],
)
async def test_the_name_of_an_agent_that_has_only_a_command(
    command: str | list[str], name: str, tmp_path: Path
) -> None:
    with pytest.raises(AgentNotFound) as caught:
        async with open_agent(command=command, env={"PATH": str(tmp_path / "nothing")}):
            pass
    program = command.split()[0] if isinstance(command, str) else command[0]
    assert caught.value.agent == name
    assert f"no program {program!r} on the PATH" in str(caught.value) or "/" in program


# Its environment


async def test_the_environment_that_an_agent_gets(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (user / "mine.toml").write_text(
        f"{RUNS}[env]\n"
        'set = { FROM_PROFILE = "profile", INHERITED = "profile", MINE_SET = "profile", GIVEN = "profile" }\n'
        'strip = ["MINE_*", "*_SECRET", "ONE"]\n'
    )
    for name in ("INHERITED", "MINE_SET", "MINE_GONE", "A_SECRET", "ONE", "ONE_MORE", "mine_small"):
        monkeypatch.setenv(name, "caller")
    for name in ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"):
        monkeypatch.setenv(name, "1")
    env = (await told("mine", env={"GIVEN": "given", "B_SECRET": "given"}))["env"]
    assert not {"MINE_GONE", "A_SECRET", "ONE", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"} & set(env)
    assert (env["INHERITED"], env["MINE_SET"], env["FROM_PROFILE"]) == ("profile",) * 3
    assert (env["ONE_MORE"], env["mine_small"]) == ("caller", "caller")
    assert (env["GIVEN"], env["B_SECRET"]) == ("given", "given")
    assert os.environ["INHERITED"] == "caller"


async def test_a_guard_may_be_asked_for(user: Path) -> None:
    (user / "mine.toml").write_text(RUNS)
    assert (await told("mine", env={"CLAUDECODE": "1"}))["env"]["CLAUDECODE"] == "1"


# How npx is asked to start an agent. That it does, the tests with real agents see.


def test_a_fixed_version_that_is_there_starts_without_a_network() -> None:
    agent = Npx(package="@acme/agent", version="1.2.3", args=("--acp",))
    assert agent.command == ("npx", "--yes", "--prefer-offline", "@acme/agent@1.2.3", "--acp")


def test_the_newest_version_is_asked_for_each_time() -> None:
    assert Npx(package="agent").command == ("npx", "--yes", "agent@latest")
