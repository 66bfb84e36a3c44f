"""Texts of agents on their way to a chat, at their worst: Telegram takes each message, nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
from fuzz.hostile import repeated
from fuzz.target import Target, on_both
from hypothesis import strategies as st
from telegram_html import below_quote, misnested, parse, received
from telegram_stage import staged

from thinkwell.channels import deliver
from thinkwell.testing import ScriptedAgent, ScriptedTurn, script
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telegram_stage import Stage

LIMIT: Final = 4_096
_TEXTS: Final = repeated(
    [
        *("a", " ", "\n", "\t", "\r\n", ". ", "word ", "Words. ", "\x1b[31m", "\x1b", "\x00"),
        *("\u2028", "\ud800"),
        *("<", "&", ">", "<b>", "&lt;", '"', "*", "**", "***", "`", "``", "```", "```py\n"),
        *("\n```\n", "~~~\n"),
        *("# ", "#", "[", "](", ")", "[a](b)", "![", "\\", "_", "> ", "- ", "|", "〜", "。", "重"),
        *("\u0301", "\u030a", "\u200d", "\u200b", "\u200f", "\u202e", "\ufe0f", "👩", "🇩", "क्", "\U0001f3fd"),
    ]
)


def letters(text: str) -> str:
    """What of a text is told whatever becomes of white space, marks and what does not show."""
    return "".join(filter(str.isalnum, text))


def carried(text: str) -> str:
    """What of a text JSON can carry."""
    return text.replace("\ud800", "\ufffd")


def check_chat(stage: Stage) -> None:
    """The server has refused nothing, and no message of any moment is beyond what Telegram takes."""
    assert stage.api.refused == []
    for post in stage.chat.messages:
        for version in post.history:
            parsed = parse(version.html)
            assert not misnested(parsed)
            assert len(received(parsed).text) <= LIMIT


async def check_answer(given: tuple[list[tuple[str, str]], bool]) -> None:
    """Whatever comes in whatever order, each message can be shown, and together they say what was said."""
    steps, markdown = given
    told = script
    for kind, text in steps:
        match kind:
            case "say":
                told = told.says(carried(text))
            case "think":
                told = told.thinks(carried(text))
            case _:
                told = told.pauses(2)
    played = ScriptedAgent(told.stops())
    async with staged(markdown=markdown) as stage, played.open() as agent:
        delivery = await deliver(agent.think().text("Go.").stream(), stage.channel, "7")
        check_chat(stage)
        if not markdown and "\x1b" not in delivery.text:  # what an escape begins is no text
            posts = [below_quote(received(parse(post.html))) for post in stage.chat.messages]
            assert letters(delivery.text) in letters("".join(posts))


async def check_question(given: tuple[str, str, list[str]]) -> None:
    """What would be done is there to the last character, or cannot be allowed."""
    title, command, *labels = map(carried, (given[0], given[1], *given[2]))

    async def ask(turn: ScriptedTurn) -> None:
        call = s.ToolCallUpdate(tool_call_id="t", title=title, kind="execute", raw_input={"command": command})
        options = tuple(
            s.PermissionOption(
                option_id=str(number), name=label, kind="reject_once" if number % 2 else "allow_once"
            )
            for number, label in enumerate(labels)
        )
        request = s.RequestPermissionRequest(session_id=turn.session_id, tool_call=call, options=options)
        await turn.client.request_permission(request)

    played = ScriptedAgent(script.does(ask))
    async with (
        staged() as stage,
        played.open(permissions="ask", question_timeout=60) as agent,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(deliver, agent.think().text("Go.").stream(), stage.channel, "7")
        await anyio.sleep(30)
        messages = stage.chat.messages
        refused = any("too long to be shown completely" in post.text for post in messages)
        parsed = [parse(post.html) for post in messages]
        shown = "".join(one.of(entity) for one in parsed for entity in one.entities if entity.type == "pre")
        await anyio.sleep(60)
        check_chat(stage)
        if command.isascii() and command.isprintable() and command.strip():
            assert refused or shown == command


_STEPS: Final = st.lists(
    st.tuples(st.sampled_from(["say", "say", "think", "pause"]), _TEXTS), min_size=1, max_size=8
)

TARGETS: Final[Sequence[Target]] = (
    Target(name="channel answer", inputs=st.tuples(_STEPS, st.booleans()), check=on_both(check_answer)),
    Target(
        name="channel question",
        inputs=st.tuples(
            _TEXTS,
            _TEXTS | st.integers(3_000, 9_000).map(lambda size: ("rm -rf <b> && " * size)[:size]),
            st.lists(_TEXTS, max_size=4) | st.lists(st.just("x"), max_size=120),
        ),
        check=on_both(check_question),
    ),
)
