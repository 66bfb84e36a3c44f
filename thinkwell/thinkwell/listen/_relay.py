"""The run of one prompt for its host: events become lines, and questions wait for answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from anyio.lowlevel import checkpoint

from thinkwell import events as ev
from thinkwell.listen._host_questions import UNREACHABLE
from thinkwell.listen._messages import ASKING, ENDS, Narrator, asked
from thinkwell.questions import Reply

if TYPE_CHECKING:
    from thinkwell._core.exit import Listened, Ruling
    from thinkwell.listen._host_questions import HostQuestions
    from thinkwell.listen._outbox import Outbox
    from thinkwell.questions import Answer, Question

MAX_REPEATS: Final = 20
"""How often an agent may ask the same in one turn, as with handlers."""

TOOL_EVENTS: Final = (ev.ToolStart, ev.ToolUpdate, ev.ToolDone)

NARRATED: Final = ("progress", "partial", "log")
"""The types of messages about an ACP agent."""


class Relay:
    """Listens to the run of one prompt, for the host.

    Args:
        outbox: The messages to the host.
        questions: The questions to the host.
    """

    by = "host"
    max_repeats: int | None = MAX_REPEATS
    takes_approvals = False  # it decides open questions; having none is not an error here
    takes_questions = True

    def __init__(self, outbox: Outbox, questions: HostQuestions) -> None:
        self._outbox = outbox
        self._questions = questions
        self._narrator = Narrator(NARRATED)
        self._run: Listened

    @property
    def result_fields(self) -> dict[str, ev.JsonValue]:
        """The fields of an NDJSON agent's result; empty for others."""
        return self._run.result_fields

    def begin(self, run: Listened) -> None:
        """Receive the run. An NDJSON agent's messages are passed on unchanged."""
        self._run = run
        if run.reports:
            self._narrator = Narrator(())

    def event(self, event: ev.ThoughtEvent) -> None:
        """Send the message of an event."""
        if isinstance(event, ev.Report):
            if event.kind not in ASKING | ENDS:
                self._outbox.tell(event.kind, event.body)
        elif isinstance(event, TOOL_EVENTS) and self._run.is_own(event.id):
            pass  # our only tool is the one for the result, which follows
        elif (told := self._narrator.message(event)) is not None:
            self._outbox.tell(*told)

    def stderr(self, line: str) -> None:
        """Send a line of the agent's standard error."""
        if (told := self._narrator.stderr(line)) is not None:
            self._outbox.tell(*told)

    async def answer(self, question: Question) -> Answer | None:
        """Ask the host, and wait for its answer."""
        await checkpoint()  # a question that was withdrawn at once is not asked
        if self._questions.closed:
            return Reply("deny", UNREACHABLE)
        told = asked(question)
        waiting = self._questions.ask(told.type, question)
        fields = told.fields
        if question.message is None:  # an NDJSON agent's message is unchanged
            fields = {name: value for name, value in fields.items() if value != []}
        self._outbox.put(told.type, {**fields, "id": question.id})
        try:
            return await waiting.wait()
        finally:
            self._questions.withdraw(question)

    def answered(self, question: Question, ruling: Ruling, seconds: float) -> None:
        """Tell the host of a question that ended without it."""
        if self._questions.withdraw(question):
            what = f"{asked(question).type} {question.id} is no longer open: {ruling.why}"
            self._outbox.put("log", {"message": what, "level": "warning", "withdrawn": question.id})
