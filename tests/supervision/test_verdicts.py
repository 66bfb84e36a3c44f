"""What an agent may say about another one's questions, and what becomes of it."""

from __future__ import annotations

import functools
from collections import Counter
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from asking import OPTIONS, Asked, ask, error_of, opened, options, permission
from judging import RULES, judged, rules, told_of
from scripted import Played, Turn, playing, scripted
from trio.testing import MockClock

from thinkwell import (
    PermissionPolicy,
    PermissionQuestion,
    QuestionsStopped,
    Reply,
    Rule,
    StopRun,
    ThoughtStream,
    open_agent,
)
from thinkwell.supervision import RUNS_KEPT, Supervisor, _Recent, supervise
from thinkwell_acp import RpcError, memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from thinkwell import Answer, Question

VIRTUAL = pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])

QUESTION = PermissionQuestion(id="q1", title="ls", agent="worker", options=(), session_id="s1", run_id="r1")


async def allow(question: Question) -> Answer | None:
    return "allow"


def page(session_id: str) -> s.ElicitationUrlMode:
    url = "https://bank.example@login.example/start"
    return s.ElicitationUrlMode(session_id=session_id, message="Log in", elicitation_id="e1", url=url)


def form(session_id: str) -> s.ElicitationFormMode:
    schema = s.ElicitationSchema(
        properties={
            "branch": s.StringPropertySchema(pattern="^[a-z]+$"),
            "depth": s.IntegerPropertySchema(minimum=1, default=3),
            "sure": s.BooleanPropertySchema(),
        },
        required=("branch",),
    )
    return s.ElicitationFormMode(session_id=session_id, message="Where?", requested_schema=schema)


# Verdicts


@pytest.mark.parametrize(("verdict", "choice"), [("allow", "y"), ("deny", "x")])
async def test_the_judge_decides_for_this_once(verdict: str, choice: str) -> None:
    asked, prompts = await judged(rules(verdict, "as the rules say"))
    assert asked.choice == choice
    assert asked.verdicts == [(verdict, "supervisor", "as the rules say")]
    assert (asked.answer.by, asked.answer.why) == ("supervisor", "as the rules say")
    assert [event.type for event in asked.events if event.type in ("question", "verdict", "answer")] == [
        "question",
        "verdict",
        "answer",
    ]
    (prompt,) = prompts
    assert RULES in prompt
    assert told_of(prompt) == {
        "agent": "scripted",
        "title": "rm -rf build",
        "kind": "execute",
        "command": "rm -rf build",
        "input": {"command": "rm -rf build"},
    }


async def test_once_is_not_said_by_an_option_for_good() -> None:
    request = functools.partial(permission, offered=options("allow_always", "reject_once"))
    asked, _ = await judged(rules("allow"), requests=[request])
    assert asked.choice == "x"


@pytest.mark.parametrize(
    "verdict", ["allow_always", "allow_session", "ALLOW", "accept", True, None, {"a": 1}]
)
async def test_the_judge_has_no_other_words(verdict: Any) -> None:
    async def script(turn: Turn) -> None:
        for _ in range(5):
            assert (await turn.returns(verdict=verdict, reason=""))["isError"]

    asked, prompts = await judged(script)
    assert (asked.choice, asked.answer.by) == ("x", "policy")
    ((said, by, why),) = asked.verdicts
    assert (said, by) == (None, "supervisor")
    assert why.startswith("there is no verdict: ResultInvalid: ")
    assert len(prompts) == 1


async def test_a_judge_may_correct_itself() -> None:
    async def script(turn: Turn) -> None:
        assert (await turn.returns(verdict="yes"))["isError"]
        await turn.returns(verdict="allow", reason="it reads")

    asked, _ = await judged(script)
    assert asked.choice == "y"


async def test_who_is_unsure_leaves_it_to_the_next() -> None:
    asked, _ = await judged(rules("unsure", "two rules differ"), then=[allow])
    assert asked.choice == "y"
    assert asked.verdicts == [
        (None, "supervisor", "two rules differ"),
        ("allow", "handler", "the handler said so"),
    ]


async def test_unsure_verdicts_deny() -> None:
    asked, _ = await judged(rules("unsure", ""))
    assert (asked.choice, asked.answer.by) == ("x", "policy")
    assert asked.verdicts == [(None, "supervisor", "the supervisor is unsure")]


