"""The outcome of a run after the agent has ended a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thinkwell._core.task import prompt
from thinkwell.errors import ResultMissing, ResultRefused, ToolsNotSeen
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from thinkwell._core.schema.output import Output
    from thinkwell.errors import ResultInvalid


def failure(
    output: Output[Any],
    stop_reason: str,
    text: str,
    *,
    refused: ResultInvalid | None,
    tools_missed: bool,
    tools_tried: Sequence[str],
    denied: Callable[[], Sequence[str]],
) -> Exception | None:
    """Return why a turn has no result; ``None``: its last message is the result.

    Args:
        output: The output type.
        stop_reason: Why the agent ended the turn.
        text: Its last message.
        refused: The problem of the last value that it returned.
        tools_missed: Whether the task needs tools, and the agent has never fetched any.
        tools_tried: The transports over which they were offered.
        denied: Returns the denied requests.
    """
    if stop_reason == "refusal":
        return ResultRefused(text)
    if output.text is not None and stop_reason == "end_turn" and not tools_missed:
        return None
    if refused is not None:
        return refused
    if tools_missed:
        return ToolsNotSeen(tuple(tools_tried), text)
    return ResultMissing(stop_reason, text, denied=denied())


def reminder(refused: ResultInvalid | None) -> tuple[s.ContentBlock, ...]:
    """Return a prompt that asks for the result."""
    return (s.TextContent(text=prompt.reminder(None if refused is None else refused.errors)),)
