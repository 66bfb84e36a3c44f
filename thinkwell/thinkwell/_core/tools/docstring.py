"""The descriptions of a function and its parameters in a docstring, in the Google or the reST style."""

from __future__ import annotations

import inspect
import re
from typing import Final

_ARGS: Final = re.compile(r"(Args|Arguments|Parameters|Params):")
_OTHER: Final = re.compile(
    r"(Returns?|Raises|Yields?|Examples?|Notes?|Attributes|Warnings?|See Also|Todo|References):"
)
_GOOGLE: Final = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:(?:\s+(.*))?")
_REST: Final = re.compile(r":(\w+)(?:\s+(?:[^:]*\s)?\*{0,2}(\w+))?\s*:\s*(.*)")


def read_docstring(function: object) -> tuple[str, dict[str, str]]:
    """Return the description without its sections, and the description of each parameter."""
    doc = inspect.getdoc(function) or ""
    description: list[str] = []
    parameters: dict[str, list[str]] = {}
    sink: list[str] | None = description  # the text that a line continues; None: skipped
    in_args, indent = False, 0
    for line in doc.splitlines():
        words = line.strip()
        depth = len(line) - len(line.lstrip())
        if _ARGS.fullmatch(words) and not depth:
            in_args, indent, sink = True, 0, None
        elif _OTHER.fullmatch(words) and not depth:
            in_args, sink = False, None
        elif not depth and (field := _REST.fullmatch(words)):
            in_args, sink = False, [field[3]]
            if field[1] in ("param", "parameter", "arg", "argument") and field[2]:
                parameters[field[2]] = sink
        elif not depth and words:
            in_args, sink = False, description
            description.append(line)
        elif in_args and depth <= (indent or depth) and (named := _GOOGLE.fullmatch(words)):
            indent = depth
            sink = parameters[named[1]] = [named[2] or ""]
        elif sink is description:
            description.append(line)
        elif sink is not None and words:
            sink.append(words)
    return "\n".join(description).strip(), {name: " ".join(said).strip() for name, said in parameters.items()}
