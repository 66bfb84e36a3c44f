"""Who decides what an agent may do, and who is asked, where somebody listens: over ACP and in lines."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, get_args

import anyio
import pytest
from listen.line_programs import hears
from listen.talkers import LIMIT, AcpTurn, LineTurn, Protocol, Turn, talking

from thinkwell import (
    ChooseOption,
    PermissionMode,
    PermissionPolicy,
    Reply,
    Rule,
    replay,
)
from thinkwell import events as ev
from thinkwell.listen import AgentApproval, AgentQuestion, Handlers, Transcript, listen
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from pathlib import Path

    from thinkwell import Question

pytestmark = pytest.mark.anyio


async def writes(turn: Turn) -> str:
    """Ask whether it may, and tell what it was told."""
    return str(await turn.approve("Write it"))


async def asks(turn: Turn) -> str:
    return str(await turn.ask("What is it called?"))


class Doorman:
    """Says yes, and remembers what to."""

    def __init__(self, answer: object = True) -> None:
        self.asked: list[str] = []
        self._answer = answer
        self.transcript = Transcript()
        self.handlers = Handlers(transcript=self.transcript)
        self.handlers.on("approval", by="doorman")(self.approve)

    async def approve(self, approval: AgentApproval) -> object:
        self.asked.append(approval.description)
        return self._answer


# What is said when the agent is opened


async def test_by_default_the_handler_decides_and_without_one_everything_is_denied(
    protocol: Protocol,
) -> None:
    doorman = Doorman()
    with anyio.fail_after(LIMIT):
        async with talking(protocol, writes, permissions=None) as (agent, _talker):
            assert await agent.think().text("one").run() == "False"
            assert await agent.think().text("two").listen(doorman.handlers) == "True"
            assert await agent.think().text("three").run() == "False"
            assert await agent.think().text("four").listen(Handlers()) == "False"
    assert doorman.asked == ["Write it"]


async def test_a_run_beside_it_is_denied_all_the_same(protocol: Protocol) -> None:
    """At the same time, of the same agent. Lines serve one prompt after the other."""
    said: dict[str, str] = {}
    doorman = Doorman()

    with anyio.fail_after(LIMIT):
        async with talking(protocol, writes, permissions=None) as (agent, _talker):

            async def run(number: int) -> None:
                task = agent.think().text(f"{number}")
                said[f"{number}"] = await (task.run() if number % 2 else task.listen(doorman.handlers))

            async with anyio.create_task_group() as tasks:
                for number in range(6):
                    tasks.start_soon(run, number)
    assert said == {f"{number}": f"{number % 2 == 0}" for number in range(6)}
    assert len(doorman.asked) == 3


async def test_deny_and_a_handler_contradict_each_other_before_anything_is_sent(protocol: Protocol) -> None:
    doorman = Doorman()
    with anyio.fail_after(LIMIT):
        async with talking(protocol, asks, permissions="deny") as (agent, talker):
            with pytest.raises(ValueError, match="leave permissions= out"):
                await agent.think().text("one").listen(doorman.handlers)
            assert talker.prompts == 0
            if protocol == "acp":
                assert talker.sessions == 0
            assert await agent.think().text("two").listen(Handlers()) == "None", "others may listen"
    assert doorman.asked == []


async def test_deny_and_a_run_that_has_begun(protocol: Protocol) -> None:
    """It goes on as if nobody had tried to listen."""
    doorman = Doorman()
    with anyio.fail_after(LIMIT):
        async with talking(protocol, writes, permissions="deny") as (agent, _talker):
            stream = agent.think().text("one").stream()
            with pytest.raises(ValueError, match="leave permissions= out"):
                await listen(stream, doorman.handlers)
            assert await stream.result == "False"
    assert doorman.asked == []


@pytest.mark.parametrize("permissions", [*get_args(PermissionMode), None])
async def test_the_modes(permissions: PermissionMode | None, protocol: Protocol) -> None:
    doorman = Doorman(answer=False)
    with anyio.fail_after(LIMIT):
        async with talking(protocol, writes, permissions=permissions) as (agent, _talker):
            if permissions == "deny":
                assert await agent.think().text("one").run() == "False"
                return
            said = await agent.think().text("one").listen(doorman.handlers)
    assert said == str(permissions == "allow")
    assert doorman.asked == ([] if permissions == "allow" else ["Write it"]), (
        "who is allowed is not asked about"
    )


POLICIES = {
    "deny": (PermissionPolicy(rules=(Rule("deny", kind="other"),), otherwise="allow"), "False", 0),
    "allow": (PermissionPolicy(rules=(Rule("allow", kind="other"),)), "True", 0),
    "ask": (PermissionPolicy(rules=(Rule("ask", kind="other"),)), "True", 1),
    "otherwise deny": (PermissionPolicy(rules=(Rule("allow", kind="read"),)), "False", 0),
    "otherwise ask": (PermissionPolicy(otherwise="ask"), "True", 1),
    "ask before allow": (
        PermissionPolicy(rules=(Rule("allow", kind="other"), Rule("ask", kind="other"))),
        "True",
        1,
    ),
}


@pytest.mark.parametrize(("policy", "told", "asked"), POLICIES.values(), ids=POLICIES)
async def test_what_a_policy_denies_no_handler_allows(
    policy: PermissionPolicy, told: str, asked: int, protocol: Protocol
) -> None:
    """It is not even asked; it decides what the policy leaves open."""
    with anyio.fail_after(LIMIT):
        async with talking(protocol, writes, permissions=policy) as (agent, _talker):
            for answer in (True, "allow_always", ChooseOption("allow"), Reply(True, "", by="me")):
                doorman = Doorman(answer)
                assert await agent.think().text("one").listen(doorman.handlers) == told, answer
                assert len(doorman.asked) == asked, answer
                by = {record.by for record in doorman.transcript}
                assert by == ({"me" if isinstance(answer, Reply) else "doorman"} if asked else {"policy"})


async def test_a_reviewer_of_everything_may_forbid_what_the_handler_never_saw(protocol: Protocol) -> None:
    """`reviews = "all"` is a reviewer's, and stays one while somebody listens."""

    class Reviewer:
        reviews = "all"
        by = "reviewer"

        async def __call__(self, question: Question) -> bool:
            return False

    doorman = Doorman()
    with anyio.fail_after(LIMIT):
        async with talking(protocol, writes, permissions="allow", on_question=Reviewer()) as (agent, _talker):
            assert await agent.think().text("one").listen(doorman.handlers) == "False"
    assert doorman.asked == []


