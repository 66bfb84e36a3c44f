"""What a script refuses to be made of, and what it makes of a step that breaks."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import msgspec
import pytest

from thinkwell import AgentReported, LoginRequired, open_agent
from thinkwell.testing import Script, ScriptedAgent, ScriptFailed, ScriptNotFinished, script
from thinkwell_acp import RpcError

if TYPE_CHECKING:
    from collections.abc import Callable


ANY: Any = script
"""To be called by those who do not check types."""


@pytest.mark.parametrize(
    ("make", "error", "why"),
    [
        (lambda: ANY.says(3), TypeError, "says(text=3): give a str, not int"),
        (lambda: ANY.says(None), TypeError, "says(text=None): give a str, not NoneType"),
        (lambda: ANY.says("a", message_id=3), TypeError, "says(message_id=3): give a str, not int"),
        (lambda: ANY.thinks(b"x"), TypeError, "thinks(text=b'x'): give a str, not bytes"),
        (lambda: ANY.says("\ud800"), ValueError, "says(…): this cannot be written as JSON: "),
        (lambda: ANY.returns({"a": "\ud800"}), ValueError, "returns(…): this cannot be written as JSON: "),
        (lambda: ANY.plans(["a"]), TypeError, "plans(entries=(['a'],)): give each as a str"),
        (lambda: ANY.plans("a", done=-1), ValueError, "plans(done=-1): give a whole number from 0 on"),
        (
            lambda: ANY.plans("a", done=True),
            TypeError,
            "plans(done=True): give a whole number from 0 on, not",
        ),
        (lambda: ANY.plans("a", done=2), ValueError, "plans(done=2): there are no more than 1 entries"),
        (lambda: ANY.uses("a", kind="wrote"), ValueError, "uses(kind='wrote'): give one of read, edit, "),
        (lambda: ANY.uses("a", kind=3), TypeError, "uses(kind=3): give one of read, edit, "),
        (lambda: ANY.uses("a", status="done"), ValueError, "uses(status='done'): give one of pending, "),
        (lambda: ANY.uses("a", path=3), TypeError, "uses(path=3): give a str, not int"),
        (lambda: ANY.uses("a", path="/a", new_text=3), TypeError, "uses(new_text=3): give a str, not int"),
        (lambda: ANY.asks("a", kind="wrote"), ValueError, "asks(kind='wrote'): give one of read, "),
        (
            lambda: ANY.asks("a", expect="allow"),
            ValueError,
            "asks(expect='allow'): the choices are allow_once, reject_once, cancelled; options= names others",
        ),
        (
            lambda: ANY.asks("a", expect="allow_always"),
            ValueError,
            "asks(expect='allow_always'): the choices",
        ),
        (lambda: ANY.asks("a", options="allow_once"), TypeError, "asks(options='allow_once'): give a list"),
        (lambda: ANY.asks("a", options=3), TypeError, "asks(options=3): give a list of kinds"),
        (lambda: ANY.asks("a", options=[3]), TypeError, "asks(options=(3,)): give each as a str"),
        (lambda: ANY.asks_form("a", "b"), TypeError, "asks_form(schema='b'): give a dict, not str"),
        (lambda: ANY.asks_form("a", {}, expect=3), TypeError, "asks_form(expect=3): give a dict, not int"),
        (lambda: ANY.asks_form("a", {}, expect="yes"), ValueError, "asks_form(expect='yes'): give accept, "),
        (lambda: ANY.floods_stderr("a"), TypeError, "floods_stderr(size='a'): give a whole number from 0 on"),
        (lambda: ANY.floods_stderr(-1), ValueError, "floods_stderr(size=-1): give a whole number from 0 on"),
        (lambda: ANY.sends(3), TypeError, "sends(data=3): give bytes or a str, not int"),
        (
            lambda: ANY.pauses("1"),
            TypeError,
            "pauses(seconds='1'): give a number of seconds from 0 on, not str",
        ),
        (lambda: ANY.pauses(-1), ValueError, "pauses(seconds=-1): give a number of seconds from 0 on"),
        (
            lambda: ANY.pauses(float("nan")),
            ValueError,
            "pauses(seconds=nan): give a number of seconds from 0",
        ),
        (lambda: ANY.runs(["ls"]), TypeError, "runs(command=['ls']): give a str, not list"),
        (lambda: ANY.reads(3), TypeError, "reads(path=3): give a str, not int"),
        (lambda: ANY.expects(3), TypeError, "expects(text=3): give a str, not int"),
        (lambda: ANY.expects(""), ValueError, "expects(text=''): every prompt contains that"),
        (lambda: ANY.calls("x", 3), TypeError, "calls(arguments=3): give a dict, not int"),
        (
            lambda: ANY.calls("x", expect_error=3),
            TypeError,
            "calls(expect_error=3): give True, False, None or",
        ),
        (lambda: ANY.updates("x"), TypeError, "updates(update='x'): give a dict, not str"),
        (
            lambda: ANY.crashes("x"),
            TypeError,
            "crashes(exit_code='x'): give a whole number from 0 to 255, not",
        ),
        (lambda: ANY.crashes(256), ValueError, "crashes(exit_code=256): give a whole number from 0 to 255"),
        (lambda: ANY.fails("x"), TypeError, "fails(code='x'): give a whole number, not str"),
        (lambda: ANY.hangs(deaf=1), TypeError, "hangs(deaf=1): give True or False, not int"),
        (lambda: ANY.stops(3), TypeError, "stops(reason=3): give a str, not int"),
        (lambda: ANY.stops(late="x"), TypeError, "stops(late=…): 'x' is not a script"),
        (lambda: ANY + "x", TypeError, "unsupported operand"),
        (
            lambda: ScriptedAgent(cast("Script", "x")),
            TypeError,
            "ScriptedAgent('x'): give a script, such as script.says(",
        ),
        (
            lambda: ScriptedAgent(script, fails_at={"sesion/new": RpcError(1, "x")}),
            ValueError,
            "fails_at={'sesion/new': …}: the methods are initialize, ",
        ),
        (
            lambda: ScriptedAgent(script, fails_at={"session/new": cast("RpcError", "x")}),
            TypeError,
            "fails_at={'session/new': 'x'}: give an RpcError",
        ),
    ],
)
def test_what_is_wrong_is_refused_at_once(
    make: Callable[[], object], error: type[Exception], why: str
) -> None:
    with pytest.raises(error) as refused:
        make()
    assert str(refused.value).startswith(why)


def test_what_is_unknown_may_be_tried_out() -> None:
    script.stops("something new").asks("May I?", options=["odd", "allow_once"], expect="odd")
    script.updates({"sessionUpdate": "odd"}).asks("May I?", options=(), expect="cancelled")
    ScriptedAgent(script, fails_at={"mcp/message": RpcError(1, "x")})


def test_paths_may_be_paths() -> None:
    path = Path("/a.py")
    told = script.uses("a", path=path, new_text="b").asks("a", path=path).reads(path).writes(path, "b")
    plain = script.uses("a", path="/a.py", new_text="b").asks("a", path="/a.py")
    assert told == plain.reads("/a.py").writes("/a.py", "b")


BROKEN = Script(tuple(msgspec.structs.replace(step, seconds="1") for step in script.pauses(1).steps))
"""What no method makes."""

WHY = "pauses('1'): TypeError: "


async def test_a_step_that_breaks_the_agent_is_a_failure_of_the_script(
    caplog: pytest.LogCaptureFixture,
) -> None:
    played = ScriptedAgent(BROKEN)
    with pytest.raises(ScriptFailed) as failed:  # noqa: PT012 - what is left is what is tested
        async with played.open() as agent:
            with pytest.raises(AgentReported, match="The script failed at turn 1, step 1, pauses") as told:
                await agent.think().text("go").run()
            assert "thinkwell.testing" in str(told.value)
    assert failed.value.failures[0].startswith(f"turn 1, step 1, {WHY}")
    assert "Traceback" not in caplog.text


async def test_a_step_that_breaks_outside_of_a_turn() -> None:
    played = ScriptedAgent(script.says("a").stops(late=script.says("b") + BROKEN), before_session=BROKEN)
    with pytest.raises(ScriptFailed) as failed:
        async with played.open() as agent:
            assert await agent.think().text("go").run() == "a"
    before, late = failed.value.failures
    assert before.startswith(f"before_session, step 1, {WHY}")
    assert late.startswith(f"turn 1, late, step 2, {WHY}")


Expected: TypeAlias = bool | str | None


def calls(expected: Expected) -> Script:
    return script.calls("owner_of", {"file": "a.py"}, expect_error=expected)


def returns(expected: Expected) -> Script:
    return script.returns({"name": 1}, expect_error=expected).returns({"name": "a"})


def reads(expected: Expected) -> Script:
    return script.reads("/none", expect_error=expected)


def writes(expected: Expected) -> Script:
    return script.writes("/none", "", expect_error=expected)


def runs(expected: Expected) -> Script:
    return script.runs("none", expect_error=expected)


@pytest.mark.parametrize("makes", [calls, returns, reads, writes, runs])
@pytest.mark.parametrize("expected", [False, True, None, "e"])
async def test_what_fails_has_to_be_expected(makes: Callable[[Expected], Script], expected: Expected) -> None:
    def owner_of(filename: str) -> str:
        return filename

    played = ScriptedAgent(makes(expected) + script.says("done").returns({"name": "a"}), complete=False)
    async with played.connect() as transport, open_agent(transport=transport) as agent:
        await agent.think(dict[str, str]).text("go").tool(owner_of).stream().wait()
    if expected is False:
        (failure,) = played.failures
        assert ": it failed, and no expect_error= allows that: " in failure
        assert ("workspace=" in failure) == (makes in (reads, writes, runs))
    else:
        assert played.failures == ()


async def test_a_result_that_is_not_wanted() -> None:
    played = ScriptedAgent(script.returns(1).stops().asks_form("Who?", {}))
    async with played.connect() as transport, open_agent(transport=transport) as agent:
        for _ in range(2):
            with pytest.raises(AgentReported):
                await agent.think().text("go").run()
    nobody, no_form = played.failures
    assert (
        nobody == "turn 1, step 1, returns(1): the client asks for no result, as think(…) with a type would"
    )
    assert no_form.endswith("(it takes forms where it has an on_question=)")


async def test_a_message_that_is_not_the_one_to_be_heard() -> None:
    played = ScriptedAgent(script.says("Looking.").hears("auth"), steering=True)
    async with played.connect() as transport, open_agent(transport=transport) as agent:
        stream = agent.think().text("go").stream()
        await stream.steer("And the login")
        with pytest.raises(AgentReported):
            await stream.result
    assert played.failures == (
        "turn 1, step 2, hears('auth'): the client says something else: 'And the login'",
    )


async def test_an_error_that_was_never_asked_for(tmp_path: Path) -> None:
    error = RpcError(1, "x")
    played = ScriptedAgent(script.says("a"), fails_at={"session/load": error, "session/close": error})
    with pytest.raises(ScriptNotFinished) as early:
        async with played.open() as agent:
            await agent.think().text("go").run()
    assert early.value.unasked == ("session/load",)
    assert str(early.value) == "fails_at is for what was never asked:\n  session/load"
    assert played.unasked == ("session/load",)

    loose = ScriptedAgent(script.says("a"), fails_at={"session/load": error}, complete=False)
    async with open_agent(command=loose.program(tmp_path)) as agent:
        await agent.think().text("go").run()
    loose.check()
    assert loose.unasked == ("session/load",)


async def test_an_agent_that_wants_a_login() -> None:
    async with ScriptedAgent(script.fails(-32000, "Who are you?")).open() as agent:
        with pytest.raises(LoginRequired):
            await agent.think().text("go").run()


def test_an_error_of_a_script_is_pickled_and_has_a_public_name() -> None:
    error = ScriptNotFinished(("a",), (), ("b",))
    again = pickle.loads(pickle.dumps(error))
    assert (again.failures, again.unplayed, again.unasked) == (("a",), (), ("b",))
    assert repr(ScriptFailed) == "<class 'thinkwell.testing.ScriptFailed'>"
