"""Recorded runs as trajectories in ATIF, the format of Harbor.

It is written without the package `atif`, whose models add nothing to these few fields. The tests check what
is written with them, and with Harbor's own validator.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from thinkwell import replay
from thinkwell._display.tools import whole_output
from thinkwell._recording import _records as rec
from thinkwell._recording._reading import read_recording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.events import JsonValue
    from thinkwell.view import RunView, ToolView

__all__ = ("trajectory",)

VERSION: Final = "ATIF-v1.8"


async def trajectory(path: str, extra: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a recorded run as a trajectory.

    Args:
        path: A recording of one run.
        extra: What else is said of it.

    Raises:
        RecordingError: The file is not a recording, or has several runs.
        OSError: The file cannot be read.
    """
    stream = replay(path, speed=0, include="all")
    await stream.wait()
    view = stream.view
    recording = read_recording(path)
    header = recording.header
    begun = next(record for record in recording.records if isinstance(record, rec.RunBegun))
    version, prompts = "unknown", list[str]()
    for record in recording.records:
        match record:
            case rec.Received(message={"result": {"agentInfo": {"version": str(said)}}}):
                version = said
            case rec.Sent(message={"params": {"sessionId": view.session_id, "prompt": [*blocks]}}):
                prompts.append("\n".join(filter(None, map(_text_of, blocks))))
            case _:
                pass
    start = datetime.fromisoformat(header.time) + timedelta(seconds=begun.at)
    steps = _Steps(view, prompts, start).all
    return _without_none(
        {
            "schema_version": VERSION,
            "session_id": view.session_id,
            "agent": _without_none(
                {
                    "name": view.agent or header.agent,
                    "version": version,
                    "model_name": view.model,
                }
            ),
            "steps": steps,
            "final_metrics": _metrics(view, len(steps)),
            "extra": extra,
        }
    )


class _Steps:
    """The steps of a run: what is sent to the agent, and what it says and does in between.

    A step of the agent ends where it speaks or thinks after it has called tools.
    """

    def __init__(self, view: RunView, prompts: Sequence[str], start: datetime) -> None:
        self.all: list[dict[str, JsonValue]] = []
        self._start = start
        waiting = list(prompts)
        for item in view.timeline:
            match item.kind:
                case "turn":
                    self._add("user", item.at)["message"] = waiting.pop(0) if waiting else ""
                case "user":
                    if item.steered:  # else an echo of the prompt
                        self._add("user", item.at)["message"] = view.user_messages[item.index]
                case "thought":
                    self._say("reasoning_content", view.thought_blocks[item.index], item.at)
                case "message":
                    self._say("message", view.messages[item.index], item.at)
                case _:
                    self._call(view.tools[item.id or ""], item.at)

    def _add(self, source: str, at: float) -> dict[str, Any]:
        time = (self._start + timedelta(seconds=at)).isoformat()
        step = {"step_id": len(self.all) + 1, "timestamp": time, "source": source, "message": ""}
        self.all.append(step)
        return step

    def _agents(self, at: float, *, speaks: bool) -> dict[str, Any]:
        """Return the agent's step that goes on, or a new one."""
        last = self.all[-1] if self.all else None
        if last is None or last["source"] != "agent" or (speaks and "tool_calls" in last):
            return self._add("agent", at)
        return last

    def _say(self, key: str, text: str, at: float) -> None:
        step = self._agents(at, speaks=True)
        before: str = step.get(key, "")
        step[key] = "\n\n".join(filter(None, (before, text)))

    def _call(self, tool: ToolView, at: float) -> None:
        step = self._agents(at, speaks=False)
        arguments = {} if tool.input is None else {"input": tool.input}
        with suppress(msgspec.ValidationError):
            arguments = msgspec.convert(tool.input, dict[str, Any])
        about = {"title": tool.title, "kind": tool.kind, "status": tool.status, "parent": tool.parent}
        call: dict[str, JsonValue] = {
            "tool_call_id": tool.id,
            "function_name": tool.name or tool.kind,
            "arguments": arguments,
            "extra": _without_none(about),
        }
        step.setdefault("tool_calls", []).append(call)
        observation = step.setdefault("observation", {"results": []})
        observation["results"].append({"source_call_id": tool.id, "content": whole_output(tool)})


def _text_of(block: JsonValue) -> str | None:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case _:
            return None


def _metrics(view: RunView, steps: int) -> dict[str, JsonValue]:
    tokens, usage = view.tokens, view.usage
    cost = usage.cost if usage is not None else None
    return _without_none(
        {
            "total_prompt_tokens": tokens.input if tokens else None,
            "total_completion_tokens": tokens.output if tokens else None,
            "total_cached_tokens": tokens.cached_read if tokens else None,
            "total_cost_usd": cost.amount if cost is not None and cost.currency == "USD" else None,
            "total_steps": steps,
        }
    )


def _without_none(fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {key: value for key, value in fields.items() if value is not None}
