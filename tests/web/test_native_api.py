"""The native API: each of its routes, as programs and browsers ask them."""

from __future__ import annotations

import base64
import json
import logging
import re
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from asking import permission
from web_stage import Answered, Client, Sse, Stage, scripted_agent, served

from thinkwell import __version__
from thinkwell import events as ev
from thinkwell.journal import JournalError, MemoryJournal
from thinkwell.web import Limits, web_app
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, MutableMapping
    from pathlib import Path

    from scripted import Script, Turn

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 20).decode()


class Browser(Client):
    """A client of an application, and what is behind it."""

    def __init__(self, stage: Stage, **options: Any) -> None:
        super().__init__(web_app(stage.server, **options))
        self.stage = stage

    async def start(self, prompt: str = "Go.", **request: Any) -> str:
        """Start a run and return its path."""
        answered = await self.post("/api/runs", {"prompt": prompt, **request})
        assert answered.status == 201, await answered.body()
        return answered.headers["location"]

    async def refused(self, method: str, url: str, status: int, **options: Any) -> dict[str, Any]:
        """Ask for something that is refused, and return why."""
        answered = await self.ask(method, url, **options)
        assert answered.status == status, await answered.body()
        assert answered.headers["content-type"] == "application/json"
        body = await answered.json()
        assert list(body) == ["error"]
        error: dict[str, Any] = body["error"]
        assert {"code", "message"} <= error.keys() <= {"code", "message", "incident"}
        return error


@asynccontextmanager
async def browser(*scripts: Script, **options: Any) -> AsyncGenerator[Browser]:
    async with served(*(scripts or (hello,)), **options) as stage:
        yield Browser(stage)


async def hello(turn: Turn) -> None:
    turn.think("Who is there?")
    turn.say("Hello ")
    turn.say("Ada.")


async def for_ever(turn: Turn) -> None:
    turn.say("I begin.")
    await anyio.sleep_forever()


async def ask_first(turn: Turn) -> None:
    response = await turn.client.request_permission(permission(turn.session_id))
    outcome = response.outcome
    turn.say(outcome.option_id if isinstance(outcome, s.SelectedPermissionOutcome) else "cancelled")


def kinds(events: list[Sse]) -> list[str]:
    return [event.json()["type"] for event in events]


def numbers(events: list[Sse]) -> list[int]:
    return [int(event.id or "") for event in events]


async def first(answered: Answered) -> Sse:
    """Wait for the first event of a stream."""
    async with aclosing(answered.events()) as events:
        return await anext(events)


# What there is


async def test_what_the_server_is_and_what_can_be_chosen(tmp_path: Path) -> None:
    folders = {"here": tmp_path, "there": tmp_path}
    agent, _ = scripted_agent(
        hello,
        title="Scripted",
        folders=folders,
        permissions={"ask": "ask", "no": "deny"},
        models=("swift", "large"),
    )
    async with browser(agents={"scripted": agent}, limits=Limits(max_runs=3)) as client:
        answered = await client.get("/api")
        assert answered.status == 200
        assert await answered.json() == {
            "version": __version__,
            "caller": "",
            "agents": [
                {
                    "name": "scripted",
                    "title": "Scripted",
                    "folders": ["here", "there"],
                    "permissions": ["ask", "no"],
                    "models": ["swift", "large"],
                    "timeout": 3600.0,
                }
            ],
            "limits": {
                "max_runs": 3,
                "max_runs_per_caller": 16,
                "max_waiting": 8,
                "max_conversations": 64,
                "max_request": 10_000_000,
                "max_watchers": 4096,
                "max_watchers_per_caller": 1024,
            },
        }


async def test_whether_it_is_there() -> None:
    async with browser() as client:
        answered = await client.get("/healthz")
        assert (answered.status, await answered.json()) == (200, {"status": "ok"})


async def test_a_server_that_is_not_open_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async with browser() as client:
        pass
    error = await client.refused("GET", "/healthz", 503)
    assert error["code"] == "unavailable"
    assert "async with server" in caplog.text


# Runs


