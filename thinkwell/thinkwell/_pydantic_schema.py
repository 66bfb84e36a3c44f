"""How pydantic is asked for JSON Schemas. Importing this imports pydantic."""

from __future__ import annotations

from typing import ClassVar

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind


class QuietSchema(GenerateJsonSchema):
    """Leaves out defaults that JSON cannot say without a warning: the agent needs not know them."""

    ignored_warning_kinds: ClassVar[set[JsonSchemaWarningKind]] = {"skipped-choice", "non-serializable-default"}
