"""Moving the pins, with programs in the place of npm and uv that know four packages."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from interop.__main__ import move
from interop.agents import AGENTS
from interop.more_agents import KIMI, MORE_AGENTS
from interop.pins import PINS, Pins

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the npm of this test is no program there")

PROGRAM = """#!{python}
import json, pathlib, re, sys
said = " ".join(sys.argv[1:])
old = "{until}" in said
if sys.argv[1] == "install":
    folder, package = sys.argv[3], sys.argv[-1].rpartition("@")[0]
    packages = {{
        "": {{}},
        f"node_modules/{{package}}": {{"version": "1.0" if old else "2.0"}},
        "node_modules/same": {{"version": "1"}},
        "node_modules/twice": {{"version": "3"}},
        "node_modules/same/node_modules/twice": {{"version": "4" if old else "5"}},
        f"node_modules/{{'gone' if old else 'come'}}": {{"version": "6"}},
    }}
    pathlib.Path(folder, "package-lock.json").write_text(json.dumps({{"packages": packages}}))
else:
    (wanted, *_) = pathlib.Path(sys.argv[-1]).read_text().splitlines()
    with open(__file__ + ".wanted", "a") as file:
        print(wanted, file=file)
    print("# a comment")
    print(f"{{re.match('[a-z-]+', wanted)[0]}}=={{1 if old else 2}}.0")
"""


@pytest.mark.long
def test_pins_move_to_the_newest_versions_and_what_changes_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("npm", "uv"):
        (tmp_path / name).write_text(PROGRAM.format(python=sys.executable, until=PINS.until))
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    file = tmp_path / "pins.json"
    move("2100-01-01T00:00:00Z", file)
    moved = msgspec.json.decode(file.read_bytes(), type=Pins)
    assert moved.until == "2100-01-01T00:00:00Z"
    assert moved.versions == {recipe.package: "2.0" for recipe in (*AGENTS, *MORE_AGENTS)}
    assert list(json.loads(file.read_text())["versions"]) == sorted(moved.versions)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"until {PINS.until} -> 2100-01-01T00:00:00Z"
    codex = lines.index("@agentclientprotocol/codex-acp 1.0 -> 2.0")
    assert lines[codex + 1 : codex + 4] == [
        "    come absent -> 6",
        "    gone 6 -> absent",
        "    twice 3, 4 -> 3, 5",
    ]
    assert f"{KIMI.package} 1.0 -> 2.0" in lines
    wanted = (tmp_path / "uv.wanted").read_text().splitlines()
    assert {"kimi-cli<1.52", f"kimi-cli=={KIMI.version}", "hermes-agent[acp,mcp]"} <= {*wanted}


def test_each_agent_is_pinned_and_nothing_else() -> None:
    assert PINS.versions.keys() == {recipe.package for recipe in (*AGENTS, *MORE_AGENTS)}
