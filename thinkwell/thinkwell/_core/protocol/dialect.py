"""How an agent uses the protocol: as it is written, or in a way of its own."""

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
    """The protocol as it is written. `open_agent` chooses another one with the transport.

    It is never read from the wire: an agent that claimed another could evade a budget.
    """

    first_request: ClassVar[str] = "initialize"
    """What it answers first."""
    has_tools: ClassVar[bool] = True
    """Whether it takes tools of ours, and our words about them in a prompt."""
    one_turn_at_a_time: ClassVar[bool] = False
    """Whether it works on one prompt at a time, in whichever session."""
    steps_are_ours: ClassVar[bool] = False
    """Whether the calls that it shows are steps of a program, none of them a tool's."""
    reports: ClassVar[bool] = False
    """Whether all that it says comes as a `Report`."""
    may_always_ask: ClassVar[bool] = False
    """Whether it may ask even where there is no one to answer."""

    def check(self, spec: Spec[Any]) -> None:
        """Refuse a task that the agent cannot be given.

        Raises:
            CapabilityMissing: It is one.
        """

    def refuse(self, wanted: object, capability: str, wanted_by: str) -> None:
        """Refuse what only an agent that speaks the whole protocol can do.

        Raises:
            CapabilityMissing: It is wanted of another.
        """

    def prompt_meta(self, schema: Schema | None) -> dict[str, ev.JsonValue]:
        """Return what the ``_meta`` of a prompt says of the result's schema."""
        return {}

    def result_fields(self, answer: s.PromptResponse) -> dict[str, ev.JsonValue] | None:
        """Return the fields by which the agent has ended its turn, where it gives its result so."""
        return None

    def message(self, request: AgentQuestion) -> dict[str, ev.JsonValue] | None:
        """Return what the agent has said in its own form where it asked."""
        return None

    def answer_meta(self, ruling: Ruling) -> dict[str, ev.JsonValue] | None:
        """Return what else the agent gets with an answer."""
        return None

    def report(self, update: s.UnknownUpdate) -> dict[str, ev.JsonValue] | None:
        """Return what the agent has said in its own form, with its ``type``."""
        return None

    def respond(self, client: Client, session_id: str | None, report: ev.Report, value: ev.JsonValue) -> None:
        """Send the answer to a report that is no question."""
        raise NotImplementedError  # pragma: no cover - there are no reports
