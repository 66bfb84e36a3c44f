"""How an agent is logged in, how to log out, and which model services it uses: where it advertises that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from scripted import playing
from traced import TracedAgent

from thinkwell import AgentReported, AuthStatus, CapabilityMissing, Provider, open_agent, sync
from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import RpcError, memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell import Agent

EVERYTHING = s.AgentCapabilities(
    auth=s.AgentAuthCapabilities(logout=s.LogoutCapabilities()),
    providers=s.ProvidersCapabilities(),
    meta={"authStatus": {}},
)


def played(**answers: Any) -> ScriptedAgent:
    async def done(_request: object, _proceed: object) -> dict[str, object]:
        return {}

    table = {"logout": done, "providers/set": done, **answers}
    return ScriptedAgent(script, capabilities=EVERYTHING, answers=table, complete=False)


@pytest.mark.parametrize(
    ("trace", "status", "provider"),
    [
        (
            "claude-agent-acp-providers",
            AuthStatus(kind="api_key", label="Anthropic API key", detail="ANTHROPIC_API_KEY"),
            ("main", ("anthropic", "bedrock", "vertex"), "anthropic"),
        ),
        (
            "codex-acp-providers",
            AuthStatus(kind="gateway", label="Custom model gateway", detail="fake"),
            ("openai", ("openai",), "openai"),
        ),
    ],
)
async def test_what_real_agents_say(
    trace: str, status: AuthStatus, provider: tuple[str, tuple[str, ...], str]
) -> None:
    ours, theirs = memory_transport_pair()
    async with playing(theirs, TracedAgent(trace)), open_agent(transport=ours) as agent:
        assert agent.auth_status() is None
        async with agent.session():
            assert agent.auth_status() == status
        (found,) = await agent.providers()
        assert (found.id, found.api_types, found.api_type) == provider
        assert found.base_url is not None


async def test_what_is_no_status_changes_nothing() -> None:
    scripted = played()
    async with scripted.open() as agent:
        told: list[object] = [
            {"authStatus": {"kind": "account", "label": "Me", "detail": 7}},
            {"authStatus": {"kind": "account"}},
            {"authStatus": None},
            [],
        ]
        for params in told:
            scripted.client.connection.notify("_auth/status_update", params)
        scripted.client.connection.notify("_other", {"authStatus": {"kind": "none", "label": "Out"}})
        await agent.logout()
        assert agent.auth_status() == AuthStatus(kind="account", label="Me")


async def test_a_provider_is_set_and_logging_out_is_asked_for() -> None:
    async def listed(_request: object, _proceed: object) -> s.ListProvidersResponse:
        info = s.ProviderInfo(provider_id="main", supported=("openai", "_mine"), required=False)
        return s.ListProvidersResponse(providers=(info,))

    scripted = played(**{"providers/list": listed})
    async with scripted.open() as agent:
        assert await agent.providers() == [Provider(id="main", api_types=("openai", "_mine"), required=False)]
        await agent.use_provider("main", api_type="openai", base_url="http://x/v1", headers={"A": "b"})
        await agent.use_provider("main", api_type="_mine", base_url="http://y")
        await agent.logout()
    one, two = (message.params for message in scripted.sent.all("providers/set"))
    assert one == {"providerId": "main", "apiType": "openai", "baseUrl": "http://x/v1", "headers": {"A": "b"}}
    assert two == {"providerId": "main", "apiType": "_mine", "baseUrl": "http://y"}
    assert scripted.sent.methods[-1] == "logout"


async def status(agent: Agent) -> object:
    return agent.auth_status()


CALLS: dict[str, tuple[Callable[[Agent], Any], str]] = {
    "auth_status": (status, "_meta.authStatus"),
    "logout": (lambda agent: agent.logout(), "auth.logout"),
    "providers": (lambda agent: agent.providers(), "providers"),
    "use_provider": (lambda agent: agent.use_provider("a", api_type="b", base_url="c"), "providers"),
}


@pytest.mark.parametrize(("call", "capability"), CALLS.values(), ids=CALLS)
async def test_what_is_not_advertised_is_not_asked(call: Callable[[Agent], Any], capability: str) -> None:
    scripted = ScriptedAgent(script, complete=False)
    async with scripted.open() as agent:
        with pytest.raises(CapabilityMissing) as caught:
            await call(agent)
    assert caught.value.capability == capability
    assert scripted.sent.methods == ("initialize",)


async def test_what_the_agent_refuses_is_an_error() -> None:
    async def refused(_request: object, _proceed: object) -> None:
        raise RpcError(-32602, "there is no provider a")

    async with played(**{"providers/set": refused}).open() as agent:
        with pytest.raises(AgentReported, match="there is no provider a"):
            await agent.use_provider("a", api_type="b", base_url="c")


def test_agents_that_block() -> None:
    async def listed(_request: object, _proceed: object) -> s.ListProvidersResponse:
        return s.ListProvidersResponse(providers=())

    scripted = played(**{"providers/list": listed})
    with sync.open_agent(transport=scripted.connect()) as agent:
        assert agent.auth_status() is None
        assert agent.providers() == []
        agent.use_provider("main", api_type="openai", base_url="http://x/v1")
        agent.logout()
    assert scripted.sent.methods == ("initialize", "providers/list", "providers/set", "logout")
