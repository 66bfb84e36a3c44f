"""The pure parts of the page's script, in Node.js."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from node_packages import node_command, node_environment, node_packages

SCRIPTS = sorted(Path(__file__).with_name("script").glob("*.test.mjs"))
PAGE = Path(__file__).parents[2] / "thinkwell" / "thinkwell" / "web" / "page" / "page.js"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name.partition(".")[0])
def test_script(script: Path) -> None:
    command = node_command(script)
    done = subprocess.run(
        command, env=node_environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pass 0" not in done.stdout


@pytest.mark.long
def test_types() -> None:
    """What its comments say of types is right, as strictly as TypeScript can look."""
    packages = node_packages()
    options = ("--noEmit", "--allowJs", "--checkJs", "--strict", "--noUnusedLocals", "--noImplicitReturns")
    target = ("--target", "esnext", "--module", "esnext", "--lib", "esnext,dom,dom.iterable")
    compiler = packages / "node_modules" / "typescript" / "lib" / "tsc.js"
    command = node_command(compiler, *options, *target, str(PAGE))
    done = subprocess.run(command, env=node_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
