"""What displays say of a sub-agent in its row: how many calls it has made, and what it said or did last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell._display import numbers
from thinkwell._display.cells import clip
from thinkwell._display.text import line

if TYPE_CHECKING:
    from thinkwell.view import RunView

__all__ = ("agent_words", "words")

LAST: Final = 40
"""Columns of what it said or did last."""


def words(calls: int, text: str, did: str) -> str:
    """Return what is said of a sub-agent.

    Args:
        calls: How many calls it has made.
        text: What it has said.
        did: The title of its last call, which counts where it has said nothing.
    """
    count = numbers.plural(calls, "call") if calls else ""
    last = text.rstrip()[-1_000:].rpartition("\n")[2] or did
    return " · ".join(filter(None, (count, clip(line(last).strip(), LAST))))


def agent_words(view: RunView, id_: str) -> str:
    """Return what is said of a call where it is a sub-agent."""
    agent = view.agents.get(id_)
    if agent is None:
        return ""
    did = view.tools[agent.calls[-1]].title if agent.calls else ""
    return words(len(agent.calls), agent.text, did)
