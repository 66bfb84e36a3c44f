"""An agent made of our agent side, over its own standard input and output, that uses all there is to use."""

from __future__ import annotations

import sys

import anyio

from thinkwell_acp import AgentHandler, AgentSide, own_stdio, serve_agent
from thinkwell_acp import schema as s


class Agent(AgentHandler):
    """Does in a turn what the prompt's text says."""

    def connected(self, client: AgentSide, /) -> None:
        self.client = client

    async def initialize(self, request: s.InitializeRequest, /) -> s.InitializeResponse:
        print("this line must not reach the client")  # noqa: T201
        session = s.SessionCapabilities(
            list=s.SessionListCapabilities(),
            resume=s.SessionResumeCapabilities(),
            close=s.SessionCloseCapabilities(),
            fork=s.SessionForkCapabilities(),
            delete=s.SessionDeleteCapabilities(),
        )
        return s.InitializeResponse(
            protocol_version=1,
            agent_capabilities=s.AgentCapabilities(load_session=True, session_capabilities=session),
            auth_methods=(s.AuthMethodAgent(id="key", name="Key"),),
            agent_info=s.Implementation(name="ours", version="1"),
        )

    async def authenticate(self, request: s.AuthenticateRequest, /) -> s.AuthenticateResponse:
        return s.AuthenticateResponse()

    async def new_session(self, request: s.NewSessionRequest, /) -> s.NewSessionResponse:
        modes = s.SessionModeState(
            current_mode_id="ask", available_modes=(s.SessionMode(id="ask", name="Ask"),)
        )
        return s.NewSessionResponse(session_id="s1", modes=modes)

    async def load_session(self, request: s.LoadSessionRequest, /) -> s.LoadSessionResponse:
        self.say(request.session_id, "history")
        return s.LoadSessionResponse()

    async def resume_session(self, request: s.ResumeSessionRequest, /) -> s.ResumeSessionResponse:
        return s.ResumeSessionResponse()

    async def fork_session(self, request: s.ForkSessionRequest, /) -> s.ForkSessionResponse:
        return s.ForkSessionResponse(session_id="s2")

    async def close_session(self, request: s.CloseSessionRequest, /) -> s.CloseSessionResponse:
        return s.CloseSessionResponse()

    async def list_sessions(self, request: s.ListSessionsRequest, /) -> s.ListSessionsResponse:
        return s.ListSessionsResponse(
            sessions=(s.SessionInfo(session_id="s1", cwd="/w"),), next_cursor="more"
        )

    async def set_session_mode(self, request: s.SetSessionModeRequest, /) -> s.SetSessionModeResponse:
        self.client.update(request.session_id, s.CurrentModeUpdate(current_mode_id=request.mode_id))
        return s.SetSessionModeResponse()

    async def set_session_config_option(
        self, request: s.SetSessionConfigOptionRequest, /
    ) -> s.SetSessionConfigOptionResponse:
        options = (s.SessionConfigSelectOption(value="fast", name="Fast"),)
        option = s.SessionConfigSelect(
            id=request.config_id, name="Speed", current_value=str(request.value), options=options
        )
        return s.SetSessionConfigOptionResponse(config_options=(option,))

    async def prompt(self, request: s.PromptRequest, /) -> s.PromptResponse:
        block = request.prompt[0]
        assert isinstance(block, s.TextContent)
        if block.text == "wait":
            self.say(request.session_id, "waiting")
            await anyio.sleep_forever()
        if block.text == "many":
            for number in range(1000):
                self.say(request.session_id, str(number))
                await self.client.drain()
            return s.PromptResponse(stop_reason="end_turn")
        await self.use_the_client(request.session_id)
        return s.PromptResponse(stop_reason="end_turn")

    async def use_the_client(self, session: str) -> None:
        """Ask the client for everything, and say what came of it."""
        option = s.PermissionOption(option_id="yes", name="Yes", kind="allow_once")
        call = s.ToolCallUpdate(tool_call_id="c1", title="List")
        ask = s.RequestPermissionRequest(session_id=session, tool_call=call, options=(option,))
        allowed = await self.client.request_permission(ask)
        assert isinstance(allowed.outcome, s.SelectedPermissionOutcome)
        self.say(session, allowed.outcome.option_id)
        file = await self.client.read_text_file(
            s.ReadTextFileRequest(session_id=session, path="/in", line=2, limit=1)
        )
        await self.client.write_text_file(
            s.WriteTextFileRequest(session_id=session, path="/out", content=file.content)
        )
        terminal = await self.client.create_terminal(
            s.CreateTerminalRequest(
                session_id=session, command="ls", args=("-l",), env=(s.EnvVariable(name="A", value="b"),)
            )
        )
        waited = await self.client.wait_for_terminal_exit(
            s.WaitForTerminalExitRequest(session_id=session, terminal_id=terminal.terminal_id)
        )
        output = await self.client.terminal_output(
            s.TerminalOutputRequest(session_id=session, terminal_id=terminal.terminal_id)
        )
        await self.client.kill_terminal(
            s.KillTerminalRequest(session_id=session, terminal_id=terminal.terminal_id)
        )
        await self.client.release_terminal(
            s.ReleaseTerminalRequest(session_id=session, terminal_id=terminal.terminal_id)
        )
        self.say(session, f"{output.output} {waited.exit_code}")
        answer = await self.client.ext_call("_ask", {"a": 1})
        self.client.ext_notify("_note", {"answer": answer})

    def say(self, session: str, text: str) -> None:
        """Send a piece of a message."""
        self.client.update(session, s.AgentMessageChunk(content=s.TextContent(text=text)))

    async def ext_request(self, method: str, params: s.JsonValue, /) -> s.JsonValue:
        return {"method": method, "params": params}


async def main() -> None:
    """Serve until the client leaves."""
    transport = own_stdio()
    async with serve_agent(transport, Agent()) as side:
        await side.wait_closed()
    await transport.aclose()  # once more does no harm
    print("left", file=sys.stderr)  # noqa: T201


anyio.run(main, backend=sys.argv[1] if len(sys.argv) > 1 else "asyncio")
