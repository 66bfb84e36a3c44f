"""A program's current prompt, and its unanswered questions."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw, Struct

from thinkwell._core.schema.json_schema import is_array, is_object
from thinkwell._lines._forms import NOTHING
from thinkwell._lines.words import write_response
from thinkwell_acp.schema import encode

if TYPE_CHECKING:
    from thinkwell._lines.words import Message
    from thinkwell_acp import _jsonrpc as rpc


class Turn:
    """A prompt, from its request to its answer."""

    __slots__ = ("id", "ids", "line", "partials", "session_id")

    def __init__(self, request_id: rpc.RequestId, session_id: str, line: bytes) -> None:
        self.id = request_id
        self.session_id = session_id
        self.line = line
        self.partials: list[str] = []
        """The text of its partial messages."""
        self.ids: dict[tuple[str, bytes], bytes] = {}
        """Ids of messages that are not questions, by type and as our side writes them, if that differs."""

    def note_id(self, message: Message) -> None:
        """Keep how an id is written: our side only has its value."""
        id_ = None if message.kind in NOTHING else id_of(message)
        if id_ is not None and id_ != (known_as := encode(message.body["id"])):
            self.ids[message.kind, known_as] = id_


class Asked:
    """A message that waits for an answer.

    Args:
        message: The message.
        session_id: The session in which it was asked.
        turn: The turn of the program to which it belongs; ``None``: to none.
        call_id: The tool call that represents it, if any.
    """

    __slots__ = ("answer", "call_id", "id", "kind", "request_id", "session_id", "settled", "turn")

    def __init__(self, message: Message, session_id: str, turn: Turn | None, call_id: str | None) -> None:
        self.kind = message.kind
        self.id = id_of(message)
        self.session_id = session_id
        self.turn = turn
        self.call_id = call_id
        self.request_id = -1
        """The id of the request to our side."""
        self.settled = False
        self.answer: bytes | None = None
        """As JSON; ``None`` if there is nothing to send."""


class Questions:
    """Questions without an answer, or with one that waits for those before it."""

    def __init__(self) -> None:
        self._open: dict[Asked, None] = {}
        self._unnamed: dict[str, deque[Asked]] = {kind: deque() for kind in NOTHING}
        """Those without an id, by type: a program matches their answers only by order."""

    def add(self, asked: Asked) -> None:
        """Add a question."""
        self._open[asked] = None
        if asked.id is None:
            self._unnamed[asked.kind].append(asked)

    def settle(self, asked: Asked, answer: bytes | None) -> list[bytes]:
        """Set the answer to a question, and return the lines that can be sent to the program now."""
        del self._open[asked]
        asked.settled, asked.answer = True, answer
        ready = [asked]
        if asked.id is None:
            ready.clear()
            waiting = self._unnamed[asked.kind]
            while waiting and waiting[0].settled:
                ready.append(waiting.popleft())
        return [write_response(one.kind, one.answer, one.id) for one in ready if one.answer is not None]

    def drop(self, turn: Turn) -> list[Asked]:
        """Forget the questions of a finished turn, and return those without an answer."""
        dropped = [one for one in self._open if one.turn is turn]
        for one in dropped:
            del self._open[one]
        for kind, waiting in self._unnamed.items():
            self._unnamed[kind] = deque(one for one in waiting if one.turn is not turn)
        return dropped

    def strays(self) -> list[Asked]:
        """Return unanswered questions without a turn and an id."""
        return [one for one in self._open if one.turn is None and one.id is None]

    def has(self, asked: Asked) -> bool:
        """Return whether a question may still be answered."""
        return asked in self._open


class _Id(Struct, frozen=True, gc=False):
    id: Raw = Raw(b"null")


def id_of(message: Message) -> bytes | None:
    """Return the id of a message, as JSON; ``None`` if it has none.

    Texts and numbers stay as they were written, for programs that compare letter by letter. Lists and objects
    become compact, as everything that is written to a program.
    """
    if "id" not in message.body:
        return None
    id_ = message.body["id"]
    if is_object(id_) or is_array(id_):
        return encode(id_)
    return bytes(msgspec.json.decode(message.raw, type=_Id).id)