async def test_a_reason_is_a_line_of_bounded_length_on_the_log() -> None:
    asked, _ = await judged(rules("deny", "\x1b[2J no\n\u202e" + "no " * 100_000))
    assert asked.answer.why.startswith("\\u001b[2J no \\u202eno no")
    assert len(asked.answer.why) == 500
    assert asked.answer.why.isprintable()


# Web pages and forms


@pytest.mark.parametrize(
    ("verdict", "action"), [("allow", "accept"), ("deny", "decline"), ("unsure", "decline")]
)
async def test_web_pages_are_judged(verdict: str, action: str) -> None:
    asked, (prompt,) = await judged(rules(verdict), requests=[page])
    assert [answer.action for answer in asked.told] == [action]
    assert told_of(prompt) == {
        "agent": "scripted",
        "title": "Log in",
        "host": "login.example",
        "url": "https://bank.example@login.example/start",
    }


async def test_forms_are_filled_in() -> None:
    async def script(turn: Turn) -> None:
        for values, wrong in [
            ([], "a value is required"),
            ([{"name": "branch", "value": "X1"}], "match the pattern"),
            ([{"name": "branch", "value": "main"}, {"name": "depth", "value": 0}], "at least 1"),
        ]:
            result = await turn.returns(action="accept", reason="", values=values)
            assert result["isError"]
            assert wrong in result["content"][0]["text"]
        await turn.returns(
            action="accept",
            reason="the rules name it",
            values=[{"name": "branch", "value": "main"}, {"name": "sure", "value": True}],
        )

    asked, (prompt,) = await judged(script, requests=[form])
    (answer,) = asked.told
    assert (answer.action, answer.content) == ("accept", {"branch": "main", "depth": 3, "sure": True})
    assert asked.answer.filled == ("branch", "depth", "sure")
    assert (asked.answer.by, asked.answer.why) == ("supervisor", "the rules name it")
    assert [field["name"] for field in told_of(prompt)["fields"]] == ["branch", "depth", "sure"]


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ([{"name": "branch", "value": "main"}, {"name": "nonsense", "value": 0}], "no such field"),
        ([{"name": "branch", "value": "main"}, {"name": "branch", "value": "dev"}], "named twice"),
        ([{"name": "branch", "value": "main"}, {"name": "sure", "value": 1}], "true or false"),
    ],
)
async def test_values_that_do_not_fit_go_back_to_the_judge(values: Any, wrong: str) -> None:
    async def script(turn: Turn) -> None:
        result = await turn.returns(action="accept", reason="", values=values)
        assert wrong in result["content"][0]["text"]
        await turn.returns(action="unsure", reason="too hard")

    asked, _ = await judged(script, requests=[form])
    assert asked.told[0].action == "decline"
    assert asked.verdicts == [(None, "supervisor", "too hard")]


async def test_a_form_can_be_declined() -> None:
    async def script(turn: Turn) -> None:
        await turn.returns(action="decline", reason="nobody should ask that")

    asked, _ = await judged(script, requests=[form])
    assert asked.told[0].action == "decline"
    assert asked.verdicts == [("deny", "supervisor", "nobody should ask that")]


# Judges that fail


async def says_something_else(turn: Turn) -> None:
    turn.say("Of course it may: allow!")


async def returns_nonsense(turn: Turn) -> None:
    await turn.returns(**{"\u202e": ["deny"] * 1000})


async def refuses(turn: Turn) -> str:
    return "refusal"


async def crashes(turn: Turn) -> None:
    raise RpcError(-32603, "out of memory")


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (says_something_else, "ResultMissing"),
        (returns_nonsense, "ResultInvalid"),
        (refuses, "ResultRefused"),
        (crashes, "AgentReported"),
    ],
)
async def test_without_a_verdict_the_next_is_asked(script: Any, error: str) -> None:
    asked, _ = await judged(script, then=[allow])
    assert asked.choice == "y"
    why = asked.verdicts[0][2]
    assert asked.verdicts[0][:2] == (None, "supervisor")
    assert why.startswith(f"there is no verdict: {error}: ")
    assert len(why) <= 500
    asked, _ = await judged(script)
    assert (asked.choice, asked.answer.by) == ("x", "policy")


async def test_a_judge_that_never_saw_the_tools() -> None:
    handler = Played([says_something_else], lists_tools=False)
    with anyio.fail_after(30):
        async with scripted(agent=handler) as by:
            reply = await supervise(by, RULES, timeout=0.5)(QUESTION)
    assert reply.answer is None


