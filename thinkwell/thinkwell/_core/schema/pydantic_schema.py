"""The generator of pydantic's JSON Schemas. Importing this imports pydantic."""

from __future__ import annotations

from pydantic.json_schema import GenerateJsonSchema


class QuietSchema(GenerateJsonSchema):
    """Leaves out defaults without a JSON form, without a warning: the agent does not need them."""

    ignored_warning_kinds = frozenset({"skipped-choice", "non-serializable-default"})  # type: ignore[assignment]
