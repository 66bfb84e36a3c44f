"""What clients of AG-UI keep of a run: state that patches change, and schemas of what is asked."""

from __future__ import annotations

import copy
import json
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from front_end_stage import asks, page
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from kept_runs import keep_run
from web_stage import Client, frames_of, served

from thinkwell import events as ev
from thinkwell.journal import RunRecord
from thinkwell.questions import FormField
from thinkwell.web import RunEnded, web_app
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from scripted import Turn


pytestmark = pytest.mark.virtual_time

END = RunEnded(seq=0, at=0.0, status="completed")

KEYS = st.text(st.sampled_from("ab~/0"), max_size=3)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from([1.0, "", "a", "~1"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)

Chunk = dict[str, Any]


async def streamed(*log: ev.ThoughtEvent) -> bytes:
    """A run as it is sent."""
    async with served() as stage:
        record = RunRecord(id="run-1", agent="odd", created=0.0)
        await keep_run(stage.server.journal, record, log, END)
        answer = await Client(web_app(stage.server)).get(f"/api/runs/{record.id}/events?format=ag-ui")
        return await answer.body()


async def chunks(*log: ev.ThoughtEvent) -> list[Chunk]:
    return [frame.json() for frame in frames_of((await streamed(*log)).decode())]


# Patches


def field(raw: Any) -> FormField:
    return FormField(name="x", type="unknown", raw=raw)


def asked(raw: Any) -> ev.QuestionAsked:
    """A question that brings any JSON into the state."""
    return ev.QuestionAsked(id="q", title="?", asks="form", fields=(field(raw),), timeout=300.0)


ANSWERED = ev.QuestionAnswered(id="q", choice="accept", by="human", why="")
"""Where it was asked several times, each is shown as it was asked last: what was asked before is patched."""


def place_of(key: str, place: object) -> int | str:
    return int(key) if isinstance(place, list) else key


def applied(document: Any, operations: list[Chunk]) -> Any:
    """Apply a patch as RFC 6902 says, for the three operations that are used."""
    document = copy.deepcopy(document)
    for operation in operations:
        path, op, value = str(operation["path"]), operation["op"], copy.deepcopy(operation.get("value"))
        place = document
        *keys, last = [key.replace("~1", "/").replace("~0", "~") for key in path.split("/")[1:]]
        for key in keys:
            place = place[place_of(key, place)]
        if last == "-":
            assert op == "add"
            place.append(value)
            continue
        at = place_of(last, place)
        assert (at < len(place) and op != "add") if isinstance(at, int) else (at in place) is (op != "add")
        if op == "remove":
            del place[at]
        else:
            place[at] = value
    return document


def as_text(value: Any) -> str:
    """A value such that the same text means the same JSON."""
    return json.dumps(value, sort_keys=True)


async def check_patches(old: Any, new: Any) -> None:
    sent = await chunks(asked(old), asked(new), ANSWERED, asked(new), ANSWERED)
    (state,) = [chunk["snapshot"] for chunk in sent if chunk["type"] == "STATE_SNAPSHOT"]
    deltas = [chunk["delta"] for chunk in sent if chunk["type"] == "STATE_DELTA"]
    for delta in deltas:
        state = applied(state, delta)
    shown = {
        "id": "q",
        "title": "?",
        "asks": "form",
        "fields": [json.loads(msgspec.json.encode(field(new)))],
        "timeout": 300.0,
        "answer": {"choice": "accept", "by": "human", "why": ""},
    }
    assert as_text(state["questions"]) == as_text([shown] * 3)
    assert [operation["path"] for operation in deltas[-1]] == ["/questions/2/answer"]


@settings(max_examples=25)
@given(JSON, JSON)
async def test_a_patch_makes_one_document_of_another(old: Any, new: Any) -> None:
    await check_patches(old, new)


@pytest.mark.long
@settings(max_examples=300)
@given(JSON, JSON)
async def test_many_patches_make_one_document_of_another(old: Any, new: Any) -> None:
    await check_patches(old, new)


async def test_a_patch_says_no_more_than_has_changed() -> None:
    old = {"plan": [{"a/b": 1, "s": "x"}, {"s": "y"}]}
    new = {"plan": [{"a/b": 2, "s": "x"}, {"s": "y"}, {"s": "z"}]}
    delta = (await chunks(asked(old), asked(new), ANSWERED))[-2]["delta"]
    assert [operation for operation in delta if "/fields" in operation["path"]] == [
        {"op": "replace", "path": "/questions/0/fields/0/raw/plan/0/a~1b", "value": 2},
        {"op": "add", "path": "/questions/0/fields/0/raw/plan/-", "value": {"s": "z"}},
    ]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="JSON is not read that is nested as deep")
async def test_what_is_nested_deep_is_replaced() -> None:
    def nested(inmost: int) -> Any:
        value: Any = inmost
        for _ in range(3000):
            value = [value]
        return value

    output = ev.ToolDone(id="t", status="completed", output=nested(3))
    sent = (await streamed(asked(nested(1)), asked(nested(2)), ANSWERED, output)).decode()
    *_, answered = [frame.data for frame in frames_of(sent) if "STATE_DELTA" in frame.data]
    assert '"delta":[{"op":"replace","path":"/questions","value":[{' in answered
    assert answered.count("[2]") == 2
    (called,) = [frame.data for frame in frames_of(sent) if "TOOL_CALL_RESULT" in frame.data]
    assert "[3]" in called


