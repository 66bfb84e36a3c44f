"""The arguments of a tool call while they are written, as an agent may show them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from thinkwell_acp.schema import JsonValue


def written(value: JsonValue, most: int) -> Iterator[JsonValue]:
    """Yield what there is of a value that is written byte by byte, without the whole of it.

    Args:
        value: The value.
        most: How many parts to yield at most. Of a longer value several bytes come at once.
    """
    size = len(json.dumps(value, ensure_ascii=False))
    before: JsonValue = None
    for end in range(1, size, -(-size // most)):
        part, _ = _cut(value, end)
        if part != before:
            before = part
            yield part


def _is_list(value: JsonValue) -> TypeGuard[list[JsonValue]]:
    return isinstance(value, list)


def _is_dict(value: JsonValue) -> TypeGuard[dict[str, JsonValue]]:
    return isinstance(value, dict)


def _cut(value: JsonValue, left: int) -> tuple[JsonValue, int]:
    """Return the beginning of a value, and how many bytes are left for what follows; 0: it was cut."""
    if isinstance(value, str):
        return value[: left - 1], max(left - len(value) - 2, 0)
    left -= 1  # the bracket
    if _is_list(value):
        items: list[JsonValue] = []
        for item in value:
            if left <= 0:
                break
            part, left = _cut(item, left)
            if part is not None or left:
                items.append(part)
        return items, left
    if _is_dict(value):
        fields: dict[str, JsonValue] = {}
        for key, item in value.items():
            if (left := left - len(key) - 4) <= 0:
                break
            part, left = _cut(item, left)
            if part is not None or left:
                fields[key] = part
        return fields, left
    left -= len(json.dumps(value))
    return (value if left > 0 else None), max(left, 0)
