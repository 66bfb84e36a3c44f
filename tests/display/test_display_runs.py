"""What a run is doing, its plan, what it has used, and what it came to, in words."""

from __future__ import annotations

from typing import Any

import pytest

from thinkwell import AuthMethod, RunView, ToolView, errors
from thinkwell import events as ev
from thinkwell._display import phases, plans, summary, usage
from thinkwell._reducer import ViewReducer
from thinkwell.view import PhaseView, TokenCounts


def view_of(*events: ev.ThoughtEvent, error: Exception | None = None) -> RunView:
    reducer = ViewReducer(agent="mine", cwd="/p")
    reducer.apply(events)
    return reducer.snapshot(error)


RESPONDING = ev.PhaseChanged(phase="responding")
RUN = ev.ToolStart(id="r", kind="execute", title="`pytest`", status="in_progress")
ASKED = ev.QuestionAsked(id="q", title="May I?", tool_id="r")


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([], "opening a session"),
        (
            [ev.PhaseChanged(phase="starting", detail="another run\x1b[2J goes first")],
            "waiting: another run goes first",
        ),
        ([ev.PhaseChanged(phase="launching")], "looking for mine"),
        (
            [ev.PhaseChanged(phase="installing", detail="npm package x@1\x1b[2J")],
            "installing npm package x@1",
        ),
        ([ev.PhaseChanged(phase="initializing")], "starting mine"),
        ([ev.PhaseChanged(phase="authenticating")], "waiting for login"),
        ([ev.PhaseChanged(phase="prompted")], "waiting for the first token"),
        ([RESPONDING], "working"),
        ([RESPONDING, ev.Thought(text="x")], "thinking"),
        ([RESPONDING, ev.Thought(text="x"), ev.Message(text="y")], "answering"),
        ([RESPONDING, ev.Message(text="x"), ev.TurnStarted(number=2)], "waiting for the first token"),
        ([RESPONDING, RUN], "running pytest"),
        ([RESPONDING, RUN, ev.ToolStart(id="s", kind="read", title="x")], "reading x (+1 tool)"),
        ([RESPONDING, RUN, ev.ToolDone(id="r", status="completed")], "working"),
        ([RESPONDING, RUN, ASKED], "waiting for an answer"),
        ([RESPONDING, ev.Stalled(idle=31, limit=60)], "nothing heard for 31s"),
        ([ev.PhaseChanged(phase="completed")], "done"),
        ([RUN, ev.PhaseChanged(phase="cancelled")], "cancelled"),
    ],
)
def test_what_a_run_does(events: list[ev.ThoughtEvent], words: str) -> None:
    assert phases.words(view_of(*events)) == words


def test_cancelling() -> None:
    assert phases.words(view_of(RESPONDING, ASKED), cancelling=True) == "cancelling"
    assert phases.words(view_of(ev.PhaseChanged(phase="failed")), cancelling=True) == "failed"


def test_what_runs() -> None:
    assert [tool.id for tool in phases.running(view_of(RUN))] == ["r"]
    assert phases.running(view_of(RUN, ASKED)) == ()
    assert phases.running(view_of(RUN, ev.PhaseChanged(phase="failed"))) == ()


def test_a_phase_of_an_agent_without_a_name() -> None:
    assert phases.phase_words(PhaseView(phase="launching")) == "looking for the agent"


def test_durations() -> None:
    view = view_of(
        ev.PhaseChanged(phase="launching", seconds=0.5, at=-3),
        ev.PhaseChanged(phase="installing", seconds=2, at=-2.5),
        ev.PhaseChanged(phase="initializing", seconds=0.5, at=-0.5),
        ev.PhaseChanged(phase="prompted", at=1),
        ev.PhaseChanged(phase="responding", at=3),
        ev.PhaseChanged(phase="prompted", at=10),
        ev.PhaseChanged(phase="responding", at=11),
        ev.PhaseChanged(phase="completed", at=12),
    )
    assert phases.durations(view) == (("start", 1.0), ("install", 2.0), ("first token", 3.0), ("answer", 8.0))


# Plans


def plan(*steps: str, done: int = 0, current: int | None = None) -> RunView:
    statuses: list[Any] = ["completed" if n < done else "pending" for n in range(len(steps))]
    if current is not None:
        statuses[current] = "in_progress"
    entries = tuple(
        ev.PlanEntry(content=step, status=status) for step, status in zip(steps, statuses, strict=True)
    )
    return view_of(ev.PlanUpdate(entries=entries))


STEPS = ("one", "two", "three", "four", "five", "six")


