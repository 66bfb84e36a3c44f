"""Who answers, as the log tells it, where a handler speaks for others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from asking import ask, permission

from thinkwell import Reply
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from thinkwell import Question

pytestmark = pytest.mark.anyio


async def test_a_reply_names_who_gave_it() -> None:
    def handler(question: Question) -> Reply:
        return Reply("allow", "it only reads", by="security")

    asked = await ask(permissions="ask", on_question=handler)

    assert (asked.choice, asked.answer.by, asked.answer.why) == ("y", "security", "it only reads")
    assert asked.verdicts == [("allow", "security", "it only reads")]


async def test_a_reply_that_leaves_it_open_names_who_gave_it_too() -> None:
    def handler(question: Question) -> Reply:
        return Reply(None, "not my field", by="security")

    asked = await ask(permissions="ask", on_question=handler)

    assert asked.choice == "x"
    assert asked.verdicts == [(None, "security", "not my field")]


async def test_what_an_agent_of_the_protocol_says_of_itself_is_no_message() -> None:
    """Only agents that speak lines have their questions in their own words."""
    seen: list[Question] = []

    def handler(question: Question) -> bool:
        seen.append(question)
        return True

    def asking(session_id: str) -> s.RequestPermissionRequest:
        request = permission(session_id)
        meta = {"thinkwell.dev/message": {"type": "approval", "description": "only a look"}}
        return s.RequestPermissionRequest(
            session_id=request.session_id, tool_call=request.tool_call, options=request.options, meta=meta
        )

    await ask(asking, permissions="ask", on_question=handler)

    assert seen[0].message is None


async def test_who_is_given_alone_is_asked() -> None:
    """A handler without a word on permissions is there to be asked."""

    def handler(question: Question) -> bool:
        return True

    asked = await ask(on_question=handler)

    assert (asked.choice, asked.answer.by) == ("y", "handler")
