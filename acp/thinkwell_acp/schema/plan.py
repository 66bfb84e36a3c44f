"""Plans: the agent's next steps. Plans with an id are unstable."""

from typing import Literal, TypeAlias

from thinkwell_acp.schema._base import Extensible, Lenient

__all__ = (
    "PlanEntry",
    "PlanEntryPriority",
    "PlanEntryStatus",
    "PlanFile",
    "PlanId",
    "PlanItems",
    "PlanMarkdown",
    "PlanUpdateContent",
)

PlanId: TypeAlias = str
"""The id of a plan within its session."""

PlanEntryPriority: TypeAlias = Literal["high", "medium", "low"]
"""The priority of a step of a plan."""

PlanEntryStatus: TypeAlias = Literal["pending", "in_progress", "completed"]
"""The status of a step of a plan."""


class PlanEntry(Extensible, frozen=True, kw_only=True):
    """One step of a plan."""

    content: str
    priority: PlanEntryPriority
    status: PlanEntryStatus


class PlanItems(Extensible, frozen=True, kw_only=True, tag_field="type", tag="items"):
    """A plan as a list of steps."""

    plan_id: PlanId
    entries: Lenient[tuple[PlanEntry, ...]]


class PlanMarkdown(Extensible, frozen=True, kw_only=True, tag_field="type", tag="markdown"):
    """A plan as Markdown text."""

    plan_id: PlanId
    content: str


class PlanFile(Extensible, frozen=True, kw_only=True, tag_field="type", tag="file"):
    """A plan in a file."""

    plan_id: PlanId
    uri: str


PlanUpdateContent: TypeAlias = PlanItems | PlanMarkdown | PlanFile
"""One version of a plan, distinguished by `type`."""
