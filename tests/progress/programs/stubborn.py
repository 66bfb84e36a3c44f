"""Shows a run of an agent that works for ever: ``python stubborn.py STYLE HOW``.

With ``agent`` instead of a style, this is the agent; ``unanswered`` is ``live`` without a keyboard. How:
``polite`` ends its turn when it is cancelled, ``stubborn`` does not, ``asking`` asks for permission first and
then ends.
"""

import logging
import os
import sys

import anyio

from thinkwell import ThinkwellError, open_agent
from thinkwell.progress import show
from thinkwell.testing import ScriptedAgent, ScriptedTurn, script
from thinkwell_acp import own_stdio
from thinkwell_acp import schema as s


async def ask(turn: ScriptedTurn) -> None:
    call = s.ToolCallUpdate(
        tool_call_id="t1", title="rm -rf build", kind="execute", raw_input={"command": "rm -rf build"}
    )
    offered = (
        s.PermissionOption(option_id="y", name="Yes", kind="allow_once"),
        s.PermissionOption(option_id="n", name="No", kind="reject_once"),
    )
    request = s.RequestPermissionRequest(session_id=turn.session_id, tool_call=call, options=offered)
    outcome = (await turn.client.request_permission(request)).outcome
    told = s.TextContent(text=f"told {getattr(outcome, 'option_id', None)}")
    turn.update(s.AgentMessageChunk(content=told))


async def serve(how: str) -> None:
    begins = script.says("working on it\n\n")
    plays = {"polite": begins.hangs(), "stubborn": begins.hangs(deaf=True), "asking": begins.does(ask)}
    await ScriptedAgent(plays[how]).serve(own_stdio())


async def main(style: str, how: str) -> None:
    logging.getLogger("thinkwell").setLevel(logging.CRITICAL)
    command = [os.environ["AGENT_PYTHON"], __file__, "agent", how]
    async with open_agent(command=command, permissions="ask") as agent:
        try:
            stream = agent.think().text("Go").stream()
            if style == "unanswered":
                text = await show(stream, style="live", answer=False)
            else:
                text = await show(stream, style=style)  # type: ignore[arg-type]
        except ThinkwellError as exc:
            text = f"came to {type(exc).__name__}"
    sys.stdout.write(f"result: {text}\n")


if __name__ == "__main__":
    if sys.argv[1] == "agent":
        anyio.run(serve, sys.argv[2])
    else:
        anyio.run(main, sys.argv[1], sys.argv[2], backend=(sys.argv[3:] or ["asyncio"])[0])
