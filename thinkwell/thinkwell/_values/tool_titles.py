"""How agents join the name of a tool with that of its server, as patterns."""

from __future__ import annotations

from typing import Final

JOINT: Final = r"(?:[^\w\s]|[_ ]){1,32}"
"""What may stand between two names: no words, and no white space but the blank."""

WORD: Final = r"(?i:mcp|tool|server)"
"""A word that says nothing."""

WORDS: Final = rf"(?:{WORD}{JOINT}){{0,3}}"
"""Such words before a name."""
