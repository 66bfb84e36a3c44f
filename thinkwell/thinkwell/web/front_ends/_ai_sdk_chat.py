"""What the chats of the Vercel AI SDK send: a message of the user's, or answers to what was asked.

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
    """What a message says of a question."""

    question_id: str
    answer: Answer | None
    """``None``: nothing yet."""


class ChatMessage(Struct, frozen=True, kw_only=True):
    """A message of a chat."""

    role: str
    """``user``, ``assistant`` or ``system``."""
    id: str = ""
    """The client's, or of an assistant's message the run's."""
    parts: list[dict[str, JsonValue]] = []
    """Of the user's: ``text``, and ``file`` with its ``data:`` address. Of an assistant's: as they came, with
    the answers."""
    metadata: JsonValue = None
    """Of an assistant's message: as it came."""

    @property
    def run_id(self) -> str:
        """The run that an assistant's message is."""
        run: JsonValue = self.metadata.get("run") if is_object(self.metadata) else None
        return run if isinstance(run, str) else self.id

    def cuts(self, last: int) -> list[int]:
        """Return the entries behind which answers have ended that this message was made of.

        Args:
            last: The last entry of the run. It counts where the message does not say: a client that has
                it has got it in another way.

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
        """Yield what the message says of the questions in it.

        Raises:
            RequestInvalid: An answer cannot be one.
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
    """What `DefaultChatTransport` posts."""

    id: Name
    """The chat: its turns have one session of the agent."""
    messages: Annotated[list[ChatMessage], Meta(min_length=1)]
    """The chat as the client has it. The last one is the user's, and is the prompt; or it is the assistant's,
    with answers to what was asked."""
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    """Whether the last message is new, or needs another answer."""
    message_id: str | None = None
    """The message that is meant, where it is not the last one."""
    thinkwell: Choices | None = None
    """What else is chosen of a new run, from the transport's ``body``."""

    @property
    def prompt(self) -> ChatMessage | None:
        """The message that a run is to be started for; ``None``: a run is to go on."""
        last = self.messages[-1]
        return last if last.role == "user" else None

    @property
    def answered(self) -> ChatMessage | None:
        """The assistant's message in which answers stand."""
        said = [message for message in self.messages if message.role == "assistant"]
        named = [message for message in said if message.id == self.message_id]
        found = named or said
        return found[-1] if found else None

    def start(self, agent: str, message: ChatMessage) -> tuple[StartRun, str | None]:
        """Return what is to be started for a message, and what the request is called.

        Raises:
            RequestInvalid: The message cannot be a prompt.
        """
        run = start_run(agent, self.id, list(_prompt(message)), self.thinkwell)
        regenerates = self.trigger == "regenerate-message"
        if regenerates and self.message_id is None:
            return run, None  # it cannot be told from the next one that is like it
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
                pass  # data parts and the like are the application's own
