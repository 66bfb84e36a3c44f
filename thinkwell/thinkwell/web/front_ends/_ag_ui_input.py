"""Requests of AG-UI clients to start a run, or to continue one.

Source: ``RunAgentInput`` of PyPI's `ag-ui-protocol` 1.0; for answers, the protocol's documentation,
concepts/interrupts and concepts/tools.
"""

# ruff: noqa: TC001 - the types of fields are read at run time

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from thinkwell._core.schema.json_schema import is_array, is_object
from thinkwell._display.fences import quoted
from thinkwell.events import JsonValue
from thinkwell.questions import ChooseOption, FormValue, Reply
from thinkwell.web._refusals import RequestInvalid
from thinkwell.web._requests import ImagePart, StartRun, TextPart
from thinkwell.web._wording import type_words
from thinkwell.web.front_ends._ag_ui import Point, read_point
from thinkwell.web.front_ends._requests import (
    Choices,
    Name,
    file_part,
    read_base64,
    read_data_url,
    request_key,
    start_run,
)
from thinkwell.web.front_ends._tools import front_end_tools, result_form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from thinkwell.events import QuestionAsked
    from thinkwell.journal import RunRecord
    from thinkwell.questions import Answer
    from thinkwell.tools import Tool

WHY: Final = "answered in the front end"

MESSAGE: Final = "ag_ui_message"
"""The key in a run's record for the id of the message that started it."""


class OfferedTool(Struct, frozen=True, kw_only=True):
    """A tool of the front end."""

    name: str
    """Up to 64 letters, digits, ``_`` and ``-``; each tool has its own."""
    description: str = ""
    """Its description, for the agent."""
    parameters: JsonValue = None
    """A JSON Schema of its arguments, an object."""


class ContextItem(Struct, frozen=True, kw_only=True):
    """Information for the agent."""

    description: str
    """What the value is."""
    value: str
    """The value, as text."""


