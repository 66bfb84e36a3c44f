"""JSON Schema: ours, pydantic's and foreign ones."""
