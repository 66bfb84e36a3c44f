"""Prompts and answers of the protocol in a program's form, and its questions and errors in the protocol's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw, Struct, field

from thinkwell._core.schema.json_schema import is_array
from thinkwell._lines._names import MESSAGE_META, SCHEMA_META, SILENT_META, VALUE_META
from thinkwell._lines.words import text_of, write_prompt
from thinkwell_acp import _jsonrpc as rpc
from thinkwell_acp import schema as s
from thinkwell_acp.errors import AUTH_REQUIRED, INTERNAL_ERROR, REQUEST_CANCELLED
from thinkwell_acp.schema import encode

if TYPE_CHECKING:
    from thinkwell._lines.words import Message, PromptFormat
    from thinkwell.events import JsonValue

QUESTION: Final = "question"
APPROVAL: Final = "approval"

NOTHING: Final[dict[str, bytes]] = {QUESTION: b"null", APPROVAL: b"false"}
"""The value without an answer, by the type of the message."""

_OPTIONS: Final = (
    s.PermissionOption(option_id="allow", name="Yes", kind="allow_once"),
    s.PermissionOption(option_id="reject", name="No", kind="reject_once"),
)

_TAKEN_CODES: Final = frozenset((AUTH_REQUIRED, REQUEST_CANCELLED))
"""Codes with another meaning for our side: that a login is needed, or that we have cancelled."""


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


# Prompts


def prompt_line(request: s.PromptRequest, prompt_format: PromptFormat) -> bytes:
    """Return a prompt as the line for a program.

    As text it is the whole line; as an object it also has a context, and a file's address replaces the file
    in the text.
    """
    if prompt_format == "text":
        return write_prompt(_text(request, whole=True), None, "text")
    meta = dict(request.meta or {})
    context: dict[str, JsonValue] = {
        "schema": meta.pop(SCHEMA_META, None),
        "resources": [one for block in request.prompt if (one := _resource(block))],
        "images": [
            {"mimeType": block.mime_type, "data": block.data}
            for block in request.prompt
            if isinstance(block, s.ImageContent)
        ],
        "meta": meta,
    }
    text = _text(request, whole=False)
    return write_prompt(text, {name: value for name, value in context.items() if value}, "json")


def _text(request: s.PromptRequest, *, whole: bool) -> str:
    text, apart = "", False
    for block in request.prompt:
        follows_file, apart = apart, False
        match block:
            case s.TextContent():
                piece = block.text
            case s.ResourceLink():
                piece = block.uri
            case s.EmbeddedResource(resource=s.TextResourceContents() as file) if whole:
                piece, apart = file.text, True
            case s.EmbeddedResource(resource=file):
                piece = file.uri
            case _:
                continue  # images and sound cannot be in a text
        if (apart or follows_file) and text and not text.endswith("\n"):
            text += "\n"  # a file begins and ends on separate lines
        text += piece
    return text


def _resource(block: s.ContentBlock) -> dict[str, JsonValue] | None:
    match block:
        case s.ResourceLink():
            return {"uri": block.uri, "name": block.name}
        case s.EmbeddedResource(resource=s.TextResourceContents() as file):
            return {"uri": file.uri, "text": file.text}
        case _:
            return None


# Questions and errors


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
