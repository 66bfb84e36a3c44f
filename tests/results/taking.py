"""Results as agents return them, and what a run makes of them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, cast

from thinkwell.testing import ScriptedAgent, ScriptedTurn, script

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


class Take(Protocol):
    """Runs a task whose agent returns a result once."""

    async def __call__(self, type_: object, arguments: dict[str, Any], *, in_session: bool = False) -> Any:
        """Return what the program gets of these arguments of ``return_result``.

        Args:
            type_: The output type.
            arguments: What the agent passes.
            in_session: Whether the run is one of a session of many types, which asks for ``{"result": …}``.

        Raises:
            ResultInvalid: They are invalid.
        """
        ...


@asynccontextmanager
async def results() -> AsyncGenerator[Take]:
    """Open an agent that returns what it is told."""
    sent: list[dict[str, Any]] = []

    async def returns(turn: ScriptedTurn) -> None:
        await turn.call("return_result", sent[-1])

    played = ScriptedAgent(script.does(returns), repeats=True)
    async with played.open() as agent, agent.session() as session:

        async def take(type_: object, arguments: dict[str, Any], *, in_session: bool = False) -> Any:
            sent.append(arguments)
            builder = (session if in_session else agent).think(cast("type[Any]", type_))
            return await builder.text("Go").run(retries=0, reminders=0)

        yield take


async def taken(type_: object, arguments: dict[str, Any], *, in_session: bool = False) -> Any:
    """Return what the program gets of one result."""
    async with results() as take:
        return await take(type_, arguments, in_session=in_session)
