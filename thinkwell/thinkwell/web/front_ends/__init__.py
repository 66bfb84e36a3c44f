"""The formats of front ends: the streams of the Vercel AI SDK and of AG-UI, and their requests."""

from __future__ import annotations

from thinkwell.web.front_ends._ag_ui import POINT
from thinkwell.web.front_ends._ag_ui_input import RunInput
from thinkwell.web.front_ends._ai_sdk_chat import ChatRequest
from thinkwell.web.front_ends._formats import FORMAT_HEADERS, FormatName, format_events
from thinkwell.web.front_ends._requests import Choices
from thinkwell.web.front_ends._routes import routes
from thinkwell.web.front_ends._tools import (
    MOST_TOOLS,
    TOOL_NAME,
    FrontEndCall,
    call_of_front_end,
    front_end_tools,
    result_form,
)

__all__ = (
    "FORMAT_HEADERS",
    "MOST_TOOLS",
    "POINT",
    "TOOL_NAME",
    "ChatRequest",
    "Choices",
    "FormatName",
    "FrontEndCall",
    "RunInput",
    "call_of_front_end",
    "format_events",
    "front_end_tools",
    "result_form",
    "routes",
)
