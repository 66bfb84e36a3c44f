"""Forms and web pages from the protocol's form, and answers back to it."""

from __future__ import annotations

import json
from typing import Any

import pydantic
import pytest
from drawing import drawn
from questions.form_strategies import EXAMPLES, asked, field_of, fields_of, forms
from schema.wire_strategies import OFFICIAL, official, theirs

from thinkwell import events as ev
from thinkwell.questions import FieldChoice, FormField, FormQuestion, UrlQuestion, check_form
from thinkwell.testing import ScriptedAgent, ScriptedTurn, script


@pytest.fixture
def anyio_backend() -> str:
    """Forms know of no loop."""
    return "asyncio"


TITLES: dict[str, Any] = {"title": "Title", "description": "Description"}
A, B = FieldChoice(value="a", title="a"), FieldChoice(value="b", title="b")
TITLED = [{"const": "a", "title": "A"}, {"const": "b", "title": "B", "description": "Bee"}]
TITLED_CHOICES = (FieldChoice(value="a", title="A"), FieldChoice(value="b", title="B", description="Bee"))


@pytest.mark.parametrize(
    ("property_", "field"),
    [
        (
            {
                "type": "string",
                "minLength": 1,
                "maxLength": 9,
                "pattern": "a",
                "format": "email",
                "default": "a",
            },
            {
                "type": "string",
                "minimum": 1,
                "maximum": 9,
                "pattern": "a",
                "format": "email",
                "default": "a",
            },
        ),
        (
            {"type": "string", "enum": ["a", "b", "a"], "minLength": 1},
            {"type": "choice", "choices": (A, B), "minimum": 1},
        ),
        ({"type": "string", "oneOf": TITLED}, {"type": "choice", "choices": TITLED_CHOICES}),
        ({"type": "string", "oneOf": [*TITLED, TITLED[0]]}, {"type": "choice", "choices": TITLED_CHOICES}),
        (
            {"type": "string", "oneOf": TITLED, "enum": ["b", "c"]},
            {"type": "choice", "choices": TITLED_CHOICES[1:]},
        ),
        ({"type": "string", "enum": []}, {"type": "choice"}),
        (
            {"type": "number", "minimum": 0.5, "maximum": 2, "default": 1.5},
            {"type": "number", "minimum": 0.5, "maximum": 2, "default": 1.5},
        ),
        (
            {"type": "integer", "minimum": 2**60 + 1, "default": 3},
            {"type": "integer", "minimum": 2**60 + 1, "default": 3},
        ),
        ({"type": "boolean", "default": False}, {"type": "boolean", "default": False}),
        (
            {
                "type": "array",
                "items": {"type": "string", "enum": ["a", "b"]},
                "minItems": 1,
                "maxItems": 2,
                "default": ["a"],
            },
            {"type": "choices", "choices": (A, B), "minimum": 1, "maximum": 2, "default": ["a"]},
        ),
        ({"type": "array", "items": {"anyOf": TITLED}}, {"type": "choices", "choices": TITLED_CHOICES}),
    ],
)
@pytest.mark.parametrize("required", [True, False])
async def test_every_kind_of_property_becomes_a_field(
    property_: dict[str, Any], field: dict[str, Any], *, required: bool
) -> None:
    expected = FormField(name="f", required=required, **TITLES, **field)
    assert await field_of({**TITLES, **property_}, required=required) == expected
    assert await field_of(property_) == FormField(name="f", **field)


@pytest.mark.parametrize(
    "raw", [{"type": "_color", "default": "red"}, {"type": "array", "items": {"type": "integer"}}]
)
async def test_a_property_of_an_unknown_type_is_kept_as_it_is(raw: dict[str, Any]) -> None:
    assert await field_of(raw) == FormField(name="f", type="unknown", raw=raw)
    raw |= TITLES
    assert await field_of(raw) == FormField(name="f", type="unknown", raw=raw, **TITLES)


async def test_titles_of_an_unknown_property_are_texts_or_nothing() -> None:
    raw = {"type": "_color", "title": 1, "description": None}
    assert await field_of(raw) == FormField(name="f", type="unknown", raw=raw)


async def test_fields_keep_their_order_and_a_required_name_without_a_property_is_a_field() -> None:
    schema = {"properties": {"b": {"type": "boolean"}, "a": {"type": "string"}}, "required": ["c", "a", "c"]}
    assert await fields_of(schema, {}) == [
        (
            FormField(name="b", type="boolean"),
            FormField(name="a", type="string", required=True),
            FormField(name="c", type="unknown", required=True),
        ),
        (),
    ]


@pytest.mark.draws
async def test_fields_travel_in_events() -> None:
    for fields in await fields_of(*(form.schema for form in drawn(forms(), EXAMPLES))):
        told = ev.QuestionAsked(id="q", title="t", asks="form", fields=fields)
        assert ev.event_from_json(ev.event_to_json(told)) == told


