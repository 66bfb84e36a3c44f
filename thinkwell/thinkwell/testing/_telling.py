"""The steps that only send: they need a session, but no turn."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
from anyio.lowlevel import checkpoint

from thinkwell.testing import _steps as st
from thinkwell_acp import schema as s
from thinkwell_acp.mcp._written import written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from thinkwell_acp import AgentSide


STEPS: Final = 2_000
"""Most updates for arguments that are being written. Each has all the text so far, so long texts come in
pieces of several bytes."""


class Teller:
    """Sends a client the updates of one session.

    Args:
        client: The connection to the client.
        session_id: The session.
        numbers: Numbers for tool calls.
        stderr: The descriptor of standard error, if the agent is a process.
    """

    def __init__(
        self, client: AgentSide, session_id: str, numbers: Iterator[int], stderr: int | None
    ) -> None:
        self.client = client
        self.session_id = session_id
        self._numbers = numbers
        self._stderr = stderr

    def new_call_id(self) -> str:
        """Return an id for a tool call."""
        return f"call-{next(self._numbers)}"

    async def tell(self, step: st.Telling) -> None:
        """Run such a step, and let other tasks run."""
        match step:
            case st.Thinks():
                content = s.TextContent(text=step.text)
                self._update(s.AgentThoughtChunk(content=content, message_id=step.message_id))
            case st.Says():
                content = s.TextContent(text=step.text)
                self._update(s.AgentMessageChunk(content=content, message_id=step.message_id))
            case st.Plans():
                self._update(_plan(step))
            case st.Uses():
                self._use(step)
            case st.Updates():
                body = {"sessionId": step.session_id or self.session_id, "update": step.update}
                self.client.connection.notify("session/update", body)
            case st.Sends():
                self.client.connection._post(step.data)  # the only way to send bytes in order
            case st.FloodsStderr():
                if self._stderr is not None:
                    await anyio.to_thread.run_sync(_flood, self._stderr, step.size, abandon_on_cancel=True)
            case st.Pauses():  # pragma: no branch - the last of the union
                await anyio.sleep(step.seconds)
        await self.client.drain()
        await checkpoint()

    async def write_call(self, name: str, arguments: s.JsonObject) -> str:
        """Report a call of the client's tool while its arguments are written, and return its id."""
        call_id = self.new_call_id()
        self._update(s.ToolCallStart(tool_call_id=call_id, title=name, name=name, raw_input={}))
        for part in written(arguments, STEPS):
            self._update(s.ToolCallProgress(tool_call_id=call_id, raw_input=part))
            await self.client.drain()
            await checkpoint()
        self._update(s.ToolCallProgress(tool_call_id=call_id, status="in_progress", raw_input=arguments))
        return call_id

    def end_call(self, call_id: str, status: s.ToolCallStatus) -> None:
        """Report the end of such a call."""
        self._update(s.ToolCallProgress(tool_call_id=call_id, status=status))

    def _update(self, update: s.SessionUpdate) -> None:
        self.client.update(self.session_id, update)

    def _use(self, step: st.Uses) -> None:
        call_id = step.id or self.new_call_id()
        locations = () if step.path is None else (s.ToolCallLocation(path=step.path),)
        self._update(
            s.ToolCallStart(
                tool_call_id=call_id,
                title=step.title,
                name=step.name,
                kind=step.kind,
                status="pending" if step.status == "pending" else "in_progress",
                locations=locations,
                raw_input=step.input,
            )
        )
        content: list[s.ToolCallContent] = []
        if step.text is not None:
            content.append(s.Content(content=s.TextContent(text=step.text)))
        if step.diff is not None:
            diff = step.diff
            content.append(s.Diff(path=diff.path, new_text=diff.new_text, old_text=diff.old_text))
        self._update(
            s.ToolCallProgress(
                tool_call_id=call_id,
                status=step.status,
                content=tuple(content) or None,
                raw_output=step.output,
            )
        )


def _plan(step: st.Plans) -> s.AgentPlanUpdate:
    return s.AgentPlanUpdate(
        entries=tuple(
            s.PlanEntry(
                content=entry, priority="medium", status="completed" if index < step.done else "pending"
            )
            for index, entry in enumerate(step.entries)
        )
    )


def _flood(stderr: int, size: int) -> None:
    line = b"." * 79 + b"\n"
    while size > 0:
        size -= os.write(stderr, (line * (size // len(line) + 1))[: min(size, 64 * 1024)])
