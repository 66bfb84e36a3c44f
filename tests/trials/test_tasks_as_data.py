"""Tasks and functions go to workers, which are other processes: by name, or as data."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, TypeAdapter

from thinkwell import Skill, ThinkBuilder, load_skill, open_agent, think, tool
from thinkwell.agents import find_agent
from thinkwell.trials import Candidate, Input, PlanError, read_plan, trials

pytestmark = pytest.mark.anyio


PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


class Word(BaseModel):
    """A word."""

    text: str
    kind: Literal["noun", "verb"]

    class Note(BaseModel):
        """What is said of it."""

        text: str


def upper(text: str) -> str:
    """Return a text in capitals."""
    return text.upper()


def ask(given: dict[str, str]) -> ThinkBuilder[dict[str, list[Word.Note] | None]]:
    """Ask for the words of a text."""
    return think(dict[str, list[Word.Note] | None]).text(given["text"])


def check(candidate: Candidate) -> bool:
    """Say whether there is a result."""
    return isinstance(candidate.result, dict)


@pytest.mark.long
async def test_a_task_comes_whole_to_the_worker(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("Notes")
    folder = tmp_path / "greeting"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: greeting\ndescription: Greets.\n---\nSay hello.\n")
    task = (
        think(list[Word | Literal["none", 3] | None])
        .system("Be brief.", fallback="prompt")
        .tool(tool(upper, name="capitals", readonly=True))
        .skill(load_skill(folder))
        .resource(notes)
        .resource("https://example.org/page")
        .meta({"origin": "here"})
        .fallback("claude", after_effects=True)
        .text("The words of: ")
    )
    report = await trials(task, inputs=[Input("a text", key="a")], agents=["builtin"], recordings=tmp_path)
    (trial,) = report.trials
    assert (trial.input, trial.status, trial.error) == ("a", "passed", None)
    assert isinstance(trial.result, list)
    assert trial.recording is not None
    recorded = Path(trial.recording).read_text("utf-8")
    for part in (
        "Be brief.",
        "- capitals: Return a text in capitals.",
        "- greeting: Greets.",
        '"origin"',
        '"Notes"',
    ):
        assert part in recorded
    assert "https://example.org/page" in recorded
    assert "The words of: a text" in recorded


@pytest.mark.long
async def test_an_image_comes_to_the_worker() -> None:
    report = await trials(think().image(PNG).text("What is "), inputs=["this?"], agents=["builtin"])
    (trial,) = report.trials
    assert trial.error is not None
    assert "an image" in trial.error  # which the built-in agent does not take


async def test_a_function_is_found_by_its_import_path(tmp_path: Path) -> None:
    report = await trials(ask, inputs={"a": {"text": "x"}}, agents=["builtin"], check=check)
    (trial,) = report.trials
    assert (trial.input, trial.status, trial.error) == ("a", "passed", None)


def local() -> Any:
    """Return a function that is defined in another one."""

    def inner(given: str) -> ThinkBuilder[str]:
        return think().text(given)

    return inner


class Local:
    """A class with a method."""

    def method(self, given: str) -> ThinkBuilder[str]:
        """Return a task."""
        return think().text(given)


def local_type() -> type[BaseModel]:
    """Return a type that is defined in a function."""

    class Inner(BaseModel):
        text: str

    return Inner


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            {"task": lambda: think()},
            r"task: a lambda \(.*test_tasks_as_data.py:\d+\) has no name",
        ),
        ({"task": local()}, r"task: local.inner \(.*\) is defined in a function"),
        ({"task": partial(ask, {})}, r"task=functools.partial.*: workers .* cannot get this partial"),
        ({"task": Local().method}, r"task: workers do not find <bound method Local.method"),
        ({"task": type("Gone", (), {"__module__": __name__})}, r"task: workers do not find <class '.*Gone'>"),
        ({"task": think().tool(local())}, r"tool 'inner': local.inner"),
        ({"task": think(TypeAdapter(int))}, r"the output type=TypeAdapter.*cannot get this TypeAdapter"),
        ({"task": think(local_type())}, r"the output type: local_type.Inner .* is defined in a function"),
        ({"task": think().skill(Skill("a", description="b", body="c"))}, r"the skill 'a'; give a folder"),
        (
            {"task": think().fallback(find_agent("claude"))},
            r"the fallback AgentProfile.*give an agent's name",
        ),
        ({"check": local()}, r"check: local.inner"),
        ({"agents": [find_agent("claude")]}, r"agents=.*cannot get AgentProfile.*give the agent's name"),
        ({"agents": "claude"}, r"agents='claude': give a list"),
        ({"agents": ["claude", "claude"]}, r"give one or more, each once"),
        ({"inputs": "one"}, r"inputs='one': give a list"),
        ({"inputs": [1, object()]}, r"inputs: the one at 1 is no JSON, .* cannot get <object"),
        ({"inputs": [{1: 2}]}, r"inputs: the one at 0 is no JSON"),
        ({"inputs": [float("nan")]}, r"inputs: the one at 0 is no JSON"),
        ({"inputs": {"a": (1, 2)}}, r"inputs: the one at 0 is no JSON"),
        ({"limit": 0}, r"limit=0: give a whole number"),
        ({"task": think().cwd(".")}, r"leave out .cwd"),
    ],
)
async def test_what_another_process_cannot_get(options: dict[str, Any], why: str) -> None:
    given: dict[str, Any] = {"task": think().text("Greet"), "inputs": ["a"], "agents": ["builtin"], **options}
    with pytest.raises((TypeError, ValueError), match=why):
        await trials(given.pop("task"), **given)


async def test_a_task_of_an_open_agent() -> None:
    async with open_agent("builtin") as agent:
        with pytest.raises(ValueError, match=r"begin the task with thinkwell.think"):
            await trials(agent.think().text("Greet"), inputs=["a"], agents=["builtin"])


SCRIPT = """
import anyio
from dataclasses import dataclass
from helper import language
from thinkwell import think
from thinkwell.trials import trials

