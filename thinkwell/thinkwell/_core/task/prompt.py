"""The parts of a prompt, and the texts that thinkwell adds to it."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from thinkwell._core.schema.output import RESULT_TOOL
from thinkwell._values.content import image_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from thinkwell._core.tools.skill import Skill
    from thinkwell._core.tools.tool import Tool


class TextPart(Struct, frozen=True):
    """Text. Neighbouring texts become one block."""

    text: str


class ImagePart(Struct, frozen=True):
    """An image, as base64."""

    data: str
    mime_type: str


class LinkPart(Struct, frozen=True):
    """A URI for the agent to read."""

    uri: str
    name: str


class FilePart(Struct, frozen=True):
    """A file: sent whole if the agent supports that, else as a link."""

    path: str


Part: TypeAlias = TextPart | ImagePart | LinkPart | FilePart


def joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts with neighbouring texts joined and empty ones left out."""
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, TextPart):
            if merged and isinstance(last := merged[-1], TextPart):
                merged[-1] = TextPart(last.text + part.text)
            elif part.text:
                merged.append(part)
        else:
            merged.append(part)
    return tuple(merged)


def image_part(data_or_path: bytes | str | os.PathLike[str]) -> ImagePart:
    """Read an image.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not a PNG, JPEG, GIF or WebP.
    """
    data = data_or_path if isinstance(data_or_path, bytes) else Path(data_or_path).read_bytes()
    mime_type = image_type(data)
    if mime_type is not None:
        return ImagePart(base64.b64encode(data).decode(), mime_type)
    where = "the data" if isinstance(data_or_path, bytes) else os.fspath(data_or_path)
    raise ValueError(f"image(): {where} is not a PNG, JPEG, GIF or WebP")


def resource_part(path_or_uri: str | os.PathLike[str]) -> LinkPart | FilePart:
    """Return a link for a URI, and a file for the path of one.

    Raises:
        FileNotFoundError: The file does not exist.
    """
    # A scheme of one letter is a Windows drive.
    if isinstance(path_or_uri, str) and len(urlsplit(path_or_uri).scheme) > 1:
        return LinkPart(path_or_uri, path_or_uri.rstrip("/").rsplit("/", 1)[-1] or path_or_uri)
    path = Path(path_or_uri)
    if not path.is_file():
        raise FileNotFoundError(f"resource(): there is no file {path}")
    return FilePart(str(path.resolve()))


def tools_section(tools: Sequence[Tool]) -> str:
    """Return the text that names the tools to mention in the prompt."""
    lines = [f"- {tool.name}: {_first_line(tool.description)}\n" for tool in tools if tool.mention]
    return "\n\nThese tools are there for this task:\n" + "".join(lines) if lines else ""


def skills_section(skills: Sequence[Skill]) -> str:
    """Return the text that names the task's skills and says how to use them."""
    if not skills:
        return ""
    lines = [f"- {skill.name}: {' '.join(skill.description.split())}\n" for skill in skills]
    return (
        "\n\nThese skills are there for this task; each is a set of instructions for some kind of work:\n"
        + "".join(lines)
        + "Before you do work that one of them is for, call the tool activate_skill with its name and go by "
        "what it says.\n"
    )


def result_section(schema_text: str | None) -> str:
    """Return the text that asks for the result; with the schema, if the tool does not have it."""
    words = (
        f"\n\nWhen you have the answer, call the tool {RESULT_TOOL} once with it. "
        "Only what you pass to that tool counts as the answer; text does not."
    )
    if schema_text is not None:
        words += f" Its argument `result` has to fit this JSON Schema:\n{schema_text}"
    return words + "\n"


def server_section(name: str) -> str:
    """Return the text that distinguishes our tools from equally named ones of other tasks."""
    return (
        f"All these tools are those of the MCP server {name}. "
        "Others of the same names belong to other tasks.\n"
    )


def reminder(wrong: Sequence[str] | None = None) -> str:
    """Return the prompt for an agent that ended its turn without a valid result.

    Args:
        wrong: The problems of its last attempt, if there was one.
    """
    if wrong is not None:
        reasons = "".join(f"\n- {reason}" for reason in wrong)
        return (
            f"You have ended your turn, but what you passed to the tool {RESULT_TOOL} was invalid:{reasons}\n"
            f"Correct it and call {RESULT_TOOL} again."
        )
    return (
        f"You have ended your turn without calling the tool {RESULT_TOOL}, so there is no answer yet. "
        "Call it now with the answer."
    )


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
