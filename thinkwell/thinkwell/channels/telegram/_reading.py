"""Reads answers of the Bot API. Their form is not trusted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

from thinkwell.channels.telegram._errors import (
    TelegramAnswerInvalid,
    TelegramConflict,
    TelegramError,
    TelegramForbidden,
    TelegramRefused,
    TelegramServerError,
    TelegramThrottled,
    TelegramUnauthorized,
)
from thinkwell.channels.telegram._values import Update

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell.channels.telegram._errors import RefusalReason
    from thinkwell.channels.telegram._request import Answer

T = TypeVar("T")

UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""What msgspec raises for malformed bytes."""

_REASONS: Final[tuple[tuple[str, RefusalReason], ...]] = (
    ("parse entities", "entities"),
    ("is too long", "too_long"),
    ("message_too_long", "too_long"),
    ("text is empty", "empty"),
    ("must be non-empty", "empty"),
    ("message to edit not found", "message_gone"),
    ("message to delete not found", "message_gone"),
    ("message can't be edited", "message_gone"),
    ("message can't be deleted", "message_gone"),
    ("message_id_invalid", "message_gone"),
    ("no text in the message to edit", "message_gone"),
    ("chat not found", "chat_gone"),
    ("thread not found", "chat_gone"),
    ("topic_deleted", "chat_gone"),
    ("topic_closed", "chat_gone"),
)
"""Parts of descriptions, in lower case. The Bot API has no other way to tell these apart."""

_SURROGATES: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


class _Parameters(Struct, frozen=True):
    """Bot API, ResponseParameters."""

    retry_after: Annotated[float, Meta(ge=0)] | None = None
    migrate_to_chat_id: int | None = None


class _Envelope(Struct, frozen=True):
    """The form of every answer (Bot API, "Making requests")."""

    ok: bool
    result: Raw = Raw(b"null")
    error_code: int = 0
    description: str = ""
    parameters: _Parameters = _Parameters()


class _Numbered(Struct, frozen=True):
    update_id: Annotated[int, Meta(ge=0)]


_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)
_UPDATE: Final = msgspec.json.Decoder(Update)
_NUMBERED: Final = msgspec.json.Decoder(_Numbered)


def mended(body: bytes) -> bytes:
    """Return JSON in which U+FFFD replaces half a surrogate pair and malformed UTF-8."""
    text = body.decode("utf-8", "replace").encode()
    return _SURROGATES.sub(lambda found: rb"\ufffd" if found[1] else found[0], text)


def result_of(method: str, answer: Answer, shown: Callable[[str], str]) -> Raw:
    """Return the result of a successful request.

    Args:
        method: The method that was called.
        answer: The HTTP answer.
        shown: Makes a clean line from a text, without the token.

    Raises:
        TelegramError: The request failed.
    """
    try:
        envelope = _envelope(answer.body)
    except UNREADABLE as exc:
        raise _of_status(method, answer, shown(str(exc))) from None
    if envelope.ok:
        return envelope.result
    code = envelope.error_code or answer.status
    description = shown(envelope.description) or "no description"
    retry_after = envelope.parameters.retry_after
    if retry_after is None:
        retry_after = _seconds(answer.retry_after)
    error = _kind(code, description.lower())(method, code, description, retry_after)
    if isinstance(error, TelegramConflict):
        error.webhook = "webhook" in description.lower()
    elif isinstance(error, TelegramRefused):
        error.migrated_to = envelope.parameters.migrate_to_chat_id
        error.reason = "migrated" if error.migrated_to is not None else _reason(description.lower())
    raise error


def read(method: str, kind: type[T], result: Raw) -> T:
    """Return a result as a value.

    Raises:
        TelegramAnswerInvalid: It has another form.
    """
    try:
        return msgspec.json.decode(result, type=kind)
    except UNREADABLE as exc:
        raise TelegramAnswerInvalid(method, 200, f"the result is malformed: {exc}") from None


def updates_of(result: Raw) -> list[Update]:
    """Return updates. Malformed ones have a `Update.fault`; those without a number are left out.

    Raises:
        TelegramAnswerInvalid: It is not a list.
    """
    return [update for item in read("getUpdates", list[Raw], result) if (update := _update(item)) is not None]


def _update(item: Raw) -> Update | None:
    try:
        return _UPDATE.decode(item)
    except UNREADABLE as exc:
        fault = str(exc)
    try:
        return Update(update_id=_NUMBERED.decode(item).update_id, fault=fault)
    except UNREADABLE:
        return None


def _envelope(body: bytes) -> _Envelope:
    try:
        return _ENVELOPE.decode(body)
    except UNREADABLE:
        return _ENVELOPE.decode(mended(body))


def _of_status(method: str, answer: Answer, fault: str) -> TelegramError:
    """Return the error for an answer that is not the Bot API's."""
    if answer.status >= 500:  # a proxy on the way, mostly
        return TelegramServerError(method, answer.status, f"HTTP {answer.status} without a description")
    if answer.status == 429:
        seconds = _seconds(answer.retry_after)
        return TelegramThrottled(method, answer.status, "HTTP 429 without a description", seconds)
    return TelegramAnswerInvalid(
        method, answer.status, f"the answer is not in the form of the Bot API: {fault}"
    )


def _seconds(written: str) -> float | None:
    """Return a number of seconds that a header may have."""
    return float(written) if written.isascii() and written.isdecimal() and len(written) < 10 else None


def _kind(code: int, description: str) -> type[TelegramError]:
    if code >= 500:
        return TelegramServerError
    if code == 404 and "method not found" in description:  # a Bot API server older than the method
        return TelegramRefused
    return {
        401: TelegramUnauthorized,
        403: TelegramForbidden,
        404: TelegramUnauthorized,
        409: TelegramConflict,
        421: TelegramUnauthorized,
        429: TelegramThrottled,
    }.get(code, TelegramRefused)


def _reason(description: str) -> RefusalReason:
    for part, reason in _REASONS:
        if part in description:
            return reason
    return "other"
