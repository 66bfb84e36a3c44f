"""A run as a stream of the Vercel AI SDK: the UI message stream, version 1.

Sources: npm `ai` 7.0, ``src/ui-message-stream/ui-message-chunks.ts`` (the chunks) and
    ``src/ui/process-ui-message-stream.ts`` (their effect on a client).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from thinkwell import events as ev
from thinkwell._display.changes import Media
from thinkwell._display.questions import allowed
from thinkwell.web._records import RunEnded
from thinkwell.web.front_ends._facts import (
    call_facts,
    call_text,
    clipped,
    end_error,
    media,
    plain,
    plan_shown,
)
from thinkwell.web.front_ends._format import FrontEndFormat
from thinkwell.web.front_ends._shown_run import (
    Answered,
    Asked,
    CallBegins,
    CallEnds,
    CallGoesOn,
    Said,
    ShownRun,
    new_changes,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from thinkwell.journal import RunRecord
    from thinkwell.view import ToolView
    from thinkwell.web._records import ShownError
    from thinkwell.web.front_ends._facts import Chunk
    from thinkwell.web.front_ends._shown_run import Call, OpenQuestion, Told

_FINISH: Final = {
    "end_turn": "stop",
    "max_tokens": "length",
    "max_turn_requests": "length",
    "refusal": "content-filter",
}
"""The client's names for stop reasons (ACP, ``StopReason``)."""

_QUESTION_TOOLS: Final = {"permission": "permission", "form": "form", "url": "open_url"}
"""The names of tool calls for questions that belong to no other call."""


_STAND_IN: Final = "question-"


def question_call_id(question_id: str) -> str:
    """Return the id of the tool call for a question."""
    return _STAND_IN + question_id


def question_of_call(call_id: str) -> str | None:
    """Return the question of a tool call; ``None``: it is a call of the agent."""
    return call_id.removeprefix(_STAND_IN) if call_id.startswith(_STAND_IN) else None


