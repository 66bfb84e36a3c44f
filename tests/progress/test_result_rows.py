"""What displays make of the tool for the result, and of calls that were denied."""

from __future__ import annotations

from io import StringIO

import pytest
from progress.stage import Lines, LiveTerminal, Story

from thinkwell import events as ev

SPELLINGS = [
    {"title": "return_result"},
    {"title": "thinkwellc1b50d97ab12_return_result"},
    {"title": "Tool: mcp__thinkwellc1b50d97ab12__return_result"},
    {"title": 'thinkwellc1b50d97ab12 › return_result: {"score": 1}'},
    {"title": "return_result (thinkwellc1b50d97ab12 MCP Server)"},
    {"title": "Give it back", "name": "mcp__thinkwellc1b50d97ab12__return_result"},
]

spelt = pytest.mark.parametrize("call", SPELLINGS, ids=[" ".join(call.values()) for call in SPELLINGS])


def returning(call: dict[str, str]) -> Story:
    """A run in which the agent reads a file and calls the tool for the result."""
    story = Story(result='{\n  "score": 1\n}').read("models.py").after(1)
    return story.begin("r", "other", **call).after(1)


def returned(call: dict[str, str]) -> Story:
    story = returning(call)
    story.tell(ev.ResultAttempt(accepted=False, errors=("score: no number",), at=story.time))
    story.end("r", "failed").after(1).begin("again", "other", **call).after(1)
    story.tell(ev.ResultAttempt(accepted=True, value={"score": 1}, at=story.time))
    return story.end("again").phase("completed")


def lines_of(story: Story) -> list[str]:
    out = StringIO()
    Lines(out).finish(story.now)
    return out.getvalue().splitlines()


def screen_of(*stories: Story) -> list[str]:
    live = LiveTerminal(columns=80)
    live.draw(*(story.now for story in stories))
    return live.finish(*(story.now for story in stories))


@spelt
def test_a_result_is_one_row_and_no_tool_call(call: dict[str, str]) -> None:
    lines = lines_of(returned(call))
    assert [line for line in lines if line.startswith(("[tool]", "[result]"))][:3] == [
        "[tool]   ✔ read models.py  0.0s",
        "[result] refused: score: no number",
        "[result] accepted",
    ]
    assert [line for line in lines if "1 tool" in line]
    rows = screen_of(returned(call))
    assert [row.split() for row in rows if row.startswith((" ✔ re", " ✘ re"))] == [
        ["✔", "read", "models.py", "0.0s"],
        ["✘", "result", "was", "not", "valid;", "the", "agent", "was", "told", "why"],
        ["✔", "result"],
    ]
    for told in (*lines, *rows):
        assert "return_result" not in told
        assert "Give it back" not in told
        assert "2 tools" not in told


@spelt
def test_while_it_is_given_that_is_what_is_done(call: dict[str, str]) -> None:
    live = LiveTerminal(columns=80)
    rows = live.draw(returning(call).now)
    assert any("returning the result" in row for row in rows)
    assert not any("return_result" in row or "Give it back" in row or "1 tool" in row for row in rows)


@spelt
def test_while_it_is_written_its_end_is_shown(call: dict[str, str]) -> None:
    story, live = returning(call), LiveTerminal(columns=80)
    story.tell(ev.ToolUpdate(id="r", input={"score": 1, "notes": ["a", "b\x1b[2J"]}, at=story.time))
    rows = live.draw(story.now)
    assert any("returning the result" in row for row in rows)
    assert [row.strip() for row in rows if row.strip().startswith('"')][-4:] == [
        '"score": 1,',
        '"notes": [',
        '"a",',
        '"b\\u001b[2J▌',
    ]


@pytest.mark.parametrize(
    "call",
    [
        {"title": "return_result", "kind": "execute"},
        {"title": "return_result && rm -rf /"},
        {"title": "rm -rf return_result"},
        {"title": "return_result", "path": "secrets.txt"},
        {"title": "return_results"},
    ],
)
def test_no_other_call_passes_for_it(call: dict[str, str]) -> None:
    about = {"kind": "other", **call}
    story = Story().begin("r", **about).end("r").phase("completed")  # type: ignore[arg-type]
    assert any(line.startswith("[tool]") for line in lines_of(story))


@pytest.mark.parametrize("status", ["failed", "completed", "cancelled"])
def test_a_denied_call_is_shown_as_denied_and_not_as_run(status: ev.FinalStatus) -> None:
    def denied() -> Story:
        story = Story().begin("t", "execute", title="rm -rf build").ask(tool_id="t", title="rm -rf build")
        story.answer(choice="reject_once", by="policy")
        return story.end("t", status, text="The user said no.").phase("completed")

    lines, rows = lines_of(denied()), screen_of(denied())
    assert "[answer] rm -rf build: denied by policy" in lines
    assert next(row.split() for row in rows if "rm -rf build" in row) == [
        "✘",
        "asked",
        "run",
        "rm",
        "-rf",
        "build",
    ]
    for told in (*lines, *rows):
        assert "1 tool" not in told
        assert not told.startswith(("[tool]", " ✔ run", " ✘ run", " ⊘ run"))
    assert any("1 denied" in row for row in rows)


def test_a_denied_call_that_never_ended_does_not_run() -> None:
    story = Story().begin("t", "execute", title="rm -rf build").ask(tool_id="t").answer(choice="reject_once")
    rows = LiveTerminal(columns=80).draw(story.now)
    assert not any("running rm" in row or "1 tool" in row for row in rows)


def test_a_call_that_was_allowed_in_the_end_is_shown_as_run() -> None:
    story = Story().begin("t", "execute", title="make").ask("q", tool_id="t").answer("q", "reject_once")
    story.ask("again", tool_id="t").answer("again").end("t").phase("completed")
    assert "[tool]   ✔ run make  0.0s" in lines_of(story)


def test_the_permission_to_return_a_result_is_no_row() -> None:
    story = Story().begin("r", "other", title="mcp__thinkwellc1b5__return_result")
    story.ask(tool_id="r", title="mcp__thinkwellc1b5__return_result").answer(by="policy").end("r")
    story.tell(ev.ResultAttempt(accepted=True, value=1, at=story.time)).phase("completed")
    for told in (*lines_of(story), *screen_of(story)):
        assert "return_result" not in told
        assert "asked" not in told