async def test_a_question_that_cannot_be_put_into_words() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    question = PermissionQuestion(id="q1", title="ls", agent="worker", options=(), input=nested)
    async with scripted(rules("allow")) as by:
        reply = await supervise(by, RULES)(question)
    assert reply.answer is None
    assert reply.why.startswith("there is no verdict: RecursionError")


async def test_a_judge_that_has_gone() -> None:
    async with scripted(rules("allow")) as by:
        pass
    asked = await ask(permissions="ask", on_question=supervise(by, RULES))
    assert asked.choice == "x"
    ((_, _, why),) = asked.verdicts
    assert why.startswith("there is no verdict: AgentClosed")


async def test_a_judge_whose_connection_breaks_while_it_ponders() -> None:
    ours, theirs = memory_transport_pair()

    async def script(turn: Turn) -> None:
        await theirs.aclose()
        await anyio.sleep_forever()

    async with playing(theirs, Played([script])), open_agent("judge", transport=ours) as by:
        asked = await ask(permissions="ask", on_question=[supervise(by, RULES), allow])
    assert asked.choice == "y"
    assert asked.verdicts[0][2].startswith("there is no verdict: AgentExited")


@VIRTUAL
@pytest.mark.parametrize(("seconds", "options"), [(60, {}), (7, {"timeout": 7})])
async def test_a_judge_that_hangs_is_late(seconds: float, options: dict[str, Any]) -> None:
    asked = Asked()

    async def hangs(turn: Turn) -> None:
        await anyio.sleep_forever()

    async def script(turn: Turn) -> None:
        asked.told.append(await turn.client.request_permission(permission(turn.session_id)))

    async with (
        scripted(hangs) as by,
        scripted(script, permissions="ask", on_question=supervise(by, RULES, **options)) as agent,
    ):
        asked.events = [event async for event in agent.think().text("Go").stream(include="all")]
    assert asked.choice == "x"
    ((verdict, by_whom, why),) = asked.verdicts
    assert (verdict, by_whom) == (None, "supervisor")
    assert why.startswith("there is no verdict: ThoughtTimeout")
    assert asked.answer.at - asked.question.at == pytest.approx(seconds, abs=0.1)


# Cancellation


