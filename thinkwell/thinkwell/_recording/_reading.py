"""Reads recordings, complete or cut."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from thinkwell._recording import _records as rec
from thinkwell.errors import RecordingError

if TYPE_CHECKING:
    import os


class Recording(Struct, frozen=True):
    """The contents of a recording."""

    path: str
    header: rec.Header
    records: tuple[rec.Record, ...]
    """All readable records, in order, without the header."""
    cut: str | None
    """Where it ends too early; ``None`` if it is complete."""


def read_recording(path: str | os.PathLike[str]) -> Recording:
    """Read a file, as far as possible.

    Raises:
        RecordingError: It is not a recording, or has another version.
        OSError: It cannot be opened.
    """
    name = str(path)
    lines = Path(path).read_bytes().removeprefix(BOM_UTF8).split(b"\n")
    header = _header(name, lines[0])
    records: list[rec.Record] = []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip() and number < len(lines):
            continue  # added by an editor
        try:
            record = rec.decode_record(line)
        except ValueError as exc:
            rest = f"line {number} cannot be read ({exc})" if line else f"it ends with line {number - 1}"
            return Recording(name, header, tuple(records), rest)
        if isinstance(record, rec.End):
            more = any(line.strip() for line in lines[number:])
            cut = f"something else follows its end in line {number}" if more else None
            return Recording(name, header, tuple(records), cut)
        if isinstance(record, rec.Header):
            return Recording(name, header, tuple(records), f"another recording begins in line {number}")
        if not isinstance(record, rec.Unknown):
            records.append(record)
    return Recording(name, header, tuple(records), f"it ends in the middle of line {len(lines)}")


def _header(name: str, line: bytes) -> rec.Header:
    try:
        header = rec.decode_record(line)
    except ValueError:
        header = None
    if not isinstance(header, rec.Header):
        raise RecordingError(name, "it is no recording of thinkwell's: its first line does not say so")
    if header.version != rec.VERSION:
        raise RecordingError(
            name,
            f"its format has version {header.version}, written by thinkwell {header.thinkwell}; "
            f"this is thinkwell for version {rec.VERSION}",
        )
    return header
