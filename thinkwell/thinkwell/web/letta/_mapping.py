"""The events of a run as Letta's messages. Pure: no time, no network; the same log gives the same messages.

A broken stream is resumed by numbers of messages, so nothing here may depend on the time of reading.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, TypedDict
from uuid import NAMESPACE_OID, uuid5

from msgspec import Struct
from msgspec.structs import replace

from thinkwell import events as ev
from thinkwell._core.schema.json_schema import is_object
from thinkwell._display import changes as ch
from thinkwell.view import TokenCounts, ToolView
from thinkwell.web._records import RunEnded
from thinkwell.web.front_ends._facts import as_json
from thinkwell.web.front_ends._tools import call_of_front_end
from thinkwell.web.letta._messages import (
    ApprovalRequest,
    AssistantMessage,
    ReasoningMessage,
    ToolCall,
    ToolCallMessage,
    ToolReturn,
    ToolReturnMessage,
    UsageStatistics,
)
from thinkwell.web.letta._questions import Asked, carried
from thinkwell.web.letta._texts import block_text, plan_arguments, return_text

if TYPE_CHECKING:
    from typing import TypeGuard

    from thinkwell.web._records import LogEntry
    from thinkwell.web.letta._messages import Message

PLAN_TOOL: Final = "update_plan"
"""The name of the tool call for a plan."""

_COUNTS: Final = {
    "prompt_tokens": "input",
    "completion_tokens": "output",
    "total_tokens": "total",
    "cached_input_tokens": "cached_read",
    "cache_write_tokens": "cached_write",
    "reasoning_tokens": "thought",
}
"""The fields of `TokenCounts` for Letta's counts."""


_SAID: Final = (ev.Message, ev.Thought, ev.ToolStart, ev.ToolUpdate, ev.ToolDone, ev.PlanUpdate)


class Head(TypedDict):
    """What all messages begin with."""

    id: str
    otid: str
    date: str


class _StepHead(Head):
    step_id: str


class _Speech(Struct, kw_only=True):
    """The current message."""

    kind: Literal["thought", "message"]
    source: str | None
    """The agent's name for it."""
    head: _StepHead
    pieces: list[str]


class _Call(Struct, kw_only=True):
    """A call that has begun."""

    head: _StepHead
    view: ToolView
    """What is known of it by now."""
    done: bool = False

    @property
    def tool(self) -> str:
        """The name of the tool, as far as it is known."""
        view = self.view
        return view.name or (view.kind if view.kind != "other" else "") or view.title or "tool"

    @property
    def arguments(self) -> str:
        """The arguments, or else the agent's description of them."""
        given, title = self.view.input, self.view.title
        if given is None:
            return as_json({"title": title} if title else {})
        return as_json(given if is_object(given) else {"input": given})


def waits(event: LogEntry) -> TypeGuard[ev.QuestionAsked]:
    """Return whether an event is a question without an immediate answer of a policy."""
    return isinstance(event, ev.QuestionAsked) and event.timeout is not None


