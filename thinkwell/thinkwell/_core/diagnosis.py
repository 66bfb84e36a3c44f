"""The parts of the core that only the doctor uses."""

from __future__ import annotations

from thinkwell._core.agent.agent import RunningAgent
from thinkwell._core.agent.arguments import check_types
from thinkwell._core.agent.session_handle import SessionPlan, open_session
from thinkwell._core.protocol.errors import noise
from thinkwell._core.protocol.mcp_servers import McpServers, check_reachable
from thinkwell._core.session.calls import CLOSE_TIMEOUT
from thinkwell._core.session.tool_hosts import PLAINEST_FIRST, offered_ways
from thinkwell._core.session.tools import LIST_TIMEOUT
from thinkwell._core.tracing.run_logging import shown
from thinkwell.agents._choosing import environment
from thinkwell.agents._preparing import is_installed
from thinkwell.agents._profile import LATEST

__all__ = (
    "CLOSE_TIMEOUT",
    "LATEST",
    "LIST_TIMEOUT",
    "PLAINEST_FIRST",
    "McpServers",
    "RunningAgent",
    "SessionPlan",
    "check_reachable",
    "check_types",
    "environment",
    "is_installed",
    "noise",
    "offered_ways",
    "open_session",
    "shown",
)
