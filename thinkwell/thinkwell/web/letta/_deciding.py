"""A client's decisions about waiting calls, as answers to their questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from thinkwell._core.schema.json_schema import is_object
from thinkwell.questions import FormValue, Reply
from thinkwell.web.front_ends._tools import result_form
from thinkwell.web.letta._carrying import client_call
from thinkwell.web.letta._failures import BadRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.events import JsonValue
    from thinkwell.questions import Answer
    from thinkwell.web.letta._incoming import Decision
    from thinkwell.web.letta._mapping import Asked


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
    question, returned = asked.question, decision.returned
    called = client_call(question)
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
