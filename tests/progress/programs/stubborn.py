"""Shows a run of an agent that works for ever: ``python stubborn.py STYLE HOW``.

With ``agent`` instead of a style, this is the agent. How: ``polite`` ends its turn when it is cancelled,
``stubborn`` does not, ``asking`` asks for permission first and then ends.
"""

import logging
import sys

import anyio

from thinkwell import ThinkwellError, open_agent
from thinkwell.progress import show
from thinkwell_acp import AgentHandler, AgentSide, own_stdio, serve_agent
from thinkwell_acp import schema as s


class Worker(AgentHandler):
    client: AgentSide

    def __init__(self, how: str) -> None:
        self.how = how

    def connected(self, client: AgentSide, /) -> None:
        self.client = client

    async def initialize(self, request: s.InitializeRequest, /) -> s.InitializeResponse:
        return s.InitializeResponse(protocol_version=1)

    async def new_session(self, request: s.NewSessionRequest, /) -> s.NewSessionResponse:
        return s.NewSessionResponse(session_id="s1")

    async def prompt(self, request: s.PromptRequest, /) -> s.PromptResponse:
        block = s.TextContent(text="working on it\n\n")
        self.client.update(request.session_id, s.AgentMessageChunk(content=block))
        if self.how == "asking":
            call = s.ToolCallUpdate(
                tool_call_id="t1", title="rm -rf build", kind="execute", raw_input={"command": "rm -rf build"}
            )
            offered = (
                s.PermissionOption(option_id="y", name="Yes", kind="allow_once"),
                s.PermissionOption(option_id="n", name="No", kind="reject_once"),
            )
            answer = await self.client.request_permission(
                s.RequestPermissionRequest(session_id=request.session_id, tool_call=call, options=offered)
            )
            told = s.TextContent(text=f"told {getattr(answer.outcome, 'option_id', None)}")
            self.client.update(request.session_id, s.AgentMessageChunk(content=told))
            return s.PromptResponse(stop_reason="end_turn")
        with anyio.CancelScope(shield=self.how == "stubborn"):
            await anyio.sleep_forever()
        raise AssertionError


async def serve(how: str) -> None:
    async with serve_agent(own_stdio(), Worker(how)) as side:
        await side.wait_closed()


async def main(style: str, how: str) -> None:
    logging.getLogger("thinkwell").setLevel(logging.CRITICAL)
    command = [sys.executable, __file__, "agent", how]
    async with open_agent(command=command, permissions="ask") as agent:
        try:
            text = await show(agent.think().text("Go").stream(), style=style)  # type: ignore[arg-type]
        except ThinkwellError as exc:
            text = f"came to {type(exc).__name__}"
    sys.stdout.write(f"result: {text}\n")


if __name__ == "__main__":
    if sys.argv[1] == "agent":
        anyio.run(serve, sys.argv[2])
    else:
        anyio.run(main, sys.argv[1], sys.argv[2], backend=(sys.argv[3:] or ["asyncio"])[0])
