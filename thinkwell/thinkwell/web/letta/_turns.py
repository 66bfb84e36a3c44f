"""The data of a run for Letta: its conversation, and the request that started it."""

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
"""The key in a record's `meta`."""

BY: Final = "letta"
"""The author of answers from clients of Letta."""

MOST_SAID: Final = 16_384
"""Approximate characters of the messages in a record, which is read for every list of runs."""


class Turn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request that has started a run."""

    token: str = ""
    """Its identity, even among requests with the same text."""
    agent: str
    """Id of the agent, in Letta's sense."""
    conversation: str | None = None
    """Id of the conversation; ``None``: the agent's default one."""
    said: tuple[Said, ...] = ()
    """Its messages, `shortened`. The agent got all of them."""
    otids: tuple[str, ...] = ()
    options: Options = Options()
    skills: str | None = None
    """A digest of the client's skills."""
    follows: str | None = None
    """Id of the run after which it was sent, with a decision about that run: one stream has both."""

    @property
    def meta(self) -> dict[str, JsonValue]:
        """It as the `meta` of a record."""
        return {META: msgspec.to_builtins(self)}

    @classmethod
    def of(cls, record: RunRecord) -> Turn | None:
        """Return the request of a run; ``None``: no client of Letta has started it."""
        try:
            return msgspec.convert(record.meta.get(META), cls)
        except msgspec.ValidationError:
            return None

    def again(self, known: Iterable[RunRecord]) -> tuple[RunRecord, Turn] | None:
        """Return the run that the same request has started; ``None``: there is none among these."""
        for record in known if self.otids else ():
            other = Turn.of(record)
            if other is not None and other.otids == self.otids:
                return record, other
        return None


def shortened(messages: Sequence[Said]) -> tuple[Said, ...]:
    """Return messages for a record: long ones without their middles, with a note."""
    left, kept = MOST_SAID, list(messages)
    by_length = sorted(range(len(kept)), key=lambda place: len(kept[place].content))
    for number, place in enumerate(by_length):  # the space that short ones leave is for the others
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
