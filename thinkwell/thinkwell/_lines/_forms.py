"""A program's questions, as questions of the protocol, and their answers in the program's form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw, Struct, field

from thinkwell._core.schema.json_schema import is_array
from thinkwell._lines._names import MESSAGE_META, SILENT_META, VALUE_META
from thinkwell._lines.words import text_of
from thinkwell_acp import schema as s
from thinkwell_acp.schema import encode

if TYPE_CHECKING:
    from thinkwell._lines.words import Message
    from thinkwell.events import JsonValue

QUESTION: Final = "question"
APPROVAL: Final = "approval"

NOTHING: Final[dict[str, bytes]] = {QUESTION: b"null", APPROVAL: b"false"}
"""The value without an answer, by the type of the message."""

_OPTIONS: Final = (
    s.PermissionOption(option_id="allow", name="Yes", kind="allow_once"),
    s.PermissionOption(option_id="reject", name="No", kind="reject_once"),
)


class _Meta(Struct, frozen=True, gc=False):
    """Our side's additions to an answer."""

    value: Raw = field(default=Raw(), name=VALUE_META)
    silent: bool = field(default=False, name=SILENT_META)


class _Answer(Struct, frozen=True, gc=False):
    """Our side's answer, to a question of either kind."""

    meta: _Meta = field(default=_Meta(), name="_meta")
    outcome: dict[str, str] = field(default_factory=dict)
    action: str = ""
    content: dict[str, Raw] | None = None


_read_answer = msgspec.json.Decoder(_Answer).decode


def question_request(message: Message, session_id: str) -> bytes:
    """Return the parameters of ``elicitation/create`` for a question."""
    body = message.body
    context = text_of(body, "context") or None
    options = _options(body.get("options"))
    if options:
        form = s.ElicitationSchema(
            properties={
                "answer": s.StringPropertySchema(description=context, enum=options),
                "other": s.StringPropertySchema(title="Something else"),
            }
        )
    else:
        form = s.ElicitationSchema(
            properties={"answer": s.StringPropertySchema(description=context)}, required=("answer",)
        )
    request = s.ElicitationFormMode(
        session_id=session_id,
        message=text_of(body, "question", "message", "text") or encode(body).decode(),
        requested_schema=form,
        meta={MESSAGE_META: Raw(message.raw)},
    )
    return encode(request)


def approval_request(message: Message, session_id: str, tool_call_id: str) -> bytes:
    """Return the parameters of ``session/request_permission`` for a request for approval."""
    body = message.body
    call = s.ToolCallUpdate(
        tool_call_id=tool_call_id,
        title=text_of(body, "description", "message", "question", "text") or encode(body).decode(),
        kind="other",
        status="pending",
        raw_input=body,
    )
    request = s.RequestPermissionRequest(
        session_id=session_id, tool_call=call, options=_OPTIONS, meta={MESSAGE_META: Raw(message.raw)}
    )
    return encode(request)


def _options(given: JsonValue) -> tuple[str, ...]:
    """Return the choices: texts, and numbers as texts."""
    if not is_array(given):
        return ()
    texts = [
        one if isinstance(one, str) else encode(one).decode()
        for one in given
        if isinstance(one, str | int | float)
    ]
    return tuple(filter(None, texts))


def read_answer(kind: str, result: Raw) -> tuple[bytes | None, bool]:
    """Return our side's answer, and whether it was a yes.

    The answer is JSON for the program; ``None``: it gets no answer.
    """
    answer = _read_answer(result)
    allowed = answer.outcome.get("optionId") == "allow" or answer.action == "accept"
    if answer.meta.silent:
        return None, allowed
    return bytes(answer.meta.value) or _value(kind, answer, allowed=allowed), allowed


def _value(kind: str, answer: _Answer, *, allowed: bool) -> bytes:
    if not allowed:
        return NOTHING[kind]
    if kind == APPROVAL:
        return b"true"
    content = answer.content or {}
    other = bytes(content.get("other", b""))
    if other not in (b"", b'""'):
        return other
    return bytes(content.get("answer", b"null"))
