"""What happens in the runs that the pictures show. Their agents are scripted, and their time is virtual."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
from msgspec.structs import replace
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
from scripted import scripted

from thinkwell import events as ev
from thinkwell import supervise, wait_for_answer
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from scripted import Turn

YES_OR_NO: Final = (
    ("Allow", "allow_once"),
    ("Always allow pytest", "allow_always"),
    ("Reject", "reject_once"),
)

PROMPTS: Final = {"search": "Search is slow. Find out why and mend it.", "release": "Build the release."}
"""What the agents are asked in the runs that the page and the notebook show."""

ALL_PROMPTS: Final = {**PROMPTS, "draft": "Review the shop."}
"""What they are asked in all, by run."""

STEPS: Final = ("read the models", "add the index", "run the tests")


class MyAgent(TellingAgent):
    """An agent under a user's own name."""

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
        turn.update(replace(call, raw_input=shown))
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


STORIES: Final[dict[str, Callable[[Path, Path], Awaitable[None]]]] = {
    "search": record_search,
    "release": record_release,
    "draft": record_draft,
}
