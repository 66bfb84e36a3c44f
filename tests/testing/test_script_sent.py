"""What the client sent, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from thinkwell.testing import ScriptedAgent, Sent, script
from thinkwell.testing._journal import Line

if TYPE_CHECKING:
    from pathlib import Path


async def test_what_was_sent(tmp_path: Path) -> None:
    def add(a: int) -> int:
        """Add to a number."""
        return a + 1

    played = ScriptedAgent(script.calls("add", {"a": 1}).calls("add", {}, expect_error=True).says("x"))
    async with played.open(cwd=tmp_path) as agent:
        await agent.think().text("go ").quote("this").tool(add).meta({"k": 1}).run()
    sent = played.sent
    assert sent.methods[:3] == ("initialize", "session/new", "session/prompt")
    assert sent.messages[0].id == 0
    assert sent.one("initialize").params["protocolVersion"] == 1
    (session,) = sent.sessions
    assert (session.method, session.cwd, session.asked_id) == ("session/new", str(tmp_path), None)
    assert [server["type"] for server in session.mcp_servers] == ["acp"]
    assert session.meta == {}
    (prompt,) = sent.prompts
    assert prompt.text.startswith("go ")
    assert prompt.blocks[0]["type"] == "text"
    assert prompt.meta["k"] == 1
    (tool,) = sent.tools
    assert (tool.name, tool.description) == ("add", "Add to a number.")
    assert tool.schema["required"] == ["a"]
    one, other = sent.results
    assert (one.tool, one.arguments, one.text, one.is_error) == ("add", {"a": 1}, "2", False)
    assert other.is_error
    assert sent.answers == ()
    assert sent.cancelled == ()


async def test_one_message_or_an_assertion_that_lists_what_there_was() -> None:
    played = ScriptedAgent(script.says("x"))
    with pytest.raises(AssertionError, match=r"initialize 0 times, not once\. It sent nothing"):
        played.sent.one("initialize")
    async with played.open() as agent:
        await agent.think().text("go").run()
    with pytest.raises(AssertionError) as missing:
        played.sent.one("session/load")
    assert "the client sent session/load 0 times, not once. It sent:\n  initialize {" in str(missing.value)
    assert played.sent.all("session/load") == ()
    assert repr(played.sent).startswith("<Sent, initialize, session/new, session/prompt")
    assert repr(Sent(())) == "<Sent, nothing>"


def test_many_and_long_messages_are_cut() -> None:
    sent = Sent(
        Line(1, "client", f'{{"jsonrpc":"2.0","method":"n{n}","params":{{"text":"{"x" * 500}"}}}}')
        for n in range(100)
    )
    lines = str(sent).splitlines()
    assert lines[:2] == ["It sent:", "  … 80 before them"]
    assert len(lines) == 22
    assert lines[-1].startswith('  n99 {"text":"xxx')
    assert lines[-1].endswith("x…")
    assert len(lines[-1]) < 180


def answers_to(*pairs: tuple[str, str]) -> Sent:
    """What there is after these requests of the agent's and their answers."""
    lines: list[Line] = []
    for id_, (question, answer) in enumerate(pairs):
        lines += [
            Line(1, "agent", f'{{"id":{id_},{question}}}'),
            Line(1, "client", f'{{"id":{id_},{answer}}}'),
        ]
    return Sent(lines)


ASKED = (
    '"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},'
    '"options":[{"optionId":"o","name":"Yes","kind":"allow_once"}]}'
)
FORM = '"method":"elicitation/create","params":{"sessionId":"s","message":"Who?","mode":"form"}'
CALLED = '"method":"mcp/message","params":{"connectionId":"m","method":"tools/call","params":{"name":"add"}}'
REFUSED = '"error":{"code":-32601,"message":"no"}'


def test_answers_are_of_the_question_that_they_answer() -> None:
    cancelled, chosen, refused, form = answers_to(
        (ASKED, '"result":{"outcome":{"outcome":"cancelled"}}'),
        (ASKED, '"result":{"outcome":{"outcome":"selected","optionId":"o"}}'),
        (ASKED, REFUSED),
        (FORM, REFUSED),
    ).answers
    assert (cancelled.choice, cancelled.option_id, cancelled.title) == ("cancelled", None, "")
    assert (chosen.choice, chosen.option_id) == ("allow_once", "o")
    assert (refused.choice, refused.content) == ("error", "no")
    assert (form.title, form.choice, form.content) == ("Who?", "error", "no")


def test_results_that_are_errors_of_the_protocol() -> None:
    listed = '"method":"mcp/message","params":{"connectionId":"m","method":"tools/list"}'
    sent = answers_to((CALLED, REFUSED), (listed, REFUSED), (listed, '"result":{"tools":[{"name":"a"}]}'))
    (result,) = sent.results
    assert (result.tool, result.arguments, result.text, result.is_error) == ("add", None, "no", True)
    (tool,) = sent.tools
    assert (tool.name, tool.description, tool.schema) == ("a", "", {})


def test_an_answer_to_nothing_is_left_out() -> None:
    sent = Sent([Line(1, "client", '{"id":1,"result":{}}'), Line(1, "agent", "noise")])
    assert (sent.messages, sent.answers) == ((), ())
