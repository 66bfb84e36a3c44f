"""Who answers what an agent asks: policy, handlers in their order, a program from outside, the deadline."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from asking import OPTIONS, ask, error_of, opened, options, permission
from msgspec.structs import replace
from scripted import Played, Turn, scripted

from thinkwell import (
    AnswerInvalid,
    ChooseOption,
    PermissionPolicy,
    PermissionQuestion,
    Question,
    QuestionNotOpen,
    QuestionsStopped,
    Reply,
    Rule,
    StopRun,
    ThoughtStream,
    events,
    wait_for_answer,
)
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from thinkwell import Answer


def says(answer: Any) -> Callable[[Question], Awaitable[Any]]:
    async def handler(question: Question) -> Any:
        return answer

    return handler


def offering(*kinds: str) -> Callable[[str], s.RequestPermissionRequest]:
    return functools.partial(permission, offered=options(*kinds))


async def never() -> Answer:
    await anyio.sleep_forever()
    raise AssertionError("it slept for ever")


# The policy's word


async def test_the_default_is_to_deny() -> None:
    asked = await ask()
    assert asked.choice == "x"
    question, answer = asked.question, asked.answer
    assert (question.title, question.tool_id, question.asks, question.timeout) == (
        "rm -rf build",
        "t1",
        "permission",
        None,
    )
    assert question.options == tuple(
        events.QuestionOption(id=option.option_id, name=option.name, kind=option.kind) for option in OPTIONS
    )
    assert (answer.id, answer.choice, answer.by, answer.why) == (
        question.id,
        "reject_once",
        "policy",
        'permissions="deny"',
    )


async def test_allow_allows_once() -> None:
    asked = await ask(permissions="allow")
    assert asked.choice == "y"
    assert (asked.answer.choice, asked.answer.by) == ("allow_once", "policy")


async def test_allow_takes_what_there_is() -> None:
    asked = await ask(offering("reject_once", "allow_always"), permissions="allow")
    assert asked.choice == "a"


async def test_a_denial_without_an_option_for_it_cancels_the_question() -> None:
    asked = await ask(offering("allow_once", "allow_always"))
    assert asked.choice is None
    assert asked.answer.choice is None
    assert asked.answer.by == "policy"


async def test_handlers_are_not_asked_about_what_a_policy_denies() -> None:
    asked = await ask(permissions=PermissionPolicy(otherwise="deny"), on_question=says("allow"))
    assert (asked.choice, asked.answer.by) == ("x", "policy")
    assert not asked.verdicts


async def test_what_a_policy_leaves_open_the_handlers_are_asked() -> None:
    policy = PermissionPolicy(rules=(Rule(verdict="ask", kind="execute"),), otherwise="deny")
    asked = await ask(permissions=policy, on_question=says("allow"))
    assert (asked.choice, asked.answer.by) == ("y", "handler")


# What handlers say


@pytest.mark.parametrize(
    ("answer", "offered", "expected"),
    [
        ("allow", OPTIONS, "y"),
        (True, OPTIONS, "y"),
        ("accept", OPTIONS, "y"),
        ("allow_session", OPTIONS, "y"),
        ("allow_always", OPTIONS, "a"),
        ("allow_always", options("allow_once", "reject_once"), "y"),
        ("deny", OPTIONS, "x"),
        (False, OPTIONS, "x"),
        ("decline", OPTIONS, "x"),
        ("deny_session", OPTIONS, "x"),
        ("deny", options("allow_once", "reject_always"), "n"),
        ("deny_always", OPTIONS, "n"),
        ("deny_always", options("reject_once"), "x"),
        # Once is not always: the handler has to say so.
        ("allow", options("allow_always", "reject_once"), "x"),
        ("allow", options("reject_always"), "n"),
        (ChooseOption("n"), OPTIONS, "n"),
        (ChooseOption("a"), OPTIONS, "a"),
    ],
)
async def test_a_handlers_word_is_said_by_the_kind_of_an_option(
    answer: Any, offered: tuple[s.PermissionOption, ...], expected: str
) -> None:
    seen: list[Question] = []

    async def handler(question: Question) -> Any:
        seen.append(question)
        return answer

    asked = await ask(functools.partial(permission, offered=offered), permissions="ask", on_question=handler)
    assert asked.choice == expected
    assert (asked.answer.by, asked.answer.why) == ("handler", "the handler said so")
    (question,) = seen
    assert isinstance(question, PermissionQuestion)
    assert (question.title, question.kind, question.command) == ("rm -rf build", "execute", "rm -rf build")
    assert (question.tool_id, question.session_id, question.agent) == ("t1", "session-1", "scripted")
    assert question.run_id is not None
    assert question.timeout == asked.question.timeout == 300
    assert [option.id for option in question.options] == [option.option_id for option in offered]


async def test_a_handler_that_is_not_async_runs_in_a_thread() -> None:
    threads: list[int] = []

    def handler(question: Question) -> Answer | None:
        threads.append(threading.get_ident())
        return "allow"

    asked = await ask(permissions="ask", on_question=functools.partial(handler))
    assert asked.choice == "y"
    assert threads != [threading.get_ident()]


async def test_a_function_that_returns_something_to_await_is_awaited() -> None:
    def later(question: Question) -> Awaitable[Any]:
        return says("allow")(question)

    asked = await ask(permissions="ask", on_question=later)
    assert asked.choice == "y"


async def test_an_object_can_answer() -> None:
    class Handler:
        by = "the night shift"

        async def __call__(self, question: Question) -> Answer | None:
            return Reply("deny", "too dangerous")

    asked = await ask(permissions="ask", on_question=Handler())
    assert asked.choice == "x"
    assert (asked.answer.by, asked.answer.why) == ("the night shift", "too dangerous")
    assert asked.verdicts == [("deny", "the night shift", "too dangerous")]


async def test_the_first_handler_with_an_answer_decides() -> None:
    asked = await ask(
        permissions="ask",
        on_question=[
            says(None),
            says(Reply(None, "not my field")),
            says(Reply(None, "busy", by="security")),
            says(Reply("allow", "it only reads", by="safety")),
            says("deny"),
        ],
    )
    assert (asked.choice, asked.answer.by, asked.answer.why) == ("y", "safety", "it only reads")
    assert asked.verdicts == [
        (None, "handler", "the handler left it open"),
        (None, "handler", "not my field"),
        (None, "security", "busy"),
        ("allow", "safety", "it only reads"),
    ]


async def test_a_handler_without_permissions_is_asked() -> None:
    """A handler without a word on permissions is there to be asked."""
    asked = await ask(on_question=says(True))
    assert (asked.choice, asked.answer.by) == ("y", "handler")


async def test_what_an_agent_of_the_protocol_says_of_itself_is_no_message() -> None:
    """Only agents that speak lines have their questions in their own words."""
    seen: list[Question] = []

    def asking(session_id: str) -> s.RequestPermissionRequest:
        meta = {"thinkwell.dev/message": {"type": "approval", "description": "only a look"}}
        return replace(permission(session_id), meta=meta)

    await ask(asking, permissions="ask", on_question=seen.append)
    assert seen[0].message is None


async def test_what_all_handlers_leave_open_is_denied() -> None:
    asked = await ask(permissions="ask", on_question=says(None))
    assert (asked.choice, asked.answer.by) == ("x", "policy")
    assert asked.answer.why == "everybody who was asked left it open"


async def test_a_handler_that_fails_passes_it_on_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fails(question: Question) -> Answer:
        raise LookupError("no idea")

    asked = await ask(permissions="ask", on_question=[fails, says("allow")])
    assert asked.choice == "y"
    assert asked.verdicts[0] == (None, "handler", "the handler failed: LookupError: no idea")
    assert "no idea" in caplog.text


@pytest.mark.parametrize(
    "nonsense",
    ["yes", "allow_once", 3, {"a": 1}, ChooseOption("z"), Reply(3, "")],
)
async def test_an_answer_that_does_not_fit_counts_for_nothing(
    nonsense: Any, caplog: pytest.LogCaptureFixture
) -> None:
    asked = await ask(permissions="ask", on_question=says(nonsense))
    assert (asked.choice, asked.answer.by) == ("x", "policy")
    assert "does not fit" in caplog.text
    ((verdict, _, why),) = asked.verdicts
    assert verdict is None
    assert "is not valid" in why


async def test_a_call_without_a_title_and_kind_can_be_asked_about() -> None:
    call = s.ToolCallUpdate(tool_call_id="t9")
    seen: list[Question] = []

    async def handler(question: Question) -> Answer:
        seen.append(question)
        return "allow"

    asked = await ask(functools.partial(permission, call=call), permissions="ask", on_question=handler)
    assert asked.choice == "y"
    (question,) = seen
    assert isinstance(question, PermissionQuestion)
    assert (question.kind, question.input, question.command, question.paths) == ("other", None, None, ())


async def test_what_is_said_for_the_session_is_not_asked_again() -> None:
    seen: list[str] = []

    async def handler(question: Question) -> Answer:
        seen.append(question.title)
        return "deny_session" if "-rf" in question.title else "allow_session"

    other = s.ToolCallUpdate(tool_call_id="t2", title="ls", kind="execute", raw_input={"command": "ls"})
    asked = await ask(
        permission,
        permission,
        functools.partial(permission, call=other),
        functools.partial(permission, call=other),
        permissions="ask",
        on_question=handler,
    )
    assert [response.outcome.option_id for response in asked.told] == ["x", "x", "y", "y"]
    assert seen == ["rm -rf build", "ls"]


async def test_a_remembered_word_does_not_outlive_its_session_nor_beat_the_policy() -> None:
    seen: list[str] = []

    async def handler(question: Question) -> Answer:
        seen.append(question.title)
        return "allow_session"

    outcomes: list[s.RequestPermissionOutcome] = []

    async def script(turn: Turn) -> None:
        outcomes.append((await turn.client.request_permission(permission(turn.session_id))).outcome)

    async with scripted(script, permissions="ask", on_question=handler) as agent:
        for _ in range(2):
            await agent.think().text("Go").stream().wait()
    assert len(seen) == 2


# From outside


async def test_a_program_answers_what_waits() -> None:
    async def meanwhile(stream: ThoughtStream[Any]) -> None:
        await opened(stream)
        (question,) = stream.view.questions
        assert (question.title, question.asks, question.tool_id) == ("rm -rf build", "permission", "t1")
        assert [option.id for option in question.options] == ["a", "n", "y", "x"]
        assert question.deadline == pytest.approx(question.asked_at + 300)
        stream.answer(question.id, "allow", by="Ada")
        with pytest.raises(QuestionNotOpen, match="it may have been answered"):
            stream.answer(question.id, "deny")

    asked = await ask(permissions="ask", meanwhile=meanwhile)
    assert asked.choice == "y"
    assert (asked.answer.by, asked.answer.why) == ("Ada", "answered from outside")


async def test_a_program_answers_before_a_handler_that_ponders() -> None:
    ended = anyio.Event()

    async def ponders(question: Question) -> Answer:
        try:
            return await never()
        finally:
            ended.set()

    async def meanwhile(stream: ThoughtStream[Any]) -> None:
        question = await opened(stream)
        stream.answer(question.id, "deny")
        await ended.wait()

    asked = await ask(permissions="ask", on_question=ponders, meanwhile=meanwhile)
    assert (asked.choice, asked.answer.by) == ("x", "human")


async def test_an_answer_that_does_not_fit_leaves_the_question_open() -> None:
    async def meanwhile(stream: ThoughtStream[Any]) -> None:
        question = await opened(stream)
        with pytest.raises(
            AnswerInvalid, match="there is no option 'z'; offered: 'a', 'n', 'y', 'x'"
        ) as caught:
            stream.answer(question.id, ChooseOption("z"))
        assert caught.value.question_id == question.id
        assert isinstance(caught.value, ValueError)
        stream.answer(question.id, "allow")

    asked = await ask(permissions="ask", on_question=[says(None), wait_for_answer], meanwhile=meanwhile)
    assert asked.choice == "y"


async def test_only_the_questions_of_the_run_can_be_answered_through_it() -> None:
    async def script(turn: Turn) -> None:
        await turn.client.request_permission(permission(turn.session_id))

    async with scripted(script, permissions="ask") as agent:
        one, two = (agent.think().text("Go").stream(include="all") for _ in range(2))
        with anyio.fail_after(30):
            first, second = await opened(one), await opened(two)
            with pytest.raises(QuestionNotOpen) as caught:
                one.answer(second.id, "allow")
            assert caught.value.open == (first.id,)
            with pytest.raises(QuestionNotOpen, match="none is open"):
                agent.think().text("Go").stream().answer(first.id, "allow")
            assert {question.id for question in agent.questions} == {first.id, second.id}
            agent.answer(first.id, "allow")
            two.answer(second.id, "allow")
            await one.wait()
            await two.wait()
        assert agent.questions == ()


async def test_a_question_between_the_turns_is_the_sessions_own() -> None:
    async def script(turn: Turn) -> None:
        turn.say("Done")

    handler = Played([script])
    outcomes: list[s.RequestPermissionOutcome] = []
    async with scripted(agent=handler, permissions="ask") as agent:
        async with agent.session() as session, anyio.create_task_group() as tasks:
            await session.think().text("Go").stream().wait()

            async def late() -> None:
                outcomes.append((await handler.client.request_permission(permission(session.id))).outcome)

            tasks.start_soon(late)
            with anyio.fail_after(30):
                async for event in session.events(include={"question"}):
                    assert isinstance(event, events.QuestionAsked)
                    session.answer(event.id, "allow")
                    break
        kinds = [event.type async for event in session.events()]
    assert outcomes == [s.SelectedPermissionOutcome(option_id="y")]
    assert kinds == ["tool_start", "question", "answer"]


# Ends


@pytest.mark.virtual_time
@pytest.mark.parametrize("on_question", [None, wait_for_answer])
async def test_an_unanswered_question_is_denied_at_its_deadline(on_question: Any) -> None:
    asked = await ask(permissions="ask", on_question=on_question, question_timeout=20)
    assert (asked.choice, asked.answer.by) == ("x", "deadline")
    assert asked.answer.why == "no answer within 20 seconds"
    assert asked.answer.at - asked.question.at == pytest.approx(20)


async def test_a_cancelled_turn_answers_for_the_handler() -> None:
    waiting, ended = anyio.Event(), anyio.Event()

    async def handler(question: Question) -> Answer:
        waiting.set()
        try:
            return await never()
        finally:
            ended.set()

    async def meanwhile(stream: ThoughtStream[Any]) -> None:
        await waiting.wait()
        stream.cancel()
        await ended.wait()

    asked = await ask(permissions="ask", on_question=handler, meanwhile=meanwhile)
    assert asked.choice is None
    assert (asked.answer.choice, asked.answer.by) == (None, "cancel")


@pytest.mark.parametrize("by_handler", [True, False])
async def test_answers_can_end_the_run(by_handler: bool) -> None:
    streams: list[ThoughtStream[Any]] = []
    asks = anyio.Event()

    async def handler(question: Question) -> Answer:
        await asks.wait()
        return StopRun("that is enough")

    async def meanwhile(stream: ThoughtStream[Any]) -> None:
        streams.append(stream)
        question = await opened(stream)
        if by_handler:
            asks.set()
        else:
            stream.answer(question.id, StopRun("that is enough"))

    await ask(permissions="ask", on_question=handler, meanwhile=meanwhile)
    error = error_of(streams[0])
    assert isinstance(error, QuestionsStopped)
    assert error.reason == "that is enough"
    assert "that is enough" in str(error)


async def test_a_question_in_an_unknown_session_is_denied(caplog: pytest.LogCaptureFixture) -> None:
    handler = Played([])
    async with scripted(agent=handler, permissions="allow") as agent:
        del agent
        response = await handler.client.request_permission(permission("who"))
    assert response.outcome == s.SelectedPermissionOutcome(option_id="x")
    assert "unknown session 'who'" in caplog.text


# Those who also look at what is allowed


class Reviewer:
    by = "reviewer"
    reviews = "all"

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.seen: list[str] = []

    async def __call__(self, question: Question) -> Any:
        self.seen.append(question.title)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "choice", "by"),
    [
        ("allow", "y", "policy"),
        ("allow_always", "y", "policy"),  # it cannot widen what the policy says
        (ChooseOption("a"), "y", "policy"),
        ("deny", "x", "reviewer"),
        (None, "x", "policy"),
        (LookupError("down"), "x", "policy"),
    ],
)
async def test_a_reviewer_may_forbid_what_is_allowed_and_no_more(answer: Any, choice: str, by: str) -> None:
    reviewer = Reviewer(answer)
    never = says("allow")  # is not asked about what is allowed
    asked = await ask(permissions="allow", on_question=[never, reviewer])
    assert (asked.choice, asked.answer.by) == (choice, by)
    assert reviewer.seen == ["rm -rf build"]
    assert len(asked.verdicts) == 1


async def test_our_own_tools_are_not_reviewed() -> None:
    reviewer = Reviewer("deny")

    async def script(turn: Turn) -> None:
        call = s.ToolCallUpdate(tool_call_id="t1", title=f"mcp__{turn.server}__return_result", kind="other")
        response = await turn.client.request_permission(permission(turn.session_id, call))
        assert response.outcome == s.SelectedPermissionOutcome(option_id="y")
        await turn.returns(result=1)

    async with scripted(script, permissions="allow", on_question=reviewer) as agent:
        assert await agent.think(int).text("Go").run() == 1
    assert reviewer.seen == []


@pytest.mark.virtual_time
async def test_the_answer_does_not_wait_for_a_handler_that_takes_its_time_to_end() -> None:
    ended = anyio.Event()
    told_at: list[float] = []

    async def slow(question: Question) -> Answer:
        try:
            return await never()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(60)
            ended.set()

    async def script(turn: Turn) -> None:
        await turn.client.request_permission(permission(turn.session_id))
        told_at.append(anyio.current_time())

    async with scripted(script, permissions="ask", on_question=slow) as agent:
        stream = agent.think().text("Go").stream(include={"question"})
        question = await opened(stream)
        stream.answer(question.id, "allow")
        before = anyio.current_time()
        await stream.wait()
        assert not ended.is_set()
    assert told_at[0] - before < 1
    assert ended.is_set()  # but nothing is left behind


async def test_another_thread_can_answer() -> None:
    async def meanwhile(stream: ThoughtStream[Any]) -> None:
        question = await opened(stream)

        def answer() -> None:
            with pytest.raises(AnswerInvalid):
                stream.answer(question.id, {"a": 1})
            stream.answer(question.id, "allow", by="a thread")
            with pytest.raises(QuestionNotOpen):
                stream.answer(question.id, "deny")

        await anyio.to_thread.run_sync(answer)

    asked = await ask(permissions="ask", meanwhile=meanwhile)
    assert (asked.choice, asked.answer.by) == ("y", "a thread")


async def test_a_thread_that_no_event_loop_has_started_can_answer() -> None:
    threads: list[threading.Thread] = []

    async def meanwhile(stream: ThoughtStream[Any]) -> None:
        question = await opened(stream)
        threads.append(threading.Thread(target=stream.answer, args=(question.id, "allow")))
        threads[0].start()

    asked = await ask(permissions="ask", meanwhile=meanwhile)
    threads[0].join()
    assert asked.choice == "y"


async def test_a_handler_whose_own_work_was_cancelled_passes_the_question_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def closes(question: Question) -> Answer:
        errors: list[BaseException] = []
        with anyio.CancelScope() as scope:
            scope.cancel()
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class() as exc:
                errors.append(exc)
                raise
        raise errors[0]  # as a dialog's future does on asyncio that somebody has cancelled

    asked = await ask(permissions="ask", on_question=[closes, says("allow")])
    assert asked.choice == "y"
    assert "the handler failed over question" in caplog.text


async def test_handlers_that_think_in_threads_leave_threads_for_others() -> None:
    go = threading.Event()

    def thinks(question: Question) -> Answer:
        go.wait(10)
        return "allow"

    async def script(turn: Turn) -> None:
        await turn.client.request_permission(permission(turn.session_id))
        turn.say("Done")

    async with scripted(script, permissions="ask", on_question=thinks) as agent:
        streams = [agent.think().text("Go").stream(include={"question"}) for _ in range(45)]
        with anyio.fail_after(30):
            for stream in streams:
                await opened(stream)
            with anyio.fail_after(30):
                await anyio.to_thread.run_sync(lambda: None)
            go.set()
            for stream in streams:
                assert await stream.result == "Done"
