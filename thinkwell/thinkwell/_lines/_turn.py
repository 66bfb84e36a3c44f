"""A program's current prompt, and its failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell._lines._forms import NOTHING
from thinkwell._lines._questions import id_of
from thinkwell._lines.words import text_of
from thinkwell_acp import _jsonrpc as rpc
from thinkwell_acp.errors import AUTH_REQUIRED, INTERNAL_ERROR, REQUEST_CANCELLED
from thinkwell_acp.schema import encode

if TYPE_CHECKING:
    from thinkwell._lines.words import Message

_TAKEN_CODES: Final = frozenset((AUTH_REQUIRED, REQUEST_CANCELLED))
"""Codes with another meaning for our side: that a login is needed, or that we have cancelled."""


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


def error_of(message: Message) -> rpc.ErrorObject:
    """Return the error that a program reports."""
    rest = dict(message.body)
    said = next((name for name in ("message", "error", "text") if text_of(rest, name)), None)
    if said is not None:
        text = str(rest.pop(said))
    else:
        text = encode(rest).decode() if rest else "it does not say what is wrong"
    code, number = INTERNAL_ERROR, rest.get("code")
    if type(number) is int and -(2**31) <= number < 2**31 and number not in _TAKEN_CODES:
        code = number
        del rest["code"]
    return rpc.ErrorObject(code, text, rest or None)
