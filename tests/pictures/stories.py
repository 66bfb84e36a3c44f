"""What happens in the runs that the pictures show. Their agents are scripted, and their time is virtual."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import anyio
import msgspec.structs
from progress import golden
from progress.scenes import (
    HOME,
    MODELS,
    Call,
    Report,
    TellingAgent,
    asks,
    plan,
    says,
    thinks,
)
from retry.failing import BUSY, EMPTY, known, played
from scripted import Turn, scripted

from thinkwell import Retry, open_agent, supervise, wait_for_answer
from thinkwell import events as ev
from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from progress.stage import State

    from thinkwell.testing import ScriptedTurn

YES_OR_NO: Final = (
    ("Allow", "allow_once"),
    ("Always allow pytest", "allow_always"),
    ("Reject", "reject_once"),
)

PROMPTS: Final = {"search": "Search is slow. Find out why and mend it.", "release": "Build the release."}
"""What the agents are asked in the runs that the page and the notebook show."""

ALL_PROMPTS: Final = {
    **PROMPTS,
    "draft": "Review the shop.",
    "steered": "Review search.py.",
    "helpers": "Why do the tests fail?",
    "form": "Publish version 2.4.",
}
"""What they are asked in all, by run."""

FALLBACK: Final = 'think().fallback("other-agent").run(retry=Retry())'

STEPS: Final = ("read the models", "add the index", "run the tests")


class MyAgent(TellingAgent):
    """An agent under a user's own name."""

    name = "my-agent"


class Listens(ScriptedAgent):
    """An agent under a user's own name that can be steered."""

    name = "my-agent"


def wants(turn: Turn, id_: str, command: str) -> tuple[Call, s.ToolCallUpdate]:
    """Return a command that the agent wants to run, and how it asks for it."""
    call = Call(turn=turn, id=id_, kind="execute", title=command, input={"command": command})
    asked = s.ToolCallUpdate(tool_call_id=id_, title=call.title, kind="execute", raw_input=call.input)
    return call.begins("pending"), asked


async def reads(turn: Turn, *names: str) -> None:
    for name in names:
        await Call(
            turn=turn, id=f"read {name}", kind="read", title=f"Read {name}", path=f"{HOME}/shop/{name}"
        ).takes(0.2, text="…")


async def edits(turn: Turn, path: str, before: str, after: str) -> None:
    """Replace one piece of the code."""
    change = s.Diff(path=f"{HOME}/{path}", old_text=MODELS, new_text=MODELS.replace(before, after))
    await Call(turn=turn, id=path, kind="edit", title=f"Edit {path}", path=change.path).takes(
        1.1, diffs=(change,)
    )


async def mends_search(turn: Turn) -> None:
    await anyio.sleep(1.4)
    await thinks(
        turn,
        "Search filters in Python, so every order of the user is read. ",
        "Is there an index on user_id? The models come first.",
        every=0.8,
    )
    await says(turn, "I will look at ", "the models and the queries first.")
    await reads(turn, "models.py", "db.py", "search.py", "views.py")
    await Call(
        turn=turn,
        id="search",
        kind="search",
        title='grep "create_index"',
        input={"pattern": "create_index", "path": f"{HOME}/shop/migrations"},
    ).takes(0.3, text="No matches found")
    plan(turn, *STEPS, done=1)
    await anyio.sleep(0.5)
    await edits(turn, "shop/models.py", "user_id = Column(Integer)", "user_id = Column(Integer, index=True)")
    await edits(
        turn,
        "shop/search.py",
        "return [order for order in orders if text in order.status]",
        "return orders.matching(status=text)",
    )
    plan(turn, *STEPS, done=2)
    turn.update(s.UsageUpdate(used=12_840, size=200_000, cost=s.Cost(amount=0.031, currency="USD")))
    tests, asked = wants(turn, "tests", "pytest -q")
    await asks(turn, asked, *YES_OR_NO)
    tests.begins()
    await anyio.sleep(1)
    tests.shows("........................")
    await anyio.sleep(2.2)
    tests.ends(text="........................   [100%]\n24 passed in 3.02s", output={"exit_code": 0})
    plan(turn, *STEPS, done=3)
    await says(
        turn,
        "There was **no index** on `order.user_id`, and the text was compared in Python. ",
        "The database does both now.",
    )
    turn.update(s.UsageUpdate(used=18_234, size=200_000, cost=s.Cost(amount=0.0612, currency="USD")))
    await turn.returns(
        summary="Search uses an index now.", files=["shop/models.py", "shop/search.py"], tests_passed=24
    )


