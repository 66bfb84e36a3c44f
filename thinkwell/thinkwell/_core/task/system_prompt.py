"""System prompts: instructions for a whole session."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from thinkwell._core.schema.arguments import checked

SystemMode: TypeAlias = Literal["append", "replace"]
"""Whether it is added to the agent's own instructions, or replaces them."""

SystemFallback: TypeAlias = Literal["prompt"]
"""Where it goes if the agent does not support it: ``prompt`` is before the first prompt."""


class SystemPrompt(Struct, frozen=True):
    """Instructions for a whole session."""

    text: str
    mode: SystemMode = "append"
    fallback: SystemFallback | None = None
    """``None``: an agent without support is an error."""


def as_system_prompt(text: str, mode: SystemMode, fallback: SystemFallback | None, call: str) -> SystemPrompt:
    """Return a system prompt.

    Args:
        text: The instructions.
        mode: Whether they are appended or replace the agent's own.
        fallback: Where they go if the agent does not support them.
        call: The call, for errors.

    Raises:
        TypeError: The text is not a str.
        ValueError: It is empty or cannot be sent, or the mode or fallback is unknown.
    """
    if not checked(text, call).strip():
        raise ValueError(f"{call}: the system prompt is empty; leave it out")
    if mode not in get_args(SystemMode):
        raise ValueError(f'{call}: {mode!r:.100} is not a mode; choose "append" or "replace"')
    if fallback is not None and fallback not in get_args(SystemFallback):
        raise ValueError(f'{call}: {fallback!r:.100} is not a fallback; choose "prompt", or leave it out')
    return SystemPrompt(text, mode, fallback)


def session_system(
    system: str | None, mode: SystemMode, fallback: SystemFallback | None
) -> SystemPrompt | None:
    """Return the system prompt of a session, if given; raises as `as_system_prompt` does."""
    call = "session(system=…)"
    if system is not None:
        return as_system_prompt(system, mode, fallback, call)
    if (mode, fallback) != ("append", None):
        raise ValueError(f"{call}: it is required with system_mode= or system_fallback=")
    return None