@dataclass
class Greeting:
    text: str

def greet(name):
    return think(Greeting).text(f"Greet {name} in {language}")

def check(candidate):
    return bool(candidate.result["text"])

async def main():
    report = await trials(greet, inputs=["Ada"], agents=["builtin"], check=check)
    print(report, *[trial.error for trial in report.trials])
"""


def test_a_function_of_an_interactive_session() -> None:
    code = SCRIPT.replace("from helper import language", "language = ''") + "anyio.run(main)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "task: greet is defined in an interactive session" in done.stderr


@pytest.mark.parametrize(
    ("end", "how", "told"),
    [
        ('if __name__ == "__main__":\n    anyio.run(main)', [], "<Report 1 passed> None"),
        pytest.param(
            'if __name__ == "__main__":\n    anyio.run(main)',
            ["-m"],
            "<Report 1 passed> None",
            marks=pytest.mark.long,
        ),
        pytest.param(
            'if __name__ == "__main__":\n    anyio.run(main)\nelse:\n    raise ValueError("no")',
            [],
            "the script has failed: ValueError: no",
            marks=pytest.mark.long,
        ),
        ("anyio.run(main)", [], 'put the call under `if __name__ == "__main__":`'),
    ],
)
def test_a_script_is_found_by_its_file(tmp_path: Path, end: str, how: list[str], told: str) -> None:
    (tmp_path / "helper.py").write_text("language = 'French'\n")
    (tmp_path / "script.py").write_text(SCRIPT + end)
    script = ["script"] if how else [str(tmp_path / "script.py")]
    done = subprocess.run(
        [sys.executable, *how, *script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert told in done.stdout


def test_two_plans_with_modules_of_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "own_tasks", sys)
    del sys.modules["own_tasks"]  # and again at the end
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "own_tasks.py").write_text(
            f"from thinkwell import think\n\ndef ask(given):\n    return think().text({name!r})\n"
        )
        (tmp_path / name / "plan.toml").write_text(
            'agents = ["builtin"]\ninputs = [1]\ntask = {function = "own_tasks:ask"}\n'
        )
    read_plan(tmp_path / "first" / "plan.toml")
    with pytest.raises(PlanError, match=r"another own_tasks was imported before, from .*first; rename one"):
        read_plan(tmp_path / "second" / "plan.toml")
