"""The agent's values for ``return_result``: accepted, or sent back with their problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from thinkwell import events as ev
from thinkwell._core.schema.output import RESULT_KEY, RESULT_TOOL, OutputInvalid
from thinkwell.errors import ResultInvalid
from thinkwell_acp.mcp import ToolOutput

if TYPE_CHECKING:
    from thinkwell._core.log.run_log import RunLog
    from thinkwell._core.log.settlement import Settlement
    from thinkwell._core.schema.output import Output

T = TypeVar("T")


class ResultTaker(Generic[T]):
    """Settles a run by the first valid value.

    Args:
        output: The output type.
        wrapped: Whether the value is requested under its own key.
        retries: How many invalid values are sent back.
        log: The log in which each attempt is recorded.
        outcome: The outcome to settle.
    """

    def __init__(
        self, output: Output[T], *, wrapped: bool, retries: int, log: RunLog, outcome: Settlement[T]
    ) -> None:
        self._output = output
        self._wrapped = wrapped
        self._retries = retries
        self._log = log
        self._outcome = outcome
        self._attempts = 0
        self.refused: ResultInvalid | None = None
        """The error of the last attempt, if there is no other."""

    def take(self, arguments: dict[str, ev.JsonValue]) -> ToolOutput:
        """Handle the arguments of a call, and return the answer to the agent."""
        if self._output.schema is None:
            return ToolOutput.text(
                "This task wants its answer as a message; write it as text.", is_error=True
            )
        if self._outcome.done():
            settled = self._outcome.error is None
            return ToolOutput.text(
                "The result was accepted before; this one is ignored. You can end your turn."
                if settled
                else "No result is accepted any more. End your turn.",
                is_error=not settled,
            )
        return self._take(arguments, wrapped=self._wrapped)

    def _take(self, arguments: dict[str, ev.JsonValue], *, wrapped: bool) -> ToolOutput:
        self._attempts += 1
        try:
            value = self._output.accept(arguments, wrapped=wrapped)
        except OutputInvalid as exc:
            return self._refuse(arguments, exc.errors)
        self._log.add(ev.ResultAttempt, accepted=True, value=arguments)
        self._log.publish()
        self._outcome.set(value, arguments, wrapped=wrapped)
        return ToolOutput.text("The result was accepted. You can end your turn.")

    def take_fields(self, fields: dict[str, ev.JsonValue]) -> None:
        """Handle the fields of the message with which an NDJSON agent ended its turn.

        What they are asked to hold may also stand in their text: a program that prints its answer has
        nothing else.
        """
        if self._output.schema is None or self._outcome.done():
            return
        text = fields.get("text")
        if isinstance(text, str) and not self._fits(fields, wrapped=self._wrapped):
            in_text: dict[str, ev.JsonValue] = {RESULT_KEY: text}
            if self._fits(in_text, wrapped=True) or (len(fields) == 1 and text.lstrip()[:1] in ("{", "[")):
                self._take(in_text, wrapped=True)
                return
        self._take(fields, wrapped=self._wrapped)

    def _fits(self, fields: dict[str, ev.JsonValue], *, wrapped: bool) -> bool:
        try:
            self._output.accept(fields, wrapped=wrapped)
        except OutputInvalid:
            return False
        return True

    def _refuse(self, arguments: dict[str, ev.JsonValue], errors: tuple[str, ...]) -> ToolOutput:
        self.refused = ResultInvalid(arguments, errors, self._attempts)
        self._log.add(ev.ResultAttempt, accepted=False, value=arguments, errors=errors)
        self._log.publish()
        wrong = "".join(f"\n- {error}" for error in errors)
        if self._attempts > self._retries:
            self._outcome.fail(self.refused)
            return ToolOutput.text(
                f"The result is invalid, and no more are accepted:{wrong}\nEnd your turn.", is_error=True
            )
        return ToolOutput.text(
            f"The result is invalid:{wrong}\nCorrect it and call {RESULT_TOOL} again.", is_error=True
        )