async def test_a_run_is_started_watched_and_looked_at() -> None:
    async with browser() as client:
        answered = await client.post(
            "/api/runs",
            {
                "prompt": "Say hello.",
                "agent": "scripted",
                "thread": "t",
                "title": "Hello",
                "meta": {"a": [1]},
            },
        )
        assert answered.status == 201
        run = (await answered.json())["run"]
        assert re.fullmatch(r"run-[0-9a-f]{32}", run["id"])
        assert answered.headers["location"] == f"/api/runs/{run['id']}"
        assert run == {
            "id": run["id"],
            "agent": "scripted",
            "created": run["created"],
            "caller": "",
            "title": "Hello",
            "thread": "t",
            "meta": {"a": [1]},
            "status": "running",
            "input_required": False,
            "ended": None,
            "last_seq": 0,
        }

        events = await client.events(f"/api/runs/{run['id']}/events")
        assert numbers(events) == list(range(1, len(events) + 1))
        said = [event.json()["text"] for event in events if event.json()["type"] == "message"]
        assert "".join(said) == "Hello Ada."
        assert [event.event for event in events] == [None] * (len(events) - 1) + ["end"]
        end = events[-1].json()
        assert end == {
            "type": "end",
            "seq": len(events),
            "at": end["at"],
            "status": "completed",
            "stop_reason": "end_turn",
            "result": "Hello Ada.",
        }

        state = await (await client.get(f"/api/runs/{run['id']}")).json()
        assert state["run"] == {
            **run,
            "status": "completed",
            "ended": state["run"]["ended"],
            "last_seq": len(events),
        }
        assert state["seq"] == len(events)
        assert state["view"]["text"] == "Hello Ada."
        assert state["view"]["error"] is None
        assert state["end"] == end


async def test_state_and_events_together_are_the_whole_run() -> None:
    go = anyio.Event()

    async def work(turn: Turn) -> None:
        turn.say("One. ")
        await go.wait()
        turn.say("Two.")

    async with browser(work) as client:
        run = await client.start()
        with anyio.fail_after(30):
            while not (state := await (await client.get(run)).json())["view"]["text"]:
                await anyio.lowlevel.checkpoint()
        assert state["end"] is None
        go.set()
        events = await client.events(f"{run}/events?after={state['seq']}")
        rest = [event.json().get("text", "") for event in events if event.json()["type"] == "message"]
        assert state["view"]["text"] + "".join(rest) == "One. Two."


async def test_a_prompt_of_parts_and_a_typed_result() -> None:
    async def count(turn: Turn) -> None:
        assert turn.text.startswith("What is this?")
        await turn.returns(lines=3)

    schema = {"type": "object", "properties": {"lines": {"type": "integer"}}, "required": ["lines"]}
    async with browser(count) as client:
        assert client.stage.handler is not None
        client.stage.handler.capabilities = s.AgentCapabilities(
            mcp_capabilities=s.McpCapabilities(acp=True), prompt_capabilities=s.PromptCapabilities(image=True)
        )
        parts = [{"type": "text", "text": "What is this?"}, {"type": "image", "data": PNG}]
        answered = await client.post("/api/runs", {"prompt": parts, "output": schema})
        end = (await client.events(f"{answered.headers['location']}/events"))[-1].json()
        assert end["result"] == {"lines": 3}


async def test_a_schema_of_a_caller_holds_up_no_other() -> None:
    async def evil(turn: Turn) -> None:
        await turn.returns(result="a" * 40 + "!")

    async with browser(evil) as client:
        schema = {"type": "string", "pattern": "^(a+)+$"}
        answered = await client.post("/api/runs", {"prompt": "x", "output": schema})
        with anyio.fail_after(30):  # it would take hours
            end = (await client.events(f"{answered.headers['location']}/events"))[-1].json()
        assert end["error"]["name"] == "ResultInvalid"


async def test_why_a_run_has_failed() -> None:
    async def fail(turn: Turn) -> None:
        raise RpcError(-32603, "OSError: /etc/secret: no such file")

    async with browser(fail) as client:
        run = await client.start()
        end = (await client.events(f"{run}/events"))[-1].json()
        state = await (await client.get(run)).json()
        assert end["status"] == state["run"]["status"] == "failed"
        assert state["view"]["error"] == end["error"] == state["end"]["error"]
        assert end["error"]["name"] == "AgentReported"
        assert "/etc" not in json.dumps(end)