async def record_search(path: Path, folder: Path) -> None:
    """A run with a typed result, in which a person allows a command."""
    agent = MyAgent(mends_search)
    async with scripted(
        agent=agent,
        cwd=folder,
        record=path,
        permissions="ask",
        on_question=wait_for_answer,
        question_timeout=60,
    ) as opened:
        stream = opened.think(Report).text(PROMPTS["search"]).stream(include="all")
        async for event in stream:
            if isinstance(event, ev.QuestionAsked):
                await anyio.sleep(2.4)
                stream.answer(event.id, "allow")
        await stream.wait()


async def releases(turn: Turn) -> None:
    await thinks(turn, "A clean build first, then the tests.", every=1.2)
    await says(turn, "I will build the release ", "from scratch.")
    for id_, command, output in (
        ("clean", "rm -rf build/ data/", ""),
        ("tests", "pytest -q", "24 passed in 3.02s"),
    ):
        call, asked = wants(turn, id_, command)
        if await asks(turn, asked, ("Allow", "allow_once"), ("Reject", "reject_once")):
            await call.takes(3.2, text=output, output={"exit_code": 0})
        else:
            call.ends("failed")
    await says(turn, "I may not delete `data/`, so the build is not a clean one. All 24 tests pass.")


async def reviews(turn: Turn) -> None:
    await reads(turn, "models.py", "search.py")
    await thinks(turn, "The queries are the slow part. ", "I write that down.", every=0.4)
    whole = {
        "summary": "Search reads every order and filters in Python.",
        "files": ["shop/models.py", "shop/search.py"],
        "tests_passed": 24,
    }
    call = s.ToolCallProgress(tool_call_id="result", title="return_result")
    cut = {"summary": whole["summary"], "files": ["shop/models.py", "shop/se"]}
    for shown in ({"summary": "Search reads"}, cut, whole):
        turn.update(msgspec.structs.replace(call, raw_input=shown))
        await anyio.sleep(0.5)
    await turn.returns(**whole)


async def record_draft(path: Path, folder: Path) -> None:
    """A run whose agent shows its result while it writes it."""
    async with scripted(agent=MyAgent(reviews), cwd=folder, record=path) as opened:
        await opened.think(Report).text(ALL_PROMPTS["draft"]).stream(include="all").wait()


async def judges(turn: Turn) -> None:
    await anyio.sleep(0.9)
    if "rm -rf" in turn.text:
        await turn.returns(verdict="deny", reason="It deletes data/, which is no part of the build")
    else:
        await turn.returns(verdict="allow", reason="The tests may run")


async def record_release(path: Path, folder: Path) -> None:
    """A run whose questions another agent answers."""
    async with (
        scripted(judges) as judge,
        scripted(
            agent=MyAgent(releases),
            cwd=folder,
            record=path,
            permissions="ask",
            on_question=supervise(
                by=judge, instructions="The tests may run. Deny whatever deletes anything."
            ),
        ) as opened,
    ):
        stream = opened.think().text(PROMPTS["release"]).stream()
        await stream.wait()


async def record_steered(path: Path, folder: Path) -> None:
    """A run whose agent is told something while it works."""

    async def begins(played: ScriptedTurn) -> None:
        turn = Turn(MyAgent(), played)
        await thinks(turn, "The query first, then the view.", every=0.8)
        await says(turn, "I will read the query ", "and where it is used.")
        await reads(turn, "search.py", "views.py")

    async def goes_on(played: ScriptedTurn) -> None:
        turn = Turn(MyAgent(), played)
        await anyio.sleep(0.6)
        await reads(turn, "login.py")
        await says(
            turn,
            "`search.py` reads every order of the user: it needs an index. ",
            "**The login is fine**: it asks for one row.",
        )

    agent = Listens(script.does(begins).hears("login").does(goes_on), steering=True)
    async with agent.open(cwd=folder, record=path) as opened:
        stream = opened.think().text(ALL_PROMPTS["steered"]).stream(include="all")
        await anyio.sleep(2)
        await stream.steer("Also check the login.")
        await stream.wait()


