"""Plays a scene, and writes down what went over the wire and what the logs of its runs say."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from scripted import playing

from thinkwell import Agent, ThinkwellError, ThoughtStream, event_to_json, open_agent
from thinkwell.testing import Script, ScriptedAgent
from thinkwell_acp import memory_transport_pair

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell_acp import Transport

STORED: Final = Path(__file__).parent / "stored"

NAMES: Final = {
    "MARK": r"thinkwell[0-9a-f]{12}",
    "SERVER": r'(?<="serverId":")[^"]+',
    "CONNECTION": r'(?<="connectionId":")[^"]+',
}
"""What differs each time, by the name that it is written as."""

TIMES: Final = re.compile(r'"(?:at|seconds)":[0-9.e-]+')


class Play(Protocol):
    """What the program does. It adds its runs to the streams."""

    async def __call__(self, agent: Agent, streams: list[ThoughtStream[Any]], /) -> None: ...


class Scene(NamedTuple):
    """What the agent does, what the program does, and how both are made."""

    script: Script
    play: Play
    options: Mapping[str, Any] = {}
    agent: Mapping[str, Any] = {}


class _Noted:
    """A transport that keeps what passes, each direction by itself: how they interleave is not fixed."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.sent = bytearray()
        self.received = bytearray()

    async def receive(self) -> bytes:
        data = await self._inner.receive()
        self.received += data
        return data

    async def send(self, item: bytes, /) -> None:
        self.sent += item
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def written(scene: Scene) -> str:
    """Play a scene, and return what is to be stored."""
    ours, theirs = memory_transport_pair()
    noted = _Noted(ours)
    played: dict[str, Any] = {"relists": False, **scene.agent}
    agent = ScriptedAgent(scene.script, **played)
    streams: list[ThoughtStream[Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"cwd": folder, **scene.options}
        async with (
            playing(theirs, agent),
            open_agent(transport=noted, **options) as opened,
        ):
            await scene.play(opened, streams)
    agent.check()
    parts = {"client": noted.sent.decode(), "agent": noted.received.decode()}
    parts |= {f"run {number}": await _log(stream) for number, stream in enumerate(streams)}
    text = "".join(f"== {name}\n{part}" for name, part in parts.items())
    return _same_each_time(text.replace(os.path.realpath(folder), "FOLDER").replace(folder, "FOLDER"))


async def _log(stream: ThoughtStream[Any]) -> str:
    lines: list[str] = []
    try:
        async for event in stream.events():
            lines.append(event_to_json(event).decode())
        lines.append(f"result: {await stream.result!r}")
    except ThinkwellError as exc:
        lines.append(f"{type(exc).__name__}: {exc}")
    return "\n".join([*lines, f"text: {stream.view.text!r}", ""])


def _same_each_time(text: str) -> str:
    text = TIMES.sub(lambda found: f"{found[0].partition(':')[0]}:0", text)
    for name, pattern in NAMES.items():
        for number, found in enumerate(dict.fromkeys(re.findall(pattern, text))):
            text = text.replace(found, f"{name}{number}")
    return text
