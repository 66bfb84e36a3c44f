"""What a channel is. To implement a protocol is to declare the capability: there is no flag for it.

A channel carries texts to people. It knows users by a name that is its own business (a number, a name, the
address of a chat) and is never told of agents, sessions or protocols.
"""

from __future__ import annotations

from importlib.util import find_spec
from types import NoneType
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = (
    "AskingChannel",
    "CapableChannel",
    "Channel",
    "ChannelCapabilities",
    "ChannelChoice",
    "ChannelCounts",
    "ChannelQuestion",
    "ConfiguredChannel",
    "CountingChannel",
    "DeliverySettings",
    "DraftingChannel",
    "HtmlChannel",
    "NotifyingChannel",
    "OutcomeChannel",
    "StoppingChannel",
    "StreamingChannel",
    "ThinkingChannel",
    "TypingChannel",
)

Kinds: TypeAlias = tuple[type, ...]

FLAG: Final[Kinds] = (bool,)
WHOLE: Final[Kinds] = (int,)
NUMBER: Final[Kinds] = (int, float)
NONE: Final[Kinds] = (NoneType,)

WORDS: Final[Mapping[Kinds, str]] = {
    FLAG: "True or False",
    WHOLE: "a whole number",
    NUMBER: "a number",
    WHOLE + NONE: "a whole number or None",
    NUMBER + NONE: "a number or None",
}


def _check_types(given: Struct, **kinds: Kinds) -> None:
    """Check the types of fields.

    Raises:
        TypeError: One is something else.
    """
    for name, kind in kinds.items():
        value: object = getattr(given, name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not FLAG):
            raise TypeError(
                f"{type(given).__name__}({name}={value!r:.100}): it must be {WORDS[kind]}, not a "
                f"{type(value).__name__}"
            )


class ChannelCapabilities(Struct, frozen=True, kw_only=True):
    """What can be done with messages of a channel. `deliver` asks for it.

    Raises:
        TypeError: A value is of another type.
        ValueError: `max_length` is out of range.
        ImportError: `markdown` needs markdown-it-py, and it is not installed.
    """

    edits: bool = False
    """Whether what was delivered can be replaced: chunks are then merged to one in each edit interval."""
    max_length: int | None = None
    """Characters (Unicode code points) of a message; ``None``: any number. What is longer becomes several."""
    html: bool = False
    """Whether messages may have marks of HTML: see `HtmlChannel`."""
    expandable_quote: bool = False
    """Whether ``<blockquote expandable>`` is one of these marks."""
    markdown: bool = False
    """Whether texts are taken for Markdown and written as HTML that says the same; if not, they stay as they
    are. It needs what the extra ``telegram`` brings."""
    paced: bool = False
    """Whether the channel itself decides when to edit: it is then handed every chunk at once."""

    def __post_init__(self) -> None:
        _check_types(
            self,
            edits=FLAG,
            max_length=WHOLE + NONE,
            html=FLAG,
            expandable_quote=FLAG,
            markdown=FLAG,
            paced=FLAG,
        )
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
    """Whether to deliver while the agent writes. If not, there is one `Channel.send` at the end."""
    edit_interval: float | None = None
    """Seconds between two chunks at least; ``None``: the channel's own, or else 1 where it edits and 0 where
    it does not."""
    least_characters: int = 1
    """Characters that have to be new before a chunk is delivered. What is left is delivered at the end."""
    thinking: bool = True
    """Whether what the agent thinks is shown, where the channel can show it."""
    least_thinking: float = 2.0
    """Seconds; thinking that took less in all is not shown."""
    stalled_after: float | None = 120.0
    """Seconds without any news of the agent after which the run is given up: what there is is delivered, and
    marked. Time in which tools run, a question waits, or the agent is being started does not count. ``None``:
    never."""
    timeout: float = 120.0
    """Seconds that a call of the channel may take; after that, it has failed."""
    attempts: int = 4
    """How often the final text is tried to be sent, with a growing pause between."""

    def __post_init__(self) -> None:
        _check_types(
            self,
            streaming=FLAG,
            edit_interval=NUMBER + NONE,
            least_characters=WHOLE,
            thinking=FLAG,
            least_thinking=NUMBER,
            stalled_after=NUMBER + NONE,
            timeout=NUMBER,
            attempts=WHOLE,
        )
        for name, least in (("edit_interval", 0.0), ("least_characters", 1), ("least_thinking", 0.0)):
            value: float | None = getattr(self, name)
            if value is not None and not value >= least:  # NaN is neither
                raise ValueError(f"DeliverySettings({name}={value!r}): it must be at least {least:g}")
        for name in ("stalled_after", "timeout", "attempts"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"DeliverySettings({name}={value!r}): it must be above 0")


class ChannelChoice(Struct, frozen=True, kw_only=True):
    """One of the answers that a question offers."""

    id: str
    """What to answer with."""
    label: str
    """What to show: a clean line."""
    style: Literal["accept", "reject", "other"] = "other"
    """Whether it lets the agent go on, or holds it back."""