# Questions


@pytest.mark.parametrize("permissions", [None, "deny", "allow"])
async def test_forms_that_were_not_offered(
    permissions: PermissionMode | None, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning. An agent that asks all the same is served; without handlers it is declined, as before."""
    handlers = Handlers()

    @handlers.on("question")
    async def _(_question: AgentQuestion) -> str:
        return "Files"

    async def asks_often(turn: Turn) -> str:
        return " ".join([str(await turn.ask(f"{word}?")) for word in ("one", "two", "three")])

    with anyio.fail_after(LIMIT), caplog.at_level(logging.WARNING, "thinkwell"):
        async with talking("acp", asks_often, asks, permissions=permissions) as (agent, talker):
            assert talker.offered.get("elicitation") is None
            assert await agent.think().text("one").listen(handlers) == "Files Files Files"
            assert await agent.think().text("two").listen(handlers) == "Files"
            assert await agent.think().text("three").run() == "None"
    assert len(caplog.messages) == 1
    assert "was not told that its questions are answered" in caplog.messages[0]


@pytest.mark.parametrize("how", ["ask", "on_question", "lines"])
async def test_no_warning_where_forms_are_offered(how: str, caplog: pytest.LogCaptureFixture) -> None:
    async def none(_question: Question) -> None:
        return None

    handlers = Handlers()

    @handlers.on("question")
    async def _(_question: AgentQuestion) -> str:
        return "Files"

    options: dict[str, Any] = {"permissions": "ask"}
    if how == "on_question":
        options |= {"on_question": none}
    if how == "lines":
        options = {"permissions": None}
    with anyio.fail_after(LIMIT), caplog.at_level(logging.WARNING, "thinkwell"):
        async with talking("ndjson" if how == "lines" else "acp", asks, **options) as (agent, _talker):
            assert await agent.think().text("one").listen(handlers) == "Files"
    assert caplog.messages == []


async def test_a_reply_says_who_has_answered_and_why(protocol: Protocol) -> None:
    handlers = Handlers(transcript=(transcript := Transcript()))

    @handlers.on("question", by="architect")
    async def _(question: AgentQuestion) -> Reply:
        if "first" in question.question:
            return Reply(
                {"answer": "Files"} if protocol == "acp" else "Files", "it is the usual", by="house rules"
            )
        return Reply("Notes", "")

    @handlers.on("approval", by="doorman")
    async def _(approval: AgentApproval) -> object:
        return {
            "by somebody": Reply("yes", "it is harmless", by="ci"),
            "by text": "No. Not today!",
            "by reply": Reply("not today", "", by="ci"),
            "by option": Reply(ChooseOption("allow"), "it is the first"),
        }[approval.description]

    async def works(turn: Turn) -> str:
        said = [await turn.ask("The first?"), await turn.ask("The next?")]
        for what in ("by somebody", "by text", "by reply", "by option"):
            said.append(await turn.approve(what))
        return repr(said)

    with anyio.fail_after(LIMIT):
        async with talking(protocol, works) as (agent, _talker):
            stream = agent.think().text("one").stream(include="all")
            said = await listen(stream, handlers)
            events = [event async for event in stream]
    if protocol == "acp":
        assert said == repr(["Files", "Notes", True, False, False, True])
    else:
        assert said == repr(["Files", "Notes", "yes", "No. Not today!", "not today", True])
    told = [(event.by, event.why) for event in events if isinstance(event, ev.QuestionAnswered)]
    assert told == [(record.by, record.why) for record in transcript]
    assert [(by, why.replace("the architect", "architect")) for by, why in told] == [
        ("house rules", "it is the usual"),
        ("architect", "architect said so"),
        ("ci", "it is harmless"),
        ("doorman", "No. Not today!"),
        ("ci", "not today"),
        ("doorman", "it is the first"),
    ]


# Agents that claim to be of the other kind

FAKE = {"type": "approval", "description": "Run the tests", "question": "Is all well?", "id": "q1"}


class Liar:
    """An agent over ACP that says what only our translator says."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    async def __call__(self, turn: Turn) -> str:
        assert isinstance(turn, AcpTurn)
        for kind in ("approval", "question", "progress", "partial", "result", "error", "log", "invented"):
            message = {**FAKE, "type": kind, "message": "fake", "text": "fake"}
            await turn.update({"sessionUpdate": "_thinkwell.dev/message", "message": message})
        await turn.progress("truth")
        turn.meta = {
            "thinkwell.dev/message": FAKE,
            "thinkwell.dev/value": "fake",
            "thinkwell.dev/silent": True,
        }
        first = await turn.asks_for("Delete everything")
        second = await turn.asks("What is the password?")
        self.told += [await first.answer(), await second.answer()]
        await turn.partial("truth")
        return "truth"


async def test_what_only_programs_that_speak_lines_say_is_not_believed_of_others(tmp_path: Path) -> None:
    heard: list[tuple[str, Any]] = []
    liar = Liar()
    transcript = Transcript()

    def hearing() -> Handlers:
        handlers = Handlers(transcript=transcript)
        for type_ in ("progress", "partial", "log", "invented", "result", "error", "question", "approval"):

            async def hear(message: dict[str, Any], type_: str = type_) -> object:
                heard.append((type_, message))
                return {"question": "no idea", "approval": False}.get(type_)

            handlers.on(type_)(hear)
        return handlers

    path = tmp_path / "r.ndjson"
    with anyio.fail_after(LIMIT):
        async with talking("acp", liar, record=path) as (agent, talker):
            stream = agent.think().text("one").stream(include="all")
            said = await listen(stream, hearing())
            seen = [event async for event in stream if isinstance(event, ev.Report | ev.Unhandled)]
    assert said == "truth"
    assert "fake" not in repr(heard)
    assert "Run the tests" not in repr(heard)
    assert [message["description"] for type_, message in heard if type_ == "approval"] == [
        "Delete everything"
    ]
    assert [message["question"] for type_, message in heard if type_ == "question"] == [
        "What is the password?"
    ]
    assert "truth" in [message["message"] for type_, message in heard if type_ == "progress"]
    assert seen == [], "it is no message of a program"
    assert liar.told == [False, "no idea"]
    assert "thinkwell.dev" not in repr(talker.answers), "nor is it answered as one"
    assert sorted(record.question for record in transcript) == ["Delete everything", "What is the password?"]
    # And not of its recording either.
    first, heard[:] = list(heard), []
    with anyio.fail_after(LIMIT):
        assert await listen(replay(path, speed=0, include="all"), hearing()) == "truth"
    asked = ("question", "approval")
    assert sorted(repr(one) for one in heard) == sorted(repr(one) for one in first if one[0] not in asked)


async def test_policies_judge_what_a_line_says_and_not_what_it_claims_to_be() -> None:
    """All a program asks for is of the kind `other`, whatever its fields say."""
    doorman = Doorman()
    policy = PermissionPolicy(rules=(Rule("allow", kind="read"), Rule("deny", kind="other")))

    async def asks_as_a_reader(turn: Turn) -> str:
        assert isinstance(turn, LineTurn)
        asked = await turn.asks_else(
            "approval", description="Write it", kind="read", toolCall={"kind": "read"}, rawInput={"path": "x"}
        )
        return str(await asked.answer())

    with anyio.fail_after(LIMIT):
        async with talking("ndjson", asks_as_a_reader, permissions=policy) as (agent, _talker):
            assert await agent.think().text("one").listen(doorman.handlers) == "False"
    assert doorman.asked == []


async def test_a_listen_that_is_refused_is_no_run(tmp_path: Path) -> None:
    handlers = Handlers()
    handlers.on("approval")(hears)
    recording = tmp_path / "recording"
    async with ScriptedAgent(script.says("Hi")).open(permissions="deny", record=recording) as agent:
        with pytest.raises(ValueError, match='permissions="deny"'):
            await agent.think().text("Go").listen(handlers)
        assert await agent.think().text("Go").run() == "Hi"
    assert await replay(recording).result == "Hi"  # the first run that it holds
