"""Permission requests."""

from typing import Literal, TypeAlias

from thinkwell_acp.schema._base import Extensible, Model, OfSession
from thinkwell_acp.schema.tools import ToolCallUpdate

__all__ = (
    "CancelledPermissionOutcome",
    "PermissionOption",
    "PermissionOptionId",
    "PermissionOptionKind",
    "RequestPermissionOutcome",
    "RequestPermissionRequest",
    "RequestPermissionResponse",
    "SelectedPermissionOutcome",
)

PermissionOptionId: TypeAlias = str
"""The id of an option within its request, used in the answer."""

PermissionOptionKind: TypeAlias = Literal["allow_once", "allow_always", "reject_once", "reject_always"]
"""The meaning of an option, as far as this version of the protocol defines it."""


class PermissionOption(Extensible, frozen=True, kw_only=True):
    """One of the answers that the agent offers. An unknown kind is kept as it is."""

    option_id: PermissionOptionId
    name: str
    kind: PermissionOptionKind | str


class RequestPermissionRequest(OfSession, frozen=True, kw_only=True):
    """Parameters of `session/request_permission`."""

    tool_call: ToolCallUpdate
    options: tuple[PermissionOption, ...]


class SelectedPermissionOutcome(Extensible, frozen=True, kw_only=True, tag_field="outcome", tag="selected"):
    """One of the offered options was chosen."""

    option_id: PermissionOptionId


class CancelledPermissionOutcome(Model, frozen=True, kw_only=True, tag_field="outcome", tag="cancelled"):
    """The turn was cancelled before anything was chosen."""


RequestPermissionOutcome: TypeAlias = SelectedPermissionOutcome | CancelledPermissionOutcome
"""The outcome of a permission request, distinguished by `outcome`."""


class RequestPermissionResponse(Extensible, frozen=True, kw_only=True):
    """Result of `session/request_permission`."""

    outcome: RequestPermissionOutcome