async def test_the_idempotency_key_is_a_header() -> None:
    async with browser() as client:
        body = {"prompt": "Once."}
        for status in (201, 200):
            answered = await client.post("/api/runs", body, headers={"Idempotency-Key": "k"})
            assert answered.status == status
        for key in ("", "x" * 201, " x", "x\ty", "k\xe9y"):
            headers = {"Idempotency-Key": key}
            error = await client.refused("POST", "/api/runs", 422, json_body=body, headers=headers)
            assert error["message"].startswith("Idempotency-Key: ")


async def test_runs_are_listed_in_pages() -> None:
    async with browser() as client:
        runs = [await client.start(thread=thread) for thread in ("a", "b", "a", "b", "a")]
        for run in runs:
            await client.events(f"{run}/events")
        ids = [run.rpartition("/")[2] for run in reversed(runs)]

        async def listed(query: str) -> tuple[list[str], str | None]:
            body = await (await client.get(f"/api/runs{query}")).json()
            return [run["id"] for run in body["runs"]], body["next"]

        assert await listed("") == (ids, None)
        assert await listed("?limit=5") == (ids, None)
        assert await listed("?limit=2") == (ids[:2], ids[1])
        assert await listed(f"?limit=2&before={ids[1]}") == (ids[2:4], ids[3])
        assert await listed(f"?limit=2&before={ids[3]}") == (ids[4:], None)
        assert await listed("?thread=a&limit=2") == ([ids[0], ids[2]], ids[2])
        assert await listed("?status=running") == ([], None)
        assert await listed("?status=completed&thread=b") == ([ids[1], ids[3]], None)
        assert await listed("?before=nobody") == ([], None)
        assert await listed("?of-a-cache=1&limit=1") == (ids[:1], ids[0])


async def test_cancelling_and_deleting() -> None:
    async with browser(for_ever) as client:
        run = await client.start()
        assert (await client.refused("DELETE", run, 409))["code"] == "run_still_running"
        answered = await client.post(f"{run}/cancel")
        assert (answered.status, await answered.body()) == (202, b"")
        assert (await client.events(f"{run}/events"))[-1].json()["status"] == "cancelled"
        assert (await client.post(f"{run}/cancel")).status == 202  # it has ended
        answered = await client.delete(run)
        assert (answered.status, await answered.body()) == (204, b"")
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/events")):
            assert (await client.refused(method, run + path, 404))["code"] == "run_not_found"


# Questions


async def question_of(client: Browser, run: str) -> str:
    """Wait for a question and return its id."""
    async with client.stream("GET", f"{run}/events?include=question") as answered:
        id_: str = (await first(answered)).json()["id"]
        return id_


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("allow", "y"),
        ("deny", "x"),
        ("allow_always", "a"),
        ("deny_always", "n"),
        (True, "y"),
        (False, "x"),
        ({"option": "a"}, "a"),
    ],
)
async def test_a_question_is_answered(answer: object, said: str) -> None:
    async with browser(ask_first) as client:
        run = await client.start()
        question = await question_of(client, run)
        answered = await client.post(f"{run}/answer", {"question": question, "answer": answer})
        assert (answered.status, await answered.body()) == (204, b"")
        events = await client.events(f"{run}/events?include=answer")
        assert events[-1].json()["result"] == said
        assert events[0].json()["by"] == "human"


async def waits(client: Browser, run: str) -> list[bool]:
    """Return whether a run waits for an answer, as the list has it, and its state."""
    listed = await (await client.get("/api/runs")).json()
    state = await (await client.get(run)).json()
    shown = [each for each in listed["runs"] if run.endswith(each["id"])]
    return [each["input_required"] for each in (*shown, state["run"])]


