"""What a channel is, is told by its methods; its settings are checked; and it knows nothing of agents."""

from __future__ import annotations

import ast
import importlib
import io
import math
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from thinkwell import channels
from thinkwell.channels import (
    AskingChannel,
    CapableChannel,
    Channel,
    ChannelCapabilities,
    ChannelCounts,
    ChannelQuestion,
    ConfiguredChannel,
    CountingChannel,
    DeliverySettings,
    DraftingChannel,
    HtmlChannel,
    NotifyingChannel,
    OutcomeChannel,
    StoppingChannel,
    StreamingChannel,
    TerminalChannel,
    ThinkingChannel,
    TypingChannel,
)
from thinkwell.channels.telegram import TelegramChannel

if TYPE_CHECKING:
    from collections.abc import Callable

PROTOCOLS: dict[str, type] = {
    "asks": AskingChannel,
    "can": CapableChannel,
    "counts": CountingChannel,
    "drafts": DraftingChannel,
    "html": HtmlChannel,
    "is configured": ConfiguredChannel,
    "is told": OutcomeChannel,
    "notifies": NotifyingChannel,
    "sends": Channel,
    "stops": StoppingChannel,
    "streams": StreamingChannel,
    "thinks": ThinkingChannel,
    "types": TypingChannel,
}


class Mailing:
    """Sends whole messages, and nothing else."""

    async def send(self, user_id: str, text: str) -> None: ...


class Flowing(Mailing):
    """Shows a text while it is written."""

    async def on_stream_start(self, user_id: str) -> None: ...
    async def on_stream_chunk(self, user_id: str, chunk: str) -> None: ...
    async def on_stream_status(self, user_id: str, status: str) -> None: ...
    async def on_stream_end(self, user_id: str, full_text: str) -> None: ...


class Ended(Mailing):
    """Forgot three of the four methods."""

    async def on_stream_end(self, user_id: str, full_text: str) -> None: ...


class Mute:
    """Streams, and cannot send."""

    async def on_stream_start(self, user_id: str) -> None: ...
    async def on_stream_chunk(self, user_id: str, chunk: str) -> None: ...
    async def on_stream_status(self, user_id: str, status: str) -> None: ...
    async def on_stream_end(self, user_id: str, full_text: str) -> None: ...


class Everything(Flowing):
    """Has every capability."""

    async def on_stream_thinking(self, user_id: str, chunk: str) -> None: ...
    async def on_stream_thinking_end(self, user_id: str, seconds: float) -> None: ...
    async def ask(self, user_id: str, question: ChannelQuestion) -> str | None: ...
    async def on_question_end(self, user_id: str, question: ChannelQuestion, outcome: str) -> None: ...
    async def wait_stop(self, user_id: str) -> None: ...
    async def send_draft(self, user_id: str, text: str) -> None: ...
    async def send_html(self, user_id: str, html: str) -> None: ...
    async def notify(self, user_id: str, text: str) -> None: ...
    async def show_typing(self, user_id: str) -> None: ...

    def counts(self, user_id: str) -> ChannelCounts:
        return ChannelCounts()

    @property
    def capabilities(self) -> ChannelCapabilities:
        return ChannelCapabilities(edits=True)

    @property
    def settings(self) -> DeliverySettings:
        return DeliverySettings()


def declared(channel: object) -> set[str]:
    return {name for name, protocol in PROTOCOLS.items() if isinstance(channel, protocol)}


