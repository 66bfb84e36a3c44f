"""Both sides against the official SDK's other side, over real pipes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from acp_support import Everything, Recorder

from thinkwell_acp import connect, stdio_transport
from thinkwell_acp import schema as s

PROGRAMS = Path(__file__).parent / "programs"
LIMIT = 60


class Services(Recorder, Everything):
    """Serves everything, and remembers it."""

    def __init__(self) -> None:
        super().__init__()
        self.answer.set()


REQUESTS = [
    s.ReadTextFileRequest(session_id="s1", path="/in", line=2, limit=1),
    s.WriteTextFileRequest(session_id="s1", path="/out", content="/in"),
    s.CreateTerminalRequest(
        session_id="s1", command="ls", args=("-l",), env=(s.EnvVariable(name="A", value="b"),)
    ),
    s.WaitForTerminalExitRequest(session_id="s1", terminal_id="ls"),
    s.TerminalOutputRequest(session_id="s1", terminal_id="ls"),
    s.KillTerminalRequest(session_id="s1", terminal_id="ls"),
    s.ReleaseTerminalRequest(session_id="s1", terminal_id="ls"),
]


def prompt(text: str) -> s.PromptRequest:
    return s.PromptRequest(session_id="s1", prompt=(s.TextContent(text=text),))


@pytest.mark.parametrize(
    ("name", "anyio_backend"),
    [
        ("official", "asyncio"),
        ("ours", "trio"),
        pytest.param("official", "trio", marks=pytest.mark.long),
        pytest.param("ours", "asyncio", marks=pytest.mark.long),
    ],
)
async def test_our_client_uses_every_method_of_an_agent(name: str) -> None:
    services = Services()
    program = {"official": "official_agent.py", "ours": "our_agent.py"}[name]
    command = [sys.executable, "-W", "error", str(PROGRAMS / program)]
    capabilities = s.ClientCapabilities(
        fs=s.FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
    )
    with anyio.fail_after(LIMIT):
        async with (
            stdio_transport(command, exit_grace=20) as transport,
            connect(transport, services) as client,
        ):
            hello = await client.initialize(
                s.InitializeRequest(protocol_version=1, client_capabilities=capabilities)
            )
            assert hello.agent_info == s.Implementation(name=name, version="1")
            await client.authenticate(s.AuthenticateRequest(method_id="key"))
            new = await client.new_session(s.NewSessionRequest(cwd="/w", mcp_servers=()))
            assert new.modes is not None
            assert (new.session_id, new.modes.current_mode_id) == ("s1", "ask")
            await client.load_session(s.LoadSessionRequest(session_id="s1", cwd="/w", mcp_servers=()))
            assert services.texts == ["history"]
            await client.resume_session(s.ResumeSessionRequest(session_id="s1", cwd="/w"))
            assert (
                await client.fork_session(s.ForkSessionRequest(session_id="s1", cwd="/w"))
            ).session_id == "s2"
            listed = await client.list_sessions()
            assert [entry.session_id for entry in listed.sessions] == ["s1"]
            assert listed.next_cursor == "more"
            await client.set_session_mode(s.SetSessionModeRequest(session_id="s1", mode_id="ask"))
            assert services.updates[-1].update == s.CurrentModeUpdate(current_mode_id="ask")
            answer = await client.set_session_config_option(
                s.SetSessionConfigOptionRequest(session_id="s1", config_id="speed", value="fast")
            )
            assert [(option.id, option.current_value) for option in answer.config_options] == [
                ("speed", "fast")
            ]
            services.batches.clear()

            assert (await client.prompt(prompt("all"))).stop_reason == "end_turn"
            assert services.texts == ["yes", "o 3"]
            assert services.requests == REQUESTS
            await services.wait_until(lambda: bool(services.extensions))
            assert services.extensions == [("_note", {"answer": ["_ask", {"a": 1}]})]
            services.batches.clear()

            await client.prompt(prompt("many"))
            assert services.texts == [str(number) for number in range(1000)]
            services.batches.clear()

            async with anyio.create_task_group() as tasks:

                async def wait() -> None:
                    assert (await client.prompt(prompt("wait"))).stop_reason == "cancelled"

                tasks.start_soon(wait)
                await services.wait_until(lambda: services.texts == ["waiting"])
                client.cancel("s1")
            assert await client.ext_call("_x", {"y": 1}) == {"method": "_x", "params": {"y": 1}}
            await client.close_session(s.CloseSessionRequest(session_id="s1"))
    assert transport.exit_code == 0
    assert services.reports == []


@pytest.mark.parametrize("backend", ["asyncio", pytest.param("trio", marks=pytest.mark.long)])
def test_the_official_client_uses_every_method_of_our_agent(backend: str) -> None:
    command = [
        str(PROGRAMS / "official_client.py"),
        sys.executable,
        "-W",
        "error",
        str(PROGRAMS / "our_agent.py"),
        backend,
    ]
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.stdout == "conforms\n", done.stderr
