"""Scripted agents for tests, in memory or as a process, which record what they were sent.

::

    from thinkwell.testing import ScriptedAgent, script

    played = ScriptedAgent(script.thinks("Two files.").says("Fine."))
    async with played.open() as agent:
        assert await agent.think().text("Review it.").run() == "Fine."
    assert played.sent.prompts[0].text == "Review it."
"""

from __future__ import annotations

from thinkwell.testing._chaos import DEFAULT_RATES, Chaos, Fault, Passed
from thinkwell.testing._chaotic import ChaoticTransport, chaotic
from thinkwell.testing._memory import OpenOptions
from thinkwell.testing._played import (
    ScriptedAgent,
    ScriptedAgentFactory,
    ScriptedOptions,
    ScriptFailed,
    ScriptNotFinished,
    Unplayed,
)
from thinkwell.testing._recorded_agent import RecordedAgent, replay_agent
from thinkwell.testing._script import Script, script
from thinkwell.testing._sent import (
    Sent,
    SentAnswer,
    SentMessage,
    SentPrompt,
    SentResult,
    SentSession,
    SentTool,
)
from thinkwell.testing._simulation import (
    Simulation,
    SimulationFailed,
    SimulationReport,
    simulate,
    simulate_once,
)
from thinkwell.testing._turn import ScriptedTurn
from thinkwell.testing._virtual import Backend, virtual_backend

__all__ = (
    "DEFAULT_RATES",
    "Backend",
    "Chaos",
    "ChaoticTransport",
    "Fault",
    "OpenOptions",
    "Passed",
    "RecordedAgent",
    "Script",
    "ScriptFailed",
    "ScriptNotFinished",
    "ScriptedAgent",
    "ScriptedAgentFactory",
    "ScriptedOptions",
    "ScriptedTurn",
    "Sent",
    "SentAnswer",
    "SentMessage",
    "SentPrompt",
    "SentResult",
    "SentSession",
    "SentTool",
    "Simulation",
    "SimulationFailed",
    "SimulationReport",
    "Unplayed",
    "chaotic",
    "replay_agent",
    "script",
    "simulate",
    "simulate_once",
    "virtual_backend",
)
