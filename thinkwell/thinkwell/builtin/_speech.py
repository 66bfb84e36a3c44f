"""Writes in small chunks, as a model would."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell_acp import AcpError
from thinkwell_acp import schema as s
from thinkwell_acp.mcp._client import printable
from thinkwell_acp.mcp._written import written

if TYPE_CHECKING:
    from thinkwell_acp import AgentSide

PACE: Final = 0.01
"""Seconds between two chunks: fast, but slow enough to follow."""

PACE_VARIABLE: Final = "THINKWELL_BUILTIN_PACE"
"""Environment variable for another number of seconds; 0 for tests."""

PACE_KEY: Final = "thinkwell.builtin/pace"
"""The same for one prompt, as a key in its ``_meta``."""

STEPS: Final = 50
"""Most parts of a result that are shown while it is written; a short one is shown byte by byte."""

MAX_SAID: Final = 200_000
"""Characters of one message or thought."""

_CHUNK: Final = re.compile(r"(?:\S+\s*){1,3}")


def pace_of(meta: s.JsonObject | None) -> float:
    """Return the pace, in seconds, from a prompt's ``_meta`` or the environment."""
    for wanted in ((meta or {}).get(PACE_KEY), os.environ.get(PACE_VARIABLE)):
        try:
            pace = float(str(wanted))
        except ValueError:
            continue
        return max(0.0, pace)
    return PACE


class Speaker:
    """Sends the updates of one turn."""

    def __init__(self, client: AgentSide, session_id: str, turn: str, pace: float) -> None:
        self._client = client
        self._session_id = session_id
        self._turn = turn
        self._pace = pace
        self._messages = 0
        self._calls = 0

    def update(self, update: s.SessionUpdate) -> None:
        """Send an update."""
        self._client.update(self._session_id, update)

    async def think(self, text: str) -> None:
        """Stream a thought."""
        await self._stream(s.AgentThoughtChunk, text)

    async def say(self, text: str) -> None:
        """Stream a message."""
        await self._stream(s.AgentMessageChunk, text)

    async def _stream(self, chunk: type[s.AgentThoughtChunk | s.AgentMessageChunk], text: str) -> None:
        self._messages += 1
        message_id = f"{self._turn}-{self._messages}"
        for piece in _CHUNK.findall(printable(text, MAX_SAID) + "\n"):
            self.update(chunk(content=s.TextContent(text=piece), message_id=message_id))
            await self._breathe()

    async def _breathe(self) -> None:
        await self._client.drain()
        await anyio.sleep(self._pace)

    def start_tool(
        self,
        title: str,
        kind: s.ToolKind,
        *,
        name: str | None = None,
        arguments: s.JsonValue = None,
        path: str | None = None,
        waits: bool = False,
    ) -> str:
        """Report that a tool call begins or waits for a permission, and return its id. `path` is absolute."""
        self._calls += 1
        call_id = f"{self._turn}-call-{self._calls}"
        self.update(
            s.ToolCallStart(
                tool_call_id=call_id,
                title=title,
                name=name,
                kind=kind,
                status="pending" if waits else "in_progress",
                raw_input=arguments,
                locations=() if path is None else (s.ToolCallLocation(path=path),),
            )
        )
        return call_id

    async def write_tool(self, title: str, arguments: s.JsonObject, *, waits: bool) -> str:
        """Report a call while its arguments are written, then as `start_tool` does; return its id."""
        call_id = self.start_tool(title, "other", name=title, arguments={}, waits=True)
        for part in written(arguments, STEPS):
            self.update(s.ToolCallProgress(tool_call_id=call_id, raw_input=part))
            await self._breathe()
        status: s.ToolCallStatus = "pending" if waits else "in_progress"
        self.update(s.ToolCallProgress(tool_call_id=call_id, status=status, raw_input=arguments))
        return call_id

    async def may_call(self, call_id: str) -> bool:
        """Ask whether a tool that waits may be called. If the client cannot be asked, it may not."""
        request = s.RequestPermissionRequest(
            session_id=self._session_id,
            tool_call=s.ToolCallUpdate(tool_call_id=call_id),
            options=(
                s.PermissionOption(option_id="yes", name="Call it", kind="allow_once"),
                s.PermissionOption(option_id="no", name="Leave it", kind="reject_once"),
            ),
        )
        try:
            outcome = (await self._client.request_permission(request)).outcome
        except (AcpError, s.DecodeError):
            return False
        if not isinstance(outcome, s.SelectedPermissionOutcome) or outcome.option_id != "yes":
            return False
        self.update(s.ToolCallProgress(tool_call_id=call_id, status="in_progress"))
        return True

    async def end_tool(
        self, call_id: str, text: str, *, failed: bool = False, output: s.JsonValue = None
    ) -> None:
        """Report the outcome of a tool call."""
        self.update(
            s.ToolCallProgress(
                tool_call_id=call_id,
                status="failed" if failed else "completed",
                content=(s.Content(content=s.TextContent(text=text)),),
                raw_output=output,
            )
        )
        await self._breathe()


class Plan:
    """The plan of a turn; its steps are done in order."""

    def __init__(self, speaker: Speaker, steps: list[str]) -> None:
        self._speaker = speaker
        self._steps = steps
        self._done = -1

    def next(self) -> None:
        """Go to the next step, or beyond the last."""
        self._done += 1
        self._speaker.update(
            s.AgentPlanUpdate(
                entries=tuple(
                    s.PlanEntry(content=step, priority="medium", status=self._status(index))
                    for index, step in enumerate(self._steps)
                )
            )
        )

    def _status(self, index: int) -> s.PlanEntryStatus:
        if index < self._done:
            return "completed"
        return "in_progress" if index == self._done else "pending"
