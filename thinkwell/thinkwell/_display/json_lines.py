"""Runs as JSON, one event a line, for other programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

from pydantic_core import to_json

from thinkwell._display.summary import error_words
from thinkwell._display.text import in_json
from thinkwell.events import event_to_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from thinkwell.events import ThoughtEvent


class JsonLines:
    """Writes events as lines of JSON, and the outcome of each run as its last line.

    That is ``{"type": "result", "value": …}``, or ``{"type": "error", "error": {…}}`` with ``type``,
    ``message``, and, where they are known, ``next`` and ``detail``.

    Args:
        out: The file to write to. Its exceptions, such as `BrokenPipeError`, propagate.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def events(self, events: Iterable[ThoughtEvent], run: str | None = None) -> None:
        """Write events.

        Args:
            events: The events.
            run: The name of their run, if there are several: each line begins with it.
        """
        self._write([event_to_json(event).decode() for event in events], run)

    def result(self, value: object, run: str | None = None) -> None:
        """Write a result. A value without a JSON form is written as Python shows it."""
        found = to_json(value, bytes_mode="base64", inf_nan_mode="null", fallback=repr).decode()
        self._write([f'{{"type":"result","value":{found}}}'], run)

    def error(self, error: BaseException, run: str | None = None) -> None:
        """Write the error of a run without a result."""
        words = error_words(error)
        told = {
            "type": type(error).__name__,
            "message": words.what,
            "next": words.next,
            "detail": words.detail,
        }
        known = {name: text for name, text in told.items() if text or name == "message"}
        self._write(
            [json.dumps({"type": "error", "error": known}, ensure_ascii=False, separators=(",", ":"))], run
        )

    def _write(self, objects: Iterable[str], run: str | None) -> None:
        begin = "{" if run is None else f'{{"run":{json.dumps(run, ensure_ascii=False)},'
        text = "".join(f"{begin}{each[1:]}\n" for each in objects)
        self._out.write(in_json(text))
        self._out.flush()