def date_of(seconds: float) -> str:
    """Return a time, in seconds since the epoch, in Letta's form."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def head_of(message_id: str, seconds: float, otid: str | None = None) -> Head:
    """Return the beginning of a message.

    Args:
        message_id: Its id.
        seconds: Its time, in seconds since the epoch.
        otid: Its id from a client, if it has one.
    """
    otid = otid or str(uuid5(NAMESPACE_OID, message_id))
    return {"id": message_id, "otid": otid, "date": date_of(seconds)}


class Mapper:
    """Turns the entries of a run into messages.

    Args:
        run: The run's id without its prefix. It is part of all other ids.
        created: Its start, in seconds since the epoch.
        tokens: Whether to return each piece of a message at once, instead of whole messages.
    """

    def __init__(self, run: str, created: float, *, tokens: bool) -> None:
        self.asked: dict[str, Asked] = {}
        """The questions by id, in order."""
        self.steps = 0
        """The number of model outputs so far."""
        self._run = run
        self._created = created
        self._tokens = tokens
        self._speech: _Speech | None = None
        self._calls: dict[str, _Call] = {}
        """By the agent's ids."""
        self._untold: dict[str, _Call] = {}
        """The calls whose arguments were not sent."""
        self._in_step = False
        self._reader = ch.ChangeReader()
        self._context: int | None = None

    def usage(self, *, steps: int, run_id: str) -> UsageStatistics:
        """Return the usage so far."""
        used = self._reader.tokens or TokenCounts()
        counts = {name: count for name, ours in _COUNTS.items() if (count := getattr(used, ours)) is not None}
        return UsageStatistics(step_count=steps, run_ids=(run_id,), context_tokens=self._context, **counts)

    def take(self, event: LogEntry) -> list[Message]:
        """Take the next entry, and return the complete messages, or pieces of them."""
        if isinstance(event, RunEnded):
            return self._flush()
        changes = self._reader.take(event)
        if self._reader.repeating and isinstance(event, _SAID):
            return []  # in another run; but questions are asked now
        return [message for change in changes for message in self._change(change)]

    def _change(self, change: ch.Change) -> list[Message]:
        match change:
            case ch.BlockGrown(block, text):
                return self._say(change, block.kind, block.id, text)
            case ch.Media(kind, id_, content):
                return self._say(change, kind, id_, block_text(content))
            case ch.CallBegun():
                return self._start(change)
            case ch.CallChanged():
                return self._learn(change)
            case ch.CallEnded():
                return self._end(change)
            case ev.PlanUpdate():
                return self._plan(change)
            case ev.QuestionAsked() if waits(change):
                return self._ask(change)
            case ev.QuestionAnswered(id=id_) if id_ in self.asked and self.asked[id_].called:
                self._in_step = False  # the model continues with its result
            case ev.UsageUpdate():
                self._context = change.used
            case _:
                pass  # none of it is shown
        return []

    def _flush(self) -> list[Message]:
        """Return the held-back messages."""
        given = self._close()
        for call in [*self._untold.values()]:
            given += self._settle(call)
        return given

    def _head(self, event: ch.Change, step: str, suffix: str = "") -> _StepHead:
        id_ = f"message-{self._run}-{event.seq}{suffix}"
        return {**head_of(id_, self._created + event.at), "step_id": step}

    def _step(self) -> str:
        """Return the step of the next model output."""
        if not self._in_step:
            self._in_step = True
            self.steps += 1
        return f"step-{self._run}-{self.steps}"

    # Messages and thoughts

    def _say(self, change: ch.Change, kind: ch.BlockKind, source: str | None, text: str) -> list[Message]:
        if not text or kind == "user":
            return []
        given: list[Message] = []
        speech = self._speech
        if speech is None or (speech.kind, speech.source) != (kind, source):
            given = self._flush()
            head = self._head(change, self._step())
            speech = self._speech = _Speech(kind=kind, source=source, head=head, pieces=[])
        if self._tokens:
            given.append(_spoken(speech, text))
        else:
            speech.pieces.append(text)
        return given

    def _close(self) -> list[Message]:
        """End the current message."""
        speech, self._speech = self._speech, None
        return [] if speech is None or self._tokens else [_spoken(speech, "".join(speech.pieces))]

    # Tools

    def _start(self, change: ch.CallBegun | ch.CallChanged | ch.CallEnded) -> list[Message]:
        given, id_ = self._close(), change.view.id
        call = self._calls[id_] = self._untold[id_] = _Call(
            head=self._head(change, self._step()), view=change.view
        )
        if call.view.input:
            given += self._settle(call, call.tool)
        elif self._tokens:
            given.append(self._called(call, call.tool, None))
        return given

    def _learn(self, change: ch.CallChanged) -> list[Message]:
        call = self._calls.get(change.view.id)
        if call is None:  # it began earlier in the session
            return self._start(change)
        if call.done:
            return []
        call.view = change.view
        return self._settle(call) if call.view.input else []

    def _end(self, change: ch.CallEnded) -> list[Message]:
        call = self._calls.get(change.view.id)
        given = self._start(change) if call is None or call.done else self._close()
        call = self._calls[change.view.id]
        given += self._settle(call)
        call.done, call.view = True, replace(call.view, input=None, output=None, content=())
        self._in_step = False
        status: Literal["success", "error"] = "success" if change.status == "completed" else "error"
        text = return_text(change.view)
        given.append(self._returned(change, call, text, status=status))
        return given

    def _settle(self, call: _Call, name: str | None = None) -> list[Message]:
        """Send the arguments of a call, as far as they are known, once."""
        if self._untold.get(call.view.id) is not call:
            return []
        del self._untold[call.view.id]
        name = name if self._tokens else call.tool
        return [*self._close(), self._called(call, name, call.arguments)]

    def _called(self, call: _Call, name: str | None, arguments: str | None) -> ToolCallMessage:
        shown = ToolCall(name=name, arguments=arguments, tool_call_id=call.view.id)
        return ToolCallMessage(**call.head, tool_call=shown, tool_calls=shown if self._tokens else (shown,))

    def _returned(
        self, event: ch.Change, call: _Call, text: str, *, status: Literal["success", "error"] = "success"
    ) -> ToolReturnMessage:
        id_ = call.view.id
        return ToolReturnMessage(
            **self._head(event, call.head["step_id"], "r"),
            tool_call_id=id_,
            status=status,
            tool_return=text,
            tool_returns=(ToolReturn(tool_call_id=id_, status=status, tool_return=text),),
        )

    def _plan(self, event: ev.PlanUpdate) -> list[Message]:
        """Send a plan as a call and its result; Letta has no other form for it."""
        given = self._flush()
        view = ToolView(id=f"plan-{self._run}-{event.seq}")
        call = _Call(head=self._head(event, self._step()), view=view)
        given.append(self._called(call, PLAN_TOOL, plan_arguments(event)))
        given.append(self._returned(event, call, "The plan is updated."))
        return given

    # Questions

    def _ask(self, event: ev.QuestionAsked) -> list[Message]:
        given = self._close()
        call = self._call_of(event)
        if call is not None:
            given += self._settle(call)
            tool_call_id = call.view.id
        else:
            tool_call_id = f"question-{self._run}-{event.id}"
        name, arguments = carried(event, None if call is None else (call.tool, call.arguments))
        head = self._head(event, self._step() if call is None else call.head["step_id"], "q")
        self.asked[event.id] = Asked(question=event, message_id=head["id"], tool_call_id=tool_call_id)
        asked = ToolCall(name=name, arguments=arguments, tool_call_id=tool_call_id)
        given.append(ApprovalRequest(**head, tool_call=asked, tool_calls=asked if self._tokens else (asked,)))
        return given

    def _call_of(self, event: ev.QuestionAsked) -> _Call | None:
        """Return the call of a question, in the agent's form."""
        if event.asks == "permission":
            return self._calls.get(event.tool_id or "")
        called = call_of_front_end(event)
        if called is None:
            return None
        others = {asked.tool_call_id for asked in self.asked.values()}
        for call in reversed(self._calls.values()):
            shown = called.name in (call.view.name or "") or called.name in call.view.title
            if shown and not call.done and call.view.id not in others:
                return call
        return None


def _spoken(speech: _Speech, text: str) -> Message:
    if speech.kind == "thought":
        return ReasoningMessage(**speech.head, reasoning=text, source="reasoner_model")
    return AssistantMessage(**speech.head, content=text)
