"""What the client sent, as values."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from thinkwell.testing import ScriptedAgent, Sent, script

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
    with pytest.raises(AssertionError, match=r"initialize 0 times, not once\. The client sent nothing"):
        played.sent.one("initialize")
    async with played.open() as agent:
        await agent.think().text("go").run()
    with pytest.raises(AssertionError) as missing:
        played.sent.one("session/load")
    told = str(missing.value)
    assert "the client sent session/load 0 times, not once. The client sent:\n  initialize {" in told
    assert played.sent.all("session/load") == ()
    assert repr(played.sent).startswith("<Sent, initialize, session/new, session/prompt")
    assert repr(Sent(())) == "<Sent, nothing>"


async def said(*lines: str, agent: tuple[str, ...] = ()) -> Sent:
    """What is known of a client that says this, in a turn in which the agent has said something before."""
    played = ScriptedAgent(script.sends("\n".join((*agent, ""))).hangs(), complete=False)
    asks: dict[str, dict[str, Any]] = {
        "initialize": {"protocolVersion": 1},
        "session/new": {"cwd": "/", "mcpServers": []},
        "session/prompt": {"sessionId": "", "prompt": []},
    }
    async with played.connect() as transport:
        heard = b""
        for method, params in asks.items():
            if method == "session/prompt":
                params = {**params, "sessionId": re.findall(rb'"sessionId":"(.*?)"', heard)[0].decode()}
            message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
            await transport.send(json.dumps(message).encode() + b"\n")
            until = "\n".join(agent).encode() if method == "session/prompt" else f'"{method}"'.encode()
            while until not in heard:
                heard += await transport.receive()
        await transport.send("".join(f"{line}\n" for line in lines).encode())
        last = b'{"jsonrpc":"2.0","id":"last","method":"session/close","params":{"sessionId":"none"}}\n'
        await transport.send(last)
        while b'"last"' not in heard:
            heard += await transport.receive()
    return played.sent


async def test_many_and_long_messages_are_cut() -> None:
    params = f'{{"text":"{"x" * 500}"}}'
    sent = await said(*(f'{{"jsonrpc":"2.0","method":"n{n}","params":{params}}}' for n in range(96)))
    lines = str(sent).splitlines()
    assert len(sent.messages) == 100
    assert lines[:2] == ["The client sent:", "  … 80 before them"]
    assert len(lines) == 22
    assert lines[-2].startswith('  n95 {"text":"xxx')
    assert lines[-2].endswith("x…")
    assert len(lines[-2]) < 180


async def answers_to(*pairs: tuple[str, str]) -> Sent:
    """What there is after these requests of the agent's and their answers."""
    asked = tuple(f'{{"jsonrpc":"2.0","id":{id_},{question}}}' for id_, (question, _) in enumerate(pairs))
    return await said(*(f'{{"id":{id_},{answer}}}' for id_, (_, answer) in enumerate(pairs)), agent=asked)


ASKED = (
    '"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},'
    '"options":[{"optionId":"o","name":"Yes","kind":"allow_once"}]}'
)
FORM = '"method":"elicitation/create","params":{"sessionId":"s","message":"Who?","mode":"form"}'
CALLED = '"method":"mcp/message","params":{"connectionId":"m","method":"tools/call","params":{"name":"add"}}'
REFUSED = '"error":{"code":-32601,"message":"no"}'


async def test_answers_are_of_the_question_that_they_answer() -> None:
    sent = await answers_to(
        (ASKED, '"result":{"outcome":{"outcome":"cancelled"}}'),
        (ASKED, '"result":{"outcome":{"outcome":"selected","optionId":"o"}}'),
        (ASKED, REFUSED),
        (FORM, REFUSED),
    )
    cancelled, chosen, refused, form = sent.answers
    assert (cancelled.choice, cancelled.option_id, cancelled.title) == ("cancelled", None, "")
    assert (chosen.choice, chosen.option_id) == ("allow_once", "o")
    assert (refused.choice, refused.content) == ("error", "no")
    assert (form.title, form.choice, form.content) == ("Who?", "error", "no")


async def test_results_that_are_errors_of_the_protocol() -> None:
    listed = '"method":"mcp/message","params":{"connectionId":"m","method":"tools/list"}'
    sent = await answers_to(
        (CALLED, REFUSED), (listed, REFUSED), (listed, '"result":{"tools":[{"name":"a"}]}')
    )
    (result,) = sent.results
    assert (result.tool, result.arguments, result.text, result.is_error) == ("add", None, "no", True)
    (tool,) = sent.tools
    assert (tool.name, tool.description, tool.schema) == ("a", "", {})


async def test_an_answer_to_nothing_is_left_out() -> None:
    sent = await said('{"id":1,"result":{}}', agent=("noise",))
    assert sent.methods == ("initialize", "session/new", "session/prompt", "session/close")
    assert sent.answers == ()
