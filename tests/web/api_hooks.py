"""What schemathesis is told of the native API beside its description: which objects are JSON Schemas."""

from __future__ import annotations

from typing import Any

from schemathesis import HookContext, hook  # pyright: ignore[reportUnknownVariableType]

from thinkwell._json_schema import is_object


@hook
def map_body(context: HookContext, body: Any) -> Any:
    """Ask for a result of a schema that there is: no description tells those from other objects."""
    if is_object(body) and is_object(body.get("output")):
        body["output"] = {"type": "object"}
    return body