async def test_requests_become_questions() -> None:
    schema = {"type": "object", "properties": {"f": {"type": "string"}}}
    form, page = await asked(
        {"mode": "form", "toolCallId": "t", "requestedSchema": schema},
        {"mode": "url", "message": "Log in", "elicitationId": "e", "url": "https://a.b/c"},
    )
    assert isinstance(form, FormQuestion)
    assert (form.title, form.agent, form.session_id, form.tool_id) == (
        "Where?",
        "scripted",
        "session-1",
        "t",
    )
    assert form.fields == (FormField(name="f", type="string"),)
    assert isinstance(page, UrlQuestion)
    assert (page.title, page.url, page.host) == ("Log in", "https://a.b/c", "a.b")
    assert form.run_id == page.run_id
    assert form.id != page.id


# The official SDK reads and writes the other end


@pytest.mark.draws
@OFFICIAL
async def test_forms_of_the_official_models_are_read() -> None:
    models: list[pydantic.BaseModel] = drawn(theirs(official().ElicitationSchema), EXAMPLES)
    schemas = [model.model_dump(mode="json", by_alias=True, exclude_none=True) for model in models]
    for schema, fields in zip(schemas, await fields_of(*schemas), strict=True):
        names = dict.fromkeys([*schema.get("properties", {}), *schema.get("required", ())])
        assert [field.name for field in fields] == list(names)
        check_form(fields, {})


async def answers_to(*filled: tuple[dict[str, Any], dict[str, Any]]) -> list[bytes]:
    """Return what an agent is sent for forms that are filled in so."""
    values = iter([content for _, content in filled])
    answers: list[bytes] = []

    async def fill(_: object) -> dict[str, Any]:
        return next(values)

    async def ask(turn: ScriptedTurn) -> None:
        for schema, _ in filled:
            request = {"sessionId": turn.session_id, "mode": "form", "message": "m"}
            asked_for = {**request, "requestedSchema": schema}
            answers.append(bytes(await turn.client.connection.request("elicitation/create", asked_for)))

    async with ScriptedAgent(script.does(ask)).open(on_question=fill) as agent:
        await agent.think().text("Ask.").run()
    return answers


@pytest.mark.draws
@OFFICIAL
async def test_answers_are_read_by_the_official_models() -> None:
    made = drawn(forms(), EXAMPLES)
    answers = await answers_to(*((form.schema, form.values) for form in made))
    for form, answer in zip(made, answers, strict=True):
        read = pydantic.TypeAdapter[Any](official().CreateElicitationResponse).validate_json(answer)
        content = read.model_dump(mode="json", by_alias=True)["content"]
        assert content == form.values
        assert list(map(type, content.values())) == list(map(type, form.values.values()))


async def test_an_empty_answer_is_not_no_answer() -> None:
    (answer,) = await answers_to(({"type": "object", "properties": {}}, {}))
    assert json.loads(answer) == {"action": "accept", "content": {}}


# Hosts of web pages


HOSTS = {
    "https://example.com": "example.com",
    "HTTPS://Example.COM:8443/login?next=https://evil.example#x": "example.com",
    "https://example.com@evil.example/": "evil.example",
    "https://user:pass@a@evil.example:1/": "evil.example",
    "https://example.com./": "example.com.",
    "http://127.0.0.1:8080/callback": "127.0.0.1",
    "http://[2001:DB8::1]:80/": "[2001:db8::1]",
    "https://my_host-1/": "my_host-1",
    "https://bücher.example/": "xn--bcher-kva.example",
    "https://BÜCHER.example/": "xn--bcher-kva.example",
    "https://straße.de/": "xn--strae-oqa.de",
    "https://аpple.com/": "xn--pple-43d.com",
    "https://हिन्दी.example/": "xn--j2bd4cyah0f.example",
    "vscode://login/x": "login",
}
UNCERTAIN = [
    "",
    "example.com",
    "mailto:someone@example.com",
    "file:///etc/passwd",
    "javascript:alert(1)//example.com",
    "https:example.com",
    "https:/example.com",
    "https:///example.com",
    "https://:80/",
    "https://evil.example\\@example.com/",
    "https://evil.example\\.example.com/",
    "https:\\\\example.com",
    " https://example.com",
    "https://exam\tple.com",
    "https://example.com\n",
    "https://example.com:80\n",
    "https://%65xample.com/",
    "https://example.com:80:90/",
    "https://example。com/",
    "https://ｅxample.com/",
    "https://exa\u00admple.com/",
    "https://exa\u200dmplé.com/",
    "https://exa\ufffdmple.com/",
    "https://[::1",
    "https://[::1]x/",
    "https://" + "é" * 1_000_000,
]
"""What has no host, or one that is not certain: such a page is not asked about."""


async def test_the_host_of_a_url() -> None:
    pages = await asked(*({"mode": "url", "elicitationId": "e", "url": url} for url in [*UNCERTAIN, *HOSTS]))
    assert len(pages) == len(HOSTS)
    assert {page.url: page.host for page in pages if isinstance(page, UrlQuestion)} == HOSTS
