"""The faults of a connection, chosen by a seed. Nothing here waits or reads.

`Chaos` gets the lines and decides their fate; `thinkwell.testing._chaotic` is the transport around
it.
"""

from __future__ import annotations

import random
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HUGE: Final = 8 * 1024 * 1024
"""Bytes of a huge line."""

DELAYS: Final = (0.001, 0.01, 0.1, 0.5)
"""Seconds from which a delay is chosen."""

Way: TypeAlias = Literal["in", "out"]
"""``in``: from the agent to us."""


class Fault(StrEnum):
    """A kind of fault."""

    DELAY = "delay"
    """Bytes arrive late."""
    SPLIT = "split"
    """Bytes arrive in pieces that are split anywhere, even inside a character."""
    SLOW_WRITE = "slow_write"
    """Sending takes a while."""
    NOISE = "noise"
    """A malformed line."""
    HUGE_NOISE = "huge_noise"
    """One of 8 MB."""
    HUGE_UPDATE = "huge_update"
    """An update of 8 MB."""
    UNKNOWN_UPDATE = "unknown_update"
    """An update of an unknown kind."""
    EARLY_UPDATE = "early_update"
    """An update of a session whose opening was not answered yet."""
    LATE_UPDATES = "late_updates"
    """Updates arrive only after the answer to the prompt."""
    SWAP = "swap"
    """An update arrives after the next message of another session."""
    DUPLICATE_ANSWER = "duplicate_answer"
    """An answer arrives twice."""
    UNKNOWN_ANSWER = "unknown_answer"
    """An answer to no request."""
    UNKNOWN_REQUEST = "unknown_request"
    """A request of an unknown method."""
    DUPLICATE_REQUEST = "duplicate_request"
    """A request arrives twice, with the same id."""
    ERROR_ANSWER = "error_answer"
    """An error instead of a result."""
    DROP = "drop"
    """The connection ends."""
    HALF_LINE = "half_line"
    """The connection ends in the middle of a line."""
    HANG = "hang"
    """Nothing passes any more in either direction; the agent has not ended."""
    STUCK = "stuck"
    """The agent stops reading."""


FATAL: Final = frozenset({Fault.DROP, Fault.HALF_LINE, Fault.HANG, Fault.STUCK})
"""Faults that make the connection useless."""

DEFAULT_RATES: Final[Mapping[Fault, float]] = {
    Fault.DELAY: 0.1,
    Fault.SPLIT: 0.2,
    Fault.SLOW_WRITE: 0.03,
    Fault.NOISE: 0.05,
    Fault.UNKNOWN_UPDATE: 0.05,
    Fault.EARLY_UPDATE: 0.2,
    Fault.SWAP: 0.1,
    Fault.DUPLICATE_ANSWER: 0.05,
    Fault.UNKNOWN_ANSWER: 0.05,
    Fault.UNKNOWN_REQUEST: 0.03,
    Fault.DUPLICATE_REQUEST: 0.05,
}
"""The probability of each fault, for each message it applies to. A run has to end as well as without them."""

_NOISE: Final = (
    b"npm warn deprecated: this is no message",
    b"",
    b"   \t ",
    b"{",
    b'{"jsonrpc": "2.0", "method": "session/upd',
    b"[1, 2, 3]",
    b"null",
    b"\xff\xfe\x00 no text at all \xc3",
    b'{"jsonrpc": "2.0", "id": 7.5, "result": {}}',
    b'{"jsonrpc": "2.0", "method": 7}',
    b"[" * 2000,
)


class Passed(Struct, frozen=True, kw_only=True):
    """A line that has passed, or a fault without a line."""

    at: float
    """Seconds on the clock of the event loop."""
    way: Way
    line: bytes = b""
    fault: Fault | None = None
    """The fault that made, changed or moved it."""


class Piece(Struct, kw_only=True):
    """Bytes to deliver, and the lines that they complete."""

    data: bytes
    lines: Sequence[tuple[bytes, Fault | None]]
    delay: float


class Message(Struct):
    """The relevant part of a message."""

    id: Any = UNSET
    method: str = ""
    params: Any = None
    result: Any = UNSET

    @property
    def answers(self) -> bool:
        """Whether it is an answer."""
        return not self.method and self.id is not UNSET

    @property
    def session(self) -> str | None:
        """The session of the message, if it names one."""
        match self.params or self.result:
            case {"sessionId": str(id_)}:
                return id_
            case _:
                return None


_decode = msgspec.json.Decoder(Message).decode


