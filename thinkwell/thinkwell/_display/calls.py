"""Which tool calls are shown as such: not those that return the result, nor denied ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from thinkwell._core.policy.arguments import command_line
from thinkwell._core.schema.json_schema import is_object
from thinkwell._core.schema.output import RESULT_TOOL
from thinkwell._values.tool_titles import JOINT, WORD, WORDS
from thinkwell.events import DiffContent

if TYPE_CHECKING:
    from thinkwell.events import JsonValue
    from thinkwell.view import AnswerView, QuestionView, RunView, ToolView

RESULT: Final = "result"
"""The name of the tool for the result in displays."""

_SERVER: Final = r"thinkwell[0-9a-f]{0,12}…?"
_RESULT_CALL: Final = re.compile(
    rf"(?:{WORDS}(?:{_SERVER}{JOINT}(?:(?i:tool){JOINT})?){{0,2}}{RESULT_TOOL}"
    rf"|{WORDS}{RESULT_TOOL}{JOINT}{WORDS}{_SERVER}(?:{JOINT}{WORD}){{0,2}})[)\]]?"
    r"(?:(?: |: ?)\{.*)?",
    re.DOTALL,
)
"""How agents show a call of the tool for the result. Our server's name differs in each session."""


def is_result_title(title: str) -> bool:
    """Return whether a title or a name belongs to the tool for the result."""
    return RESULT_TOOL in title and _RESULT_CALL.fullmatch(title) is not None


def returns_result(tool: ToolView) -> bool:
    """Return whether a call returns the result, unless it shows something else.

    The model may have written the title, so a call that shows a file or a command is shown as that.
    """
    if not is_result_title(tool.name or tool.title):
        return False
    if tool.locations or any(isinstance(part, DiffContent) for part in tool.content):
        return False
    return bool(tool.name) or (tool.kind in ("other", "think") and command_line(tool.input) is None)


def draft_of(tool: ToolView) -> JsonValue:
    """Return what there is of the arguments of a call that is returning the result; ``None``: it is none."""
    given = tool.input
    return given if tool.ended_at is None and is_object(given) and returns_result(tool) else None


def draft_in(view: RunView) -> JsonValue:
    """Return what there is of the result that the agent writes right now; ``None``: it writes none."""
    calls = [*view.tools.values()]
    return draft_of(calls[-1]) if calls else None


def is_about_result(question: QuestionView | AnswerView, view: RunView) -> bool:
    """Return whether a question is about a call that returns the result."""
    tool = None if question.tool_id is None else view.tools.get(question.tool_id)
    return is_result_title(question.title) if tool is None else returns_result(tool)


def asked_title(answer: AnswerView, view: RunView) -> str:
    """Return the title of a question's subject."""
    return RESULT if is_about_result(answer, view) else answer.title


def is_denied(answer: AnswerView) -> bool:
    """Return whether a permission was denied, even if the agent offers no option for it."""
    if answer.choice is None:
        return answer.asks == "permission" and answer.by != "cancel"
    return answer.choice.startswith("reject")


def denied_calls(view: RunView) -> frozenset[str]:
    """Return the ids of denied calls, by the last answer: some agents ask again."""
    denied: dict[str, bool] = {}
    for answer in view.answers:
        tool = None if answer.tool_id is None else view.tools.get(answer.tool_id)
        if tool is not None and answer.answered_at >= tool.started_at:  # otherwise its id was reused
            denied[tool.id] = is_denied(answer)
    return frozenset(id_ for id_, is_so in denied.items() if is_so)


def told_calls(view: RunView) -> tuple[ToolView, ...]:
    """Return the calls that are shown as tool calls, in order."""
    denied = denied_calls(view)
    return tuple(tool for tool in view.tools.values() if tool.id not in denied and not returns_result(tool))
