"""The meaning of keys while a question is open. Displays show exactly these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from thinkwell.questions import ChooseOption

if TYPE_CHECKING:
    from thinkwell._display.questions import Asked
    from thinkwell.questions import Verdict

EXPLAIN: Final = "e"
"""Prints all details of a question."""

FILL_IN: Final = "f"
"""Begins to fill in a form."""


class Key(NamedTuple):
    """A key with a meaning."""

    key: str
    """One character, in lower case."""
    label: str
    """Its meaning: a clean line."""
    answer: Verdict | ChooseOption | None = None
    """Its answer; ``None`` if it does not answer yet."""


def keys_of(asked: Asked) -> tuple[Key, ...]:
    """Return the meaning of the keys for a question: ``[y] once [n] no [e] explain``."""
    if asked.asks == "form":
        return (Key(FILL_IN, "fill in"), Key("n", "no", "decline"))
    if asked.asks == "url":
        show = Key(EXPLAIN, "show it to be copied")
        return (Key("y", "I have opened it", "accept"), Key("n", "no", "decline"), show)
    keys = [Key(each.key, each.label, ChooseOption(each.option_id)) for each in asked.options]
    if not any(each.kind.startswith("reject") for each in asked.options):
        keys.append(Key("n", "no", "deny"))  # a question can always be denied
    return (*keys, Key(EXPLAIN, "explain"))
