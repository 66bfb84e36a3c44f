"""Shows runs while they go on: in a terminal, as plain lines, as JSON, in a notebook."""

__all__ = ()
