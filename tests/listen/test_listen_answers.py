"""What a handler returns, and what the agent is told: over ACP and by lines."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest
from asking import Asked, answered, permission
from listen.line_programs import form, listened, page, titled
from listen.talkers import SOON
from pydantic import BaseModel
from scripted import Turn, scripted

from thinkwell import ChooseOption, QuestionsStopped, Reply, StopRun
from thinkwell.listen import Handlers, Transcript, listen
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lines.program import Program

pytestmark = pytest.mark.anyio


class Choice(BaseModel):
    alg: str


@dataclass
class Filled:
    alg: str


class Struct(msgspec.Struct):
    alg: str


class Word(enum.Enum):
    YES = "yes"


class Opaque:
    """It has no form in JSON."""


async def told(
    request: Callable[[str], Any], value: object, handlers: Handlers | None = None, **options: Any
) -> Asked:
    """Ask over ACP, have a handler return a value, and return what the agent is told."""
    handlers = handlers or Handlers()
    asked = Asked()

    async def answer(message: object) -> object:
        return value

    for type_ in ("question", "approval"):
        handlers.on(type_, by="listener")(answer)

    async def play(turn: Turn) -> None:
        with anyio.CancelScope(shield=True):
            asked.told.append(await answered(turn, request(turn.session_id)))

    options = {"on_question": last, "permissions": "ask", **options}
    async with scripted(play, **options) as agent:
        stream = agent.think().text("Go").stream(include="all")
        with anyio.fail_after(SOON):
            try:
                await listen(stream, handlers)
            finally:
                asked.events = [event async for event in stream]
    return asked


async def last(question: object) -> Any:
    """Be asked what the handlers leave open: for a permission, say no for ever."""
    return ChooseOption("n") if getattr(question, "options", ()) else None


def first(session_id: str) -> s.RequestPermissionRequest:
    """Ask for permission by options with names of their own."""
    options = (
        s.PermissionOption(option_id="all", name="No", kind="allow_always"),
        s.PermissionOption(option_id="1", name="This once", kind="allow_once"),
        s.PermissionOption(option_id="2", name="Not now!", kind="reject_once"),
        s.PermissionOption(option_id="3", name="Twice", kind="allow_once"),
        s.PermissionOption(option_id="4", name="twice", kind="reject_once"),
    )
    return permission(session_id, offered=options)


# Approvals


@pytest.mark.parametrize(
    ("value", "choice"),
    [
        (True, "y"),
        (False, "x"),
        ("yes", "y"),
        (" Approved! ", "y"),
        ("OK.", "y"),
        (Word.YES, "y"),
        ("No", "x"),
        ("rejected", "x"),
        ("allow_always", "a"),
        ("Deny_Always", "n"),
        ("allow_session", "y"),
        (ChooseOption("a"), "a"),
        (Reply("deny_always", "never"), "n"),
        (Reply(True, ""), "y"),
    ],
)
async def test_yes_and_no(value: object, choice: str) -> None:
    asked = await told(permission, value)
    assert (asked.choice, asked.answer.by) == (choice, "listener")


@pytest.mark.parametrize("value", ["1", "this ONCE", "not now", "No", "twice"])
async def test_no_text_chooses_what_an_agent_calls_an_option(value: str) -> None:
    """It may call one that allows "Not without a person"."""
    asked = await told(first, value)
    assert (asked.choice, asked.answer.option_id) == ("2", None)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("Only the tests may be changed", "Only the tests may be changed"),
        ("yes, but not today", "yes, but not today"),
        ("", "the listener said so"),
        (1, "the handler gave a int, which says neither yes nor no"),
        ({"allow": True}, "the handler gave a dict, which says neither yes nor no"),
        ([True], "the handler gave a list, which says neither yes nor no"),
    ],
)
async def test_what_is_not_yes_is_no(value: object, why: str) -> None:
    asked = await told(permission, value)
    assert (asked.choice, asked.answer.by, asked.answer.why) == ("x", "listener", why)


async def test_a_reply_says_why_and_by_which_handler() -> None:
    asked = await told(permission, Reply("allow", "it is harmless", by="Ann"))
    assert (asked.choice, asked.answer.by, asked.answer.why) == ("y", "Ann", "it is harmless")
    asked = await told(permission, Reply("Yes!", "it is harmless"))
    assert (asked.choice, asked.answer.by, asked.answer.why) == ("y", "listener", "it is harmless")
    asked = await told(permission, Reply("too risky", "", by="Ann"))
    assert (asked.choice, asked.answer.by, asked.answer.why) == ("x", "Ann", "too risky")


@pytest.mark.parametrize("value", [None, Reply(None, "not mine")])
async def test_none_leaves_it_to_the_next(value: object) -> None:
    asked = await told(permission, value)
    assert (asked.choice, asked.answer.by) == ("n", "handler")
    assert [verdict for verdict, *_ in asked.verdicts] == [None, "deny"]


async def test_none_is_no_where_there_is_no_next() -> None:
    asked = await told(permission, None, permissions=None, on_question=None)
    assert (asked.choice, asked.answer.by) == ("x", "policy")


async def test_an_answer_may_end_the_run() -> None:
    with pytest.raises(QuestionsStopped, match="enough"):
        await told(permission, StopRun("enough"))


# Forms

BOTH = {"alg": titled(rs="RS256 (usual)", hs="HS256"), "note": s.StringPropertySchema()}
FLAGS = {"sure": s.BooleanPropertySchema(), "count": s.IntegerPropertySchema()}
MANY = {
    "tags": s.MultiSelectPropertySchema(
        items=s.TitledMultiSelectItems(
            any_of=(s.EnumOption(const="a", title="Alpha"), s.EnumOption(const="b", title="Beta"))
        )
    )
}
TEXT = {"name": s.StringPropertySchema()}
TEXTS = {"name": s.StringPropertySchema(), "note": s.StringPropertySchema()}
CHOICES = {"one": titled(a="A"), "two": titled(b="A")}
NUMBER = {"count": s.NumberPropertySchema()}
WHOLE = {"count": s.IntegerPropertySchema()}
SURE = {"sure": s.BooleanPropertySchema()}
CASES = {"alg": titled(one="Yes", two="YES", three="yes ")}


@pytest.mark.parametrize(
    ("fields", "value", "filled"),
    [
        (BOTH, {"alg": "hs", "note": None}, {"alg": "hs"}),
        (BOTH, Choice(alg="hs"), {"alg": "hs"}),
        (BOTH, Filled("hs"), {"alg": "hs"}),
        (BOTH, Struct("hs"), {"alg": "hs"}),
        (BOTH, "hs", {"alg": "hs"}),
        (BOTH, "RS256 (usual)", {"alg": "rs"}),
        (BOTH, " hs256", {"alg": "hs"}),
        (BOTH, "neither", {"note": "neither"}),
        (BOTH, 3, {"note": "3"}),
        (BOTH, True, {}),
        (FLAGS, True, {"sure": True}),
        (FLAGS, False, {"sure": False}),
        (FLAGS, 3, {"count": 3}),
        (MANY, ["a", "BETA"], {"tags": ["a", "b"]}),
        (MANY, "beta", {"tags": ["b"]}),
        (TEXT, "Ann", {"name": "Ann"}),
        (TEXT, "decline", {"name": "decline"}),
        (TEXT, Reply("Ann", "she asked"), {"name": "Ann"}),
        (TEXT, Reply({"name": "Ann"}, "she asked"), {"name": "Ann"}),
        (NUMBER, "2.5", {"count": 2.5}),
        (NUMBER, "2", {"count": 2}),
        (WHOLE, 2.0, {"count": 2}),
        (SURE, "Yes.", {"sure": True}),
        (SURE, "no", {"sure": False}),
        (SURE, False, {"sure": False}),
        (SURE, Reply(True, "since"), {"sure": True}),
        (SURE, Reply(False, "since"), {"sure": False}),
        (CASES, "YES", {"alg": "two"}),
        ({"one": titled(a="x"), "two": titled(b="y")}, "y", {"two": "b"}),
    ],
)
async def test_forms(fields: Mapping[str, Any], value: object, filled: dict[str, Any]) -> None:
    asked = await told(lambda id_: form(id_, fields), value)
    (response,) = asked.told
    assert (response.action, response.content and s.to_builtins(response.content)) == ("accept", filled)
    assert asked.answer.by == "listener"


async def test_what_has_to_be_filled_in_comes_first() -> None:
    fields = {**CHOICES, **TEXTS, "a": s.NumberPropertySchema(), "b": s.NumberPropertySchema()}

    async def filled(value: object, *required: str) -> Any:
        asked = await told(lambda id_: form(id_, fields, required=required), value)
        (response,) = asked.told
        return response.content and s.to_builtins(response.content)

    assert await filled("A") == {"one": "a"}
    assert await filled("A", "two") == {"two": "b"}
    assert await filled("free", "note") == {"note": "free"}
    assert await filled(1) == {"a": 1}
    assert await filled(1, "b") == {"b": 1}


@pytest.mark.parametrize("value", ["free", ["a"], 3, "Yes"])
async def test_what_fits_no_field_is_left_to_the_next(
    value: object, caplog: pytest.LogCaptureFixture
) -> None:
    asked = await told(lambda id_: form(id_, TEXTS), value)
    assert asked.told[0].action == "decline"
    ((verdict, by, why), _) = asked.verdicts
    assert (verdict, by) == (None, "listener")
    assert why.endswith("no one field of the form takes it: 'name', 'note'")
    assert why in caplog.text


@pytest.mark.parametrize(
    ("fields", "value"),
    [(SURE, "perhaps"), (NUMBER, "many"), (MANY, ["gamma", 3]), (BOTH, {"other": 1}), (TEXT, ["a"])],
)
async def test_what_is_wrong_for_its_field_is_left_to_the_next(
    fields: Mapping[str, Any], value: object
) -> None:
    asked = await told(lambda id_: form(id_, fields), value)
    assert asked.told[0].action == "decline"
    assert asked.verdicts[0][0] is None


@pytest.mark.parametrize("value", [False, Reply("decline", "no need"), Reply(False, "no need")])
async def test_a_form_can_be_declined(value: object) -> None:
    asked = await told(lambda id_: form(id_, TEXT), value)
    assert asked.told[0].action == "decline"
    assert asked.answer.by == "listener"


@pytest.mark.parametrize(
    ("value", "action"), [(True, "accept"), ("ok", "accept"), ("no", "decline"), ("not that page", "decline")]
)
async def test_web_pages(value: object, action: str) -> None:
    asked = await told(page, value)
    assert (asked.told[0].action, asked.answer.by) == (action, "listener")


# Lines


async def by_lines(type_: str, value: object, **fields: object) -> tuple[Any, Transcript]:
    """Have a program ask, and return what it is told, and the transcript."""
    transcript = Transcript()
    handlers = Handlers(transcript=transcript)
    got: list[Any] = []

    @handlers.on(type_)
    async def answer(message: object) -> object:
        return value

    async def play(program: Program) -> None:
        got.append(await program.ask(type_, **fields))

    await listened(play, handlers)
    return got[0], transcript


async def test_lines_get_models_as_json() -> None:
    for value in (Choice(alg="hs"), Filled("hs"), Struct("hs"), {Word.YES: Choice(alg="hs")}):
        got, _ = await by_lines("question", value, question="Which?", options=["hs"])
        assert got in ({"alg": "hs"}, {"yes": {"alg": "hs"}})


@pytest.mark.parametrize("value", ["hs", "HS", "free"])
async def test_an_answer_need_not_be_an_option_of_a_line(value: str) -> None:
    got, (record,) = await by_lines("question", value, question="Which?", options=["hs", "rs"])
    assert (got, record.by) == (value, "handler")


@pytest.mark.parametrize(
    ("type_", "value", "told"),
    [
        ("approval", Reply("allow", "fine"), "allow"),
        ("approval", Reply("deny", "no"), "deny"),
        ("approval", "allow_session", True),
        ("approval", Reply("deny_always", "no"), False),
        ("question", Reply("deny", "no"), "deny"),
        ("approval", Reply(True, "fine"), True),
        ("approval", ChooseOption("allow"), True),
        ("approval", Reply("be careful", "hm"), "be careful"),
        ("question", Reply("hs", "usual"), "hs"),
        ("question", Reply(True, "usual"), True),
        ("question", Reply({"alg": "hs"}, "usual"), {"alg": "hs"}),
        ("question", Reply("decline", "unknown"), None),
    ],
)
async def test_replies_to_lines(type_: str, value: object, told: object) -> None:
    got, (record,) = await by_lines(type_, value, question="Which?")
    assert got == told
    assert record.why == getattr(value, "why", "the handler said so")


# What has no form in JSON


@pytest.mark.parametrize("value", [Opaque(), math.nan, "\ud800", b"\xff"])
async def test_what_is_no_json_ends_the_run(value: object) -> None:
    with pytest.raises(TypeError, match=r"handler .*answer\(\) .*returned what cannot be written as JSON"):
        await told(permission, value)


async def test_the_reply_is_no_json_either() -> None:
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(TypeError, match="a list: Circular reference"):
        await told(lambda id_: form(id_, TEXT), Reply(circle, ""))  # type: ignore[arg-type]