class Pondering:
    """A turn of a judge that ponders until it is cancelled, and then takes a moment to end."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.ended = False

    async def __call__(self, turn: Turn) -> None:
        self.begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.wait_all_tasks_blocked()
            self.ended = True


async def test_a_person_who_answers_first_cancels_the_judge() -> None:
    judge = Pondering()

    async def meanwhile(stream: ThoughtStream[Any]) -> None:
        question = await opened(stream)
        await judge.begun.wait()
        stream.answer(question.id, "allow", by="Ada")

    async with scripted(judge) as by:
        asked = await ask(permissions="ask", on_question=supervise(by, RULES), meanwhile=meanwhile)
        assert judge.ended
    assert (asked.choice, asked.answer.by) == ("y", "Ada")
    assert asked.verdicts == []


async def test_a_cancelled_run_cancels_the_judge() -> None:
    judge = Pondering()

    async def meanwhile(stream: ThoughtStream[Any]) -> None:
        await judge.begun.wait()
        stream.cancel()

    async with scripted(judge) as by:
        asked = await ask(permissions="ask", on_question=supervise(by, RULES), meanwhile=meanwhile)
        assert judge.ended
    assert (asked.choice, asked.answer.by) == (None, "cancel")


# The policy comes first


async def test_what_the_policy_denies_is_never_put_to_the_judge() -> None:
    policy = PermissionPolicy(rules=(Rule(verdict="deny", kind="execute"),), otherwise="ask")
    asked, prompts = await judged(rules("allow"), permissions=policy, reviews="all")
    assert (asked.choice, asked.answer.by) == ("x", "policy")
    assert (prompts, asked.verdicts) == ([], [])


async def test_what_the_policy_allows_is_put_only_to_a_reviewer_of_everything() -> None:
    asked, prompts = await judged(rules("deny"), permissions="allow")
    assert (asked.choice, asked.answer.by, prompts) == ("y", "policy", [])


@pytest.mark.parametrize(
    ("script", "choice", "by"),
    [
        (rules("allow"), "y", "policy"),
        (rules("deny"), "x", "supervisor"),
        (rules("unsure"), "x", "policy"),
        (crashes, "x", "policy"),
        (returns_nonsense, "x", "policy"),
    ],
)
async def test_who_reviews_all_can_only_narrow(script: Any, choice: str, by: str) -> None:
    asked, prompts = await judged(script, permissions="allow", reviews="all")
    assert (asked.choice, asked.answer.by) == (choice, by)
    assert prompts
    assert len(asked.verdicts) == 1


# The circuit breaker


@pytest.mark.parametrize(("limit", "words"), [(1, "1 question,"), (3, "3 questions,")])
async def test_too_many_denials_end_the_run(limit: int, words: str) -> None:
    errors: list[Exception | None] = []

    async def meanwhile(stream: ThoughtStream[Any]) -> None:
        await stream.wait()
        errors.append(error_of(stream))

    asked, prompts = await judged(
        rules("deny", "not that"), requests=[permission] * 5, meanwhile=meanwhile, max_denials=limit
    )
    (error,) = errors
    assert isinstance(error, QuestionsStopped)
    assert error.reason == f"the supervisor has denied {words} the last one 'rm -rf build': not that"
    assert len(prompts) == limit
    answers = [event.why for event in asked.events if event.type == "answer"]
    assert len(answers) == limit
    assert answers[-1] == error.reason


async def test_only_denials_in_one_run_count() -> None:
    script = rules("deny")
    async with scripted(script) as by:
        supervisor = supervise(by, RULES, max_denials=2)
        questions = [
            PermissionQuestion(
                id="q1", title="\x1b rm", agent="worker", options=(), session_id=session, run_id=run
            )
            for run, session in [("r1", "s1"), ("r2", "s1"), (None, "s1"), (None, "s2")]
        ]
        for question in questions:
            assert (await supervisor(question)).answer == "deny"
        assert isinstance((await supervisor(questions[0])).answer, StopRun)
        reply = await supervisor(questions[-1])
        assert isinstance(reply.answer, StopRun)
        assert "'\\u001b rm'" in reply.answer.reason.replace("\\\\", "\\")


async def test_without_a_limit_a_run_goes_on() -> None:
    asked, _ = await judged(rules("deny"), requests=[permission] * 8, max_denials=None)
    assert len(asked.told) == 8
    assert {answer.outcome.option_id for answer in asked.told} == {"x"}


def test_only_the_last_runs_are_remembered() -> None:
    recent: _Recent[int] = _Recent()
    for number in range(RUNS_KEPT):
        recent.keep(f"run-{number}", number)
    recent.keep("run-0", -1)
    recent.keep("another", 1)
    assert len(recent) == RUNS_KEPT
    assert (recent["run-0"], recent.get("run-1"), recent["another"]) == (-1, None, 1)


# Many, and in a row


async def test_questions_of_several_runs_are_judged_at_once() -> None:
    at_once = anyio.Event()
    judging = 0

    async def judge(turn: Turn) -> None:
        nonlocal judging
        judging += 1
        if judging == 50:
            at_once.set()
        await at_once.wait()
        command = told_of(turn.text)["command"]
        verdict = "allow" if int(command.split()[-1]) % 2 else "deny"
        await turn.returns(verdict=verdict, reason=command)

    async def asker(turn: Turn) -> None:
        told: dict[str, str] = {}

        async def asks(number: int) -> None:
            command = f"run {turn.text} {number}"
            call = s.ToolCallUpdate(
                tool_call_id=f"t{number}", title="Run", kind="execute", raw_input={"command": command}
            )
            response = await turn.client.request_permission(permission(turn.session_id, call, OPTIONS))
            assert isinstance(response.outcome, s.SelectedPermissionOutcome)
            told[command] = response.outcome.option_id

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(asks, number)
        assert told == {f"run {turn.text} {n}": "y" if n % 2 else "x" for n in range(10)}
        turn.say("all as it should be")

    handler = Played([judge])
    with anyio.fail_after(30):
        async with (
            scripted(agent=handler) as by,
            scripted(asker, permissions="ask", on_question=supervise(by, RULES, max_denials=None)) as agent,
        ):
            streams = [agent.think().text(name).stream(include="all") for name in "abcde"]
            for stream, name in zip(streams, "abcde", strict=True):
                assert (await stream.result).strip() == "all as it should be"
                reasons = Counter([event.why async for event in stream if event.type == "answer"])
                assert reasons == Counter({f"run {name} {n}": 1 for n in range(10)})
    assert len({session.cwd for session in handler.sent.sessions}) == 1
    assert len(handler.sent.sessions) == len({prompt.session_id for prompt in handler.sent.prompts}) == 50


async def test_a_supervisor_may_be_supervised() -> None:
    async def judge(turn: Turn) -> None:
        response = await turn.client.request_permission(permission(turn.session_id))
        allowed = response.outcome == s.SelectedPermissionOutcome(option_id="y")
        await turn.returns(verdict="allow" if allowed else "deny", reason="I looked")

    async with (
        scripted(rules("allow")) as head,
        scripted(judge, permissions="ask", on_question=supervise(head, RULES)) as by,
    ):
        asked = await ask(permissions="ask", on_question=supervise(by, RULES))
    assert (asked.choice, asked.answer.why) == ("y", "I looked")


class Late:
    """A handler that is named after its agent was opened."""

    def __init__(self) -> None:
        self.supervisor: Supervisor | None = None
        self.replies: list[Reply] = []

    async def __call__(self, question: Question) -> Reply:
        assert self.supervisor is not None
        reply = await self.supervisor(question)
        self.replies.append(reply)
        return reply


async def test_an_agent_judges_itself_but_not_what_it_asks_while_it_judges() -> None:
    late = Late()
    seen: list[str] = []

    async def script(turn: Turn) -> None:
        response = await turn.client.request_permission(permission(turn.session_id))
        assert isinstance(response.outcome, s.SelectedPermissionOutcome)
        seen.append(response.outcome.option_id)
        if "an agent asks" in turn.text or "Another agent" in turn.text:
            await turn.returns(verdict="allow", reason="why not")

    async with scripted(script, permissions="ask", on_question=late) as agent:
        late.supervisor = supervise(agent, RULES)
        with anyio.fail_after(30):
            await agent.think().text("Go").stream().wait()
    assert seen == ["x", "y"]
    assert [reply.answer for reply in late.replies] == [None, "allow"]
    assert late.replies[0].why == "agent scripted does not judge what it asks while it judges"


async def test_agents_that_judge_each_other_come_to_an_end() -> None:
    late = Late()
    prompts: list[str] = []

    def asks_first(name: str) -> Any:
        async def script(turn: Turn) -> None:
            prompts.append(name)
            response = await turn.client.request_permission(permission(turn.session_id))
            assert isinstance(response.outcome, s.SelectedPermissionOutcome)
            if turn.text != "Go":
                verdict = "allow" if response.outcome.option_id == "y" else "unsure"
                await turn.returns(verdict=verdict, reason="")

        return script

    async with (
        scripted(asks_first("one"), permissions="ask", on_question=late) as one,
        scripted(asks_first("two"), permissions="ask", on_question=supervise(one, RULES)) as two,
    ):
        late.supervisor = supervise(two, RULES)
        with anyio.fail_after(30):
            await one.think().text("Go").stream().wait()
    assert prompts == ["one", "two", "one"]


# What is given


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"by": "claude"}, TypeError, "give an open agent"),
        ({"instructions": None}, TypeError, "give a str"),
        ({"instructions": " \n"}, ValueError, "say what to allow"),
        ({"instructions": "\ud800"}, ValueError, "lone surrogate"),
        ({"timeout": 0}, ValueError, "must be positive"),
        ({"timeout": "1"}, TypeError, "number of seconds"),
        ({"reviews": "some"}, ValueError, 'choose "open" or "all"'),
        ({"max_denials": 0}, ValueError, "1 or more, or None"),
        ({"max_denials": -1}, ValueError, "must not be negative"),
        ({"max_denials": 1.5}, TypeError, "whole number"),
    ],
)
async def test_wrong_inputs_are_refused_at_once(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    async with scripted(rules("allow")) as by:
        given: dict[str, Any] = {"by": by, "instructions": RULES, **arguments}
        with pytest.raises(error, match=message):
            supervise(**given)


async def test_it_tells_what_it_is() -> None:
    async with scripted(rules("allow")) as by:
        supervisor = supervise(by, RULES, reviews="all")
        assert repr(supervisor) == "<Supervisor by scripted>"
        assert (supervisor.by, supervisor.reviews) == ("supervisor", "all")