async def delegates(turn: Turn) -> None:
    await says(turn, "Two helpers look at it: one at the tests, one at the code.")

    def helper(id_: str, title: str) -> Call:
        return Call(turn=turn, id=id_, kind="think", name="Task", title=title).begins()

    def tells(helper: Call, text: str) -> None:
        meta = {"claudeCode": {"parentToolUseId": helper.id}}
        turn.update(s.AgentMessageChunk(content=s.TextContent(text=text), meta=meta))

    tests, code = helper("tests", "Run the tests one by one"), helper("code", "Read what changed")
    await anyio.sleep(0.8)
    for name in ("models.py", "search.py", "views.py"):
        await Call(turn=turn, id=name, kind="read", title=f"Read {name}", parent=code.id).takes(0.4)
    tells(code, "search.py was rewritten. It imports db.orders, which is gone.")
    ran = Call(turn=turn, id="pytest", kind="execute", title="pytest -x", parent=tests.id)
    await ran.takes(2.2, status="failed", text="E   ImportError: db.orders", output={"exit_code": 1})
    tells(tests, "One test cannot import db.orders. I look at the others.")
    await anyio.sleep(1.2)
    code.ends(text="It imports db.orders, which is gone.")
    tests.ends(text="All but one pass.")
    await says(turn, "`search.py` imports `db.orders`, which is gone.")


async def record_helpers(path: Path, folder: Path) -> None:
    """A run whose agent gives parts of its task to sub-agents."""
    async with scripted(agent=MyAgent(delegates), cwd=folder, record=path) as opened:
        await opened.think().text(ALL_PROMPTS["helpers"]).stream(include="all").wait()


async def fall_back() -> list[State]:
    """Return a run, step by step, that was tried again and then given to another agent.

    A recording has each attempt as a run of its own, so this is the run itself.
    """
    other = MyAgent(finds)
    other.name = "other-agent"
    async with open_agent(known("my-agent"), transport=played(BUSY + EMPTY).connect()) as agent:
        task = agent.think().text("Which tests fail?").fallback(other.open())
        stream = task.stream(include="all", retry=Retry(random=lambda: 1.0))
        states: list[State] = []
        while not stream._log.ended:
            await stream._log.wait()
            states.append(replace(golden.shown(stream, "fallback"), recording=None))
        return states


async def finds(turn: Turn) -> None:
    await Call(turn=turn, id="t", kind="search", title="grep def test_").takes(0.8, text="24 matches")
    await says(turn, "Two of the 24 tests fail: ", "`test_search` and `test_views`.")


async def publishes(turn: Turn) -> None:
    await reads(turn, "pyproject.toml", "CHANGELOG.md")
    await says(turn, "All is there for a release. ", "Where should it go?")
    where = s.StringPropertySchema(
        title="Server",
        one_of=(
            s.EnumOption(const="staging", title="Staging"),
            s.EnumOption(const="live", title="Live"),
        ),
    )
    await turn.client.create_elicitation(
        s.ElicitationFormMode(
            session_id=turn.session_id,
            message="Where should version 2.4 go, and who is told?",
            requested_schema=s.ElicitationSchema(
                properties={
                    "server": where,
                    "email": s.StringPropertySchema(title="Email", format="email"),
                    "tag": s.BooleanPropertySchema(title="Tag the commit", default=True),
                },
                required=("server",),
            ),
        )
    )
    await says(turn, "Version 2.4 is on staging.")


async def record_form(path: Path, folder: Path) -> None:
    """A run whose agent asks for a form to be filled in."""
    agent = MyAgent(publishes)
    async with scripted(
        agent=agent, cwd=folder, record=path, on_question=wait_for_answer, question_timeout=60
    ) as opened:
        stream = opened.think().text(ALL_PROMPTS["form"]).stream(include="all")
        async for event in stream:
            if isinstance(event, ev.QuestionAsked):
                await anyio.sleep(2.4)
                stream.answer(event.id, {"server": "staging"})
        await stream.wait()


STORIES: Final[dict[str, Callable[[Path, Path], Awaitable[None]]]] = {
    "search": record_search,
    "release": record_release,
    "draft": record_draft,
    "steered": record_steered,
    "helpers": record_helpers,
    "form": record_form,
}
