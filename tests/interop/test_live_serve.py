"""The command `serve` with an agent behind it that this project did not write, and a client over HTTP."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import pytest

if sys.platform == "win32":
    pytest.skip("signals of POSIX systems", allow_module_level=True)

from cli.serve_process import serving_web, started, watched, watching

from interop.live import ASKING, shell
from interop.model_server import CallTool, ModelServer, Say

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from cli.serve_process import Web

    from interop.agents import AgentRecipe, Launch

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("recipe", ASKING, ids=lambda recipe: recipe.name),
]

FINDING = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "lines": {"type": "array", "items": {"type": "integer"}}},
    "required": ["title", "lines"],
}


def serving(launch: Launch, project: Path) -> AbstractContextManager[Web]:
    """Serve an agent in a folder."""
    command = shlex.join(launch.command)
    return serving_web("--command", command, "--cwd", str(project), env=dict(launch.env))


def test_a_caller_decides_what_an_agent_may_do(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    with serving(launch, project) as web, web.client() as client:
        for name, answer in (("allowed", "allow"), ("denied", "deny")):
            models.play(shell(recipe, f"touch {name}"), Say("Over."))
            run = started(client, "Run it.")
            with watching(client, run) as watcher:
                question = watcher.until("question")
                assert f"touch {name}" in str(question)
                given = client.post(
                    f"/api/runs/{run}/answer", json={"question": question["id"], "answer": answer}
                )
                assert given.status_code == 204
                assert watcher.until("end")["status"] in {"completed", "failed"}
            entries = watched(client, run)
            assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1))
    assert (project / "allowed").exists()
    assert not (project / "denied").exists()


def test_a_conversation_ends_with_a_typed_result(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    with serving(launch, project) as web, web.client() as client:
        models.play(Say("I have looked."))
        end = watched(client, started(client, "Look.", thread="review"))[-1]
        assert (end["status"], end.get("result")) == ("completed", "I have looked."), end
        models.play(CallTool("return_result", {"result": {"title": "Race", "lines": [7, 9]}}), Say("Done."))
        run = started(client, "What is wrong?", thread="review", output=FINDING)
        end = watched(client, run)[-1]
        assert (end["status"], end.get("result")) == ("completed", {"title": "Race", "lines": [7, 9]}), end
        assert client.get("/api/runs?thread=review").json()["runs"][0]["id"] == run
