"""For tests of what front ends speak: agents that do everything, and the official clients, run by Node.js."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
import anyio.to_thread
from anyio.streams.buffered import BufferedByteReceiveStream
from node_packages import node_command, node_environment
from pydantic import TypeAdapter

from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from ag_ui.core import Event
    from anyio.abc import Process
    from scripted import Turn

__all__ = (
    "PNG",
    "Front",
    "Told",
    "ag_ui_event",
    "asks",
    "form",
    "front",
    "page",
    "tool",
    "tool_news",
    "works",
)

PATIENCE: Final = 60.0
"""Seconds after which a test has failed. Node.js takes one of them to start."""

PNG: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A picture of one pixel."""


# What agents do


def text(said: str) -> s.Content:
    return s.Content(content=s.TextContent(text=said))


def tool(id_: str, *, title: str | None = None, **fields: Any) -> s.ToolCallStart:
    """A tool call begins."""
    return s.ToolCallStart(tool_call_id=id_, title=f"Do {id_}" if title is None else title, **fields)


def tool_news(id_: str, status: str | None = None, **fields: Any) -> s.ToolCallProgress:
    """A tool call goes on."""
    return s.ToolCallProgress(tool_call_id=id_, status=status, **fields)  # type: ignore[arg-type]


OPTIONS: Final = (
    s.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    s.PermissionOption(option_id="always", name="Always", kind="allow_always"),
    s.PermissionOption(option_id="no", name="No", kind="reject_once"),
)


async def asks(
    turn: Turn, id_: str = "t1", *, kind: Literal["execute", "fetch"] = "execute", **fields: Any
) -> str | None:
    """Ask for permission for a tool call, and return which option was chosen."""
    call = s.ToolCallUpdate(tool_call_id=id_, title=f"Do {id_}", kind=kind, **fields)
    request = s.RequestPermissionRequest(session_id=turn.session_id, tool_call=call, options=OPTIONS)
    outcome = (await turn.client.request_permission(request)).outcome
    return outcome.option_id if isinstance(outcome, s.SelectedPermissionOutcome) else None


FORM: Final = s.ElicitationSchema(
    properties={
        "host": s.StringPropertySchema(title="Host", min_length=2),
        "port": s.IntegerPropertySchema(minimum=1),
    },
    required=("host",),
)


async def form(turn: Turn) -> s.CreateElicitationResponse:
    """Ask for values."""
    request = s.ElicitationFormMode(session_id=turn.session_id, message="Where to?", requested_schema=FORM)
    return await turn.client.create_elicitation(request)


async def page(turn: Turn) -> s.CreateElicitationResponse:
    """Ask for a web page to be opened."""
    request = s.ElicitationUrlMode(
        session_id=turn.session_id, message="Log in", elicitation_id="e1", url="https://login.example/start"
    )
    return await turn.client.create_elicitation(request)


async def works(turn: Turn) -> None:
    """Do everything that needs no answer."""
    turn.think("Where ")
    turn.think("is it?")
    turn.say("I look ")
    turn.update(plan("in_progress", "pending"))
    turn.say("at it.")
    turn.update(tool("read", kind="read", raw_input={"path": "a.py"}, status="in_progress"))
    turn.update(tool_news("read", "completed", content=(text("print(1)"),)))
    turn.update(tool("edit", kind="edit"))
    turn.update(tool_news("edit", "in_progress", raw_input={"path": "a.py"}))
    change = s.Diff(path="a.py", old_text="print(1)\n", new_text="print(2)\n")
    picture = s.Content(content=s.ImageContent(data=PNG, mime_type="image/png"))
    turn.update(tool_news("edit", "completed", content=(change, text("Done"), picture)))
    turn.update(tool("run", kind="execute", raw_input={"command": "pytest"}, status="in_progress"))
    turn.update(tool_news("run", content=(s.Terminal(terminal_id="term-1"), text("collected 3"))))
    turn.update(tool_news("run", "failed", content=(s.Terminal(terminal_id="term-1"), text("1 failed"))))
    turn.update(s.AgentMessageChunk(content=s.ImageContent(data=PNG, mime_type="image/png")))
    link = s.ResourceLink(uri="https://docs.example/a", name="a", title="Docs")
    turn.update(s.AgentMessageChunk(content=link))
    turn.update(plan("completed", "completed"))
    turn.update(s.UsageUpdate(used=1200, size=200_000, cost=s.Cost(amount=0.5, currency="USD")))
    turn.say("It is 2.")


def plan(*statuses: str) -> s.AgentPlanUpdate:
    """A plan of as many steps."""
    entries = [
        s.PlanEntry(content=f"Step {number}", priority="medium", status=status)  # type: ignore[arg-type]
        for number, status in enumerate(statuses, 1)
    ]
    return s.AgentPlanUpdate(entries=tuple(entries))


# The official clients


@cache
def ag_ui_event() -> TypeAdapter[Event]:
    """What an event of AG-UI may be, says its package, which takes half a second to import."""
    from ag_ui.core import Event

    return TypeAdapter(Event)


@dataclass
class Told:
    """What a client has told while it did something, and how things stand then."""

    lines: list[dict[str, Any]]
    end: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.end[name]

    def all(self, name: str) -> list[Any]:
        """What was told under a name."""
        return [line[name] for line in self.lines if name in line]

    @property
    def message(self) -> dict[str, Any]:
        """The last message."""
        message: dict[str, Any] = self.end["messages"][-1]
        return message

    def parts(self, kind: str) -> list[dict[str, Any]]:
        """Parts of the last message."""
        return [part for part in self.message["parts"] if part["type"] == kind]


@dataclass
class Front:
    """A client in a process of its own."""

    process: Process
    output: BufferedByteReceiveStream
    told: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def do(self, deed: str, **options: Any) -> Told:
        """Have it do something, and return what came of it. ``wait=False``: without waiting for its end."""
        assert self.process.stdin is not None
        with anyio.fail_after(PATIENCE):
            await self.process.stdin.send(json.dumps({"do": deed, **options}).encode() + b"\n")
            lines: list[dict[str, Any]] = []
            while True:
                line = await self.line()
                if line.get("done") == deed:
                    return Told(lines, line)
                lines.append(line)

    async def line(self) -> dict[str, Any]:
        """Wait for something that it tells by itself."""
        line: dict[str, Any] = json.loads(await self.output.receive_until(b"\n", 50_000_000))
        return line


@asynccontextmanager
async def front(script: Path, *arguments: str) -> AsyncGenerator[Front]:
    """Run a client."""
    environment = await anyio.to_thread.run_sync(node_environment)
    async with await anyio.open_process(
        node_command(script, *arguments), env=environment, stderr=None
    ) as process:
        assert process.stdout is not None
        try:
            yield Front(process, BufferedByteReceiveStream(process.stdout))
        finally:
            with anyio.CancelScope(shield=True):
                process.kill()
                await process.wait()
