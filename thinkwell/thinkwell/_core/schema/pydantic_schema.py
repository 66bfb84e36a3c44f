"""How pydantic is asked for JSON Schemas. Importing this imports pydantic."""

from __future__ import annotations

from pydantic.json_schema import GenerateJsonSchema


class QuietSchema(GenerateJsonSchema):
    """Leaves out defaults that JSON cannot say without a warning: the agent needs not know them."""

    ignored_warning_kinds = frozenset({"skipped-choice", "non-serializable-default"})  # type: ignore[assignment]
