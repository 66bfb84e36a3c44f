"""What the keys mean while a question is asked. Displays show exactly these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from thinkwell.questions import ChooseOption

if TYPE_CHECKING:
    from thinkwell._display.questions import Asked
    from thinkwell.questions import Verdict

EXPLAIN: Final = "e"
"""Prints everything that there is to a question."""

FILL_IN: Final = "f"
"""Begins to fill in a form."""


class Key(NamedTuple):
    """A key that means something."""

    key: str
    """One character, in lower case."""
    label: str
    """What it does: a clean line."""
    answer: Verdict | ChooseOption | None = None
    """What it answers; ``None`` where it answers nothing yet."""


def keys_of(asked: Asked) -> tuple[Key, ...]:
    """Return what the keys mean for a question: ``[y] once [n] no [e] explain``."""
    if asked.asks == "form":
        return (Key(FILL_IN, "fill in"), Key("n", "no", "decline"))
    if asked.asks == "url":
        show = Key(EXPLAIN, "show it to be copied")
        return (Key("y", "I have opened it", "accept"), Key("n", "no", "decline"), show)
    keys = [Key(each.key, each.label, ChooseOption(each.option_id)) for each in asked.options]
    if not any(each.kind.startswith("reject") for each in asked.options):
        keys.append(Key("n", "no", "deny"))  # a question can always be denied
    return (*keys, Key(EXPLAIN, "explain"))
