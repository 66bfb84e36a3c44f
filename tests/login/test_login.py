"""`login` with logins that the agent goes through itself, and which login it takes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from login.login_agent import LoginAgent
from login.terminal import PROGRAMS
from scripted import playing

from thinkwell import LoginRequired, login, open_agent
from thinkwell.errors import LoginFailed
from thinkwell_acp import Client, ClientHandler, RpcError, connect, memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from pathlib import Path

AGENT = str(PROGRAMS / "login_agent.py")


async def log_in(token: Path, *offers: str, method: str | None = None) -> None:
    with anyio.fail_after(60):
        await login(method=method, command=[sys.executable, AGENT, *offers], env={"LOGIN_TOKEN": str(token)})


@pytest.mark.parametrize(("offers", "method"), [(("browser",), None), (("console", "browser"), "browser")])
async def test_a_login_of_the_agents_own(offers: tuple[str, ...], method: str | None, tmp_path: Path) -> None:
    await log_in(tmp_path / "token", *offers, method=method)
    assert (tmp_path / "token").read_text() == "by browser"


@pytest.mark.parametrize(
    ("offers", "method", "why"),
    [
        (("console", "browser"), None, r"login\(without a method\): choose one"),
        ((), None, r"login\(without a method\): there is none"),
        (("console", "browser"), "nope", r"login\(method 'nope'\): there is none"),
    ],
)
async def test_it_must_be_clear_which(
    offers: tuple[str, ...], method: str | None, why: str, tmp_path: Path
) -> None:
    with pytest.raises(LoginRequired, match=why) as caught:
        await log_in(tmp_path / "token", *offers, method=method)
    assert [known.id for known in caught.value.methods] == list(offers)


async def test_a_login_that_does_not_work(tmp_path: Path) -> None:
    with pytest.raises(LoginFailed, match="Authentication required"):
        await log_in(tmp_path / "token", "refused")


async def test_what_is_known_to_help_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "thinkwell" / "agents"
    folder.mkdir(parents=True)
    row = 'error = "LoginRequired"\nhint = "Set a key."\nversion = "1"\nseen = 2026-11-22'
    command = [sys.executable, AGENT, "console", "browser"]
    (folder / "mine.toml").write_text(f"program = {{ command = {command} }}\n[[errors]]\n{row}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with anyio.fail_after(60), pytest.raises(LoginRequired, match="choose one") as caught:
        await login("mine", env={"LOGIN_TOKEN": str(tmp_path / "token")})
    assert caught.value.__notes__ == ["Set a key."]


@pytest.mark.long
async def test_the_official_sdks_agent() -> None:
    command = [sys.executable, str(PROGRAMS / "official_agent.py")]
    with anyio.fail_after(60):
        async with open_agent(command=command) as agent:
            with pytest.raises(LoginRequired) as caught:
                await agent.think().text("Go").run()
            assert [method.id for method in caught.value.methods] == ["key"]
        async with open_agent(command=command, login="key") as agent, agent.session() as session:
            assert await session.think().text("Go").run() == "done"
            assert await session.think().text("Again").run() == "done"
        await login(command=command)


async def test_the_protocol_layer_alone() -> None:
    """A handler says whether it has logged in; calls and prompts are then made again."""

    class Handler(ClientHandler):
        client: Client
        willing = False

        async def login_required(self) -> bool:
            if self.willing:
                await self.client.authenticate(s.AuthenticateRequest(method_id="browser"))
            return self.willing

    agent, handler = LoginAgent("session/new", "session/prompt"), Handler()
    ours, theirs = memory_transport_pair()
    new = s.NewSessionRequest(cwd="/w", mcp_servers=())
    with anyio.fail_after(30):
        async with playing(theirs, agent), connect(ours, handler) as client:
            handler.client = client
            await client.initialize()
            with pytest.raises(RpcError):
                await client.new_session(new)
            handler.willing = True
            session = await client.new_session(new)
            agent.logged_in = False
            prompt = s.PromptRequest(session_id=session.session_id, prompt=(s.TextContent(text="Go"),))
            assert (await client.prompt(prompt)).stop_reason == "end_turn"
            assert client.logins == 2
