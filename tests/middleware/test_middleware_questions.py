"""Which answer belongs to which question, when there are several, or one is not open any more."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from asking import SHELL, permission
from middleware.hosting import Host, Line, served
from msgspec.structs import replace
from scripted import Turn, scripted

from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell import Question

pytestmark = pytest.mark.anyio


class Worker:
    """An agent that asks in several tasks, and hears the answers."""

    def __init__(self) -> None:
        self.heard: dict[str, str | None] = {}
        self.changed = anyio.Event()
        self.scopes: dict[str, anyio.CancelScope] = {}

    async def approve(self, turn: Turn, name: str) -> None:
        """Ask for permission, unless it is called off."""
        request = permission(turn.session_id, replace(SHELL, tool_call_id=name, title=name))
        with anyio.CancelScope() as scope:
            self.scopes[name] = scope
            response = await turn.client.request_permission(request)
            outcome = response.outcome
            chosen = outcome.option_id if isinstance(outcome, s.SelectedPermissionOutcome) else None
            self._tell(name, chosen)
        if scope.cancelled_caught:
            self._tell(name, "called off")

    async def inquire(self, turn: Turn, name: str) -> None:
        """Ask a question."""
        response = await turn.client.create_elicitation(
            s.ElicitationFormMode(
                session_id=turn.session_id,
                message=name,
                requested_schema=s.ElicitationSchema(
                    properties={"answer": s.StringPropertySchema()}, required=("answer",)
                ),
            )
        )
        self._tell(name, str((response.content or {}).get("answer")))

    def _tell(self, name: str, answer: str | None) -> None:
        self.heard[name] = answer
        self.changed.set()
        self.changed = anyio.Event()

    async def has_heard(self, name: str) -> str | None:
        """Wait for an answer."""
        while name not in self.heard:
            await self.changed.wait()
        return self.heard[name]


@asynccontextmanager
async def working(work: Any, **options: Any) -> AsyncGenerator[Host]:
    """Serve a host by an agent that asks."""
    async with scripted(work, permissions="ask", **options) as agent, served(agent, Host()) as host:
        await host.say("go")
        yield host


async def test_answers_with_an_id_may_come_in_any_order() -> None:
    worker = Worker()

    async def work(turn: Turn) -> None:
        async with anyio.create_task_group() as tasks:
            for name in ("a", "b", "c"):
                tasks.start_soon(worker.approve, turn, name)

    async with working(work) as host:
        asked = {message["description"]: message for message in [await host.hear("approval") for _ in "abc"]}
        assert len({message["id"] for message in asked.values()}) == 3
        for name in ("b", "c", "a"):
            await host.respond(asked[name], name == "c")
        await host.hear_end()
    assert worker.heard == {"a": "x", "b": "x", "c": "y"}


async def test_answers_without_an_id_go_to_the_oldest_of_their_type() -> None:
    worker = Worker()

    async def work(turn: Turn) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.approve, turn, "first")
            await open_[0].wait()
            tasks.start_soon(worker.inquire, turn, "who?")
            await open_[1].wait()
            tasks.start_soon(worker.approve, turn, "second")

    open_ = [anyio.Event(), anyio.Event(), anyio.Event()]
    async with working(work) as host:
        asked: list[Line] = []
        for event in open_:
            asked.append(await host.hear("approval", "question"))
            event.set()
        await host.respond(asked[1], "Ann", by_id=False)
        await host.respond(asked[0], value=True, by_id=False)
        await host.respond(asked[0], value=False, by_id=False)
        await host.hear_end()
    assert worker.heard == {"first": "y", "who?": "Ann", "second": "x"}


@pytest.mark.parametrize("by_id", [True, False])
async def test_an_answer_to_a_withdrawn_question_goes_to_no_other(
    by_id: bool, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Worker()

    async def work(turn: Turn) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.approve, turn, "first")
            tasks.start_soon(call_off, turn, tasks)

    async def call_off(turn: Turn, tasks: anyio.abc.TaskGroup) -> None:
        await open_.wait()
        worker.scopes["first"].cancel()
        tasks.start_soon(worker.approve, turn, "second")

    open_ = anyio.Event()
    async with working(work) as host:
        first = await host.hear("approval")
        open_.set()
        told = await host.hear("log")
        assert (told["level"], told["withdrawn"]) == ("warning", first["id"])
        second = await host.hear("approval")
        with caplog.at_level(logging.WARNING, "thinkwell"):
            await host.respond(first, value=True, by_id=by_id)
            await host.respond(second, value=False, by_id=by_id)
            await host.hear_end()
    assert worker.heard == {"first": "called off", "second": "x"}
    assert f"approval {first['id']} is no longer open" in caplog.text


async def test_what_was_withdrawn_is_forgotten_with_its_turn() -> None:
    worker = Worker()

    async def work(turn: Turn) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.approve, turn, turn.text)
            if "one" in turn.text:
                await open_.wait()
                worker.scopes[turn.text].cancel()

    open_ = anyio.Event()
    async with scripted(work, permissions="ask") as agent, served(agent, Host()) as host:
        await host.say("one")
        await host.hear("approval")
        open_.set()
        await host.hear_end()
        await host.say("two")
        await host.respond(await host.hear("approval"), value=True, by_id=False)
        await host.hear_end()
    assert list(worker.heard.values()) == ["called off", "y"]


@pytest.mark.parametrize(
    ("response", "why"),
    [
        ({"in_reply_to": "approval", "value": True, "id": "q99"}, "nothing with the id 'q99' is open"),
        ({"in_reply_to": "approval", "value": True, "id": 1}, "nothing with the id 1 is open"),
        ({"in_reply_to": "question", "value": "yes"}, "no 'question' is open"),
        ({"value": True}, "no 'message' is open"),
        ({"in_reply_to": ["approval"], "value": True}, "no 'message' is open"),
    ],
)
async def test_an_answer_to_nothing_is_ignored(
    response: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Worker()

    async def work(turn: Turn) -> None:
        await worker.approve(turn, "first")

    async with working(work) as host:
        asked = await host.hear("approval")
        await host.say({"type": "response", **response})
        await host.respond(asked, value=False)
        await host.hear_end()
    assert worker.heard == {"first": "x"}
    assert f"A response of the host is ignored: {why}" in caplog.text


async def test_a_question_is_answered_once() -> None:
    worker = Worker()

    async def work(turn: Turn) -> None:
        await worker.approve(turn, "first")
        await worker.approve(turn, "second")

    async with working(work) as host:
        asked = await host.hear("approval")
        await host.respond(asked, value=True)
        await host.respond(asked, value=True)
        await host.respond(await host.hear("approval"), value=False)
        await host.hear_end()
    assert worker.heard == {"first": "y", "second": "x"}


@pytest.mark.parametrize(
    "line", ['{"type":"response","in_reply_to":"approval","value":tru', '{"typ":"response"}', "{{{"]
)
async def test_a_broken_line_is_no_prompt_while_an_answer_is_awaited(line: str) -> None:
    worker = Worker()
    prompts: list[str] = []

    async def work(turn: Turn) -> None:
        prompts.append(turn.text)
        await worker.approve(turn, "first")

    async with working(work) as host:
        asked = await host.hear("approval")
        await host.say(line)
        complaint = await host.hear("log")
        assert (complaint["level"], "ignored" in complaint["message"]) == ("error", True)
        await host.respond(asked, value=True)
        await host.hear_end()
    assert prompts == ["go"]


async def test_a_question_without_an_answer_in_time() -> None:
    worker = Worker()

    async def work(turn: Turn) -> None:
        await worker.approve(turn, "first")

    async with working(work, question_timeout=0.2) as host:
        asked = await host.hear("approval")
        told = await host.hear("log")
        assert told["withdrawn"] == asked["id"]
        assert "no answer within 0.2 seconds" in told["message"]
        await host.hear_end()
    assert worker.heard == {"first": "x"}


async def test_an_agent_that_asks_the_same_for_ever_is_stopped() -> None:
    worker = Worker()

    async def work(turn: Turn) -> None:
        for _ in range(30):
            await worker.approve(turn, "again")

    async with working(work) as host:
        for _ in range(20):
            await host.respond(await host.hear("approval"), value=False)
        end = await host.hear()
        while end["type"] not in ("error", "result"):
            end = await host.hear()
        assert "more than 20 times" in end["message"]


async def test_a_question_outside_of_a_prompt_is_not_the_hosts() -> None:
    worker = Worker()
    asked = anyio.Event()

    async def work(turn: Turn) -> None:
        async def later() -> None:
            await asked.wait()
            await worker.approve(turn, "late")

        background.start_soon(later)

    async with anyio.create_task_group() as background, working(work, on_question=_no) as host:
        await host.hear_end()
        asked.set()
        assert await worker.has_heard("late") == "x"
        assert "approval" not in host.types()


def _no(_question: Question) -> bool:
    return False


async def test_what_is_taken_back_at_once_keeps_no_place() -> None:
    worker = Worker()

    async def work(turn: Turn) -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(worker.approve, turn, f"never {number}")
            await anyio.wait_all_tasks_blocked()
            for scope in worker.scopes.values():
                scope.cancel()
        await worker.approve(turn, "last")

    async with working(work) as host:
        asked = await host.hear("approval")
        while asked["description"] != "last":
            asked = await host.hear("approval")
        await host.respond(asked, value=True)
        await host.hear_end()
        opened = {message["id"] for message in host.heard if message["type"] == "approval"}
        withdrawn = {message["withdrawn"] for message in host.heard if message["type"] == "log"}
        assert opened - withdrawn == {asked["id"]}
    assert worker.heard["last"] == "y"
