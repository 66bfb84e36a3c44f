"""Agents and conversations in Letta's sense: made, listed, changed, forgotten, and whose they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from letta_stage import LettaStage, hello, letta_served, letta_type
from web_stage import scripted_agent

from thinkwell.journal import JournalError, MemoryJournal, SqliteJournal

if TYPE_CHECKING:
    from pathlib import Path

    from scripted import Turn

AGENT = "agent_state.AgentState"


async def made(stage: LettaStage, **body: Any) -> dict[str, Any]:
    """Make an agent, and return what is answered."""
    state: dict[str, Any] = await stage.post("/v1/agents/", body)
    letta_type(AGENT).validate_python(state)
    return state


# Agents


async def test_an_agent_without_a_wish() -> None:
    async with letta_served(hello) as stage:
        state = await made(stage)
        assert state["id"].startswith("agent-")
        assert state["name"] == state["id"]
        assert state["model"] == "thinkwell/scripted"
        assert state["agent_type"] == "letta_v1_agent"
        assert await stage.get(f"/v1/agents/{state['id']}") == state
        assert await stage.get(f"/v1/agents/{state['id']}/") == state


async def test_an_agent_keeps_what_its_client_says() -> None:
    block = {"label": "persona", "value": "I am kind.", "limit": 5000, "description": "Who"}
    async with letta_served(hello) as stage:
        state = await made(
            stage,
            name="Ada",
            system="Be short.",
            description="For tests",
            tags=["a", "b"],
            metadata={"mine": [1]},
            memory_blocks=[block, {"label": "human", "value": ""}],
            agent_type="memgpt_agent",
            embedding="openai/text-embedding-3-small",
            include_base_tools=True,
        )
    assert (state["name"], state["system"], state["description"]) == ("Ada", "Be short.", "For tests")
    assert (state["tags"], state["metadata"]) == (["a", "b"], {"mine": [1]})
    assert [b["label"] for b in state["memory"]["blocks"]] == ["persona", "human"]
    assert state["blocks"] == state["memory"]["blocks"]
    assert state["agent_type"] == "memgpt_agent"


@pytest.mark.parametrize(
    ("body", "agent"),
    [
        ({}, "scripted"),
        ({"model": "openai/gpt-5"}, "scripted"),
        ({"model": "other"}, "other"),
        ({"model": "thinkwell/other"}, "other"),
        ({"name": "other"}, "other"),
        ({"name": "other", "model": "thinkwell/scripted"}, "scripted"),
        ({"model": "scripted", "metadata": {"thinkwell": {"agent": "other"}}}, "other"),
        ({"metadata": {"agent": "other"}}, "scripted"),
    ],
)
async def test_which_agent_is_served(body: dict[str, Any], agent: str) -> None:
    other, played = scripted_agent(hello)
    async with letta_served(hello, agents={"other": other}) as stage:
        state = await made(stage, **body)
        assert state["model"] == f"thinkwell/{agent}"
        await stage.send(state["id"])
        assert len(played.sent.prompts) == (agent == "other")


async def test_folder_and_permissions_are_chosen_by_name(tmp_path: Path) -> None:
    folders = {"one": tmp_path / "one", "two": tmp_path / "two"}
    for folder in folders.values():
        folder.mkdir()
    wishes: dict[str, Any] = {"folders": folders, "permissions": {"ask": "ask", "all": "allow"}}
    async with letta_served(hello, agent=wishes) as stage:
        chosen: dict[str, Any]
        for chosen, name in (({}, "one"), ({"folder": "two", "permissions": "all"}, "two")):
            state = await made(stage, metadata={"thinkwell": chosen})
            await stage.send(state["id"])
            assert stage.handler.sent.sessions[-1].cwd == str(folders[name])


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"thinkwell": {"agent": "nobody"}}},
        {"metadata": {"thinkwell": {"folder": "etc"}}},
        {"metadata": {"thinkwell": {"permissions": "all"}}},
        {"metadata": {"thinkwell": {"path": "/etc"}}},
        {"metadata": {"thinkwell": "scripted"}},
        {"metadata": 5},
        {"agent_type": "spy"},
        {"memory_blocks": [{"label": "persona"}]},
        {"memory_blocks": [{"label": 1, "value": "x"}]},
        {"name": "x" * 501},
        {"tags": "a"},
    ],
)
async def test_agents_that_cannot_be_made(body: dict[str, Any]) -> None:
    async with letta_served(hello) as stage:
        refused = await stage.post("/v1/agents/", body, 422)
        assert isinstance(refused["detail"], str)
        assert await stage.get("/v1/agents/") == []


async def test_what_is_nested_too_deep() -> None:
    deep: Any = {}
    for _ in range(100):
        deep = {"deeper": deep}
    async with letta_served(hello) as stage:
        refused = await stage.post("/v1/agents/", {"metadata": deep}, 422)
        assert "nested" in refused["detail"]
        agent = await stage.agent()
        answer = await stage.client.ask("PATCH", f"/v1/agents/{agent}", json_body={"metadata": deep})
        assert answer.status == 422


async def test_agents_are_listed_in_pages() -> None:
    async with letta_served(hello) as stage:
        ids = [await stage.agent(name=f"n{number}") for number in range(5)]
        newest = ids[::-1]

        async def listed(query: str) -> list[str]:
            return [state["id"] for state in await stage.get(f"/v1/agents/?{query}")]

        assert await listed("") == newest
        assert await listed("order=asc") == ids
        assert await listed("ascending=true") == ids
        assert await listed("limit=2") == newest[:2]
        assert await listed(f"limit=2&after={newest[1]}") == newest[2:4]
        assert await listed(f"limit=2&after={newest[3]}") == newest[4:]
        assert await listed(f"limit=2&after={newest[4]}") == []
        assert await listed("after=agent-gone") == []
        assert await listed(f"limit=2&before={newest[4]}") == newest[2:4]
        assert await listed(f"limit=2&before={newest[0]}") == []
        assert await listed("before=agent-gone") == []
        assert await listed("limit=0") == newest[:1]
        await stage.get("/v1/agents/?limit=many", 422)


async def test_agents_are_found() -> None:
    async with letta_served(hello) as stage:
        one = await stage.agent(name="One", tags=["a", "b"])
        two = await stage.agent(name="Two", tags=["b"])

        async def found(query: str) -> list[str]:
            return [state["id"] for state in await stage.get(f"/v1/agents/?order=asc&{query}")]

        assert await found("name=One") == [one]
        assert await found("query_text=w") == [two]
        assert await found("tags=a&tags=b") == [one, two]
        assert await found("tags=a&tags=b&match_all_tags=true") == [one]
        assert await found("tags=c") == []


async def test_an_agent_is_changed() -> None:
    async with letta_served(hello) as stage:
        agent = await stage.agent(name="One", system="s", description="d", tags=["t"], metadata={"m": 1})
        path = f"/v1/agents/{agent}"
        for nothing in ({}, {"model": "other"}):
            same = await (await stage.client.ask("PATCH", path, json_body=nothing)).json()
            assert (same["name"], same["system"], same["description"]) == ("One", "s", "d")
            assert (same["tags"], same["metadata"]) == (["t"], {"m": 1})
        body: dict[str, Any] = {"name": "Two", "system": "", "description": "e", "tags": [], "metadata": {}}
        changed = await (await stage.client.ask("PATCH", path, json_body=body)).json()
        assert {key: changed[key] for key in body} == body
        assert await stage.get(path) == changed


async def test_an_agent_is_forgotten_and_its_runs_are_stopped() -> None:
    async def waits(turn: Turn) -> None:
        turn.say("I begin.")
        await anyio.sleep_forever()

    async with letta_served(waits) as stage:
        agent = await stage.agent()
        other = await stage.agent()
        conversation = (await stage.post(f"/v1/conversations/?agent_id={agent}", {}))["id"]
        runs: dict[str, str] = {}
        for place in (f"/v1/agents/{agent}/messages/async", f"/v1/agents/{other}/messages/async"):
            runs[place] = (await stage.post(place, {"input": "Go."}))["id"]
        answer = await stage.client.delete(f"/v1/agents/{agent}")
        assert answer.status == 200
        for path in (f"/v1/agents/{agent}", f"/v1/conversations/{conversation}"):
            assert "not found" in (await stage.get(path, 404))["detail"]
        assert [state["id"] for state in await stage.get("/v1/agents/")] == [other]
        first, second = runs.values()
        with anyio.fail_after(30):
            while (await stage.get(f"/v1/runs/{first}"))["status"] == "running":
                await stage.server.journal.wait(first, 10**6)
        assert (await stage.get(f"/v1/runs/{second}"))["status"] == "running"
        await stage.post(f"/v1/agents/{agent}/messages", {"input": "Go."}, 404)


async def test_a_conversation_is_forgotten_and_its_run_is_stopped() -> None:
    begun = anyio.Event()

    async def waits(turn: Turn) -> None:
        begun.set()
        await anyio.sleep_forever()

    reasons: list[str] = []
    async with letta_served(waits) as stage, anyio.create_task_group() as tasks:
        agent = await stage.agent()
        conversation = (await stage.post(f"/v1/conversations/?agent_id={agent}", {}))["id"]

        async def watch() -> None:
            path = f"/v1/conversations/{conversation}/messages"
            reasons.append((await stage.read(path, {"input": "Go."})).stop_reason)

        tasks.start_soon(watch)
        await begun.wait()
        assert "pending_approval" not in await stage.get(f"/v1/agents/{agent}")
        assert (await stage.client.delete(f"/v1/conversations/{conversation}")).status == 200
        run = await stage.post(f"/v1/agents/{agent}/messages/async", {"input": "Go."})
        assert "pending_approval" not in await stage.get(f"/v1/agents/{agent}")
        await stage.server.cancel(run["id"], caller="")
    assert reasons == ["cancelled"]


class Noting(MemoryJournal):
    """Notes what is kept in it last."""

    async def put(self, kind: str, name: str, data: bytes | None) -> None:
        self.last = kind, name, data
        await super().put(kind, name, data)


async def test_there_may_not_be_too_many() -> None:
    async with letta_served(hello, journal=(journal := Noting())) as stage:

        async def fill() -> None:
            """Keep the last one under 998 other names."""
            kind, name, data = journal.last
            for number in range(998):
                await journal.put(kind, f"{name}-{number}", data)

        agent = await stage.agent()
        await fill()
        await stage.agent()
        assert "there are 1,000 of them, and no more" in (await stage.post("/v1/agents/", {}, 400))["detail"]
        await stage.post(f"/v1/conversations/?agent_id={agent}", {})
        await fill()
        await stage.post(f"/v1/conversations/?agent_id={agent}", {})
        refused = await stage.post(f"/v1/conversations/?agent_id={agent}", {}, 400)
        assert "no more" in refused["detail"]
        other = stage.of("bob")
        await other.agent()


# Conversations


async def test_a_conversation_is_made_changed_and_forgotten() -> None:
    async with letta_served(hello) as stage:
        agent = await stage.agent()
        known = await stage.post(f"/v1/conversations/?agent_id={agent}", {"summary": "First"})
        letta_type("conversation.Conversation").validate_python(known)
        assert (known["agent_id"], known["summary"], known["archived"]) == (agent, "First", False)
        path = f"/v1/conversations/{known['id']}"
        assert await stage.get(path) == known
        body = {"description": "d", "archived": True}
        changed = await (await stage.client.ask("PATCH", path, json_body=body)).json()
        assert (changed["summary"], changed["description"], changed["archived"]) == ("First", "d", True)
        again = await (await stage.client.ask("PATCH", path, json_body={"summary": "Second"})).json()
        assert (again["summary"], again["description"], again["archived"]) == ("Second", "d", True)
        assert (await stage.client.delete(path)).status == 200
        await stage.get(path, 404)


async def test_conversations_are_listed() -> None:
    async with letta_served(hello) as stage:
        one, two = await stage.agent(), await stage.agent()
        ids = [
            (await stage.post(f"/v1/conversations/?agent_id={agent}", {"summary": text}))["id"]
            for agent, text in ((one, "Tea"), (one, "Coffee"), (two, "Water"))
        ]
        await stage.client.ask("PATCH", f"/v1/conversations/{ids[1]}", json_body={"archived": True})

        async def listed(query: str) -> list[str]:
            return [known["id"] for known in await stage.get(f"/v1/conversations/?order=asc&{query}")]

        assert await listed("") == [ids[0], ids[2]]
        assert await listed(f"agent_id={one}&archive_status=all") == ids[:2]
        assert await listed("archive_status=archived") == [ids[1]]
        assert await listed("summary_search=wat") == [ids[2]]
        assert await listed(f"after={ids[0]}") == [ids[2]]


async def test_conversations_with_an_unknown_agent() -> None:
    async with letta_served(hello) as stage:
        await stage.post("/v1/conversations/", {}, 422)
        await stage.post("/v1/conversations/?agent_id=agent-none", {}, 404)
        for path in ("/v1/conversations/conv-none/messages", "/v1/conversations/agent-none/messages"):
            await stage.get(path, 404)
        refused = await stage.get("/v1/conversations/default/messages", 422)
        assert "agent_id" in refused["detail"]


async def test_conversations_of_an_agent_are_apart() -> None:
    async with letta_served(hello) as stage:
        agent = await stage.agent()
        conversation = (await stage.post(f"/v1/conversations/?agent_id={agent}", {}))["id"]
        await stage.read(f"/v1/conversations/{conversation}/messages", {"input": "In the conversation."})
        await stage.read("/v1/conversations/default/messages", {"input": "By default.", "agent_id": agent})
        await stage.read(f"/v1/conversations/{agent}/messages", {"input": "By its id."})
        body = {"input": "Complete.", "streaming": False}
        answer = await stage.post(f"/v1/conversations/{conversation}/messages", body)
        assert answer["messages"][-1]["content"] == "Hello Ada."

        async def said(path: str) -> list[str]:
            kind = "include_return_message_types=user_message"
            messages = await stage.get(f"{path}{'&' if '?' in path else '?'}order=asc&{kind}")
            return [message["content"] for message in messages]

        apart = ["In the conversation.", "Complete."]
        default = ["By default.", "By its id."]
        assert await said(f"/v1/conversations/{conversation}/messages") == apart
        assert await said(f"/v1/agents/{agent}/messages?conversation_id={conversation}") == apart
        assert await said(f"/v1/agents/{agent}/messages") == default
        assert await said(f"/v1/agents/{agent}/messages?conversation_id=default") == default
        assert await said(f"/v1/conversations/default/messages?agent_id={agent}") == default
        sessions = {prompt.session_id for prompt in stage.handler.sent.prompts}
        assert len(sessions) == 2


# Callers


async def test_callers_see_their_own_only() -> None:
    async with letta_served(hello) as stage:
        ada, bob = stage.of("ada"), stage.of("bob")
        agent = await ada.agent(name="Mine")
        conversation = (await ada.post(f"/v1/conversations/?agent_id={agent}", {}))["id"]
        streamed = await ada.stream(agent, background=True)
        assert await bob.get("/v1/agents/") == []
        assert await bob.get("/v1/conversations/") == []
        assert await bob.get("/v1/runs/") == []
        for path in (
            f"/v1/agents/{agent}",
            f"/v1/agents/{agent}/messages",
            f"/v1/conversations/{conversation}",
            f"/v1/conversations/{conversation}/messages",
            f"/v1/conversations/default/messages?agent_id={agent}",
            f"/v1/runs/{streamed.run_id}",
            f"/v1/runs/{streamed.run_id}/messages",
            f"/v1/runs/{streamed.run_id}/usage",
        ):
            await bob.get(path, 404)
        for path in (
            f"/v1/agents/{agent}/messages",
            f"/v1/agents/{agent}/messages/stream",
            f"/v1/agents/{agent}/messages/cancel",
            f"/v1/conversations/?agent_id={agent}",
            f"/v1/conversations/{conversation}/messages",
            f"/v1/conversations/{conversation}/stream",
            f"/v1/conversations/{conversation}/cancel",
            f"/v1/runs/{streamed.run_id}/stream",
        ):
            await bob.post(path, {"input": "Go."}, 404)
        mine = await bob.agent()
        told = await bob.post(f"/v1/agents/{mine}/messages/cancel", {"run_ids": [streamed.run_id]})
        assert told == {streamed.run_id: "failed"}
        for method in ("PATCH", "DELETE"):
            for path in (f"/v1/agents/{agent}", f"/v1/conversations/{conversation}"):
                assert (await bob.client.ask(method, path, json_body={})).status == 404
        assert [state["id"] for state in await ada.get("/v1/agents/")] == [agent]


# The server


async def test_agents_are_there_after_a_restart(tmp_path: Path) -> None:
    async with letta_served(hello, journal=SqliteJournal(tmp_path / "runs.db")) as stage:
        agent = await stage.agent(name="Kept")
        conversation = (await stage.post(f"/v1/conversations/?agent_id={agent}", {}))["id"]
        streamed = await stage.stream(agent, "Remember.", background=True, stream_tokens=True)
        messages = await stage.messages(agent)
    async with letta_served(hello, journal=SqliteJournal(tmp_path / "runs.db")) as stage:
        assert [state["name"] for state in await stage.get("/v1/agents/")] == ["Kept"]
        assert (await stage.get(f"/v1/conversations/{conversation}"))["agent_id"] == agent
        assert await stage.messages(agent) == messages
        again = await stage.read(f"/v1/runs/{streamed.run_id}/stream", {"starting_after": 1})
        assert again.frames == streamed.frames[1:]
        await stage.send(agent)


async def test_what_there_is_besides() -> None:
    other, _ = scripted_agent(hello, title="The other")
    async with letta_served(hello, agents={"other": other}) as stage:
        health = await stage.get("/v1/health/")
        assert health["status"] == "ok"
        assert await stage.get("/v1/health") == health
        models = await stage.get("/v1/models/")
        for model in models:
            letta_type("model.Model").validate_python(model)
        assert [(m["handle"], m["display_name"]) for m in models] == [
            ("thinkwell/scripted", "scripted"),
            ("thinkwell/other", "The other"),
        ]
        assert await stage.get("/v1/models/embedding") == []
        assert await stage.get("/v1/tools/") == []
        assert await stage.post("/v1/tools/add-base-tools") == []


async def test_every_path_may_end_with_a_slash() -> None:
    async with letta_served(hello) as stage:
        agent = (await stage.post("/v1/agents", {}))["id"]
        conversation = (await stage.post(f"/v1/conversations?agent_id={agent}", {}))["id"]
        run = (
            await stage.read(f"/v1/agents/{agent}/messages/stream/", {"input": "Go.", "background": True})
        ).run_id
        await stage.post(f"/v1/agents/{agent}/messages/", {"input": "Go."})
        await stage.read(f"/v1/conversations/{conversation}/messages/", {"input": "Go."})
        assert (await stage.read(f"/v1/runs/{run}/stream/", {"starting_after": 1})).run_id == run
        for path in (
            "/v1/agents",
            f"/v1/agents/{agent}",
            f"/v1/agents/{agent}/messages",
            "/v1/runs",
            f"/v1/runs/{run}",
            "/v1/conversations",
            f"/v1/conversations/{conversation}",
            f"/v1/conversations/{conversation}/messages",
        ):
            assert await stage.get(path) == await stage.get(f"{path}/")
        for path in (f"/v1/agents/{agent}/messages/cancel", f"/v1/conversations/{conversation}/cancel"):
            assert await stage.post(path, status=409) == await stage.post(f"{path}/", status=409)


async def test_what_an_agent_keeps_is_read_where_it_is_on_the_page() -> None:
    class Counting(MemoryJournal):
        bytes_read = 0

        async def pick_all(self, kind: str) -> list[tuple[str, bytes]]:
            found = await super().pick_all(kind)
            self.bytes_read += sum(len(data) for _, data in found)
            return found

        async def pick(self, kind: str, name: str) -> bytes | None:
            data = await super().pick(kind, name)
            self.bytes_read += len(data or b"")
            return data

    journal = Counting()
    async with letta_served(hello, journal=journal) as stage:
        for _ in range(20):
            await stage.agent(system="x" * 100_000)
        journal.bytes_read = 0
        page = await stage.get("/v1/agents/?limit=3")
        assert [len(state["system"]) for state in page] == [100_000] * 3
        assert journal.bytes_read < 320_000


async def test_an_agent_that_is_forgotten_while_it_is_listed_is_not_there() -> None:
    class Slow(MemoryJournal):
        async def pick_all(self, kind: str) -> list[tuple[str, bytes]]:
            found = await super().pick_all(kind)
            for _, data in found:
                await self.put(kind.replace("_listed", ""), json.loads(data)["id"], None)
            return found

    async with letta_served(hello, journal=Slow()) as stage:
        await stage.agent()
        assert await stage.get("/v1/agents/") == []


async def test_what_there_is_not() -> None:
    async with letta_served(hello) as stage:
        for path in ("/v1/blocks/", "/v1/agents/agent-1/secrets", "/v1/"):
            assert "Not Found" in (await stage.get(path, 404))["detail"]
        assert "Not Found" in (await stage.post("/v1/archives/", {}, 404))["detail"]
        answer = await stage.client.ask("PUT", "/v1/agents/")
        assert answer.status == 405
        assert answer.headers["allow"] == "GET, HEAD, POST"
        assert "GET" in (await answer.json())["detail"]
        head = await stage.client.ask("HEAD", "/v1/health")
        assert (head.status, await head.body()) == (200, b"")


async def test_a_journal_that_cannot_be_used(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryJournal):
        async def pick_all(self, kind: str) -> list[tuple[str, bytes]]:
            raise JournalError("the disk of /home/ada", "it is full")

    async with letta_served(hello, journal=Broken()) as stage:
        answer = await stage.client.get("/v1/agents/")
        assert answer.status == 503
        assert "retry-after" in answer.headers
        assert "/home" not in (await answer.json())["detail"]
    assert "the disk of /home/ada: it is full" in caplog.text


async def test_a_failure_is_shown_with_its_incident(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryJournal):
        async def pick_all(self, kind: str) -> list[tuple[str, bytes]]:
            raise KeyError("/home/ada")

    async with letta_served(hello, journal=Broken()) as stage:
        body = await stage.get("/v1/agents/", 500)
    assert [*body] == ["detail"]
    incident = body["detail"].rpartition("incident ")[2]
    assert f"GET '/v1/agents/' failed, incident {incident}" in caplog.text


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[]", b'{"name": 1}', b"[" * 5000])
async def test_bodies_that_cannot_be_read(body: bytes) -> None:
    async with letta_served(hello) as stage:
        answer = await stage.client.ask("POST", "/v1/agents/", content=body)
        assert answer.status == 422
        assert isinstance((await answer.json())["detail"], str)
