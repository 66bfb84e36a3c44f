"""Agents for the blocking API: processes that play a script."""

from __future__ import annotations

import sys
import tempfile
from typing import TYPE_CHECKING, Any

from thinkwell.sync import Agent, Opener, open_agent

if TYPE_CHECKING:
    from thinkwell.testing import Script


def program(told: Script) -> list[str]:
    """The command of a process that plays a script from its beginning."""
    file = f"{tempfile.mkdtemp()}/script"
    told.save(file)
    return [sys.executable, "-m", "thinkwell.testing", file]


def playing(told: Script, **options: Any) -> Opener[Agent]:
    """An agent that plays a script."""
    return open_agent(command=program(told), **options)