class ChannelQuestion(Struct, frozen=True, kw_only=True):
    """Something that a person is asked. Nothing of it controls a terminal."""

    id: str
    """Name of the question, unique in its delivery."""
    text: str
    """What is asked, of any number of lines. The agent, or its model, may have written it."""
    code: str = ""
    """What would be done, exactly and whole: the command, the change, or the arguments; may be empty."""
    url: str | None = None
    """The page that the agent wants to be opened."""
    choices: tuple[ChannelChoice, ...] = ()
    """What may be chosen."""
    takes_text: bool = False
    """Whether a text may be written instead."""
    hint: str = ""
    """What the text may be: ``whole number, 1 to 10, required``."""
    deadline: float | None = None
    """Seconds until the question is denied, from when it is put; ``None``: it waits."""


class ChannelCounts(Struct, frozen=True, kw_only=True):
    """What a channel has done for the delivery that runs, or for the last one."""

    edits: int = 0
    """How often a message was edited."""
    retries: int = 0
    """How often a request was repeated."""
    first_delivery: float | None = None
    """Seconds from the start of the stream, or from `send`, until the first text was there. To be told by a
    channel whose `StreamingChannel.on_stream_chunk` returns before that; ``None``: it has not been yet, or
    the channel does not count it."""


@runtime_checkable
class Channel(Protocol):
    """Something that can send whole messages. Nothing more is needed to be delivered to."""

    async def send(self, user_id: str, text: str) -> None:
        """Send a text as a message, or as several. Where a stream is open for the user, it ends with that.

        Args:
            user_id: To whom.
            text: Plain text.

        Raises:
            Exception: It was not sent. It is tried again, unless it is one of `TypeError`, `AttributeError`,
                `NotImplementedError` and `NameError`, or has an attribute ``temporary`` that is ``False``. A
                number ``retry_after`` says in how many seconds.
        """
        ...


@runtime_checkable
class StreamingChannel(Channel, Protocol):
    """A channel that can show a text while it is written.

    The calls of one delivery come one after another: the start, then chunks and statuses in any order, then
    the end. Where one of them raises, the text is kept and goes out by `send` at the end, unless
    `on_stream_end` has raised what is not ``temporary``, as `send` would. Where the start raises an exception
    with a number ``retry_after``, it is called again after so many seconds, if the run still goes on then.
    """

    async def on_stream_start(self, user_id: str) -> None:
        """Begin: the agent was given the user's message, and nothing is there yet."""
        ...

    async def on_stream_chunk(self, user_id: str, chunk: str) -> None:
        """Add a piece of text, of any length."""
        ...

    async def on_stream_status(self, user_id: str, status: str) -> None:
        """Tell what the agent does now: a clean line such as ``Using: read parser.py``."""
        ...

    async def on_stream_end(self, user_id: str, full_text: str) -> None:
        """End with the whole text, which replaces all chunks: it may say more than they did."""
        ...


@runtime_checkable
class ThinkingChannel(Protocol):
    """A streaming channel that can show what the agent thinks."""

    async def on_stream_thinking(self, user_id: str, chunk: str) -> None:
        """Add a piece of thinking. The first one comes when the agent has thought long enough to be shown."""
        ...

    async def on_stream_thinking_end(self, user_id: str, seconds: float) -> None:
        """Know that the agent has stopped thinking, for now, and how long it has thought in all."""
        ...


@runtime_checkable
class AskingChannel(Protocol):
    """A channel that can ask the user. An `OutcomeChannel` also learns the outcome."""

    async def ask(self, user_id: str, question: ChannelQuestion) -> str | None:
        """Ask, and return the id of a choice or, where the question takes one, a text. ``None``: no answer.

        It is cancelled where the question was answered elsewhere or withdrawn. Several may be asked at once.
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
    """A channel through which a person can stop a run."""

    async def wait_stop(self, user_id: str) -> None:
        """Return when the user wants the run that is delivered to be stopped."""
        ...


@runtime_checkable
class DraftingChannel(Protocol):
    """A channel that can show a preview of a message, and cannot edit one."""

    async def send_draft(self, user_id: str, text: str) -> None:
        """Show the text so far; the message itself is sent at the end. A draft that fails is skipped."""
        ...


@runtime_checkable
class HtmlChannel(Protocol):
    """A channel whose messages may have marks of HTML, as far as Telegram knows them."""

    async def send_html(self, user_id: str, html: str) -> None:
        """Send a message. It is valid: every mark is closed, and everything else is escaped."""
        ...


@runtime_checkable
class NotifyingChannel(Protocol):
    """A channel that can say something while an answer is written."""

    async def notify(self, user_id: str, text: str) -> None:
        """Send a text beside the stream that is open for the user, if one is: `Channel.send` would end it."""
        ...


@runtime_checkable
class TypingChannel(Protocol):
    """A channel that can show that an answer is on its way before there is anything of it."""

    async def show_typing(self, user_id: str) -> None:
        """Show it until this is cancelled: a router does so when the agent has its message."""
        ...


@runtime_checkable
class CountingChannel(Protocol):
    """A channel that counts what it does."""

    def counts(self, user_id: str) -> ChannelCounts:
        """Return what was done for the delivery that runs, or for the last one."""
        ...


@runtime_checkable
class CapableChannel(Protocol):
    """A channel that tells what its messages can be."""

    @property
    def capabilities(self) -> ChannelCapabilities:
        """What can be done with its messages. Without this, nothing special."""
        ...


@runtime_checkable
class ConfiguredChannel(Protocol):
    """A channel with settings of its own."""

    @property
    def settings(self) -> DeliverySettings:
        """How runs are delivered to it, unless the caller of `deliver` says otherwise."""
        ...