class Resume(Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer to an interrupt."""

    interrupt_id: str
    """The ``id`` of the interrupt."""
    status: Literal["resolved", "cancelled"]
    """``cancelled`` denies."""
    payload: JsonValue = None
    """The value that the ``responseSchema`` of the interrupt requires."""

    def answer(self, asked: QuestionAsked) -> Answer:
        """Return the answer to the question.

        Raises:
            RequestInvalid: It does not fit the question.
        """
        payload: JsonValue = self.payload
        if self.status == "cancelled":
            return Reply("deny", why="cancelled in the front end")
        if asked.asks == "form":
            try:
                return Reply(msgspec.convert(payload, dict[str, FormValue | None]), WHY)
            except msgspec.ValidationError:
                raise RequestInvalid("resume: payload is an object, of the form's fields by name") from None
        said: JsonValue = payload
        if is_object(payload):
            option: JsonValue = payload.get("option")
            if isinstance(option, str):
                return Reply(ChooseOption(option), WHY)
            said = payload.get("approved")
        if not isinstance(said, bool):
            raise RequestInvalid('resume: payload is {"approved": true} or {"approved": false}')
        return Reply("allow" if said else "deny", WHY)


class ToolMessage(Struct, frozen=True):
    """The result of a tool of the front end."""

    content: JsonValue
    error: JsonValue

    def answer(self, asked: QuestionAsked) -> Answer:
        """Return the answer to the question of the call."""
        return Reply(result_form(self.content, self.error if isinstance(self.error, str) else None), WHY)


class RunInput(Struct, frozen=True, kw_only=True, rename="camel"):
    """The request of `HttpAgent`."""

    thread_id: Name
    """The conversation: its turns share one session of the agent."""
    run_id: Name
    """The client's name for the run. The same name does not start another run."""
    messages: list[dict[str, JsonValue]]
    """The client's messages.

    The last one, of the user, is the prompt: text, and pictures and text files as data.
    """
    tools: list[OfferedTool] | None = None
    """The front end's tools."""
    context: Annotated[list[ContextItem], Meta(max_length=100)] | None = None
    """Further information for the agent."""
    state: JsonValue = None
    """The client's state, which the agent does not see."""
    forwarded_props: JsonValue = None
    """Its ``thinkwell`` has the choices for the run."""
    resume: list[Resume] | None = None
    """Answers to interrupts: with them, a run continues."""

    def given(self) -> dict[Point, Resume | ToolMessage]:
        """Return the answers to a run's questions, and the results of the front end's tools.

        Raises:
            RequestInvalid: One is for an unknown interrupt.
        """
        given: dict[Point, Resume | ToolMessage] = {}
        for entry in self.resume or ():
            point = read_point(entry.interrupt_id)
            if point is None:
                raise RequestInvalid(f"resume: there is no interrupt {entry.interrupt_id[:100]!r}")
            given[point] = entry
        run_id = next((point.run_id for point in given), None)
        for message in reversed(self.messages):
            if message.get("role") == "user":
                break  # earlier ones were sent before
            point = read_point(str(message.get("toolCallId")))
            if message.get("role") == "tool" and point is not None:
                run_id = run_id or point.run_id
                if point.run_id == run_id:
                    given.setdefault(point, ToolMessage(message.get("content"), message.get("error")))
        return given

    def moves_on(self, record: RunRecord) -> bool:
        """Return whether the user's message is not the one that started the run."""
        last = self.messages[-1] if self.messages else {}
        return last.get("role") == "user" and record.meta.get(MESSAGE) != last.get("id")

    def key(self, agent: str) -> str:
        """Return the idempotency key of the request that starts the run."""
        return request_key("ag-ui", agent, self.thread_id, self.run_id)

    def start(self, agent: str, *, is_first: bool) -> StartRun:
        """Return the request for a run with the last message.

        Args:
            agent: The agent.
            is_first: Whether the conversation begins with it. The agent then gets the application's
                instructions, too.

        Raises:
            RequestInvalid: There is no prompt.
        """
        last = self.messages[-1] if self.messages else {}
        if last.get("role") != "user":
            raise RequestInvalid("messages: the last one is the prompt, and has to be the user's")
        parts: list[TextPart | ImagePart] = []
        if is_first:
            roles = ("system", "developer")
            texts = [message.get("content") for message in self.messages if message.get("role") in roles]
            parts += [TextPart(text=f"{text}\n\n") for text in texts if isinstance(text, str) and text]
        for item in self.context or ():
            parts.append(TextPart(text=f"{item.description}\n{quoted(item.value, 'context')}\n"))
        parts += _prompt(last.get("content"))
        return start_run(agent, self.thread_id, parts, self._choices, meta={MESSAGE: last.get("id")})

    def offered(self) -> list[Tool]:
        """Return the front end's tools.

        Raises:
            RequestInvalid: One is invalid.
        """
        return front_end_tools([(tool.name, tool.description, tool.parameters) for tool in self.tools or ()])

    @property
    def _choices(self) -> Choices | None:
        props: JsonValue = self.forwarded_props
        chosen: JsonValue = props.get("thinkwell") if is_object(props) else None
        if chosen is None:
            return None
        try:
            return msgspec.convert(chosen, Choices)
        except msgspec.ValidationError as exc:
            raise RequestInvalid(type_words(exc, Choices, at="forwardedProps.thinkwell")) from None


def _prompt(content: JsonValue) -> Iterator[TextPart | ImagePart]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not is_array(content):
        raise RequestInvalid("messages: the content of the last one is a text or a list of parts")
    for at, part in enumerate(content):
        where = f"messages: part {at + 1} of the last one"
        if not is_object(part):
            raise RequestInvalid(f"{where}: it is an object")
        source: JsonValue = part.get("source")
        text: JsonValue = part.get("text")
        if part.get("type") == "text" and isinstance(text, str):
            if text:
                yield TextPart(text=text)
        elif is_object(source) and isinstance(value := source.get("value"), str):
            kind = str(source.get("mimeType") or "")
            if source.get("type") == "data":
                said, data = "", read_base64(value, where)
            else:
                said, data = read_data_url(value, where)
            yield file_part(kind or said, data, "", where)
        else:
            raise RequestInvalid(f"{where}: agents get texts, pictures and text files here")
