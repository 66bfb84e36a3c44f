"""What the key that explains prints, and where it is printed to."""

from __future__ import annotations

import io
import os
import threading
from typing import Any

from thinkwell import QuestionView, RunView, ToolView
from thinkwell import events as ev
from thinkwell._display import explaining as _explaining
from thinkwell._display.explaining import explanation
from thinkwell._display.questions import asked
from thinkwell.progress._output import direct


def explained(tool: ToolView | None, **question: Any) -> str:
    view = RunView(tools={} if tool is None else {tool.id: tool})
    return explanation(asked(QuestionView(id="q", title="do it", tool_id="t", **question), view), tool)


def test_everything_that_there_is() -> None:
    tool = ToolView(
        id="t",
        name="shell\x07",
        kind="execute",
        input={"command": "ls \u200b-l", "why": "to\nsee"},
        locations=(ev.Location(path="/a"), ev.Location(path="/b", line=2)),
        content=(ev.BlockContent(content=ev.TextContent(text="no change")),),
    )
    verdict = ev.QuestionVerdict(seq=1, at=0, id="q", verdict="deny", by="supervisor", why="it may not")
    text = explained(tool, verdicts=(verdict,))
    assert text.startswith("\ndo it\nTool call shell")
    assert "at /a\nat /b:2\n" in text
    assert "Command:\nls \\u200b-l\n" in text
    assert '"why": "to\\nsee"' in text
    assert text.endswith("supervisor: deny (it may not)\n\n")
    assert text.replace("\n", "").isprintable()


def test_a_question_without_a_tool_call() -> None:
    assert "shows no tool call" in explained(None)


def test_what_is_too_long_says_so() -> None:
    text = explained(ToolView(id="t", input={"text": "x" * 300_000}))
    assert len(text) < _explaining.EXPLAINED + 200
    assert "more characters, which are not shown" in text


def test_what_is_nested_too_deep() -> None:
    deep: ev.JsonValue = []
    for _ in range(100_000):
        deep = [deep]
    tool = ToolView(id="t", title="deep")
    view = RunView(tools={"t": tool})
    question = asked(QuestionView(id="q", title="do it", tool_id="t"), view)
    assert "nested too deep" in explanation(question, ToolView(id="t", input=deep))


def test_what_is_no_file_of_the_systems_is_written_to_as_it_is() -> None:
    file = io.StringIO()
    assert direct(file) is file


def test_a_file_that_does_not_wait_is_waited_for() -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    seen: list[bytes] = []

    def read() -> None:
        while data := os.read(ours, 65536):
            seen.append(data)

    with os.fdopen(theirs, "w", encoding="utf-8") as file:
        out = direct(file)
        assert (out.encoding, out.fileno(), out.isatty(), out.writable()) == ("utf-8", theirs, False, True)
        reader = threading.Thread(target=read)
        reader.start()
        assert out.write("é" * 200_000) == 200_000
        out.flush()
    reader.join(10)
    os.close(ours)
    assert b"".join(seen).decode() == "é" * 200_000