def read_message(line: bytes) -> Message | None:
    """Return a line as a message; ``None`` if it is none."""
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class Chaos:
    """The faults of one connection.

    Args:
        seed: Decides everything random.
        rates: The probability of each fault, for each message it applies to; by default `DEFAULT_RATES`.
            Faults that are not named do not occur.
        at: Faults by the number of the message. Messages in both directions are counted together,
            from 1, in the order in which they pass.
        delays: The seconds from which delays are chosen.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        rates: Mapping[Fault, float] | None = None,
        at: Mapping[int, Fault] | None = None,
        delays: Sequence[float] = DELAYS,
    ) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - nothing secret
        self._rates = dict(DEFAULT_RATES if rates is None else rates)
        self._at = dict(at or {})
        self._delays = tuple(delays)
        self.injected: Counter[Fault] = Counter()
        """How often each fault has occurred."""
        self.passed: list[Passed] = []
        """The messages received and sent, in order, with times."""
        self.messages: int = 0
        """How many messages have passed, in both directions."""
        self.broken: Fault | None = None
        """The fault that has made the connection useless."""
        self._lines: list[tuple[bytes, Fault | None]] = []
        self._made = 0
        self._prompts: dict[object, str] = {}
        self._openings: set[object] = set()
        self._made_up: set[object] = set()
        """Ids of requests that the agent did not send."""
        self._twice: dict[object, bool] = {}
        """Ids of requests that came twice, and whether one of them was answered."""
        self._late: dict[str, list[bytes]] = {}
        self._swapped: tuple[str, bytes] | None = None
        self._session: str | None = None

    @property
    def longest_delay(self) -> float:
        """The longest delay, in seconds."""
        return max(self._delays)

    # Our messages

    def outgoing(self, line: bytes) -> bool:
        """Take one of our lines, and return whether the agent gets it."""
        self._count_message()
        if self.broken:
            return False
        message = read_message(line)
        if message is None:
            return True
        if message.answers:
            for_nobody = message.id in self._made_up or self._twice.get(message.id, False)
            if message.id in self._twice:
                self._twice[message.id] = True
            return not for_nobody
        if message.method == "session/prompt" and message.session is not None:
            self._prompts[message.id] = message.session
        elif message.method in ("session/new", "session/fork"):
            self._openings.add(message.id)
        return True

    def write_delay(self) -> float:
        """Return how long our write takes."""
        return self._dice.choice(self._delays) if self._happens(Fault.SLOW_WRITE) else 0.0

    # The agent's messages

    def incoming(self, lines: Sequence[bytes]) -> list[Piece]:
        """Take lines of the agent, and return their fate."""
        for line in lines:
            self._count_message()
            if self.broken is Fault.HALF_LINE:
                return [*self._pieces(), Piece(data=line[: max(1, len(line) // 2)], lines=(), delay=0)]
            if self.broken in (Fault.DROP, Fault.HANG):
                break
            self._make_up()
            self._take(line)
        return self._pieces()

    def finish(self) -> list[Piece]:
        """Return the lines that were held back: the agent sends no more."""
        self._release()
        for lines in self._late.values():
            self._lines += [(line, Fault.LATE_UPDATES) for line in lines]
        self._late.clear()
        return self._pieces()

    def _take(self, line: bytes) -> None:
        message = read_message(line)
        if message is None:
            self._emit(line, None)
        elif message.answers:
            self._take_answer(line, message)
        elif message.method == "session/update" and message.session is not None:
            self._take_update(line, message.session)
        else:
            self._emit(line, message.session)
            self._twice.pop(message.id, None)
            if message.id is not UNSET and self._happens(Fault.DUPLICATE_REQUEST):
                self._twice[message.id] = False
                self._lines.append((line, Fault.DUPLICATE_REQUEST))

    def _take_answer(self, line: bytes, message: Message) -> None:
        session = self._prompts.pop(message.id, None)
        if message.id in self._openings and message.session is not None:
            self._session = message.session
            if self._happens(Fault.EARLY_UPDATE):
                self._update(Fault.EARLY_UPDATE, "early")
        fault = None
        if message.result is not UNSET and self._happens(Fault.ERROR_ANSWER):
            fault = Fault.ERROR_ANSWER
            error = {"code": -32603, "message": "made up by chaos"}
            line = msgspec.json.encode({"jsonrpc": "2.0", "id": message.id, "error": error})
        self._emit(line, session, fault)
        if self._happens(Fault.DUPLICATE_ANSWER):
            self._lines.append((line, Fault.DUPLICATE_ANSWER))
        if session is not None:
            self._lines += [(late, Fault.LATE_UPDATES) for late in self._late.pop(session, ())]

    def _take_update(self, line: bytes, session: str) -> None:
        self._session = session
        if session in self._late:  # a message of the same session never overtakes it
            self._late[session].append(line)
        elif session in self._prompts.values() and self._happens(Fault.LATE_UPDATES):
            self._release()
            self._late[session] = [line]
        elif self._swapped is None and self._happens(Fault.SWAP, counts=False):
            self._swapped = session, line
        else:
            self._emit(line, session)

    def _emit(self, line: bytes, session: str | None, fault: Fault | None = None) -> None:
        if self._swapped is not None and session not in (None, self._swapped[0]):
            self._lines.append((line, fault))
            self._lines.append((self._swapped[1], Fault.SWAP))
            self._swapped = None
            self.injected[Fault.SWAP] += 1
        else:
            self._release()
            self._lines.append((line, fault))

    def _release(self) -> None:
        if self._swapped is not None:
            self._lines.append((self._swapped[1], None))
            self._swapped = None

    # Made-up messages

    def _make_up(self) -> None:
        """Perhaps insert a made-up line before the next one."""
        if self._happens(Fault.NOISE):
            self._lines.append((self._dice.choice(_NOISE), Fault.NOISE))
        if self._happens(Fault.HUGE_NOISE):
            self._lines.append((b"x" * HUGE, Fault.HUGE_NOISE))
        if self._happens(Fault.UNKNOWN_ANSWER):
            id_ = self._dice.choice((self._name("answer"), 1_000_000 + self._made, -1, None))
            self._message(Fault.UNKNOWN_ANSWER, {"id": id_, "result": {"stopReason": "end_turn"}})
        if self._happens(Fault.UNKNOWN_REQUEST):
            request: dict[str, Any] = {
                "id": self._name("request"),
                "method": "chaos/unknown",
                "params": {"x": [1]},
            }
            self._made_up.add(request["id"])
            self._message(Fault.UNKNOWN_REQUEST, request)
        if self._session is not None and self._session not in self._late:
            if self._happens(Fault.UNKNOWN_UPDATE):
                self._update(Fault.UNKNOWN_UPDATE)
            if self._happens(Fault.HUGE_UPDATE):
                self._update(Fault.HUGE_UPDATE, "x" * HUGE)

    def _name(self, what: str) -> str:
        self._made += 1
        return f"chaos-{what}-{self._made}"

    def _update(self, fault: Fault, text: str = "") -> None:
        token = self._name("update")
        update: dict[str, Any] = {"sessionUpdate": "chaos_unknown", "token": token}
        if text:
            content = {"type": "text", "text": f"{token} {text}"}
            update = {"sessionUpdate": "agent_thought_chunk", "content": content}
        params = {"sessionId": self._session, "update": update}
        if self._swapped is not None and self._swapped[0] == self._session:
            self._release()
        self._message(fault, {"method": "session/update", "params": params})

    def _message(self, fault: Fault, fields: dict[str, Any]) -> None:
        self._lines.append((msgspec.json.encode({"jsonrpc": "2.0", **fields}), fault))

    # Dice

    def _happens(self, fault: Fault, *, counts: bool = True) -> bool:
        happens = self._at.get(self.messages) is fault
        rate = self._rates.get(fault, 0.0)
        if not happens and rate:
            happens = self._dice.random() < rate
        if happens and counts:
            self.injected[fault] += 1
        return happens

    def _count_message(self) -> None:
        if self.broken:
            return
        self.messages += 1
        for fault in Fault:
            if fault in FATAL and self._happens(fault):
                self.broken = fault
                return

    def _pieces(self) -> list[Piece]:
        """Cut the bytes as the dice say."""
        lines, self._lines = self._lines, []
        data = b"".join([line + b"\n" for line, _ in lines])
        if not data:
            return []
        cuts = {len(data)}
        if self._happens(Fault.SPLIT):
            cuts.update(self._dice.randint(1, len(data)) for _ in range(self._dice.randint(1, 4)))
        pieces: list[Piece] = []
        begin = taken = end_of_line = 0
        for cut in sorted(cuts):
            first = taken
            while taken < len(lines) and end_of_line + len(lines[taken][0]) + 1 <= cut:
                end_of_line += len(lines[taken][0]) + 1
                taken += 1
            delay = self._dice.choice(self._delays) if self._happens(Fault.DELAY) else 0.0
            pieces.append(Piece(data=data[begin:cut], lines=lines[first:taken], delay=delay))
            begin = cut
        return pieces
