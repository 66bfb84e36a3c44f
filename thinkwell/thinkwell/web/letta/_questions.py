"""Questions as tool calls that wait for approval, and a client's decisions about them as answers.

Letta has no other form for questions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from thinkwell._core.schema.json_schema import is_object
from thinkwell.questions import FormValue, Reply
from thinkwell.web.front_ends._facts import as_json
from thinkwell.web.front_ends._tools import call_of_front_end, result_form
from thinkwell.web.letta._failures import BadRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell import events as ev
    from thinkwell.events import JsonValue
    from thinkwell.questions import Answer
    from thinkwell.web.front_ends._tools import FrontEndCall
    from thinkwell.web.letta._incoming import Decision

FORM_TOOL: Final = "fill_in_form"
"""The name of the tool call for a form."""

URL_TOOL: Final = "open_url"
"""The name of the tool call for a web page to open."""


class Asked(Struct, frozen=True, kw_only=True):
    """A question for the client, in the client's form."""

    question: ev.QuestionAsked
    message_id: str
    tool_call_id: str

    @property
    def called(self) -> FrontEndCall | None:
        """The call of a client's tool in it."""
        return call_of_front_end(self.question)


def carried(event: ev.QuestionAsked, call: tuple[str, str] | None) -> tuple[str, str]:
    """Return the tool name and the arguments for a question.

    Args:
        event: The question.
        call: Those of the call that it is about.
    """
    called = call_of_front_end(event)
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


def matched(pending: list[Asked], decisions: Sequence[Decision]) -> list[tuple[Asked, Decision]]:
    """Return the decided questions, in order.

    Raises:
        BadRequest: A question is not open, or an older one remains open. A stream ends with the oldest one.
    """
    waiting = ", ".join(asked.tool_call_id for asked in pending)
    whichever = next((decision for decision in decisions if decision.tool_call_id is None), None)
    left = {decision.tool_call_id: decision for decision in decisions if decision.tool_call_id is not None}
    decided: list[tuple[Asked, Decision]] = []
    for asked in pending:
        decision = left.pop(asked.tool_call_id, whichever)
        if decision is None:
            break
        decided.append((asked, decision))
    if left or not decided:
        raise BadRequest(f"Invalid tool call IDs; these wait for approval, the first one first: {waiting}")
    return decided


def answer_of(asked: Asked, decision: Decision) -> Answer:
    """Return a decision as an answer to its question.

    Raises:
        BadRequest: It is invalid.
    """
    question, called, returned = asked.question, asked.called, decision.returned
    if called is not None:
        if returned is None and decision.approve:
            raise BadRequest(
                f"The tool {called.name} is run by the client: send what it has returned for tool call "
                f"{asked.tool_call_id}, or deny it"
            )
        if decision.approve:
            return result_form(returned, None)
        return result_form("", decision.reason or returned or "The call was denied")
    why = decision.reason or (None if decision.approve else returned)
    if question.asks == "form" and decision.approve and returned is not None:
        return _values(asked, returned)
    return decision.approve if why is None else Reply(decision.approve, why)


def _values(asked: Asked, returned: str) -> dict[str, FormValue | None]:
    """Return the values of a form: a JSON object, or the text of its only field.

    Raises:
        BadRequest: It is invalid.
    """
    fields = asked.question.fields
    try:
        values: JsonValue = msgspec.json.decode(returned)
    except ValueError:  # a text
        values = None
    if is_object(values):
        try:
            return msgspec.convert(values, dict[str, FormValue | None])
        except msgspec.ValidationError as exc:
            raise BadRequest(f"The form cannot be filled in with that: {exc}") from None
    if len(fields) == 1:
        return {fields[0].name: returned}
    names = ", ".join(field.name for field in fields)
    raise BadRequest(f"The form has several fields: return a JSON object with {names}")
