"""The differences of an NDJSON agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thinkwell._core.protocol.dialect import Dialect
from thinkwell._core.schema.json_schema import is_object
from thinkwell._lines._names import (
    MESSAGE_META,
    MESSAGE_UPDATE,
    RESPOND_METHOD,
    RESULT_META,
    SCHEMA_META,
    SILENT_META,
    VALUE_META,
)
from thinkwell.errors import CapabilityMissing

if TYPE_CHECKING:
    from thinkwell import events as ev
    from thinkwell._core.schema.json_schema import Schema
    from thinkwell._core.task.builder import Spec
    from thinkwell._values.rulings import Ruling
    from thinkwell_acp import Client
    from thinkwell_acp import schema as s
    from thinkwell_acp.client import AgentQuestion


class LineDialect(Dialect):
    """A program that writes one JSON object a line, which `LineTransport` translates.

    Args:
        takes_meta: Whether its prompts can have ``_meta``.
    """

    first_request = "init"  # without parameters, a program gets no request
    has_tools = False
    one_turn_at_a_time = True
    steps_are_ours = True
    reports = True
    may_always_ask = True

    def __init__(self, *, takes_meta: bool) -> None:
        self._takes_meta = takes_meta

    def check(self, spec: Spec[Any]) -> None:
        """Refuse tools, skills, and ``_meta`` if a prompt is a line of text."""
        self.refuse(spec.skills, "mcpCapabilities", "skill()")
        self.refuse(spec.tools, "mcpCapabilities", "tool()")
        if spec.meta and not self._takes_meta:
            wanted_by = 'meta(): its prompts are lines of text; open it with prompt_format="json"'
            raise CapabilityMissing("_meta", wanted_by)

    def refuse(self, wanted: object, capability: str, wanted_by: str) -> None:
        """Refuse features that it does not support."""
        if wanted:
            raise CapabilityMissing(capability, f'{wanted_by}: the agent speaks lines (protocol="ndjson")')

    def prompt_meta(self, schema: Schema | None) -> dict[str, ev.JsonValue]:
        """Return the schema, because there is no tool for it."""
        return {} if schema is None else {SCHEMA_META: dict(schema)}

    def result_fields(self, answer: s.PromptResponse) -> dict[str, ev.JsonValue] | None:
        """Return the fields of its last line."""
        if answer.meta is None:
            return None
        fields: dict[str, ev.JsonValue] = answer.meta.get(RESULT_META) or {}
        return fields

    def message(self, request: AgentQuestion) -> dict[str, ev.JsonValue] | None:
        """Return its message with the question."""
        message: ev.JsonValue = request.meta.get(MESSAGE_META) if request.meta else None
        return message if is_object(message) else None

    def answer_meta(self, ruling: Ruling) -> dict[str, ev.JsonValue] | None:
        """Return the given value, or that there is no answer."""
        if ruling.said is not None:
            return {VALUE_META: ruling.said[0]}
        return {SILENT_META: True} if ruling.silent else None

    def report(self, update: s.UnknownUpdate) -> dict[str, ev.JsonValue] | None:
        """Return a copy of the message; ``None`` for another kind of update."""
        raw = update.raw
        message: ev.JsonValue = raw.get("message") if raw.get("sessionUpdate") == MESSAGE_UPDATE else None
        return dict(message) if is_object(message) and "type" in message else None

    def respond(self, client: Client, session_id: str | None, report: ev.Report, value: ev.JsonValue) -> None:
        """Send the answer, with the id of the message if it has one."""
        answer: dict[str, ev.JsonValue] = {"kind": report.kind, "value": value, "sessionId": session_id}
        if "id" in report.body:
            answer["id"] = report.message_id
        client.connection.notify(RESPOND_METHOD, answer)