class AiSdkFormat(FrontEndFormat):
    """A run as a message of the assistant.

    Questions are requests for approval of their tool calls. Questions without one, and forms, are separate
    tool calls. A client cannot answer during a stream: with `stops`, requests are sent when the stream
    pauses, all in the last step of the message, since clients only check that step for missing answers.

    Args:
        record: The run.
        stops: Whether the stream ends at open questions. Otherwise they are sent at once, and answered
            elsewhere.
        answered: Questions that the client has answered itself.
    """

    headers: ClassVar[Mapping[str, str]] = {"x-vercel-ai-ui-message-stream": "v1"}
    closing: ClassVar[tuple[bytes, ...]] = (b"[DONE]",)

    def __init__(self, record: RunRecord, *, stops: bool = False, answered: Collection[str] = ()) -> None:
        super().__init__(record, ShownRun())
        self._step = 0
        """Number of the current step of the message. Questions are put in the last one."""
        self._stops = stops
        self._known_answers = answered
        self._cuts: list[int] = []
        """The entries at which the stream has ended before."""
        self._stand_ins: set[str] = set()
        """Questions that clients have as separate tool calls."""
        self._requested: set[str] = set()
        """Questions that clients were asked to answer."""
        self._usage: ev.UsageUpdate | None = None
        self._has_result = False

    def resume(self) -> None:
        self._cuts.append(self.run.last)
        super().resume()

    def _opens(self) -> None:
        record = self.record
        about = {"run": record.id, "agent": record.agent}
        self._send("start", messageId=record.id, messageMetadata=about)
        self._begin_step()

    def _begin_step(self) -> None:
        self._step += 1
        self._send("start-step")

    def _new_step(self) -> None:
        self._send("finish-step")
        self._begin_step()

    def _tell(self, told: Told) -> None:
        match told:
            case Said(speech, seq, stage, text):
                more = {"delta": text} if stage == "delta" else {}
                self._send(f"{speech}-{stage}", id=f"{speech}-{seq}", **more)
            case Media():
                self._media(told.content, told.seq)
            case CallBegins(call):
                self._call_begins(call)
            case CallGoesOn(call, before):
                self._call_goes_on(call, before)
            case CallEnds(call, status):
                self._call_ends(call, status)
            case Asked(question):
                self._show_question(question)
                if question.is_put and not self._stops:
                    self._request(question, stands_alone=question.stands_alone)
            case Answered(question, answer):
                self._answered(question, answer)
            case RunEnded():
                self._ends(told)
            case _:
                self._other(told)

    def _media(self, content: ev.ContentBlock, seq: int) -> None:
        if self._file(content):
            return
        if isinstance(content, ev.ResourceLink) and content.uri.startswith(("http://", "https://")):
            title = clipped(content.title or content.name)
            self._send("source-url", sourceId=f"source-{seq}", url=content.uri, title=title)
        else:
            self._send("data-content", id=f"content-{seq}", data=msgspec.to_builtins(content))

    def _file(self, content: ev.ContentBlock) -> bool:
        """Send a picture or sound, if browsers can show it."""
        found = media(content)
        if found is not None:
            kind, data = found
            self._send("file", mediaType=kind, url=f"data:{kind};base64,{data}")
        return found is not None

    # Tool calls

    def _call_begins(self, call: Call) -> None:
        call.step = self._step
        self._send_of(call, "tool-input-start", toolName=call.name, title=clipped(call.view.title))
        if call.view.input is not None or call.view.status != "pending":
            self._show_input(call)
        self._show_content(call)

    def _call_goes_on(self, call: Call, before: ToolView) -> None:
        view = call.view
        news = view.input != before.input or view.title != before.title or view.status != before.status
        # Clients look for the input in the last step only, and would show the call twice.
        if news and call.ended is None and call.shown != "output" and call.step == self._step:
            self._show_input(call)
        if view.content != before.content:
            self._show_content(call)
        if call.ended is not None:  # an agent that reports it late
            self._call_ends(call, call.ended)

    def _send_of(self, call: Call, kind: str, /, **more: object) -> None:
        """Send something of a tool call that the agent has made."""
        about = {"dynamic": True, "providerExecuted": True, "toolMetadata": call_facts(call.view)}
        self._send(kind, toolCallId=call.id, **more, **about)

    def _show_input(self, call: Call) -> None:
        call.shown = "input"
        given: ev.JsonValue = {} if call.view.input is None else call.view.input
        title = clipped(call.view.title)
        self._send_of(call, "tool-input-available", toolName=call.name, input=given, title=title)

    def _show_content(self, call: Call) -> None:
        self._show_changes(call)
        text = call_text(call.view)
        if text and call.ended is None and call.view.status in ("pending", "in_progress"):
            if call.shown == "start" and call.step == self._step:
                self._show_input(call)
            call.shown = "output"
            self._output(call, text, preliminary=True)

    def _show_changes(self, call: Call) -> None:
        for id_, name, data in new_changes(call):
            self._send(f"data-{name}", id=id_, data=data)

    def _output(self, call: Call, text: str, *, preliminary: bool = False) -> None:
        more = {"preliminary": True} if preliminary else {}
        self._send_of(call, "tool-output-available", output=text, **more)

    def _call_ends(self, call: Call, status: ev.FinalStatus) -> None:
        view = call.view
        if call.shown == "start" and call.step == self._step:
            self._show_input(call)
        call.shown = "output"
        self._show_changes(call)
        if call.ended is None:
            for part in view.content:
                if isinstance(part, ev.BlockContent):
                    self._file(part.content)
        if status == "completed":
            self._output(call, call_text(view))
        elif not call.denied:  # else they know
            text = call_text(view) or f"the tool call was {_ENDED[status]}"
            self._send_of(call, "tool-output-error", errorText=text)

    # Questions

    def _show_question(self, question: OpenQuestion, answer: ev.QuestionAnswered | None = None) -> None:
        self._send("data-question", id=question.id, data=question.shown(answer))

    def _request(self, question: OpenQuestion, *, stands_alone: bool) -> None:
        """Request an answer, in a form that the client has."""
        asked, call = question.asked, question.call
        if asked.asks == "form" or stands_alone or call is None:
            id_ = question_call_id(question.id)
            self._stand_ins.add(question.id)
            self._send(
                "tool-input-available",
                toolCallId=id_,
                toolName=_QUESTION_TOOLS[asked.asks],
                input=question.shown(),
                dynamic=True,
                title=clipped(asked.title),
                **({} if asked.asks == "form" else {"providerExecuted": True}),
            )
        else:
            id_ = call.id
            if call.shown == "start":
                self._show_input(call)
        self._requested.add(question.id)
        if asked.asks != "form":
            self._send(
                "tool-approval-request",
                approvalId=question.id,
                toolCallId=id_,
                approvalDescriptor={"options": msgspec.to_builtins(asked.options)},
                reason=clipped(asked.title),
            )

    def _answered(self, question: OpenQuestion, answer: ev.QuestionAnswered) -> None:
        if question.is_put:
            was_requested = question.id in self._requested
            if not was_requested:  # a client that reconnects later still gets the outcome
                self._request(question, stands_alone=question.stands_alone)
            self._tell_answer(question, answer)
            if question.asked.asks == "form" and not was_requested:
                # Clients that see a form with its answer in the last step send it once more.
                self._new_step()
        self._show_question(question, answer)

    def _tell_answer(self, question: OpenQuestion, answer: ev.QuestionAnswered) -> None:
        is_allowed, id_ = bool(allowed(answer)), question_call_id(question.id)
        stands_alone = question.id in self._stand_ins
        if question.asked.asks != "form":
            if question.id not in self._known_answers:
                self._send(
                    "tool-approval-response",
                    approvalId=question.id,
                    approved=is_allowed,
                    reason=clipped(answer.why),
                )
            if not is_allowed:
                call_id = id_ if stands_alone or question.call is None else question.call.id
                self._send("tool-output-denied", toolCallId=call_id)
                return
        if stands_alone:
            told = {"choice": answer.choice, "by": answer.by, "filled": list(answer.filled)}
            if is_allowed:
                self._send("tool-output-available", toolCallId=id_, output=told)
            else:
                text = f"not filled in: {clipped(answer.why)}"
                self._send("tool-output-error", toolCallId=id_, errorText=text)

    def _pauses(self) -> None:
        questions = self.run.open_questions
        of_calls = [
            question.call.id
            for question in questions
            if question.call is not None and question.asked.asks == "permission"
        ]
        here = {call.id for call in self.run.open_calls if call.step == self._step}
        whole = len(of_calls) == len(questions) and sorted(of_calls) == sorted(here)
        if not whole:
            self._new_step()
        for question in questions:
            self._request(question, stands_alone=not whole)
        self._send("finish-step")
        about = {"after": [*self._cuts, self.run.last]}
        self._send("finish", finishReason="tool-calls", messageMetadata=about)

    # Everything else

    def _other(self, event: ev.ThoughtEvent) -> None:
        match event:
            case ev.PlanUpdate():
                self._send(
                    "data-plan",
                    id=f"plan-{event.id}",
                    data=plan_shown(event) | ({"removed": True} if event.removed else {}),
                )
            case ev.UsageUpdate():
                self._usage = event
                self._show_usage()
            case ev.TurnEnded() if self.run.tokens is not None:
                self._show_usage()
            case ev.TurnStarted() if event.number > 1:
                self._new_step()
            case ev.ResultAttempt():
                self._has_result = self._has_result or event.accepted
            case ev.PhaseChanged() | ev.Notice() | ev.Stalled():
                # Shown while it is new, but not part of the message.
                name = f"data-{event.type}"
                self._send(name, data=plain(event), transient=True)
            case _:
                pass

    def _show_usage(self) -> None:
        data: Chunk = {} if self._usage is None else plain(self._usage)
        if self.run.tokens is not None:
            data["tokens"] = msgspec.to_builtins(self.run.tokens)
        self._send("data-usage", id="usage", data=data)

    def _ends(self, end: RunEnded) -> None:
        if end.status == "completed" and (self._has_result or not isinstance(end.result, str)):
            self._send("data-result", id="result", data=end.result)
        self._send("finish-step")
        error = end_error(end)
        if error is not None:
            self._fails(error)
            reason = "error"
        elif end.status == "cancelled":
            self._send("abort", reason="the run was cancelled")
            reason = "other"
        else:
            reason = _FINISH.get(end.stop_reason or "", "other")
        about = {"status": end.status}
        self._send("finish", finishReason=reason, messageMetadata=about)

    def _fails(self, error: ShownError) -> None:
        self._send("error", errorText=clipped(f"{error.name}: {error.message}"))


_ENDED: Final = {"failed": "not successful", "cancelled": "cancelled"}
