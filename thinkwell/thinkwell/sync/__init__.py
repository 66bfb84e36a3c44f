"""The blocking API, without ``await``, for scripts, notebooks and threads.

::

    from thinkwell.sync import open_agent

    with open_agent() as agent:
        stream = agent.think(Review).text("Review this module:").quote(source).stream()
        for event in stream:
            ...
        review = stream.result()

Import everything else, such as events, errors and `thinkwell.tool`, from `thinkwell`.
"""

from __future__ import annotations

from thinkwell.sync._agent import Agent, open_agent
from thinkwell.sync._builder import ThinkBuilder
from thinkwell.sync._listening import listen
from thinkwell.sync._login import login
from thinkwell.sync._opening import Opener
from thinkwell.sync._outcomes import Outcomes
from thinkwell.sync._replay import replay
from thinkwell.sync._session import Session
from thinkwell.sync._stream import ThoughtStream
from thinkwell.sync._supervision import supervise
from thinkwell.sync._supervisor import Supervisor
from thinkwell.sync._trials import trials

__all__ = (
    "Agent",
    "Opener",
    "Outcomes",
    "Session",
    "Supervisor",
    "ThinkBuilder",
    "ThoughtStream",
    "listen",
    "login",
    "open_agent",
    "replay",
    "supervise",
    "trials",
)
