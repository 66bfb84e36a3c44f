"""A run as a stream of AG-UI, the Agent User Interaction Protocol, version 1.0.

Sources: the models of PyPI's `ag-ui-protocol` 1.0 (the events), npm `@ag-ui/client` 1.0,
    ``src/verify/verify.ts`` (their order) and ``src/apply/default.ts`` (their effect on a client); for
    questions, the protocol's documentation, concepts/interrupts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from thinkwell import events as ev
from thinkwell._core.schema.json_schema import is_object
from thinkwell._display.changes import Media
from thinkwell.web._answer_schemas import answer_schema
from thinkwell.web._records import RunEnded
from thinkwell.web._run_ids import RUN_ID
from thinkwell.web.front_ends._facts import (
    as_json,
    call_facts,
    call_text,
    clipped,
    end_error,
    media,
    plain,
    plan_shown,
)
from thinkwell.web.front_ends._format import FrontEndFormat
from thinkwell.web.front_ends._json_patch import json_patch
from thinkwell.web.front_ends._shown_run import (
    PIECE,
    Answered,
    Asked,
    CallBegins,
    CallEnds,
    CallGoesOn,
    Said,
    ShownRun,
    new_changes,
)
from thinkwell.web.front_ends._tools import call_of_front_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.events import JsonValue
    from thinkwell.journal import RunRecord
    from thinkwell.web._records import ShownError
    from thinkwell.web.front_ends._facts import Chunk
    from thinkwell.web.front_ends._shown_run import Call, OpenQuestion, Told
    from thinkwell.web.front_ends._tools import FrontEndCall

PROTOCOL: Final = "1.0"
"""The version of the protocol."""

_SPEECHES: Final = {
    "text": ("TEXT_MESSAGE", "assistant"),
    "reasoning": ("REASONING_MESSAGE", "reasoning"),
}
"""The beginnings of the types of events of a text, and its role."""

_REASONS: Final = {"permission": "confirmation", "form": "input_required", "url": "confirmation"}
"""The reason for an interrupt that belongs to no tool call (AG-UI, concepts/interrupts)."""


POINT: Final = rf"({RUN_ID})/([0-9]{{1,15}})/([\s\S]{{1,200}})"
"""The form of our ids."""

_POINT: Final = re.compile(POINT)
_OURS: Final = re.compile(rf"({RUN_ID})-([0-9]{{1,15}})(?::|\Z)")


class Point(NamedTuple):
    """The position to continue from, and the questions answered: the id of an interrupt."""

    run_id: str
    seq: int
    """The entry at which a stream ended, or at which a tool of the front end was called."""
    question_id: str

    @property
    def id(self) -> str:
        """The id for clients, which they send back."""
        return f"{self.run_id}/{self.seq}/{self.question_id}"


def read_point(id_: str) -> Point | None:
    """Return the content of an id; ``None``: it is not one of ours."""
    found = _POINT.fullmatch(id_)
    return None if found is None else Point(found[1], int(found[2]), found[3])


class AgUiFormat(FrontEndFormat):
    """A run of AG-UI: one of our runs, or the part between two questions.

    Plans, questions and usage are state, which is updated by patches. Changes to files, terminals and the
    output of running tools are activities. Everything else is a custom event.

    Args:
        record: The run.
        thread: The client's name for the conversation; by default that of the run.
        run: The client's name for the run.
        state: The client's state, into which ours is merged.
        messages: The client's messages. If they include messages of this answer, an earlier answer was cut
            off.
        begin: The entry after which the answer begins.
        stops: Whether the stream ends at open questions, with an interrupt for each.
    """

    def __init__(
        self,
        record: RunRecord,
        *,
        thread: str | None = None,
        run: str | None = None,
        state: JsonValue = None,
        messages: Sequence[Chunk] = (),
        begin: int = 0,
        stops: bool = False,
    ) -> None:
        # Unique in the conversation, of which the agent knows nothing.
        super().__init__(record, ShownRun(lambda name, seq: f"{record.id}-{seq}:{name}"))
        self._thread = thread or record.thread or record.id
        self._run = run or record.id
        self._messages = list(messages)
        self._begin = begin
        self._stops = stops
        self._plans: dict[str, Chunk] = {}
        self._state: dict[str, JsonValue] = {
            **(state if is_object(state) else {}),
            "run": {"id": record.id, "agent": record.agent, "phase": "starting"},
            "plan": [],
            "plans": [],
            "questions": [],
            "usage": None,
            "tokens": None,
        }

    def _opens(self) -> None:
        self._send(
            "RUN_STARTED",
            threadId=self._thread,
            runId=self._run,
            protocolVersion=PROTOCOL,
            metadata={"run": self.record.id},
        )
        self._forget_messages()
        self._send_state()

    def _forget_messages(self) -> None:
        """Remove the client's copies of messages of this answer: otherwise it would have each text twice."""
        kept = [kept for message in self._messages if (kept := self._kept(message)) is not None]
        if kept != self._messages:
            self._send("MESSAGES_SNAPSHOT", messages=kept)

    def _kept(self, message: Chunk) -> Chunk | None:
        id_ = str(message.get("id"))
        point, found = read_point(id_), _OURS.match(id_)
        if point is not None:
            run, seq = point.run_id, point.seq
        elif found is not None:
            run, seq = found[1], int(found[2])
        else:
            return message
        if run != self.record.id or seq <= self._begin:
            return message
        # Clients keep thoughts that a snapshot lacks.
        return {**message, "content": ""} if message.get("role") == "reasoning" else None

    # State

    def _send_state(self) -> None:
        self._send("STATE_SNAPSHOT", snapshot=self._state.copy())

    def _change(self, name: str, value: JsonValue) -> None:
        delta = json_patch(self._state[name], value, f"/{name}")
        if delta:
            self._state[name] = value
            self._send("STATE_DELTA", delta=delta)

    def _tell(self, told: Told) -> None:
        match told:
            case Said():
                self._say(told)
            case Media():
                content = msgspec.to_builtins(told.content)
                self._activity(f"{self.record.id}-{told.seq}", "content", content)
            case CallBegins(call):
                about = {"toolCallId": call.id, "toolCallName": call.name, "metadata": call_facts(call.view)}
                self._send("TOOL_CALL_START", **about)
                self._show_input(call)
                self._show_content(call)
            case CallGoesOn(call, before):
                self._show_input(call)
                if call.view.content != before.content:
                    self._show_content(call)
            case CallEnds(call):
                if call.ended is None:  # otherwise it would end twice
                    self._call_ends(call)
            case Asked(question):
                self._asked(question)
            case Answered(question, answer):
                self._answered(question, answer)
            case RunEnded():
                self._ends(told)
            case _:
                self._other(told)

    def _say(self, said: Said) -> None:
        id_ = f"{self.record.id}-{said.seq}"
        name, role = _SPEECHES[said.speech]
        match said.stage:
            case "start":
                if role == "reasoning":
                    self._send("REASONING_START", messageId=id_)
                self._send(f"{name}_START", messageId=id_, role=role)
            case "delta":
                self._send(f"{name}_CONTENT", messageId=id_, delta=said.text)
            case "end":  # pragma: no branch - the last of them
                self._send(f"{name}_END", messageId=id_)
                if role == "reasoning":
                    self._send("REASONING_END", messageId=id_)

    def _activity(self, message_id: str, kind: str, content: Chunk) -> None:
        self._send("ACTIVITY_SNAPSHOT", messageId=message_id, activityType=kind, content=content)

    # Tool calls

    def _show_input(self, call: Call, *, last: bool = False) -> None:
        """Send the arguments when they are known, all at once."""
        known = call.view.input is not None
        if call.shown != "start" or not (known or last or call.view.status != "pending"):
            return
        call.shown = "input"
        self._arguments(call.id, as_json(call.view.input) if known else "")

    def _show_content(self, call: Call) -> None:
        for id_, kind, data in new_changes(call):
            self._activity(id_, kind, data)
        text = call_text(call.view)
        if text and call.ended is None and call.view.status in ("pending", "in_progress"):
            self._activity(f"{call.id}:output", "tool-output", {"toolCallId": call.id, "text": text})

    def _call_ends(self, call: Call) -> None:
        self._show_input(call, last=True)
        self._show_content(call)
        text = call_text(call.view)
        pictures = [
            {
                "type": found[0].partition("/")[0],
                "source": {"type": "data", "value": found[1], "mimeType": found[0]},
            }
            for part in call.view.content
            if isinstance(part, ev.BlockContent) and (found := media(part.content)) is not None
        ]
        self._send(
            "TOOL_CALL_RESULT",
            messageId=f"{self.record.id}-{self.run.last}:{call.id.removeprefix(f'{self.record.id}-')}",
            toolCallId=call.id,
            role="tool",
            content=[{"type": "text", "text": text}, *pictures] if pictures else text,
            metadata=call_facts(call.view) | ({"denied": True} if call.denied else {}),
        )

    # Questions

    def _asked(self, question: OpenQuestion) -> None:
        called = call_of_front_end(question.asked)
        if called is None:
            self._change("questions", [*self._state["questions"], question.shown()])
        elif not self._stops:
            self._call_front_end(question.asked, called)

    def _answered(self, question: OpenQuestion, answer: ev.QuestionAnswered) -> None:
        called = call_of_front_end(question.asked)
        if called is None:
            told = question.shown(answer)
            known: list[Chunk] = self._state["questions"]
            self._change("questions", [told if each["id"] == question.id else each for each in known])
        elif not self._stops:  # the client that has answered knows the answer
            self._send(
                "TOOL_CALL_RESULT",
                messageId=f"{self.record.id}-{self.run.last}:{question.id}",
                toolCallId=Point(self.record.id, question.asked.seq, question.id).id,
                role="tool",
                content="",
            )

    def _call_front_end(self, asked: ev.QuestionAsked, called: FrontEndCall) -> str:
        id_ = Point(self.record.id, asked.seq, asked.id).id
        if asked.seq > self._begin:  # else it was sent in an answer before
            self._send("TOOL_CALL_START", toolCallId=id_, toolCallName=called.name)
            self._arguments(id_, called.arguments)
        return id_

    def _arguments(self, call_id: str, text: str) -> None:
        for at in range(0, len(text), PIECE):
            self._send("TOOL_CALL_ARGS", toolCallId=call_id, delta=text[at : at + PIECE])
        self._send("TOOL_CALL_END", toolCallId=call_id)

    def _pauses(self) -> None:
        for call in self.run.open_calls:
            self._show_input(call, last=True)
        pending: list[str] = []
        interrupts: list[Chunk] = []
        for question in self.run.open_questions:
            called = call_of_front_end(question.asked)
            if called is None:
                interrupts.append(self._interrupt(question))
            else:
                pending.append(self._call_front_end(question.asked, called))
        self._send_state()  # whole, before an interrupt (AG-UI, concepts/interrupts)
        if interrupts:
            self._finish(outcome={"type": "interrupt", "interrupts": interrupts})
        else:
            self._finish(outcome={"type": "success", "pendingToolCallIds": pending})

    def _interrupt(self, question: OpenQuestion) -> Chunk:
        asked, call = question.asked, question.call
        interrupt: Chunk = {
            "id": Point(self.record.id, self.run.last, asked.id).id,
            "reason": "tool_call"
            if call is not None and asked.asks == "permission"
            else _REASONS[asked.asks],
            "message": clipped(asked.title),
            "responseSchema": answer_schema(asked),
            "metadata": question.shown(),
        }
        if call is not None:
            interrupt["toolCallId"] = call.id
        return interrupt

    # Everything else

    def _other(self, event: ev.ThoughtEvent) -> None:
        match event:
            case ev.PlanUpdate():
                self._plan(event)
            case ev.UsageUpdate():
                self._change("usage", plain(event))
            case ev.PhaseChanged():
                self._change("run", {**self._state["run"], "phase": event.phase})
            case ev.SessionOpened():
                pass  # the folder is the server's business
            case _:
                if isinstance(event, ev.TurnEnded) and self.run.tokens is not None:
                    self._change("tokens", msgspec.to_builtins(self.run.tokens))
                self._send("CUSTOM", name=f"thinkwell.{event.type}", value=plain(event))

    def _plan(self, event: ev.PlanUpdate) -> None:
        if event.removed:
            self._plans.pop(event.id, None)
        else:
            self._plans[event.id] = plan_shown(event)
        main = self._plans.get("main") or next(iter(self._plans.values()), None)
        self._change("plan", [] if main is None else main["entries"])
        self._change("plans", list(self._plans.values()))

    def _ends(self, end: RunEnded) -> None:
        error = end_error(end)
        if error is not None:
            self._fails(error)
        elif end.status == "cancelled":
            self._finish(outcome={"type": "cancelled"})
        else:
            result = (
                {} if end.result is None else {"result": end.result}
            )  # null was removed from the protocol
            self._finish(**result, outcome={"type": "success"})

    def _fails(self, error: ShownError) -> None:
        self._send("RUN_ERROR", message=clipped(error.message), code=error.name)

    def _finish(self, **fields: object) -> None:
        self._send("RUN_FINISHED", threadId=self._thread, runId=self._run, **fields)
