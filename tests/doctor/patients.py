"""What the tests of the doctor share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from scripted import Played, Proceed

from thinkwell.doctor import Check, Diagnosis, diagnose
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import TaskGroup


SICK = str(Path(__file__).parent / "programs" / "sick_agent.py")
ODD = str(Path(__file__).parents[1] / "agent" / "programs" / "odd_agent.py")

NAMES = [
    "found",
    "installed",
    "starts",
    "version",
    "protocol",
    "capabilities",
    "login",
    "session",
    "tools over acp",
    "tools over http",
    "tools over stdio",
    "answer",
    "typed result",
    "ends",
]

UNKNOWN = {"answer": "unknown", "typed result": "unknown"}
"""What is not known where nothing was prompted."""


def sick(mode: str) -> list[str]:
    return [sys.executable, SICK, mode]


class Picky(Played):
    """Takes none of our tools from a program, but says so at once."""

    async def open_session(self, request: Any, proceed: Proceed) -> Any:
        ours = (server.name.startswith("thinkwell") for server in request.mcp_servers)
        if any(ours) and any(isinstance(server, s.McpServerStdio) for server in request.mcp_servers):
            raise RpcError(-32602, "no programs")
        return await super().open_session(request, proceed)


async def examined(handler: Played, **options: Any) -> Diagnosis:
    """Diagnose an agent in memory."""
    async with handler.connect() as transport:
        return await diagnose("mine", transport=transport, **options)


async def examined_with_tasks(make: Callable[[TaskGroup], Played]) -> Diagnosis:
    """Diagnose an agent in memory that has tasks of its own."""
    found: list[Diagnosis] = []
    async with anyio.create_task_group() as tasks:
        found.append(await examined(make(tasks)))
        tasks.cancel_scope.cancel()
    return found[0]


async def examined_process(*arguments: Any, **options: Any) -> Diagnosis:
    """Diagnose an agent that is a process."""
    with anyio.fail_after(300):
        return await diagnose(*arguments, **options)


def statuses(diagnosis: Diagnosis) -> dict[str, str]:
    return {check.name: check.status for check in diagnosis.checks}


def check(diagnosis: Diagnosis, name: str) -> Check:
    return next(check for check in diagnosis.checks if check.name == name)


def failed(diagnosis: Diagnosis) -> list[str]:
    return [check.name for check in diagnosis.checks if check.status == "failed"]
