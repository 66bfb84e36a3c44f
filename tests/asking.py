"""An agent that asks one thing, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import anyio
from scripted import Turn, scripted

from thinkwell import ThoughtStream
from thinkwell import events as ev
from thinkwell_acp import schema as s

OPTIONS = (
    s.PermissionOption(option_id="a", name="Always", kind="allow_always"),
    s.PermissionOption(option_id="n", name="Never", kind="reject_always"),
    s.PermissionOption(option_id="y", name="Yes", kind="allow_once"),
    s.PermissionOption(option_id="x", name="No", kind="reject_once"),
)

SHELL = s.ToolCallUpdate(
    tool_call_id="t1", title="rm -rf build", kind="execute", raw_input={"command": "rm -rf build"}
)


def options(*kinds: str) -> tuple[s.PermissionOption, ...]:
    return tuple(option for option in OPTIONS if option.kind in kinds)


def permission(
    session_id: str,
    call: s.ToolCallUpdate = SHELL,
    offered: tuple[s.PermissionOption, ...] = OPTIONS,
) -> s.RequestPermissionRequest:
    return s.RequestPermissionRequest(session_id=session_id, tool_call=call, options=offered)


@dataclass
class Asked:
    """What an agent was told, and what the log says of it."""

    told: list[Any] = field(default_factory=list[Any])
    events: list[ev.ThoughtEvent] = field(default_factory=list[ev.ThoughtEvent])

    @property
    def choice(self) -> str | None:
        """The id of the option that the agent was told, ``None``: cancelled."""
        (response,) = self.told
        outcome = response.outcome
        return outcome.option_id if isinstance(outcome, s.SelectedPermissionOutcome) else None

    @property
    def question(self) -> ev.QuestionAsked:
        (event,) = (event for event in self.events if isinstance(event, ev.QuestionAsked))
        return event

    @property
    def answer(self) -> ev.QuestionAnswered:
        (event,) = (event for event in self.events if isinstance(event, ev.QuestionAnswered))
        return event

    @property
    def verdicts(self) -> list[tuple[str | None, str, str]]:
        """Who said what, and why."""
        return [
            (event.verdict, event.by, event.why)
            for event in self.events
            if isinstance(event, ev.QuestionVerdict)
        ]


def error_of(stream: ThoughtStream[Any]) -> Exception | None:
    return stream.result.exception()


async def ask(*requests: Any, meanwhile: Any = None, **settings: Any) -> Asked:
    """Let an agent ask; `meanwhile` gets the stream while it does."""
    asked = Asked()

    async def script(turn: Turn) -> None:
        for make in requests or (permission,):
            request = make(turn.session_id)
            with anyio.CancelScope(shield=True):
                asked.told.append(await answered(turn, request))
        turn.say("Done")

    async with scripted(script, **settings) as agent:
        stream = agent.think().text("Go").stream(include="all")
        with anyio.fail_after(30):
            if meanwhile is not None:
                await meanwhile(stream)
            asked.events = [event async for event in stream]
            await stream.wait()
    return asked


async def answered(turn: Turn, request: Any) -> Any:
    if isinstance(request, s.RequestPermissionRequest):
        return await turn.client.request_permission(request)
    return await turn.client.create_elicitation(request)


async def opened(stream: ThoughtStream[Any]) -> ev.QuestionAsked:
    """Wait for a question."""
    async for event in stream:
        if isinstance(event, ev.QuestionAsked):
            return event
    raise AssertionError("it asked nothing")
