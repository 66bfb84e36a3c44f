"""The modules of the page: their pure parts in Node.js, and how all of them are written."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import pytest
from node_packages import node_command, node_environment, node_packages

SCRIPTS = sorted(Path(__file__).with_name("script").glob("*.test.mjs"))
FOLDER = Path(__file__).parents[2] / "thinkwell" / "thinkwell" / "web" / "page"
MODULES = sorted(FOLDER.glob("*.js"))

LONGEST: Final = 300
"""Lines of code in a module: no comments, no blank lines."""

IMPORT = re.compile(r'^(?: \* |/\*\* )?@?import .*?from "\./([^"]+)"', re.MULTILINE | re.DOTALL)
"""What a module imports, also for the types in its comments."""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name.partition(".")[0])
def test_script(script: Path) -> None:
    command = node_command(script)
    done = subprocess.run(
        command, env=node_environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pass 0" not in done.stdout


def code_lines(text: str) -> int:
    """Lines that are neither blank nor a comment: in these modules a line of a comment begins like one."""
    return sum(not line.strip().startswith(("//", "/*", "*")) for line in text.splitlines() if line.strip())


def test_no_module_is_long() -> None:
    lengths = {module.name: code_lines(module.read_text("utf-8")) for module in MODULES}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_imports_form_no_circle_and_leave_no_module_out() -> None:
    imports = {module.name: set(IMPORT.findall(module.read_text("utf-8"))) for module in MODULES}
    order = list(TopologicalSorter(imports).static_order())  # what is imported comes first
    assert sorted(order) == [module.name for module in MODULES]
    unused = set(order) - set().union(*imports.values())
    assert unused == {"page.js"}


def test_no_two_modules_declare_the_same_name() -> None:
    """In a run that is saved as one file they are one module."""
    declared = re.compile(r"^(?:export )?(?:async )?(?:const|let|class|function) (\w+)", re.MULTILINE)
    names = Counter(name for module in MODULES for name in declared.findall(module.read_text("utf-8")))
    assert len(names) > 150
    assert {name: count for name, count in names.items() if count > 1} == {}


@pytest.mark.long
def test_format() -> None:
    """They are formatted as Prettier does it."""
    formatter = node_packages() / "node_modules" / "prettier" / "bin" / "prettier.cjs"
    scripts = sorted(Path(__file__).with_name("script").glob("*js"))
    command = node_command(formatter, "--check", "--print-width=100", *map(str, [*MODULES, *scripts]))
    done = subprocess.run(command, env=node_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_types() -> None:
    """What their comments say of types is right, as strictly as TypeScript can look."""
    packages = node_packages()
    options = ("--noEmit", "--allowJs", "--checkJs", "--strict", "--noUnusedLocals", "--noImplicitReturns")
    target = ("--target", "esnext", "--module", "esnext", "--lib", "esnext,dom,dom.iterable")
    compiler = packages / "node_modules" / "typescript" / "lib" / "tsc.js"
    command = node_command(compiler, *options, *target, *map(str, MODULES))
    done = subprocess.run(command, env=node_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
