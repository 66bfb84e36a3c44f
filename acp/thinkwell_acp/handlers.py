"""The requests and notifications of each side, as classes to override.

Every method has a default for a side that does not serve it: the request is refused as not found. Each
request runs in its own task; an exception costs that request only. The synchronous methods are called while
messages are being read, in the order in which they came; they must not block.
"""

from __future__ import annotations

from thinkwell_acp._side import CommonHandler
from thinkwell_acp.agent import AgentHandler
from thinkwell_acp.client import ClientHandler

__all__ = (
    "AgentHandler",
    "ClientHandler",
    "CommonHandler",
)
