"""Runs behind HTTP: started, watched, answered and stopped by browsers, other languages and Letta clients."""

from __future__ import annotations

from thinkwell.web._requests import ImagePart, Limits, ServedAgent, StartRun, TextPart, served_agent
from thinkwell.web._serving import RunServer, RunState

__all__ = (
    "ImagePart",
    "Limits",
    "RunServer",
    "RunState",
    "ServedAgent",
    "StartRun",
    "TextPart",
    "served_agent",
)
