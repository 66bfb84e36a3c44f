"""A prompt of the protocol, in a program's form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell._lines._names import SCHEMA_META
from thinkwell._lines.words import write_prompt
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from thinkwell._lines.words import PromptFormat
    from thinkwell.events import JsonValue


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
