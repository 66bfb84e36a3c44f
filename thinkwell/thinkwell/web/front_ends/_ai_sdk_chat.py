"""Requests of Vercel AI SDK chats: a message of the user, or answers to questions.

Source: npm `ai` 7.0, ``src/ui/http-chat-transport.ts`` and ``src/ui/ui-messages.ts``.
"""

# ruff: noqa: TC001 - the types of fields are read at run time

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

from thinkwell._core.schema.json_schema import is_object
from thinkwell.events import JsonValue
from thinkwell.questions import FormValue, Reply
from thinkwell.web._refusals import RequestInvalid
from thinkwell.web._requests import ImagePart, StartRun, TextPart
from thinkwell.web.front_ends._ai_sdk import question_of_call
from thinkwell.web.front_ends._requests import (
    Choices,
    Name,
    file_part,
    read_data_url,
    request_key,
    start_run,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from thinkwell.questions import Answer

MOST_CUTS: Final = 1000


class Given(NamedTuple):
    """The client's answer to a question."""

    question_id: str
    answer: Answer | None
    """``None``: not yet answered."""


class ChatMessage(Struct, frozen=True, kw_only=True):
    """A message of a chat."""

    role: str
    """``user``, ``assistant`` or ``system``."""
    id: str = ""
    """The client's id; of an assistant's message, the run's."""
    parts: list[dict[str, JsonValue]] = []
    """Of the user's: ``text``, and ``file`` with its ``data:`` address. Of an assistant's: as received, with
    the answers."""
    metadata: JsonValue = None
    """Of an assistant's message: as received."""

    @property
    def run_id(self) -> str:
        """The run of an assistant's message."""
        run: JsonValue = self.metadata.get("run") if is_object(self.metadata) else None
        return run if isinstance(run, str) else self.id

    def cuts(self, last: int) -> list[int]:
        """Return the entries at which the answers in this message ended.

        Args:
            last: The last entry of the run. It is used if the message has none: the client has received it in
                another way.

        Raises:
            RequestInvalid: The run has no such entries.
        """
        after: JsonValue = self.metadata.get("after") if is_object(self.metadata) else None
        try:
            cuts = msgspec.convert([last] if after is None else after, list[int])
        except msgspec.ValidationError:
            cuts = [-1]
        if len(cuts) > MOST_CUTS or sorted(set(cuts)) != cuts or not all(0 <= cut <= last for cut in cuts):
            raise RequestInvalid("messages: metadata.after of the assistant's last message has been changed")
        return cuts

    def given(self) -> Iterator[Given]:
        """Yield the answers to the questions in the message.

        Raises:
            RequestInvalid: An answer is invalid.
        """
        for part in self.parts:
            state: JsonValue = part.get("state")
            approval: JsonValue = part.get("approval")
            question = question_of_call(str(part.get("toolCallId")))
            if is_object(approval) and isinstance(id_ := approval.get("id"), str):
                if state == "approval-requested":
                    yield Given(id_, None)
                elif state == "approval-responded":
                    yield Given(id_, _verdict(approval))
            elif question is not None and not part.get("providerExecuted"):
                if state == "input-available":
                    yield Given(question, None)
                elif state == "output-error":
                    yield Given(question, Reply("decline", why="declined in the front end"))
                elif state == "output-available":
                    yield Given(question, _form(part.get("output")))


def _verdict(approval: dict[str, JsonValue]) -> Answer:
    reason: JsonValue = approval.get("reason")
    why = reason if isinstance(reason, str) and reason else "answered in the front end"
    return Reply("allow" if approval.get("approved") is True else "deny", why=why)


def _form(output: JsonValue) -> Answer:
    try:
        return msgspec.convert(output, dict[str, FormValue | None])
    except msgspec.ValidationError:
        raise RequestInvalid("messages: the output of a form is an object, of its fields by name") from None


class ChatRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    """The request of `DefaultChatTransport`."""

    id: Name
    """The chat: its turns share one session of the agent."""
    messages: Annotated[list[ChatMessage], Meta(min_length=1)]
    """The client's messages. The last one is the user's, and the prompt; or it is the assistant's, with
    answers to its questions."""
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    """Whether the last message is new, or needs another answer."""
    message_id: str | None = None
    """The message in question, if it is not the last one."""
    thinkwell: Choices | None = None
    """Further choices for a new run, from the transport's ``body``."""

    @property
    def prompt(self) -> ChatMessage | None:
        """The message that starts a run; ``None``: a run continues."""
        last = self.messages[-1]
        return last if last.role == "user" else None

    @property
    def answered(self) -> ChatMessage | None:
        """The assistant's message with the answers."""
        said = [message for message in self.messages if message.role == "assistant"]
        named = [message for message in said if message.id == self.message_id]
        found = named or said
        return found[-1] if found else None

    def start(self, agent: str, message: ChatMessage) -> tuple[StartRun, str | None]:
        """Return the request for a run with a message, and its idempotency key.

        Raises:
            RequestInvalid: The message cannot be a prompt.
        """
        run = start_run(agent, self.id, list(_prompt(message)), self.thinkwell)
        regenerates = self.trigger == "regenerate-message"
        if regenerates and self.message_id is None:
            return run, None  # it looks like the next one with the same text
        said = [part.get(name) for part in message.parts for name in ("text", "url", "filename")]
        content = [text for text in said if isinstance(text, str)]
        return run, request_key("ai-sdk", agent, self.id, message.id, self.trigger, self.message_id, content)


def _prompt(message: ChatMessage) -> Iterator[TextPart | ImagePart]:
    for at, part in enumerate(message.parts):
        where = f"messages: part {at + 1} of the last one"
        match part.get("type"):
            case "text":
                text: JsonValue = part.get("text")
                if not isinstance(text, str):
                    raise RequestInvalid(f"{where}: a text has a text")
                if text:
                    yield TextPart(text=text)
            case "file":
                texts = (part.get("url"), part.get("mediaType"), part.get("filename"))
                url, kind, name = (text if isinstance(text, str) else "" for text in texts)
                said, data = read_data_url(url, where)
                yield file_part(said or kind, data, name, where)
            case _:
                pass  # data parts and similar ones belong to the application