@pytest.mark.parametrize(
    ("channel", "expected"),
    [
        (Mailing(), {"sends"}),
        (Flowing(), {"sends", "streams"}),
        (Ended(), {"sends"}),
        (Mute(), set[str]()),
        (Everything(), set(PROTOCOLS)),
        (object(), set[str]()),
        (
            TelegramChannel("42:a-token-of-the-tests"),
            {
                *("asks", "can", "counts", "html", "is configured", "is told", "notifies", "sends", "stops"),
                *("streams", "thinks", "types"),
            },
        ),
        (
            TerminalChannel(io.StringIO()),
            {"asks", "can", "is configured", "is told", "notifies", "sends", "streams", "thinks"},
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_methods_are_the_declaration(channel: object, expected: set[str]) -> None:
    assert declared(channel) == expected


def test_every_protocol_can_be_asked_for() -> None:
    """None is left out of this test, and none needs a base class."""
    named = {name for name in channels.__all__ if name == "Channel" or name.endswith("Channel")}
    ours = {"TerminalChannel"}
    assert named - ours == {protocol.__name__ for protocol in PROTOCOLS.values()}
    assert not {base for base in type(Everything()).__mro__ if base.__module__.startswith("thinkwell")}


def test_nothing_special_can_be_done_unless_it_is_said() -> None:
    assert ChannelCapabilities() == ChannelCapabilities(
        edits=False, max_length=None, html=False, expandable_quote=False, paced=False
    )


MAKE: Callable[..., DeliverySettings] = DeliverySettings
"""Type checkers would want each keyword by itself."""


@pytest.mark.parametrize(
    ("settings", "least"),
    [
        *(({"edit_interval": number}, "at least 0") for number in (-0.1, -math.inf, math.nan)),
        *(({"least_characters": number}, "at least 1") for number in (0, -5)),
        *(({"least_thinking": number}, "at least 0") for number in (-1.0, math.nan)),
        *(({"stalled_after": number}, "above 0") for number in (0.0, -1.0, math.nan)),
        *(({"timeout": number}, "above 0") for number in (0.0, -1.0, math.nan)),
        *(({"attempts": number}, "above 0") for number in (0, -1)),
    ],
)
def test_settings_refuse_a_number_that_is_out_of_range(settings: dict[str, float], least: str) -> None:
    [name] = settings
    with pytest.raises(ValueError, match=rf"^DeliverySettings\({name}=.*\): it must be {least}$"):
        MAKE(**settings)
    with pytest.raises(ValueError, match=name):
        msgspec.structs.replace(DeliverySettings(), **settings)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, DeliverySettings)


def test_settings_take_what_is_at_the_limit() -> None:
    settings = DeliverySettings(edit_interval=0, least_characters=1, least_thinking=0, attempts=1)
    assert settings.edit_interval == 0
    assert DeliverySettings(edit_interval=None, stalled_after=None).stalled_after is None
    assert DeliverySettings(timeout=math.inf).timeout == math.inf


def test_settings_are_values() -> None:
    assert DeliverySettings() == DeliverySettings()
    with pytest.raises(AttributeError):
        DeliverySettings().streaming = False  # type: ignore[misc]


def loaded_by(code: str) -> set[str]:
    code = f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


def test_thinkwell_does_not_load_channels() -> None:
    assert not {name for name in loaded_by("import thinkwell") if name.startswith("thinkwell.channels")}


def test_channels_load_what_they_need_and_no_more() -> None:
    loaded = loaded_by("import thinkwell.channels")
    assert "thinkwell.channels._protocols" in loaded
    assert not {name for name in loaded if name.startswith("thinkwell.channels.telegram")}
    assert loaded.isdisjoint({"httpx", "rich", "typer", "pydantic", "asyncio", "trio"})


FOLDER = Path(channels.__file__).parent
CHANNEL_SIDE = ("_protocols.py", "_errors.py", "_terminal.py", "telegram/*.py")
"""Modules that carry texts, and have no business with agents."""


@pytest.mark.parametrize(
    "path",
    [path for pattern in CHANNEL_SIDE for path in sorted(FOLDER.glob(pattern))],
    ids=lambda path: path.relative_to(FOLDER).as_posix(),
)
def test_a_channel_knows_nothing_of_the_protocol(path: Path) -> None:
    """Not for types either, which the contract in pyproject.toml leaves aside."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        assert not [name for name in names if name.partition(".")[0] in {"thinkwell_acp", "acp"}]


def test_only_telegram_needs_httpx() -> None:
    for path in sorted(FOLDER.rglob("*.py")):
        if "telegram" not in path.relative_to(FOLDER).parts:
            assert "httpx" not in path.read_text("utf-8"), path


def test_each_public_name_is_importable() -> None:
    module = importlib.import_module("thinkwell.channels")
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
