"""Every Python snippet of the README and the docs runs, against the built-in agent."""

from __future__ import annotations

import ast
import builtins
import inspect
import os
import shutil
import subprocess
import sys
import sysconfig
from types import FunctionType
from typing import TYPE_CHECKING

import anyio
import pytest
from builtin_stage import builtin_in_memory, run_here
from docs.pages import PAGES, ROOT, files, is_program, snippets

import thinkwell

if TYPE_CHECKING:
    from pathlib import Path

LONG = pytest.mark.long

TYPED = "What is in this folder?\n"
"""What a program that reads its standard input gets."""

ELSEWHERE = ("docs/howto/mcp-servers.md",)
"""Pages whose programs other tests run."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the agent to look at; ``python`` is on the PATH, as in an active environment."""
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts"), prepend=os.pathsep)
    (tmp_path / "parser.py").write_text("def parse(text):\n    return text.split()\n", "utf-8")
    (tmp_path / "report.py").write_text("# TODO: totals\ndef report():\n    print('report')\n", "utf-8")
    (tmp_path / "README.md").write_text("# A project\n\nIt parses.\n", "utf-8")
    return tmp_path


def programs(*, here: bool) -> list[object]:
    """The programs of all pages.

    Those that block open their agent by a process, and OpenTelemetry is set up once in a process.
    """
    return [
        pytest.param(page, line, code, id=f"{page.relative_to(ROOT)}:{line}")
        for page in PAGES
        for line, code in snippets(page)
        if is_program(code)
        and not (here and ("opentelemetry" in code or page.relative_to(ROOT).as_posix() in ELSEWHERE))
    ]


def commit_all(page: Path, project: Path) -> None:
    """Put the folder of the pages about worktrees under git."""
    if page.name in ("worktrees.md", "trials.md"):
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
            subprocess.run(["git", *words], cwd=project, check=True)


def saved(page: Path, line: int, code: str, project: Path) -> Path:
    """Write a program beside the files that its page shows."""
    for name, text in files(page).items():
        (project / name).write_text(text, "utf-8")
    commit_all(page, project)
    script = project / "snippet.py"
    script.write_text("\n" * (line - 1) + code, "utf-8")
    return script


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize(("page", "line", "code"), programs(here=True))
def test_program(
    page: Path,
    line: int,
    code: str,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A snippet that is a whole program runs as one."""
    run_here(saved(page, line, code, project), project, monkeypatch, spoken=TYPED)
    assert capsys.readouterr().out.strip()


@LONG
@pytest.mark.parametrize(("page", "line", "code"), programs(here=False))
def test_program_as_a_process(page: Path, line: int, code: str, project: Path) -> None:
    """And as a process, with the agent as another one."""
    result = subprocess.run(
        [sys.executable, "-W", "error", str(saved(page, line, code, project))],
        cwd=project,
        env={**os.environ, "THINKWELL_BUILTIN_PACE": "0"},
        input=TYPED,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, f"{page}:{line}\n{result.stderr}"
    assert result.stdout.strip()


@pytest.mark.parametrize("process", [False, pytest.param(True, marks=LONG)], ids=["memory", "process"])
@pytest.mark.parametrize("page", [p for p in PAGES if snippets(p)], ids=lambda p: p.name)
async def test_fragments(page: Path, process: bool, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other snippets of a page run one after another, where `agent` is the built-in agent."""
    for folder in ("examples", "docs/skills"):
        shutil.copytree(ROOT / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    commit_all(page, project)
    monkeypatch.chdir(project)  # some write files
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")
    if not process:
        builtin_in_memory(monkeypatch)
    fragments = [(line, code) for line, code in snippets(page) if not is_program(code)]
    names: dict[str, object] = {"anyio": anyio, "__name__": "snippets", "__builtins__": builtins}
    with anyio.fail_after(60):
        async with thinkwell.open_agent("builtin", cwd=project) as agent:
            names["agent"] = agent
            for line, code in fragments:
                source = "\n" * (line - 1) + code
                compiled = compile(
                    source, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
                )
                result = FunctionType(compiled, names)()
                if inspect.iscoroutine(result):
                    await result
