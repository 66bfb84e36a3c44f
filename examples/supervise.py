"""Let one agent decide another one's questions, by your instructions.

    python examples/supervise.py

The judge is the built-in agent, which is not a model: it denies everything, because that is a word of the
instructions. Set THINKWELL_AGENT to ``claude``, ``codex``, ``gemini`` or ``opencode`` for a judge that reads
the questions. The agent that asks is a few lines of Python, so that it asks the same each time.
"""

from __future__ import annotations

import anyio

from thinkwell import QuestionsStopped, open_agent
from thinkwell.events import QuestionAnswered, QuestionAsked
from thinkwell.supervision import supervise
from thinkwell_acp import AgentHandler, AgentSide, memory_transport_pair, serve_agent
from thinkwell_acp import schema as s

INSTRUCTIONS = "Commands that only look at files may run. Deny whatever changes or removes any."

OPTIONS = (
    s.PermissionOption(option_id="yes", name="Run it", kind="allow_once"),
    s.PermissionOption(option_id="no", name="Leave it", kind="reject_once"),
)


class Cleaner(AgentHandler):
    """Plays a coding agent: it asks before each command."""

    def connected(self, client: AgentSide, /) -> None:
        """Receive the client to ask."""
        self.client = client

    async def initialize(self, request: s.InitializeRequest, /) -> s.InitializeResponse:
        """Return the version of the protocol."""
        return s.InitializeResponse(protocol_version=1)

    async def new_session(self, request: s.NewSessionRequest, /) -> s.NewSessionResponse:
        """Open the only session."""
        return s.NewSessionResponse(session_id="cleaning")

    async def prompt(self, request: s.PromptRequest, /) -> s.PromptResponse:
        """Ask for one command after another, whatever the answers are."""
        for number, command in enumerate(["rm -rf build", "rm -rf dist", "git clean -fdx"]):
            call = s.ToolCallUpdate(
                tool_call_id=f"call-{number}", title=command, kind="execute", raw_input={"command": command}
            )
            await self.client.request_permission(
                s.RequestPermissionRequest(session_id=request.session_id, tool_call=call, options=OPTIONS)
            )
        return s.PromptResponse(stop_reason="end_turn")


async def main() -> None:
    ours, theirs = memory_transport_pair()
    async with open_agent() as judge, serve_agent(theirs, Cleaner()):
        supervisor = supervise(by=judge, instructions=INSTRUCTIONS, max_denials=2)
        async with open_agent("cleaner", transport=ours, permissions="ask", on_question=supervisor) as agent:
            stream = agent.think().text("Clean up this project.").stream(include="all")
            async for event in stream:
                if isinstance(event, QuestionAsked):
                    print(f"May I run this? {event.title}")
                elif isinstance(event, QuestionAnswered):
                    print(f"  {event.choice or 'stop'}, says the {event.by}: {event.why}")
            try:
                await stream.result
            except QuestionsStopped as stopped:
                print(f"Ended: {stopped.reason}")


if __name__ == "__main__":
    anyio.run(main)
