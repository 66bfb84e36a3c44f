"""A client made of the official SDK's client side: drives the agent whose command it is given."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import acp  # noqa: TID251 - the peer to be tested against
from acp import schema as a  # noqa: TID251 - the peer to be tested against


class Client:
    """Serves everything and remembers what was said."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.modes: list[str] = []
        self.calls: list[object] = []
        self.waiting = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if isinstance(update, a.CurrentModeUpdate):
            self.modes.append(update.current_mode_id)
            return
        assert isinstance(update, a.AgentMessageChunk)
        self.texts.append(update.content.text)
        if update.content.text == "waiting":
            self.waiting.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> a.RequestPermissionResponse:
        outcome = a.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return a.RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, session_id: str, path: str, **more: Any) -> a.ReadTextFileResponse:
        self.calls.append((path, more))
        return a.ReadTextFileResponse(content="content")

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> None:
        self.calls.append((path, content))

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[Any] | None = None,
        **_: Any,
    ) -> a.CreateTerminalResponse:
        self.calls.append((command, args, [(e.name, e.value) for e in env or []]))
        return a.CreateTerminalResponse(terminal_id="t1")

    async def terminal_output(self, session_id: str, terminal_id: str, **_: Any) -> a.TerminalOutputResponse:
        return a.TerminalOutputResponse(output="listing", truncated=False)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> a.WaitForTerminalExitResponse:
        return a.WaitForTerminalExitResponse(exit_code=0)

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        self.calls.append(("kill", terminal_id))

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        self.calls.append(("release", terminal_id))

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"asked": method, **params}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self.calls.append((method, params))


CALLS = [
    ("/in", {"line": 2, "limit": 1}),
    ("/out", "content"),
    ("ls", ["-l"], [("A", "b")]),
    ("kill", "t1"),
    ("release", "t1"),
    ("note", {"answer": {"asked": "ask", "a": 1}}),
]


async def drive(command: list[str]) -> None:
    """Go through every method."""
    client = Client()
    async with acp.spawn_agent_process(client, *command, use_unstable_protocol=True) as (agent, process):  # type: ignore[arg-type]
        capabilities = a.ClientCapabilities(
            fs=a.FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
        )
        hello = await agent.initialize(1, client_capabilities=capabilities)
        assert hello.agent_info is not None
        assert (hello.protocol_version, hello.agent_info.name) == (1, "ours")
        await agent.authenticate("key")
        new = await agent.new_session("/w", mcp_servers=[])
        assert new.modes is not None
        assert (new.session_id, new.modes.current_mode_id) == ("s1", "ask")
        await agent.load_session("/w", "s1", mcp_servers=[])
        await agent.resume_session("s1", "/w")
        assert (await agent.fork_session("s1", "/w")).session_id == "s2"
        listed = await agent.list_sessions()
        assert [entry.session_id for entry in listed.sessions] == ["s1"]
        assert listed.next_cursor == "more"
        await agent.set_session_mode("s1", "ask")
        options = (await agent.set_config_option("speed", "s1", "fast")).config_options
        assert [(option.id, option.current_value) for option in options] == [("speed", "fast")]
        assert (await agent.prompt("s1", [acp.text_block("all")])).stop_reason == "end_turn"
        many = await agent.prompt("s1", [acp.text_block("many")])
        assert many.stop_reason == "end_turn"
        turn = asyncio.create_task(agent.prompt("s1", [acp.text_block("wait")]))
        await client.waiting.wait()
        await agent.cancel("s1")
        assert (await turn).stop_reason == "cancelled"
        answer = await agent.ext_method("x", {"y": 1})
        assert answer == {"method": "_x", "params": {"y": 1}}
        await agent.close_session("s1")
        assert client.modes == ["ask"]
        assert client.calls == CALLS
        assert sorted(client.texts) == sorted(
            ["history", "yes", "listing 0", *map(str, range(1000)), "waiting"]
        )
        assert process.stdin is not None
        process.stdin.close()
        assert await process.wait() == 0
    print("conforms")  # noqa: T201


asyncio.run(drive(sys.argv[1:]))
