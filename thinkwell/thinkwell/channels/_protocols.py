"""The protocols of channels. A channel declares a capability by implementing its protocol.

A channel carries texts to users. It chooses how to name a user (a number, a name, the address of a chat), and
knows nothing of agents, sessions or protocols.
"""

from __future__ import annotations

from importlib.util import find_spec
from inspect import get_annotations
from types import NoneType
from typing import TYPE_CHECKING, Final, Literal, Protocol, runtime_checkable

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "bool": ((bool,), "True or False"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "int | None": ((int, NoneType), "a whole number or None"),
    "float | None": ((int, float, NoneType), "a number or None"),
}
"""The types of a field and their name, by the field's annotation."""


def _check_types(given: Struct) -> None:
    """Check the types of all fields.

    Raises:
        TypeError: A field has another type.
    """
    for name, annotation in get_annotations(type(given)).items():
        kinds, words = KINDS[annotation]
        value: object = getattr(given, name)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise TypeError(
                f"{type(given).__name__}({name}={value!r:.100}): it must be {words}, not a "
                f"{type(value).__name__}"
            )


class ChannelCapabilities(Struct, frozen=True, kw_only=True):
    """What a channel's messages can do, for `deliver`.

    Raises:
        TypeError: A value is of another type.
        ValueError: `max_length` is out of range.
        ImportError: `markdown` needs markdown-it-py, and it is not installed.
    """

    edits: bool = False
    """Whether delivered text can be replaced. Chunks are then merged to one in each edit interval."""
    max_length: int | None = None
    """Most characters (Unicode code points) of a message; ``None``: unlimited. Longer texts become
    several."""
    html: bool = False
    """Whether messages may have HTML marks: see `HtmlChannel`."""
    expandable_quote: bool = False
    """Whether ``<blockquote expandable>`` is one of these marks."""
    markdown: bool = False
    """Whether texts are Markdown that is rendered as HTML; if not, they stay as they are. It needs the extra
    ``telegram``."""
    paced: bool = False
    """Whether the channel decides when to edit. It then gets every chunk at once."""

    def __post_init__(self) -> None:
        _check_types(self)
        if self.max_length is not None and not self.max_length >= 1:
            raise ValueError(f"ChannelCapabilities(max_length={self.max_length!r}): it must be at least 1")
        if self.markdown and find_spec("markdown_it") is None:
            raise ImportError(
                "ChannelCapabilities(markdown=True) needs markdown-it-py, which is not installed; "
                "pip install 'thinkwell[telegram]'",
                name="markdown_it",
            )


class DeliverySettings(Struct, frozen=True, kw_only=True):
    """How runs are delivered to a channel.

    Raises:
        TypeError: A value is of another type.
        ValueError: A number is out of range.
    """

    streaming: bool = True
    """Whether to deliver while the agent writes. If not, `Channel.send` is called once at the end."""
    edit_interval: float | None = None
    """Least seconds between two chunks; ``None``: the channel's own value, or else 1 if it edits and 0 if it
    does not."""
    least_characters: int = 1
    """New characters that a chunk needs at least. The rest is delivered at the end."""
    thinking: bool = True
    """Whether to show the agent's thinking, if the channel can."""
    least_thinking: float = 2.0
    """Least seconds of thinking in all before it is shown."""
    stalled_after: float | None = 120.0
    """Seconds of silence of the agent after which the run is given up: the text so far is delivered with a
    note. Time in which tools run, a question waits or the agent starts does not count. ``None``: never."""
    timeout: float = 120.0
    """Most seconds for a call of the channel. A longer one has failed."""
    attempts: int = 4
    """Most attempts to send the final text, with a growing pause between."""

    def __post_init__(self) -> None:
        _check_types(self)
        for name, least in (("edit_interval", 0.0), ("least_characters", 1), ("least_thinking", 0.0)):
            value: float | None = getattr(self, name)
            if value is not None and not value >= least:  # also refuses NaN
                raise ValueError(f"DeliverySettings({name}={value!r}): it must be at least {least:g}")
        for name in ("stalled_after", "timeout", "attempts"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"DeliverySettings({name}={value!r}): it must be above 0")


class ChannelChoice(Struct, frozen=True, kw_only=True):
    """One of the answers to a question."""

    id: str
    """The value to return as the answer."""
    label: str
    """The text to show: a clean line."""
    style: Literal["accept", "reject", "other"] = "other"
    """Whether it lets the agent continue, or holds it back."""


class ChannelQuestion(Struct, frozen=True, kw_only=True):
    """A question to a user. Its texts contain no terminal control sequences."""

    id: str
    """The question's id, unique in its delivery."""
    text: str
    """The question's text, of any number of lines. The agent, or its model, may have written it."""
    code: str = ""
    """The exact and complete action to approve: the command, the change, or the arguments; may be empty."""
    url: str | None = None
    """The page that the agent wants to open."""
    choices: tuple[ChannelChoice, ...] = ()
    """The answers to choose from."""
    takes_text: bool = False
    """Whether the user may type an answer instead."""
    hint: str = ""
    """The constraints of a typed answer: ``whole number, 1 to 10, required``."""
    deadline: float | None = None
    """Seconds from now until the question is denied; ``None``: it waits."""


