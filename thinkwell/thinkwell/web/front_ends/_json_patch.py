"""Changes of a JSON document, as front ends apply them (RFC 6902)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from thinkwell._core.schema.json_schema import is_array, is_object

if TYPE_CHECKING:
    from collections.abc import Generator

    from thinkwell.events import JsonValue

Operation: TypeAlias = dict[str, object]
"""One step of a patch."""


def json_patch(old: JsonValue, new: JsonValue, path: str = "") -> list[Operation]:
    """Return the patch from one document to another.

    Lists are compared place by place, since lists for front ends only grow at the end, or change in place.

    Args:
        old: The document as it was.
        new: The document as it is.
        path: Where both of them stand in a larger one, as a JSON pointer (RFC 6901).
    """
    try:
        return list(_changes(old, new, path))
    except RecursionError:  # what agents send may be nested deep
        return [{"op": "replace", "path": path, "value": new}]


def _changes(old: JsonValue, new: JsonValue, path: str) -> Generator[Operation]:
    if is_object(old) and is_object(new):
        for key in old.keys() - new.keys():
            yield {"op": "remove", "path": _below(path, key)}
        for key, value in new.items():
            if key in old:
                yield from _changes(old[key], value, _below(path, key))
            else:
                yield {"op": "add", "path": _below(path, key), "value": value}
    elif is_array(old) and is_array(new):
        for at, (before, after) in enumerate(zip(old, new, strict=False)):
            yield from _changes(before, after, f"{path}/{at}")
        for at in range(len(old) - 1, len(new) - 1, -1):
            yield {"op": "remove", "path": f"{path}/{at}"}
        for value in new[len(old) :]:
            yield {"op": "add", "path": f"{path}/-", "value": value}
    elif old is not new and (type(old) is not type(new) or old != new):
        yield {"op": "replace", "path": path, "value": new}


def _below(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
