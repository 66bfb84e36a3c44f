"""Questions of the agent to the user: forms and web pages."""

from typing import Literal, TypeAlias

from thinkwell_acp.schema._base import (
    UNSET,
    Choice,
    Extensible,
    JsonObject,
    Model,
    RequestId,
    Strict,
    UnsetType,
)
from thinkwell_acp.schema.forms import ElicitationSchema

__all__ = (
    "CompleteElicitationNotification",
    "CreateElicitationRequest",
    "CreateElicitationResponse",
    "ElicitationAction",
    "ElicitationContentValue",
    "ElicitationFormMode",
    "ElicitationId",
    "ElicitationUrlMode",
    "OtherElicitationMode",
)

ElicitationId: TypeAlias = str
"""The id of an elicitation that continues outside the protocol."""

ElicitationContentValue: TypeAlias = str | int | float | bool | tuple[str, ...]
"""The user's value of one field of a form."""

ElicitationAction: TypeAlias = Literal["accept", "decline", "cancel"]
"""The user's reaction to a question."""


class CreateElicitationRequest(Extensible, Choice, frozen=True, kw_only=True):
    """Parameters of `elicitation/create`. Decoding gives one of the subclasses, by `mode`.

    The question belongs to a session, maybe to a tool call in it, or to a request of the client.

    Attributes:
        request_id: `UNSET` if the question belongs to a session (`None` is an id).
    """

    message: str
    session_id: Strict[str | None] = None
    tool_call_id: str | None = None
    request_id: Strict[RequestId | UnsetType] = UNSET

    @classmethod
    def choose(cls, raw: JsonObject) -> type[Model]:
        """Return the class for the mode.

        Raises:
            ValueError: the question belongs to neither.
        """
        if raw.get("sessionId") is None and "requestId" not in raw:
            raise ValueError("neither `sessionId` nor `requestId`")
        match raw.get("mode"):
            case "form":
                return ElicitationFormMode
            case "url":
                return ElicitationUrlMode
            case _:
                return OtherElicitationMode


class ElicitationFormMode(CreateElicitationRequest, frozen=True, kw_only=True, tag_field="mode", tag="form"):
    """The user is asked to fill in a form. Needs `elicitation.form`."""

    requested_schema: ElicitationSchema


class ElicitationUrlMode(CreateElicitationRequest, frozen=True, kw_only=True, tag_field="mode", tag="url"):
    """The user is asked to go to a web page. Needs `elicitation.url`."""

    elicitation_id: ElicitationId
    url: str


class OtherElicitationMode(CreateElicitationRequest, frozen=True, kw_only=True):
    """The user is asked in an unknown way. The request must be refused."""

    mode: str


class CreateElicitationResponse(Extensible, frozen=True, kw_only=True):
    """Result of `elicitation/create`. Only `accept` has content."""

    action: ElicitationAction | str
    content: Strict[dict[str, ElicitationContentValue] | None] = None


class CompleteElicitationNotification(Extensible, frozen=True, kw_only=True):
    """Parameters of `elicitation/complete`: the action on a web page is done."""

    elicitation_id: ElicitationId
