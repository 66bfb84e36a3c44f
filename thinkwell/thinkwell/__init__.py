"""Typed streams of what a coding agent thinks, says, does and plans."""
