"""Messages of JSON-RPC itself."""

from thinkwell_acp.schema._base import Extensible, JsonValue, Model, RequestId

__all__ = ("CancelRequestNotification", "Error")


class CancelRequestNotification(Extensible, frozen=True, kw_only=True):
    """Parameters of `$/cancel_request`.

    Attributes:
        request_id: the id of a request that the sender of this notification made.
    """

    request_id: RequestId


class Error(Model, frozen=True, kw_only=True):
    """The error of a JSON-RPC response."""

    code: int
    message: str
    data: JsonValue = None