@pytest.mark.parametrize(
    ("view", "width", "text", "progress"),
    [
        (plan("a", "b\nc", done=1), 80, "✔ a   · b c", "1/2"),
        (plan(*STEPS, done=2, current=2), 99, "✔ one   ✔ two   ▸ three   · four   · five   · six", "2/6"),
        (plan(*STEPS, done=2, current=2), 48, "✔ one   ✔ two   ▸ three   · four   · five   …", "2/6"),
        (plan(*STEPS, done=2, current=2), 43, "…   ✔ two   ▸ three   · four   · five   …", "2/6"),
        (plan(*STEPS, done=2, current=2), 32, "…   ✔ two   ▸ three   · four   …", "2/6"),
        (plan(*STEPS, done=2), 26, "…   · three   · four   …", "2/6"),
        (plan(*STEPS, done=6), 27, "…   ✔ four   ✔ five   ✔ six", "6/6"),
        (plan(*STEPS, done=6), 3, "…   ✔ six", "6/6"),
        (plan("数" * 300), 10, f"· {'数' * 199}…", "0/1"),
    ],
)
def test_a_plan_in_a_line(view: RunView, width: int, text: str, progress: str) -> None:
    shown = plans.plan_line(view, width)
    assert shown is not None
    assert (shown.text, shown.progress) == (text, progress)


def test_a_part_of_a_plan() -> None:
    part = plans.plan_of(plan(*STEPS, done=1, current=1), around=1)
    assert part is not None
    assert [(step.text, step.done, step.current) for step in part.steps] == [
        ("one", True, False),
        ("two", False, True),
        ("three", False, False),
    ]
    assert (part.before, part.after, part.total) == (0, 3, 6)


def test_no_plan() -> None:
    assert plans.plan_of(view_of()) is None
    assert plans.plan_line(view_of(), 80) is None


# Usage


@pytest.mark.parametrize(
    ("used", "tokens", "words"),
    [
        (None, None, "usage not reported"),
        (ev.UsageUpdate(used=18_234, size=200_000), None, "18.2k/200k ctx"),
        (ev.UsageUpdate(used=5, size=0), None, "5 ctx"),
        (
            ev.UsageUpdate(used=18_234, size=200_000, cost=ev.Cost(amount=0.06, currency="USD")),
            TokenCounts(input=5_000, output=4_100, cached_read=4_600),
            "18.2k/200k ctx · 4.1k out · 92% cached · $0.06 (agent)",
        ),
        (None, TokenCounts(input=5_000, output=4_100), "5k in · 4.1k out"),
        (None, TokenCounts(total=70), "70 tokens"),
        (None, TokenCounts(), "usage not reported"),
        (None, TokenCounts(input=100, cached_read=900), "100 in · 90% cached"),
        (None, TokenCounts(input=100, cached_read=100, total=200), "100 in · 50% cached"),
        (None, TokenCounts(input=100, cached_read=100, total=100), "100 in · 100% cached"),
        (None, TokenCounts(input=0, cached_read=0), "0 in"),
        (
            None,
            TokenCounts(input=100, output=1, cached_read=50, cached_write=50, total=201),
            "100 in · 1 out · 25% cached",
        ),
    ],
)
def test_usage(used: ev.UsageUpdate | None, tokens: TokenCounts | None, words: str) -> None:
    assert usage.usage_words(RunView(usage=used, tokens=tokens)) == words


def test_how_full_the_window_is() -> None:
    assert usage.context_share(RunView()) is None
    assert usage.context_share(RunView(usage=ev.UsageUpdate(used=1, size=0))) is None
    assert usage.context_share(RunView(usage=ev.UsageUpdate(used=50, size=200))) == 0.25
    assert usage.context_share(RunView(usage=ev.UsageUpdate(used=500, size=200))) == 1.0


# The end


def edited(
    id_: str, path: str, old: str, new: str, status: ev.FinalStatus = "completed"
) -> list[ev.ThoughtEvent]:
    diff = ev.DiffContent(path=path, old_text=old, new_text=new)
    return [
        ev.ToolStart(id=id_, kind="edit", title="x"),
        ev.ToolDone(id=id_, status=status, content=(diff,)),
    ]


def test_a_summary() -> None:
    view = view_of(
        ev.SessionOpened(agent="mine", cwd="/p", session_id="s\x1b[2J", model="m"),
        *edited("1", "/p/a", "a\n", "b\n"),
        *edited("2", "/p/a", "b\n", "c\nd\n"),
        *edited("3", "/p/b", "x\n", "y\n", "failed"),
        *edited("4", "/p/b", "x\n", "y\n", "cancelled"),
        ev.QuestionAsked(id="q", title="Delete\nall"),
        ev.QuestionAnswered(id="q", choice="reject_once", by="policy", why=""),
        ev.ResultAttempt(accepted=False),
        ev.ResultAttempt(accepted=True),
        ev.TurnEnded(number=1, stop_reason="end_turn"),
        ev.PhaseChanged(phase="completed"),
    )
    told = summary.summary(view, 3.0, "runs/r.ndjson")
    assert (told.status, told.agent, told.model, told.session_id) == ("done", "mine", "m", "s")
    assert told.files == (1, 3, 2)
    assert [(change.path, change.added, change.removed) for change in told.changes] == [("a", 3, 2)]
    assert (told.tools, told.tools_failed, told.tools_cancelled) == (4, 1, 1)
    assert (told.refused, told.denied, told.stop_reason) == (1, ("Delete all",), "end_turn")
    assert (told.error, told.recording, told.usage) == (None, "runs/r.ndjson", "usage not reported")
    assert told.work == "4 tools, 1 failed, 1 cancelled · 1 file changed, +3 −2 · 1 result refused · 1 denied"


