"""What schemathesis is told beside the description: what no schema says of a request that can be met."""

from __future__ import annotations

from typing import Any, TypeGuard

from schemathesis import Case, GenerationMode, HookContext, hook  # pyright: ignore[reportUnknownVariableType]

PROMPTS: dict[str, dict[str, Any]] = {
    "/ai-sdk/{agent}": {"role": "user", "parts": [{"type": "text", "text": "Go."}]},
    "/ag-ui/{agent}": {"role": "user", "content": "Go."},
}
"""A message that can be a prompt, for each library of front ends. Which one counts is the last."""


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a value of JSON is an object."""
    return isinstance(value, dict)


@hook
def map_body(context: HookContext, body: Any) -> Any:
    """Ask for a result of a schema that there is: no description tells those from other objects."""
    if is_object(body) and is_object(body.get("output")):
        body["output"] = {"type": "object"}
    return body


@hook
def before_call(context: HookContext, case: Case[Any], kwargs: dict[str, Any]) -> None:
    """Let a conversation end with a prompt, where all is to be as described."""
    prompt = PROMPTS.get(case.path)
    if prompt is None or case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    body: Any = case.body
    if is_object(body):
        body = {**body, "messages": [*body["messages"], prompt]}
        chosen: Any = body.get("thinkwell")
        if is_object(chosen) and is_object(chosen.get("output")):
            body["thinkwell"] = {**chosen, "output": {"type": "object"}}
        case.body = body
