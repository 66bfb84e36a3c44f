"""What was said in a chat, as text: to be shown again, or for a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from thinkwell import history_to_json
from thinkwell._display.text import clean, line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from thinkwell import HistoryMessage

__all__ = ("as_markdown", "as_text", "save")


def as_text(history: Sequence[HistoryMessage]) -> str:
    """Return a conversation as a chat shows it; thoughts are left out."""
    blocks: list[str] = []
    for message in history:
        if message.role == "user":
            blocks.append("\n".join(f"> {part}" for part in clean(message.text).splitlines()))
        elif message.role == "assistant":
            blocks.append(clean(message.text).strip())
        elif message.tool is not None:
            blocks.append(f"  {line(message.tool.title)} ({message.tool.status})")
    return "\n\n".join(blocks)


def as_markdown(history: Sequence[HistoryMessage], agent: str, title: str | None) -> str:
    """Return a conversation as a page; thoughts are left out."""
    return "\n\n".join([f"# {line(title or f'A chat with {agent}')}", *_sections(history, agent)]) + "\n"


def _sections(history: Sequence[HistoryMessage], agent: str) -> Iterator[str]:
    speaker = ""
    for message in history:
        if message.role == "thought":
            continue
        who = "You" if message.role == "user" else line(agent)
        if who != speaker or message.role == "user":
            yield f"## {who}"
            speaker = who
        if message.tool is None:
            yield clean(message.text).strip()
        else:
            yield f"- *{line(message.tool.title)}* ({message.tool.status})"


def save(history: Sequence[HistoryMessage], name: str, agent: str, title: str | None) -> Path:
    """Write a conversation to a new file, which only its owner can read, and return its path.

    Raises:
        OSError: There is such a file already, or it cannot be written.
    """
    path = Path(name).expanduser()
    is_json = path.suffix.lower() == ".json"
    data = history_to_json(history) if is_json else as_markdown(history, agent, title).encode()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123
        file.write(data)
    return path
