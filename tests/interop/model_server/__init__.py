"""A scripted stand-in for the model services that real agents talk to.

A test hands over steps, an agent asks, the stand-in answers with the next step or steps:

    with ModelServer(Think("Look first."), CallTool("lookup", {"key": "a"}), Say("Found it.")) as server:
        ...  # start an agent whose model service is server.url

It speaks the Messages, Chat Completions, Responses and Gemini APIs, streamed and whole.
"""

from __future__ import annotations

from ._script import CallTool, EndTurn, Step
from ._server import ModelServer, Received
from ._values import Ask, Fail, Hold, Say, Think

__all__ = ("Ask", "CallTool", "EndTurn", "Fail", "Hold", "ModelServer", "Received", "Say", "Step", "Think")