async def test_the_list_says_which_run_waits_for_an_answer() -> None:
    async with browser(ask_first) as client:
        run, other = await client.start(), await client.start()
        question = await question_of(client, run)
        assert await waits(client, run) == [True, True]
        await client.post(f"{run}/answer", {"question": question, "answer": "allow"})
        await client.events(f"{run}/events")
        assert await waits(client, run) == [False, False]
        await question_of(client, other)
        assert await waits(client, other) == [True, True]
        await client.post(f"{other}/cancel")  # nobody answers it any more
        await client.events(f"{other}/events")
        assert await waits(client, other) == [False, False]


async def test_a_run_whose_questions_a_policy_answers_does_not_wait() -> None:
    go = anyio.Event()

    async def ask(turn: Turn) -> None:
        await turn.client.request_permission(permission(turn.session_id))
        turn.say("I go on.")
        await go.wait()

    agent, _ = scripted_agent(ask, permissions={"trust": "allow"})
    async with browser(agents={"a": agent}) as client:
        run = await client.start()
        async with client.stream("GET", f"{run}/events?include=message") as answered:
            await first(answered)
        assert await waits(client, run) == [False, False]
        go.set()


async def test_an_answer_has_a_reason() -> None:
    async with browser(ask_first) as client:
        run = await client.start()
        body = {"question": await question_of(client, run), "answer": "deny", "why": "Not today."}
        assert (await client.post(f"{run}/answer", body)).status == 204
        told = (await client.events(f"{run}/events?include=answer"))[0].json()
        assert told["why"] == "Not today."


async def test_an_answer_is_that_of_its_caller() -> None:
    async with browser(ask_first) as client:
        app = client.app

        async def around(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, "state": {"caller": "ada"}}, receive, send)

        client.app = around
        run = await client.start()
        body = {"question": await question_of(client, run), "answer": "allow"}
        assert (await client.post(f"{run}/answer", body)).status == 204
        assert (await client.events(f"{run}/events?include=answer"))[0].json()["by"] == "ada"


async def test_an_answer_stops_the_run() -> None:
    async with browser(ask_first) as client:
        run = await client.start()
        body = {"question": await question_of(client, run), "answer": {"stop": "Enough."}}
        assert (await client.post(f"{run}/answer", body)).status == 204
        end = (await client.events(f"{run}/events"))[-1].json()
        assert (end["status"], end["error"]["name"]) == ("failed", "QuestionsStopped")
        assert "Enough." in end["error"]["message"]


async def test_a_form_is_filled_in() -> None:
    async def fill(turn: Turn) -> None:
        schema = s.ElicitationSchema(
            properties={"name": s.StringPropertySchema(), "age": s.IntegerPropertySchema(default=3)},
            required=("name",),
        )
        answer = await turn.client.create_elicitation(
            s.ElicitationFormMode(session_id=turn.session_id, message="Who?", requested_schema=schema)
        )
        turn.say(f"{answer}")

    async with browser(fill) as client:
        run = await client.start()
        question = await question_of(client, run)
        error = await client.refused(
            "POST", f"{run}/answer", 422, json_body={"question": question, "answer": {"form": {"name": 5}}}
        )
        assert error["code"] == "answer_invalid"
        assert "name" in error["message"]
        body = {"question": question, "answer": {"form": {"name": "Ada", "age": None}}}
        assert (await client.post(f"{run}/answer", body)).status == 204
        end = (await client.events(f"{run}/events"))[-1].json()
        assert "{'name': 'Ada'}" in end["result"]


# Watching


async def test_the_head_of_a_stream() -> None:
    async with browser() as client:
        run = await client.start()
        async with client.stream("GET", f"{run}/events") as answered:
            assert answered.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert answered.headers["cache-control"] == "no-store, no-transform"
            assert answered.headers["x-accel-buffering"] == "no"
            first = await anext(answered.chunks)
        found = re.fullmatch(rb"retry: (\d+)\n\n", first)
        assert found is not None
        assert 1000 <= int(found[1]) <= 3000


