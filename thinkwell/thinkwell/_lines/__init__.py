"""NDJSON agents: programs that write one JSON object a line, as agents of the protocol."""
