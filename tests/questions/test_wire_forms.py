"""Forms and web pages from the protocol's form, and answers back to it."""

from __future__ import annotations

import json
from typing import Any

import acp.schema as official  # noqa: TID251 - it is the peer here
import msgspec
import pydantic
import pytest
from hypothesis import given
from questions.form_strategies import Form, few, field_of, fields_of, forms
from schema.wire_strategies import theirs

from thinkwell import events as ev
from thinkwell._display.urls import url_host
from thinkwell._forms import FieldChoice, FormField, check_form
from thinkwell._wire_questions import content_values, elicitation_question, form_fields
from thinkwell.questions import FormQuestion, UrlQuestion
from thinkwell_acp import schema as s

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
def test_every_kind_of_property_becomes_a_field(
    property_: dict[str, Any], field: dict[str, Any], *, required: bool
) -> None:
    expected = FormField(name="f", required=required, **TITLES, **field)
    assert field_of({**TITLES, **property_}, required=required) == expected
    assert field_of(property_) == FormField(name="f", **field)


@pytest.mark.parametrize(
    "raw", [{"type": "_color", "default": "red"}, {"type": "array", "items": {"type": "integer"}}]
)
def test_a_property_of_an_unknown_type_is_kept_as_it_is(raw: dict[str, Any]) -> None:
    assert field_of(raw) == FormField(name="f", type="unknown", raw=raw)
    raw |= TITLES
    assert field_of(raw) == FormField(name="f", type="unknown", raw=raw, **TITLES)


def test_titles_of_an_unknown_property_are_texts_or_nothing() -> None:
    raw = {"type": "_color", "title": 1, "description": None}
    assert field_of(raw) == FormField(name="f", type="unknown", raw=raw)


def test_fields_keep_their_order_and_a_required_name_without_a_property_is_a_field() -> None:
    schema = {"properties": {"b": {"type": "boolean"}, "a": {"type": "string"}}, "required": ["c", "a", "c"]}
    assert fields_of(schema) == (
        FormField(name="b", type="boolean"),
        FormField(name="a", type="string", required=True),
        FormField(name="c", type="unknown", required=True),
    )
    assert fields_of({}) == ()


@few
@given(forms())
def test_fields_travel_in_events(form: Form) -> None:
    asked = ev.QuestionAsked(id="q", title="t", asks="form", fields=form.fields)
    assert ev.event_from_json(ev.event_to_json(asked)) == asked


def test_requests_become_questions() -> None:
    form = s.ElicitationFormMode(
        message="Where?",
        session_id="s",
        tool_call_id="t",
        requested_schema=s.ElicitationSchema(properties={"f": s.StringPropertySchema()}),
    )
    assert elicitation_question(form, id="q", agent="a", run_id="r", timeout=5) == FormQuestion(
        id="q",
        title="Where?",
        agent="a",
        session_id="s",
        run_id="r",
        tool_id="t",
        timeout=5,
        fields=(FormField(name="f", type="string"),),
    )
    page = s.ElicitationUrlMode(message="Log in", request_id=1, elicitation_id="e", url="https://a.b/c")
    assert elicitation_question(page, id="q", agent="a") == UrlQuestion(
        id="q", title="Log in", agent="a", url="https://a.b/c", host="a.b"
    )


# The official SDK reads and writes the other end


@few
@given(theirs(official.ElicitationSchema))
def test_forms_of_the_official_models_are_read(theirs_of_it: pydantic.BaseModel) -> None:
    sent = theirs_of_it.model_dump(mode="json", by_alias=True, exclude_none=True)
    fields = form_fields(s.decode(s.ElicitationSchema, json.dumps(sent).encode()))
    names = dict.fromkeys([*sent.get("properties", {}), *sent.get("required", ())])
    assert [field.name for field in fields] == list(names)
    check_form(fields, {})


@few
@given(forms())
def test_answers_are_read_by_the_official_models(form: Form) -> None:
    values, _ = check_form(form.fields, form.values)
    response = s.CreateElicitationResponse(action="accept", content=content_values(values))
    read = pydantic.TypeAdapter[Any](official.CreateElicitationResponse).validate_json(s.encode(response))
    content = read.model_dump(mode="json", by_alias=True)["content"]
    assert content == form.values
    assert list(map(type, content.values())) == list(map(type, form.values.values()))


def test_an_empty_answer_is_not_no_answer() -> None:
    response = s.CreateElicitationResponse(action="accept", content=content_values({}))
    assert msgspec.json.decode(s.encode(response)) == {"action": "accept", "content": {}}


# Hosts of web pages


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com", "example.com"),
        ("HTTPS://Example.COM:8443/login?next=https://evil.example#x", "example.com"),
        ("https://example.com@evil.example/", "evil.example"),
        ("https://user:pass@a@evil.example:1/", "evil.example"),
        ("https://example.com./", "example.com."),
        ("http://127.0.0.1:8080/callback", "127.0.0.1"),
        ("http://[2001:DB8::1]:80/", "[2001:db8::1]"),
        ("https://my_host-1/", "my_host-1"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("https://BÜCHER.example/", "xn--bcher-kva.example"),
        ("https://straße.de/", "xn--strae-oqa.de"),
        ("https://аpple.com/", "xn--pple-43d.com"),
        ("https://हिन्दी.example/", "xn--j2bd4cyah0f.example"),
        ("vscode://login/x", "login"),
    ],
)
def test_the_host_of_a_url(url: str, host: str) -> None:
    assert url_host(url) == host


@pytest.mark.parametrize(
    "url",
    [
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
        "https://exa\ud800mple.com/",
        "https://[::1",
        "https://[::1]x/",
        pytest.param("https://" + "é" * 1_000_000, id="endless"),
    ],
)
def test_a_host_that_is_none_or_not_certain_is_empty(url: str) -> None:
    assert not url_host(url)
