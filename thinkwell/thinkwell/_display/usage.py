"""A run's usage, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell._display.numbers import count, money

if TYPE_CHECKING:
    from thinkwell.view import RunView, TokenCounts

NOT_REPORTED: Final = "usage not reported"


def usage_words(view: RunView) -> str:
    """Return a run's usage: ``18.2k/200k ctx · 4.1k out · 92% cached · $0.06 (agent)``.

    Figures that the agent does not report are left out; if it reports none, the text says so.
    """
    return " · ".join(usage_parts(view)) or NOT_REPORTED


def usage_parts(view: RunView) -> tuple[str, ...]:
    """Return the same in pieces, the most important first; empty if nothing was reported."""
    parts: list[str] = []
    usage, tokens = view.usage, view.tokens
    if usage is not None:
        parts.append(
            f"{count(usage.used)}/{count(usage.size)} ctx" if usage.size else f"{count(usage.used)} ctx"
        )
    if tokens is not None:
        parts += _token_parts(tokens, with_input=usage is None)
    if usage is not None and usage.cost is not None:
        parts.append(f"{money(usage.cost)} (agent)")  # thinkwell has no prices
    return tuple(parts)


def context_share(view: RunView) -> float | None:
    """Return how full the context window is, from 0 to 1; ``None`` if the agent does not report it."""
    usage = view.usage
    return None if usage is None or usage.size <= 0 else min(max(usage.used, 0), usage.size) / usage.size


def _token_parts(tokens: TokenCounts, *, with_input: bool) -> list[str]:
    parts: list[str] = []
    if with_input and tokens.input is not None:
        parts.append(f"{count(tokens.input)} in")
    if tokens.output is not None:
        parts.append(f"{count(tokens.output)} out")
    if tokens.input is None and tokens.output is None and tokens.total is not None:
        parts.append(f"{count(tokens.total)} tokens")
    share = cached_share(tokens)
    if share is not None:
        parts.append(f"{share:.0%} cached")
    return parts


def cached_share(tokens: TokenCounts) -> float | None:
    """Return the share of the input that came from a cache. Some agents count that as input, some do not."""
    cached = tokens.cached_read
    if not cached or cached < 0 or tokens.input is None or tokens.input < 0:
        return None
    whole = tokens.input
    apart = tokens.total is not None and tokens.total >= whole + (tokens.output or 0) + cached
    if cached > whole or apart:
        whole += cached + max(tokens.cached_write or 0, 0)
    return cached / whole
