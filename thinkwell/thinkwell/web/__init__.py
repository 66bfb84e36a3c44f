"""Runs over HTTP: start, watch, answer and stop them from browsers, other languages and Letta clients.

::

    server = RunServer({"claude": served_agent("claude")})
    app = web_app(server, access=Access({"a-long-secret-token": "ada"}))

`RunServer` manages the runs, independently of HTTP. `web_app` is an ASGI application for it, which you can
mount in another one.
"""

from __future__ import annotations

from importlib.util import find_spec as _find_spec

if _find_spec("starlette") is None:
    raise ImportError(
        "thinkwell.web needs starlette, which is not installed; pip install 'thinkwell[web]'",
        name="starlette",
    )

from thinkwell.web._app import web_app
from thinkwell.web._records import RunEnded, ShownError
from thinkwell.web._refusals import (
    AnswerRefused,
    MessageNotTaken,
    QuestionClosed,
    Refusal,
    RequestInvalid,
    RunNotFound,
    RunStillRunning,
    ServerUnavailable,
    TooManyRuns,
)
from thinkwell.web._requests import ImagePart, Limits, ServedAgent, StartRun, TextPart, served_agent
from thinkwell.web._serving import RunServer, RunState
from thinkwell.web._sse import EventStream, Frames, sse_frame
from thinkwell.web._watching import Batch, Watcher
from thinkwell.web.access import Access
from thinkwell.web.items import recording_html

__all__ = (
    "Access",
    "AnswerRefused",
    "Batch",
    "EventStream",
    "Frames",
    "ImagePart",
    "Limits",
    "MessageNotTaken",
    "QuestionClosed",
    "Refusal",
    "RequestInvalid",
    "RunEnded",
    "RunNotFound",
    "RunServer",
    "RunState",
    "RunStillRunning",
    "ServedAgent",
    "ServerUnavailable",
    "ShownError",
    "StartRun",
    "TextPart",
    "TooManyRuns",
    "Watcher",
    "recording_html",
    "served_agent",
    "sse_frame",
    "web_app",
)