class ChannelCounts(Struct, frozen=True, kw_only=True):
    """A channel's counts for the current delivery, or the last one."""

    edits: int = 0
    """The number of edits of messages."""
    retries: int = 0
    """The number of repeated requests."""
    first_delivery: float | None = None
    """Seconds from the start of the stream, or from `send`, until the first text was delivered. For channels
    whose `StreamingChannel.on_stream_chunk` returns before that; ``None``: not yet, or the channel does not
    count it."""


@runtime_checkable
class Channel(Protocol):
    """An object that sends whole messages: all that `deliver` needs."""

    async def send(self, user_id: str, text: str) -> None:
        """Send a text as one message or several. This ends the user's open stream, if there is one.

        Args:
            user_id: The user to send to.
            text: Plain text.

        Raises:
            Exception: It was not sent. It is retried, unless the exception is a `TypeError`,
                `AttributeError`, `NotImplementedError` or `NameError`, or has an attribute ``temporary`` that
                is ``False``. A number ``retry_after`` sets the pause in seconds.
        """
        ...


@runtime_checkable
class StreamingChannel(Channel, Protocol):
    """A channel that can show a text while it is written.

    The calls of one delivery come one after another: the start, then chunks and statuses in any order, then
    the end. If one raises, the text is kept and sent with `send` at the end, unless `on_stream_end` raised a
    permanent error, as described at `send`. If the start raises an exception with a number ``retry_after``,
    it is called again after so many seconds if the run is not over.
    """

    async def on_stream_start(self, user_id: str) -> None:
        """Begin: the agent has the user's message, and there is no text yet."""
        ...

    async def on_stream_chunk(self, user_id: str, chunk: str) -> None:
        """Add a piece of text, of any length."""
        ...

    async def on_stream_status(self, user_id: str, status: str) -> None:
        """Show what the agent does now: a clean line such as ``Using: read parser.py``."""
        ...

    async def on_stream_end(self, user_id: str, full_text: str) -> None:
        """End with the whole text, which replaces all chunks and may be longer."""
        ...


@runtime_checkable
class ThinkingChannel(Protocol):
    """A streaming channel that can show the agent's thinking."""

    async def on_stream_thinking(self, user_id: str, chunk: str) -> None:
        """Add a piece of thinking. The first one comes once the agent has thought long enough to be shown."""
        ...

    async def on_stream_thinking_end(self, user_id: str, seconds: float) -> None:
        """Handle the end of thinking, for now. `seconds` is the time in all."""
        ...


@runtime_checkable
class AskingChannel(Protocol):
    """A channel that can ask the user. An `OutcomeChannel` also learns the outcome."""

    async def ask(self, user_id: str, question: ChannelQuestion) -> str | None:
        """Ask, and return the id of a choice or, if the question allows it, a text. ``None``: no answer.

        It is cancelled when the question was answered elsewhere or withdrawn. Several questions may be open
        at once.
        """
        ...


@runtime_checkable
class OutcomeChannel(Protocol):
    """An asking channel that learns the outcome of its questions."""

    async def on_question_end(self, user_id: str, question: ChannelQuestion, outcome: str) -> None:
        """Handle the outcome of a question: a clean line such as ``allowed by human``."""
        ...


@runtime_checkable
class StoppingChannel(Protocol):
    """A channel through which a user can stop a run."""

    async def wait_stop(self, user_id: str) -> None:
        """Return when the user wants to stop the run being delivered."""
        ...


@runtime_checkable
class DraftingChannel(Protocol):
    """A channel that can preview a message, but not edit one."""

    async def send_draft(self, user_id: str, text: str) -> None:
        """Show the text so far. The message itself is sent at the end. A failed draft is skipped."""
        ...


@runtime_checkable
class HtmlChannel(Protocol):
    """A channel whose messages may have Telegram's HTML marks."""

    async def send_html(self, user_id: str, html: str) -> None:
        """Send a message in valid HTML: every mark is closed, and everything else is escaped."""
        ...


@runtime_checkable
class NotifyingChannel(Protocol):
    """A channel that can send a message while an answer is written."""

    async def notify(self, user_id: str, text: str) -> None:
        """Send a text beside the user's open stream, which `Channel.send` would end."""
        ...


@runtime_checkable
class TypingChannel(Protocol):
    """A channel that can show that an answer is on its way."""

    async def show_typing(self, user_id: str) -> None:
        """Show it until this is cancelled. A router calls it when the agent has the message."""
        ...


@runtime_checkable
class CountingChannel(Protocol):
    """A channel that counts its requests."""

    def counts(self, user_id: str) -> ChannelCounts:
        """Return the counts of the current delivery, or of the last one."""
        ...


@runtime_checkable
class CapableChannel(Protocol):
    """A channel that declares capabilities of its messages."""

    @property
    def capabilities(self) -> ChannelCapabilities:
        """What its messages can do. Without this attribute, only plain text."""
        ...


@runtime_checkable
class ConfiguredChannel(Protocol):
    """A channel with its own settings."""

    @property
    def settings(self) -> DeliverySettings:
        """The settings for its deliveries, unless the caller of `deliver` gives others."""
        ...