def test_a_summary_of_nothing() -> None:
    told = summary.summary(RunView(), 0.0)
    assert (told.status, told.work, told.recording, told.session_id) == ("running", "", "", "")


@pytest.mark.parametrize(
    ("phase", "error", "status"),
    [
        ("completed", None, "done"),
        ("failed", errors.AgentExited(1), "failed"),
        ("failed", errors.AgentClosed(), "cancelled"),
        ("cancelled", errors.ThoughtCancelled(), "cancelled"),
        ("cancelled", errors.ThoughtTimeout(3), "cancelled"),
        ("responding", None, "running"),
        ("failed", None, "failed"),
    ],
)
def test_how_a_run_ended(phase: ev.Phase, error: Exception | None, status: str) -> None:
    assert summary.status_of(view_of(ev.PhaseChanged(phase=phase), error=error)) == status


METHODS = (AuthMethod(id="key", name="An API key"), AuthMethod(id="web", name="Browser\x1b[2J"))


@pytest.mark.parametrize(
    ("error", "what", "next_", "detail"),
    [
        (
            errors.AgentNotFound("x", "no program of that name", next_command="npm i -g x"),
            "Agent 'x' was not found: no program of that name",
            "type: npm i -g x",
            "",
        ),
        (
            errors.AgentStartFailed("x", "it ended", stderr_tail="boom\x1b[31m\n", version="1.0"),
            "Agent 'x' (version 1.0) could not be started: it ended",
            "",
            "boom",
        ),
        (
            errors.AgentExited(1, "line one\nline two\n", agent="x"),
            "Agent 'x' exited with code 1 before it had finished",
            "open it again to go on",
            "line one\nline two",
        ),
        (
            errors.LoginRequired("x", METHODS),
            "Agent 'x': it wants a login first",
            "log in: thinkwell login x",
            "key: An API key\nweb: Browser",
        ),
        (
            errors.ResultMissing("max_tokens", ""),
            "The agent ended its turn (max_tokens) without a result",
            "ask for less, or for a smaller result",
            "It said nothing",
        ),
        (
            errors.ResultMissing("end_turn", "Hm.", denied=["x"]),
            "The agent ended its turn (end_turn) without a result",
            "allow what it needs by permissions=; it was denied 1 thing",
            "It said: Hm.",
        ),
        (
            errors.ResultInvalid({}, ["a: missing", "b: missing"], 3),
            "The agent returned no valid result in 3 attempts",
            "say in the prompt what the result has to be, or allow more in its type",
            "a: missing\nb: missing",
        ),
        (errors.ResultRefused("No."), "The model refused", "put the prompt differently", "No."),
        (
            errors.ToolsNotSeen(["http"]),
            "The agent never asked for our tools over http",
            "Its settings may forbid MCP servers in this folder; its log says more",
            "",
        ),
        (errors.ThoughtCancelled(), "The run was cancelled", "", ""),
        (
            errors.ThoughtTimeout(3),
            "The run took longer than 3 seconds and was cancelled",
            "give it more time, or ask for less",
            "",
        ),
        (
            errors.ThoughtTimeout(3, idle=True),
            "Nothing was heard of the agent for 3 seconds, and the run was cancelled",
            "raise idle_timeout= where it needs longer",
            "",
        ),
        (errors.QuestionsStopped("enough", "q1"), "The run was ended over question q1: enough", "", ""),
        (OSError("x" * 5_000), f"OSError: {'x' * 1_990}…", "", ""),
        (KeyError(), "KeyError", "", ""),
    ],
)
def test_errors(error: Exception, what: str, next_: str, detail: str) -> None:
    assert summary.error_words(error) == (what, next_, detail)


def test_what_is_noted_at_an_error() -> None:
    error = OSError("full")
    error.add_note("delete something")
    assert summary.error_words(error).next == "delete something"


def test_a_long_detail_keeps_its_end() -> None:
    detail = summary.error_words(errors.AgentExited(1, "x" * 9_000 + "end")).detail
    assert len(detail) == summary.DETAIL
    assert detail.startswith("…x")
    assert detail.endswith("end")


def test_a_tool_view_alone_is_shown() -> None:
    view = RunView(phase="responding", tools={"t": ToolView(id="t", kind="read")})
    assert phases.words(view) == "reading"
