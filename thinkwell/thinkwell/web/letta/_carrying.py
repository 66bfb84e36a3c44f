"""Questions as tool calls that wait for approval: Letta has no other form for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell.web.front_ends._facts import as_json
from thinkwell.web.front_ends._tools import call_of_front_end

if TYPE_CHECKING:
    from thinkwell import events as ev
    from thinkwell.web.front_ends._tools import FrontEndCall

FORM_TOOL: Final = "fill_in_form"
"""The name of the tool call for a form."""

URL_TOOL: Final = "open_url"
"""The name of the tool call for a web page to open."""


def client_call(question: ev.QuestionAsked) -> FrontEndCall | None:
    """Return the call of a client's tool in a question; ``None``: it is another question."""
    return call_of_front_end(question.fields) if question.asks == "form" else None


def carried(event: ev.QuestionAsked, call: tuple[str, str] | None) -> tuple[str, str]:
    """Return the tool name and the arguments for a question.

    Args:
        event: The question.
        call: Those of the call that it is about.
    """
    called = client_call(event)
    if called is not None:
        return called.name, called.arguments
    if event.asks == "form":
        fields = [
            {
                "name": field.name,
                "type": field.type,
                "required": field.required,
                **{key: value for key in ("title", "description") if (value := getattr(field, key))},
                **({} if field.default is None else {"default": field.default}),
                **({"choices": [choice.value for choice in field.choices]} if field.choices else {}),
            }
            for field in event.fields
        ]
        return FORM_TOOL, as_json({"title": event.title, "fields": fields})
    if event.asks == "url":
        return URL_TOOL, as_json({"title": event.title, "url": event.url})
    return call or (event.title or "tool", as_json({"title": event.title}))
