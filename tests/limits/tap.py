"""A look at the wire from the agent's end."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from thinkwell_acp import Transport

Json: TypeAlias = dict[str, Any]

QUESTIONS = ("session/request_permission", "elicitation/create")


class Tap:
    """The agent's end of a connection; keeps every message that came and went."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._coming = self._going = b""
        self.came: list[Json] = []
        self.went: list[Json] = []

    async def receive(self) -> bytes:
        data = await self._transport.receive()
        *lines, self._coming = (self._coming + data).split(b"\n")
        self.came += map(json.loads, lines)
        return data

    async def send(self, item: bytes, /) -> None:
        *lines, self._going = (self._going + item).split(b"\n")
        self.went += map(json.loads, lines)
        await self._transport.send(item)

    async def aclose(self) -> None:
        await self._transport.aclose()

    def count(self, method: str) -> int:
        """How many messages of that method came."""
        return sum(message.get("method") == method for message in self.came)

    @property
    def answers(self) -> dict[Any, list[Json]]:
        """What was answered to each question that went, by the id of its request."""
        asked = {message["id"] for message in self.went if message.get("method") in QUESTIONS}
        answers: dict[Any, list[Json]] = {id_: [] for id_ in asked}
        for message in self.came:
            if "method" not in message and message["id"] in asked:
                answers[message["id"]].append(message)
        return answers

    @property
    def how_often(self) -> Counter[int]:
        """How many questions were answered how many times."""
        return Counter(len(given) for given in self.answers.values())


def told(message: Json) -> str:
    """Return what an answer to a question says, in a word: an option's id, an action, or ``cancelled``."""
    if "error" in message:
        return "cancelled" if message["error"]["code"] == -32800 else "failed"
    result: Json = message["result"]
    if "action" in result:
        return "cancelled" if result["action"] == "cancel" else str(result["action"])
    return str(result["outcome"].get("optionId", "cancelled"))
