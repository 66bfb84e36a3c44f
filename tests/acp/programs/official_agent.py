"""An agent made of the official SDK's agent side, that uses all that its protocol version has."""

from __future__ import annotations

import asyncio
from typing import Any

import acp  # noqa: TID251 - the peer to be tested against
from acp import schema as a  # noqa: TID251 - the peer to be tested against


class Agent:
    """Does in a turn what the prompt's text says."""

    def on_connect(self, conn: Any) -> None:
        self.client = conn
        self.cancelled = asyncio.Event()

    async def initialize(self, protocol_version: int, **_: Any) -> a.InitializeResponse:
        session = a.SessionCapabilities(
            list=a.SessionListCapabilities(),
            resume=a.SessionResumeCapabilities(),
            close=a.SessionCloseCapabilities(),
            fork=a.SessionForkCapabilities(),
        )
        return a.InitializeResponse(
            protocol_version=protocol_version,
            agent_capabilities=a.AgentCapabilities(load_session=True, session_capabilities=session),
            auth_methods=[a.AuthMethodAgent(id="key", name="Key")],
            agent_info=a.Implementation(name="official", version="1"),
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        assert method_id == "key"

    async def new_session(self, cwd: str, **_: Any) -> a.NewSessionResponse:
        modes = a.SessionModeState(
            current_mode_id="ask", available_modes=[a.SessionMode(id="ask", name="Ask")]
        )
        return a.NewSessionResponse(session_id="s1", modes=modes)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> None:
        await self.say(session_id, "history")

    async def resume_session(self, session_id: str, cwd: str, **_: Any) -> a.ResumeSessionResponse:
        return a.ResumeSessionResponse()

    async def fork_session(self, session_id: str, cwd: str, **_: Any) -> a.ForkSessionResponse:
        return a.ForkSessionResponse(session_id="s2")

    async def close_session(self, session_id: str, **_: Any) -> None:
        return None

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> a.ListSessionsResponse:
        return a.ListSessionsResponse(sessions=[a.SessionInfo(session_id="s1", cwd="/w")], next_cursor="more")

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> None:
        update = a.CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode_id)
        await self.client.session_update(session_id, update)

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> a.SetSessionConfigOptionResponse:
        options = [a.SessionConfigSelectOption(value="fast", name="Fast")]
        option = a.SessionConfigOptionSelect(
            type="select", id=config_id, name="Speed", current_value=str(value), options=options
        )
        return a.SetSessionConfigOptionResponse(config_options=[option])

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> a.PromptResponse:
        text = prompt[0].text
        if text == "wait":
            await self.say(session_id, "waiting")
            await self.cancelled.wait()
            return a.PromptResponse(stop_reason="cancelled")
        if text == "many":
            for number in range(1000):
                await self.say(session_id, str(number))
            return a.PromptResponse(stop_reason="end_turn")
        await self.use_the_client(session_id)
        return a.PromptResponse(stop_reason="end_turn")

    async def use_the_client(self, session: str) -> None:
        """Ask the client for everything, and say what came of it."""
        client = self.client
        call = a.ToolCallUpdate(tool_call_id="c1", title="List")
        option = a.PermissionOption(option_id="yes", name="Yes", kind="allow_once")
        allowed = await client.request_permission(session, call, [option])
        await self.say(session, allowed.outcome.option_id)
        file = await client.read_text_file(session, "/in", line=2, limit=1)
        await client.write_text_file(session, "/out", file.content)
        env = [a.EnvVariable(name="A", value="b")]
        terminal = await client.create_terminal(session, "ls", args=["-l"], env=env)
        waited = await client.wait_for_terminal_exit(session, terminal.terminal_id)
        output = await client.terminal_output(session, terminal.terminal_id)
        await client.kill_terminal(session, terminal.terminal_id)
        await client.release_terminal(session, terminal.terminal_id)
        await self.say(session, f"{output.output} {waited.exit_code}")
        answer = await client.ext_method("ask", {"a": 1})
        await client.ext_notification("note", {"answer": answer})

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.cancelled.set()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"method": f"_{method}", "params": params}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        return None

    async def say(self, session: str, text: str) -> None:
        """Send a piece of a message."""
        await self.client.session_update(session, acp.update_agent_message_text(text))


asyncio.run(acp.run_agent(Agent(), use_unstable_protocol=True))  # type: ignore[arg-type]
