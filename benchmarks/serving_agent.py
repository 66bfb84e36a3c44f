"""The agent behind the measured servers: it writes the updates that a prompt orders, when a file allows it.

    python -m benchmarks.serving_agent

The prompt is a `Turn` as JSON. At a rate, each update has the time at which it was written in its text, by
the clock that all processes of the machine share; without one, the turn was rendered before and is written in
large pieces.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic, monotonic_ns, sleep

from benchmarks.agent import MIXES, WORDS, Agent, chunk, envelope, session_id

PATIENCE = 60.0
"""Seconds after which it stops waiting for the file."""

READY = "Ready."
"""The agent's text when it waits for the file."""

TOKEN = "the-token-of-the-benchmarks"
"""The token of requests to thinkwell's server, which always requires one. The loops ignore it."""

STAMP = "@"
"""The text before and after a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the agent does."""

    count: int
    """Updates."""
    rate: float
    """Updates per second; 0: as fast as they are read."""
    go: str
    """A file: when it exists, the updates are written."""
    log: int = 0
    """Updates that are written before that."""
    mix: str = ""
    """The mix of updates, of the other benchmarks; empty: pieces of text, each with its time."""
    stays: bool = False
    """Whether the turn never ends."""

    @property
    def prompt(self) -> str:
        """The order for it."""
        return json.dumps(asdict(self))


class ServingAgent(Agent):
    """Plays one turn for each prompt, one after the other."""

    def __init__(self) -> None:
        super().__init__(b"", sessions=1)

    def handle(self, line: bytes) -> None:
        """Answer one message; a prompt, when its turn is over."""
        if b'"session/prompt"' not in line:
            super().handle(line)
            return
        request = json.loads(line)
        self.play_turn(Turn(**json.loads(request["params"]["prompt"][0]["text"])))
        self.reply(str(request["id"]).encode(), '{"stopReason":"end_turn"}')

    def play_turn(self, turn: Turn) -> None:
        """Write a turn."""
        self.write(words(turn.log) + update(READY))
        block = b"" if turn.rate else words(turn.count)
        begun, server = monotonic(), os.getppid()
        while turn.stays or not Path(turn.go).exists():
            if monotonic() - begun > PATIENCE or os.getppid() != server:
                return
            sleep(0.002)
        if turn.rate:
            self.trickle_turn(turn)
        else:
            self.write(block)

    def trickle_turn(self, turn: Turn) -> None:
        """Write one update at a time."""
        begun = monotonic()
        mixed = MIXES[turn.mix](session_id(0), turn.count) if turn.mix else ()
        for number in range(turn.count):
            sleep(max(0.0, begun + number / turn.rate - monotonic()))
            self.write(mixed[number] if mixed else update(f"{STAMP}{monotonic_ns()}{STAMP} "))


def update(text: str) -> bytes:
    return envelope(session_id(0), chunk("agent_message_chunk", "message-1", text))


def words(count: int) -> bytes:
    return b"".join(update(WORDS[number % len(WORDS)]) for number in range(count))


if __name__ == "__main__":
    try:
        ServingAgent().serve()
    except BrokenPipeError:
        os._exit(0)