# Schemas

CHOICES = (s.EnumOption(const="a", title="A", description="first"), s.EnumOption(const="b", title="B"))

FORM = s.ElicitationSchema(
    properties={
        "text": s.StringPropertySchema(min_length=2, max_length=4, pattern="^x", description="a text"),
        "mail": s.StringPropertySchema(format="email", default="a@b.example"),
        "number": s.NumberPropertySchema(minimum=0.5),
        "whole": s.IntegerPropertySchema(maximum=3),
        "yes": s.BooleanPropertySchema(default=False),
        "one": s.StringPropertySchema(one_of=CHOICES, title="One of them"),
        "some": s.MultiSelectPropertySchema(
            items=s.TitledMultiSelectItems(any_of=CHOICES), min_items=1, max_items=2
        ),
        "odd": s.MultiSelectPropertySchema(items=s.OtherMultiSelectItems({"type": "integer"})),
    },
    required=("one", "odder"),
)


async def interrupt(client: Client, thread: str) -> Chunk:
    """Start a run, and return what the client is asked for."""
    message = {"id": "m1", "role": "user", "content": "Go."}
    body = {"threadId": thread, "runId": "r1", "messages": [message]}
    answer = await client.post("/ag-ui/scripted", body)
    finished = frames_of((await answer.body()).decode())[-1].json()
    (found,) = finished["outcome"]["interrupts"]
    asked_for: Chunk = found
    return asked_for


async def asks_form(turn: Turn) -> None:
    request = s.ElicitationFormMode(session_id=turn.session_id, message="?", requested_schema=FORM)
    await turn.client.create_elicitation(request)


async def test_a_schema_takes_what_the_form_takes() -> None:
    tries: list[tuple[Chunk, bool]] = [
        ({}, True),
        ({"one": None}, False),
        ({"odder": None}, False),
        ({"one": "c"}, False),
        ({"text": "xy"}, True),
        ({"text": "x"}, False),
        ({"text": "yyy"}, False),
        ({"text": "xxxxx"}, False),
        ({"text": 3}, False),
        ({"number": 0.5}, True),
        ({"number": 0.1}, False),
        ({"whole": 4}, False),
        ({"whole": 3}, True),
        ({"yes": True}, True),
        ({"yes": "yes"}, False),
        ({"some": ["a", "b"]}, True),
        ({"some": []}, False),
        ({"some": ["a", "a"]}, False),
        ({"some": ["c"]}, False),
        ({"odd": [], "odder": 3}, True),
    ]
    async with served(asks_form) as stage:
        client = Client(web_app(stage.server))
        for number, (given, fits) in enumerate(tries):
            asked_for = await interrupt(client, f"c{number}")
            values = {"one": "a", "odder": "x", **given}
            values = {name: value for name, value in values.items() if value is not None}
            validator: Any = Draft202012Validator(asked_for["responseSchema"])
            assert validator.is_valid(values) is fits, given
            run, _, question = asked_for["id"].split("/")
            body = {"question": question, "answer": {"form": values}}
            answer = await client.post(f"/api/runs/{run}/answer", body)
            assert (answer.status == 204) is fits, (given, await answer.body())


async def test_a_schema_says_what_a_field_is() -> None:
    async with served(asks_form) as stage:
        schema = (await interrupt(Client(web_app(stage.server)), "c1"))["responseSchema"]
    titles = [{"const": "a", "title": "A", "description": "first"}, {"const": "b", "title": "B"}]
    assert schema == {
        "type": "object",
        "properties": {
            "text": {
                "type": "string",
                "description": "a text",
                "minLength": 2,
                "maxLength": 4,
                "pattern": "^x",
            },
            "mail": {"type": "string", "format": "email", "default": "a@b.example"},
            "number": {"type": "number", "minimum": 0.5},
            "whole": {"type": "integer", "maximum": 3},
            "yes": {"type": "boolean", "default": False},
            "one": {"type": "string", "title": "One of them", "oneOf": titles},
            "some": {
                "type": "array",
                "items": {"type": "string", "oneOf": titles},
                "uniqueItems": True,
                "minItems": 1,
                "maxItems": 2,
            },
            "odd": {"type": "array", "items": {"type": "integer"}},
            "odder": {},
        },
        "required": ["one", "odder"],
    }


async def test_what_is_allowed_is_said_by_a_word_or_an_option() -> None:
    async def opens(turn: Turn) -> None:
        await page(turn)

    approved = {"approved": {"type": "boolean"}}
    async with served(asks, opens) as stage:
        client = Client(web_app(stage.server))
        asked_for = await interrupt(client, "c1")
        opened = await interrupt(client, "c2")
    option = {
        "type": "string",
        "oneOf": [
            {"const": "yes", "title": "Yes"},
            {"const": "always", "title": "Always"},
            {"const": "no", "title": "No"},
        ],
    }
    assert asked_for["responseSchema"] == {
        "type": "object",
        "properties": {**approved, "option": option},
        "required": ["approved"],
    }
    assert opened["responseSchema"] == {"type": "object", "properties": approved, "required": ["approved"]}
