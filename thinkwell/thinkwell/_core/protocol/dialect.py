"""How an agent uses the protocol: as specified, or with deviations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from thinkwell import events as ev
    from thinkwell._core.schema.json_schema import Schema
    from thinkwell._core.task.builder import Spec
    from thinkwell._values.rulings import Ruling
    from thinkwell_acp import Client
    from thinkwell_acp import schema as s
    from thinkwell_acp.client import AgentQuestion


class Dialect:
    """The protocol as specified. `open_agent` chooses another dialect with the transport.

    It is never read from the wire: an agent that claimed another dialect could evade a budget.
    """

    first_request: ClassVar[str] = "initialize"
    """The first request that it answers."""
    has_tools: ClassVar[bool] = True
    """Whether it supports our tools, and our text about them in a prompt."""
    one_turn_at_a_time: ClassVar[bool] = False
    """Whether it works on one prompt at a time, over all sessions."""
    steps_are_ours: ClassVar[bool] = False
    """Whether the calls that it shows are steps of a program, and never tools."""
    reports: ClassVar[bool] = False
    """Whether it sends everything as a `Report`."""
    may_always_ask: ClassVar[bool] = False
    """Whether it may ask even if there is no handler."""

    def check(self, spec: Spec[Any]) -> None:
        """Refuse a task that the agent cannot get.

        Raises:
            CapabilityMissing: The agent cannot get it.
        """

    def refuse(self, wanted: object, capability: str, wanted_by: str) -> None:
        """Refuse a feature that only agents with the whole protocol have.

        Raises:
            CapabilityMissing: The agent is another one.
        """

    def prompt_meta(self, schema: Schema | None) -> dict[str, ev.JsonValue]:
        """Return the ``_meta`` of a prompt for the result's schema."""
        return {}

    def result_fields(self, answer: s.PromptResponse) -> dict[str, ev.JsonValue] | None:
        """Return the fields with which the agent ended its turn, if it returns its result so."""
        return None

    def message(self, request: AgentQuestion) -> dict[str, ev.JsonValue] | None:
        """Return the agent's own message of a question."""
        return None

    def answer_meta(self, ruling: Ruling) -> dict[str, ev.JsonValue] | None:
        """Return additions to an answer for the agent."""
        return None

    def report(self, update: s.UnknownUpdate) -> dict[str, ev.JsonValue] | None:
        """Return the agent's own message of an update, with its ``type``."""
        return None

    def respond(self, client: Client, session_id: str | None, report: ev.Report, value: ev.JsonValue) -> None:
        """Send the answer to a report that is not a question."""
        raise NotImplementedError  # pragma: no cover - there are no reports
