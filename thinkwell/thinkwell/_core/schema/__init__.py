"""JSON Schema: ours, pydantic's and that of others."""