async def test_a_watcher_resumes_at_every_number() -> None:
    async with browser() as client:
        run = await client.start()
        whole = await client.events(f"{run}/events")
        for after in range(len(whole)):
            assert await client.events(f"{run}/events?after={after}") == whole[after:]
            assert (
                await client.events(f"{run}/events", headers={"Last-Event-ID": str(after)}) == whole[after:]
            )
        # The header wins: the URL is what it was when the browser asked first.
        url = f"{run}/events?after=1"
        assert await client.events(url, headers={"Last-Event-ID": "3"}) == whole[3:]


async def test_who_has_seen_everything_is_told_not_to_come_back() -> None:
    async with browser() as client:
        run = await client.start()
        last = (await client.events(f"{run}/events"))[-1].id
        for options in ({"headers": {"Last-Event-ID": last}}, {}):
            after = "" if options else f"?after={last}"
            answered = await client.ask("GET", f"{run}/events{after}", **options)
            assert (answered.status, await answered.body()) == (204, b"")
            assert answered.headers["cache-control"] == "no-store"


async def test_a_browser_with_an_id_that_we_have_not_sent_gets_everything() -> None:
    async with browser() as client:
        run = await client.start()
        whole = await client.events(f"{run}/events")
        for seen in ("nonsense", "-1", "1.5", "٣", "9" * 40, "", "9" * 16):
            header = {"Last-Event-ID": seen.encode().decode("latin-1")}
            assert await client.events(f"{run}/events", headers=header) == whole, seen


async def test_only_some_kinds_of_events() -> None:
    async with browser() as client:
        run = await client.start()
        whole = await client.events(f"{run}/events")
        for include, wanted in (
            ("message", {"message"}),
            ("message,thought", {"message", "thought"}),
            ("message&include=thought", {"message", "thought"}),
            ("default", set(ev.DEFAULT_TYPES)),
            ("default,phase", {*ev.DEFAULT_TYPES, "phase"}),
            ("all", set(ev.ALL_TYPES)),
            ("message,all", set(ev.ALL_TYPES)),
            ("unhandled", set[str]()),
        ):
            found = await client.events(f"{run}/events?include={include}")
            assert found == [event for event in whole if event.json()["type"] in {*wanted, "end"}]
            if len(found) > 1:
                again = await client.events(f"{run}/events?include={include}&after={found[0].id}")
                assert again == found[1:]


async def test_watchers_go_and_the_run_goes_on() -> None:
    go, done = anyio.Event(), anyio.Event()

    async def work(turn: Turn) -> None:
        turn.say("One.")
        await go.wait()
        turn.say("Two.")
        done.set()

    async with browser(work) as client:
        run = await client.start()
        watched = f"{run}/events?include=message"
        async with client.stream("GET", watched) as one, client.stream("GET", watched) as other:
            for answered in (one, other):
                assert (await first(answered)).json()["text"] == "One."
        with anyio.fail_after(30):
            go.set()
            await done.wait()
        events = await client.events(watched)
        assert events[-1].json()["status"] == "completed"
        assert [event.json()["text"] for event in events[:-1]] == ["One.", "Two."]


async def test_watchers_are_let_go_when_the_server_closes_and_come_back() -> None:
    async with browser(for_ever) as client:
        run = await client.start()
        async with client.stream("GET", f"{run}/events") as answered, aclosing(answered.events()) as events:
            seen = [await anext(events)]
            client.stage.server.close_watchers()
            seen += [event async for event in events]
        assert seen[-1].event is None
        assert numbers(seen) == list(range(1, len(seen) + 1))


async def test_head_of_everything() -> None:
    async with browser() as client:
        run = await client.start()
        await client.events(f"{run}/events")
        for path in ("/api", "/api/runs", run, f"{run}/events", "/api/openapi.json", "/healthz"):
            answered = await client.ask("HEAD", path)
            assert (answered.status, await answered.body()) == (200, b"")
            assert answered.headers["content-type"].startswith(("application/json", "text/event-stream"))
        answered = await client.ask("HEAD", "/api/runs/none")
        assert (answered.status, await answered.body()) == (404, b"")


# Requests that cannot be


