"""Questions as calls of tools that wait for approval: Letta has no other shape for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell.web.front_ends._tools import call_of_front_end
from thinkwell.web.letta._texts import as_json

if TYPE_CHECKING:
    from thinkwell import events as ev
    from thinkwell.web.front_ends._tools import FrontEndCall

FORM_TOOL: Final = "fill_in_form"
"""What the call is named as that a form is carried as."""

URL_TOOL: Final = "open_url"
"""What the call is named as that a web page to open is carried as."""


def client_call(question: ev.QuestionAsked) -> FrontEndCall | None:
    """Return the call of a tool of the client's that a question is; ``None``: it is something else."""
    return call_of_front_end(question.fields) if question.asks == "form" else None


def carried(event: ev.QuestionAsked, call: tuple[str, str] | None) -> tuple[str, str]:
    """Return the name of the tool and the arguments that a question is carried as.

    Args:
        event: The question.
        call: The same of the call that it is about.
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
