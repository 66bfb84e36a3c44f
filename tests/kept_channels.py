"""Channels that keep what they are given, each with other capabilities, and fail on demand."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import anyio

from thinkwell.channels import (
    Channel,
    ChannelCapabilities,
    ChannelCounts,
    ChannelQuestion,
    Delivery,
    DeliverySettings,
    deliver,
)
from thinkwell.testing import Script, ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import Callable


async def delivered(
    played: Script,
    channel: Channel,
    settings: DeliverySettings | None = None,
    *,
    text: Callable[[Any], Any] | None = None,
    seconds: float = 900,
    **options: Any,
) -> Delivery:
    """Deliver an agent's run with these options of `deliver`; its questions time out after `seconds`."""
    with anyio.fail_after(100_000):
        async with ScriptedAgent(played).open(permissions="ask", question_timeout=seconds) as agent:
            stream = agent.think().text("Go.").stream()
            return await deliver(stream, channel, "ann", text=text, settings=settings, **options)


class Refused(Exception):  # noqa: N818 - what the channel says
    """Raised by a channel that fails."""

    def __init__(self, what: str = "no", retry_after: float | None = None) -> None:
        super().__init__(what)
        if retry_after is not None:
            self.retry_after = retry_after


class Whole:
    """Sends whole messages, and can do nothing else."""

    def __init__(self, *, fails: dict[str, int] | None = None, error: Exception | None = None) -> None:
        self.sent: list[tuple[str, str]] = []
        self.told: list[tuple[str, Any]] = []
        """Every call, in order: the method's name and what it was given."""
        self.at: list[float] = []
        """When each of them came."""
        self.calls = Counter[str]()
        self.fails = fails or {}
        """How many calls of a method fail, from now on."""
        self.error = error
        self.hangs: set[str] = set()
        """Methods that never return."""
        self.changed = anyio.Event()

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.sent]

    async def call(self, method: str, given: Any = None) -> None:
        self.told.append((method, given))
        self.at.append(anyio.current_time())
        self.calls[method] += 1
        self.changed.set()
        self.changed = anyio.Event()
        if method in self.hangs:
            await anyio.sleep_forever()
        if self.fails.get(method, 0) > 0:
            self.fails[method] -= 1
            raise self.error or Refused(method)

    async def until(self, method: str) -> None:
        """Wait until a method was called."""
        while not self.calls[method]:
            await self.changed.wait()

    async def send(self, user_id: str, text: str) -> None:
        await self.call("send", text)
        self.sent.append((user_id, text))


class Streamed(Whole):
    """Takes pieces."""

    @property
    def chunks(self) -> list[str]:
        return [given for method, given in self.told if method == "chunk"]

    @property
    def ends(self) -> list[str]:
        return [given for method, given in self.told if method == "end"]

    @property
    def statuses(self) -> list[str]:
        return [given for method, given in self.told if method == "status"]

    async def on_stream_start(self, user_id: str) -> None:
        await self.call("start", user_id)

    async def on_stream_chunk(self, user_id: str, chunk: str) -> None:
        await self.call("chunk", chunk)

    async def on_stream_status(self, user_id: str, status: str) -> None:
        await self.call("status", status)

    async def on_stream_end(self, user_id: str, full_text: str) -> None:
        await self.call("end", full_text)


class Thinking(Streamed):
    """Shows what the agent thinks."""

    @property
    def thoughts(self) -> list[str]:
        return [given for method, given in self.told if method == "thinking"]

    async def on_stream_thinking(self, user_id: str, chunk: str) -> None:
        await self.call("thinking", chunk)

    async def on_stream_thinking_end(self, user_id: str, seconds: float) -> None:
        await self.call("thought", seconds)


class Edited(Thinking):
    """Edits its messages."""

    capabilities = ChannelCapabilities(edits=True)


class Paced(Edited):
    """Decides by itself when to edit, and counts."""

    capabilities = ChannelCapabilities(edits=True, paced=True)
    settings = DeliverySettings(edit_interval=7.0, least_characters=100)

    def counts(self, user_id: str) -> ChannelCounts:
        return ChannelCounts(edits=3, retries=2)


class Asked(Whole):
    """Asks a person, who has his answers ready."""

    def __init__(self, *answers: str | None, fails: dict[str, int] | None = None) -> None:
        super().__init__(fails=fails)
        self.answers = list(answers)
        self.questions: list[ChannelQuestion] = []
        self.outcomes: list[tuple[str, str]] = []

    async def ask(self, user_id: str, question: ChannelQuestion) -> str | None:
        self.questions.append(question)
        await self.call("ask", question.id)
        if not self.answers:
            await anyio.sleep_forever()
        return self.answers.pop(0)

    async def on_question_end(self, user_id: str, question: ChannelQuestion, outcome: str) -> None:
        self.outcomes.append((question.id, outcome))
        await self.call("outcome", outcome)


class Stopped(Streamed):
    """Lets a person stop the run."""

    def __init__(self) -> None:
        super().__init__()
        self.stop = anyio.Event()

    async def wait_stop(self, user_id: str) -> None:
        await self.stop.wait()
        await self.call("stopped")


class Drafted(Whole):
    """Shows a preview."""

    @property
    def drafts(self) -> list[str]:
        return [given for method, given in self.told if method == "draft"]

    async def send_draft(self, user_id: str, text: str) -> None:
        await self.call("draft", text)


class Notified(Streamed):
    """Says things beside an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.notices: list[tuple[str, str]] = []

    async def notify(self, user_id: str, text: str) -> None:
        await self.call("notify", text)
        self.notices.append((user_id, text))


class Marked(Whole):
    """Sends HTML, in short messages."""

    capabilities = ChannelCapabilities(max_length=200, html=True, expandable_quote=True)

    async def send_html(self, user_id: str, html: str) -> None:
        await self.call("html", html)