async def test_a_method_that_is_not_there() -> None:
    async with browser() as client:
        for method, path, allowed in (
            ("POST", "/api", "GET, HEAD"),
            ("DELETE", "/api/runs", "GET, HEAD, POST"),
            ("POST", "/api/runs/r", "DELETE, GET, HEAD"),
            ("POST", "/api/runs/r/events", "GET, HEAD"),
            ("GET", "/api/runs/r/answer", "POST"),
            ("GET", "/api/runs/r/cancel", "POST"),
            ("TRACE", "/healthz", "GET, HEAD"),
            ("OPTIONS", "/api/openapi.json", "GET, HEAD"),
            ("HEAD", "/api/runs/r/cancel", "POST"),
        ):
            answered = await client.ask(method, path)
            assert (answered.status, answered.headers["allow"]) == (405, allowed), (method, path)
            if method != "HEAD":
                error = (await answered.json())["error"]
                assert error == {"code": "method_not_allowed", "message": f"use {allowed} here"}


async def test_a_path_with_nothing() -> None:
    async with browser() as client:
        for path in ("/nothing", "/api/", "/api/runs/", "/api/runs/r/", "/api/runs/r/x", "/api/session"):
            error = await client.refused("GET", path, 404)
            assert error["code"] == "not_found"
            assert "/api/openapi.json" in error["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"prompt": "\xff"}', "the body of the request is not JSON: "),
        (b'{"prompt": "\\ud800"}', "the body of the request is not JSON: "),
        (b'{"prompt": NaN}', "the body of the request is not JSON: "),
        (b'{"prompt": "x"} {}', "the body of the request is not JSON: "),
        (b'{"prompt": "x", "timeout": 1e999}', "timeout: the number is too large"),
        (b'{"prompt": "x", "output": {"$ref": "https://example.org/x"}}', "output: "),
        (b'{"prompt": "x", "meta": {"a": %s1%s}}' % (b"[" * 63, b"]" * 63), ""),
        (b'{"prompt": "x", "meta": {"a": %s1%s}}' % (b"[" * 64, b"]" * 64), "meta: it is nested too deep"),
        (
            b'{"prompt": "x", "meta": {"a": %s1%s}}' % (b'{"b":' * 64, b"}" * 64),
            "meta: it is nested too deep",
        ),
        (
            b'{"prompt": "x", "output": {"not": %s{}%s}}' % (b'{"not":' * 99, b"}" * 99),
            "output: it is nested",
        ),
        (b'{"prompt": "x", "meta": {"a": %s}}' % (b"[" * 50_000 + b"]" * 50_000), "the body: it is nested"),
    ],
)
async def test_bodies(body: bytes, message: str) -> None:
    async with browser() as client:
        answered = await client.ask("POST", "/api/runs", content=body)
        if not message:
            assert answered.status == 201
            return
        error = (await answered.json())["error"]
        assert error["message"].startswith(message)
        malformed = (400, "malformed") if "not JSON" in message else (422, "invalid")
        assert (answered.status, error["code"]) == malformed


class Sender(Client):
    """Sends a body in parts, as a server hands it over."""

    def __init__(self, app: Any, *parts: bytes, length: int | None = None, version: str = "1.1") -> None:
        super().__init__(app)
        self.parts = list(parts)
        self.length = length
        self.version = version
        self.start: MutableMapping[str, Any] = {}
        self.body = b""
        self.stops = "with an end"
        self.taken = 0

    async def post(self, path: str) -> int:  # type: ignore[override]
        headers = [] if self.length is None else [(b"content-length", b"%d" % self.length)]
        scope = {
            "type": "http",
            "http_version": self.version,
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": headers,
        }
        with anyio.fail_after(3600):
            await self.app(scope, self._receive, self._send)
        return int(self.start.get("status", 0))

    async def _receive(self) -> MutableMapping[str, Any]:
        await anyio.lowlevel.checkpoint()
        if self.parts:
            self.taken += 1
            return {"type": "http.request", "body": self.parts.pop(0), "more_body": True}
        if self.stops == "without an end":
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.start = message
        else:
            self.body += message["body"]


