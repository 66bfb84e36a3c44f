"""What the tests of the doctor share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from scripted import ScriptedAgent

from thinkwell.doctor import Check, Diagnosis, diagnose
from thinkwell_acp import RpcError, memory_transport_pair, serve_agent
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import TaskGroup

    from thinkwell_acp import AgentHandler


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
    "ends",
]


def sick(mode: str) -> list[str]:
    return [sys.executable, SICK, mode]


class Picky(ScriptedAgent):
    """Takes none of our tools from a program, but says so at once."""

    async def new_session(self, request: s.NewSessionRequest, /) -> s.NewSessionResponse:
        ours = (server.name.startswith("thinkwell") for server in request.mcp_servers)
        if any(ours) and any(isinstance(server, s.McpServerStdio) for server in request.mcp_servers):
            raise RpcError(-32602, "no programs")
        return await super().new_session(request)


async def examined(handler: AgentHandler, **options: Any) -> Diagnosis:
    """Diagnose an agent in memory."""
    ours, theirs = memory_transport_pair()
    async with serve_agent(theirs, handler):
        return await diagnose("mine", transport=ours, **options)


async def examined_with_tasks(make: Callable[[TaskGroup], AgentHandler]) -> Diagnosis:
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
