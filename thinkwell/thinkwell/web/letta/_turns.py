"""What the record of a run says of it beside its log: whose turn it is, and how it was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from thinkwell.web.letta._incoming import Said  # noqa: TC001 - type of a field
from thinkwell.web.letta._segments import Options

if TYPE_CHECKING:
    from thinkwell.events import JsonValue
    from thinkwell.journal import RunRecord

__all__ = ("META", "Turn")

META: Final = "letta"
"""Where in a record's `meta` it stands."""


class Turn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request that has started a run."""

    agent: str
    """Id of the agent, in Letta's sense."""
    conversation: str | None = None
    """Id of the conversation; ``None``: the agent's default one."""
    said: tuple[Said, ...] = ()
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