async def test_a_body_is_counted_while_it_is_read() -> None:
    async with browser(limits=Limits(max_request=1000)) as client:
        body = json.dumps({"prompt": "x" * (1000 - len(json.dumps({"prompt": ""})))}).encode()
        assert len(body) == 1000
        sender = Sender(client.app, body[:500], body[500:])
        assert await sender.post("/api/runs") == 201
        sender = Sender(client.app, body[:500], body[500:], b" ", b"never read")
        assert await sender.post("/api/runs") == 413
        assert sender.taken == 3
        assert json.loads(sender.body)["error"] == {
            "code": "too_large",
            "message": "the body of a request may have 1,000 bytes here",
        }
        assert (b"connection", b"close") in sender.start["headers"]
        sender = Sender(client.app, body, length=1001)
        assert await sender.post("/api/runs") == 413
        assert sender.taken == 0  # it says itself that it is too long
        sender = Sender(client.app, body, b" ", length=5)  # it says something else than it is
        assert await sender.post("/api/runs") == 413
        sender = Sender(client.app, body, b" ", version="2")
        assert await sender.post("/api/runs") == 413
        assert b"connection" not in dict(sender.start["headers"])


async def test_a_client_that_goes_while_it_sends_is_answered_nothing() -> None:
    async with browser() as client:
        sender = Sender(client.app, b'{"prompt"')
        sender.stops = "without an end"
        assert await sender.post("/api/runs") == 0
        assert await (await client.get("/api/runs")).json() == {"runs": [], "next": None}


# Mistakes of ours


class Broken(MemoryJournal):
    """A journal in which something fails."""

    error: Exception | None = None

    async def runs(self, **options: Any) -> Any:
        if self.error is not None:
            raise self.error
        return await super().runs(**options)

    async def read(self, run_id: str, after: int = 0, **options: Any) -> Any:
        if self.error is not None:
            raise self.error
        return await super().read(run_id, after, **options)


async def test_a_mistake_is_told_of_in_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    journal = Broken()
    async with browser(journal=journal) as client:
        journal.error = KeyError("/home/ada/key=sk-secret")
        error = await client.refused("GET", "/api/runs?thread=sk-also-secret", 500)
        journal.error = None
    assert error["code"] == "server_error"
    assert re.fullmatch(r"[0-9a-f]{8}", error["incident"])
    assert error["incident"] in error["message"]
    assert "secret" not in json.dumps(error)
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.getMessage() == f"GET '/api/runs' failed, incident {error['incident']}"
    assert record.exc_info is not None
    assert record.exc_info[0] is KeyError


async def test_a_journal_that_cannot_be_used(caplog: pytest.LogCaptureFixture) -> None:
    journal = Broken()
    async with browser(journal=journal) as client:
        journal.error = JournalError("/var/runs.db", "the disk is full")
        answered = await client.get("/api/runs")
        journal.error = None
    assert answered.status == 503
    assert int(answered.headers["retry-after"]) > 0
    assert "/var" not in (await answered.body()).decode()
    assert "/var/runs.db: the disk is full" in caplog.text


async def test_a_run_that_was_started_is_told_whatever_else_cannot_be_read() -> None:
    class Forgetful(MemoryJournal):
        async def pick_all(self, kind: str) -> list[tuple[str, bytes]]:
            raise JournalError("the journal", "it is away")

    async with browser(journal=Forgetful()) as client:
        run = await client.start()  # else it would be started again
        assert (await client.events(f"{run}/events"))[-1].json()["status"] == "completed"


async def test_a_mistake_in_the_middle_of_a_stream_breaks_it_off() -> None:
    journal = Broken()
    async with browser(journal=journal) as client:
        run = await client.start()
        await client.events(f"{run}/events")
        journal.error = KeyError("x")
        # Here the client is the server: it is handed the error, and would break the connection off.
        with pytest.raises(BaseExceptionGroup) as raised:
            await client.events(f"{run}/events")
        assert raised.group_contains(KeyError)
        journal.error = None


async def test_a_caller_who_is_no_text_is_a_mistake_of_the_program_around() -> None:
    async with browser() as client:

        async def around(scope: Any, receive: Any, send: Any) -> None:
            await client.app({**scope, "state": {"caller": 5}}, receive, send)

        answered = await Client(around).get("/api")
        assert answered.status == 500
