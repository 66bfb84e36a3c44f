"""What the record of a run says of it beside its log: whose turn it is, and how it was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thinkwell.web.letta._incoming import Said  # noqa: TC001 - type of a field
from thinkwell.web.letta._segments import Options

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from thinkwell.events import JsonValue
    from thinkwell.journal import RunRecord

META: Final = "letta"
"""Where in a record's `meta` it stands."""

MOST_SAID: Final = 16_384
"""Characters of what was said that a record keeps, about: it is read whenever runs are listed."""


class Turn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request that has started a run."""

    token: str = ""
    """What tells it from all others, those too that say the same."""
    agent: str
    """Id of the agent, in Letta's sense."""
    conversation: str | None = None
    """Id of the conversation; ``None``: the agent's default one."""
    said: tuple[Said, ...] = ()
    """What it has said, `shortened`. The agent was told all of it."""
    otids: tuple[str, ...] = ()
    options: Options = Options()
    skills: str | None = None
    """What tells the client's skills from others."""
    follows: str | None = None
    """Id of the run that it was sent behind, with a decision about that one: one stream tells of both."""

    @property
    def meta(self) -> dict[str, JsonValue]:
        """It as the `meta` of a record."""
        return {META: msgspec.to_builtins(self)}

    @classmethod
    def of(cls, record: RunRecord) -> Turn | None:
        """Return that of a run; ``None``: it was not started by a client of Letta's."""
        try:
            return msgspec.convert(record.meta.get(META), cls)
        except msgspec.ValidationError:
            return None

    def again(self, known: Iterable[RunRecord]) -> tuple[RunRecord, Turn] | None:
        """Return the run that the same request has started before; ``None``: there is none among them."""
        for record in known if self.otids else ():
            other = Turn.of(record)
            if other is not None and other.otids == self.otids:
                return record, other
        return None


def shortened(messages: Sequence[Said]) -> tuple[Said, ...]:
    """Return messages as a record keeps them: those that are too long without their middles, as they say."""
    left, kept = MOST_SAID, list(messages)
    by_length = sorted(range(len(kept)), key=lambda place: len(kept[place].content))
    for number, place in enumerate(by_length):  # what short ones do not need is for the others
        share = left // (len(kept) - number)
        left -= min(share, len(kept[place].content))
        kept[place] = replace(kept[place], content=_within(kept[place].content, share))
    return tuple(kept)


def _within(text: str, most: int) -> str:
    surplus = len(text) - most
    if surplus <= 0:
        return text
    begin = most - most // 2
    return f"{text[:begin]}\n\n[… {surplus:,} characters are not kept …]\n\n{text[begin + surplus :]}"
