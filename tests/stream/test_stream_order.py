"""What one agent asks at once begins in the order of the wire, on every event loop."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias, cast

import anyio
import pytest
from drawing import drawn
from hypothesis import strategies as st
from pydantic import AfterValidator
from stream.wire_agent import Json, WireAgent, answer, end_turn, line, permission, wire_agent

from thinkwell import ResultInvalid

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from thinkwell import Agent, Question, ThoughtStream

Ask: TypeAlias = "Callable[..., Awaitable[None]]"
"""Sends requests of a method in one write, with these parameters, and returns when all are answered."""

EXAMPLES = 25


def even(value: int) -> int:
    if value % 2:
        raise ValueError("it is odd")
    return value


Even = Annotated[int, AfterValidator(even)]


def request(id_: int | str, method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


@asynccontextmanager
async def over_acp(wire: WireAgent, server: Json) -> AsyncGenerator[Ask]:
    await wire.write(request("c", "mcp/connect", {"serverId": server["serverId"]}))
    connection = (await wire.expect(None))["result"]["connectionId"]

    async def ask(method: str, *params: Json) -> None:
        inner = {"connectionId": connection, "method": method}
        await wire.write(
            *(request(id_, "mcp/message", {**inner, "params": one}) for id_, one in enumerate(params))
        )
        for _ in params:
            await wire.expect(None)

    yield ask


@asynccontextmanager
async def over_stdio(wire: WireAgent, server: Json) -> AsyncGenerator[Ask]:
    secret, address = server["env"][0]["value"], server["args"][-1]
    async with await anyio.connect_unix(address) as shim:
        await shim.send(secret.encode() + b"\n")

        async def ask(method: str, *params: Json) -> None:
            await shim.send(b"".join(line(request(id_, method, one)) for id_, one in enumerate(params)))
            answered = b""
            while answered.count(b"\n") < len(params):
                answered += await shim.receive()

        yield ask


OVER = {"acp": over_acp, "stdio": over_stdio}


@asynccontextmanager
async def calling(
    over: str, start: Callable[[Agent], ThoughtStream[object]]
) -> AsyncGenerator[tuple[Ask, ThoughtStream[object]]]:
    """Start a run whose agent calls tools; its turn ends with the block."""
    capabilities = {"mcpCapabilities": {"acp": over == "acp"}}
    async with wire_agent(capabilities=capabilities, tools_via=over) as (agent, wire):
        stream = start(agent)
        opening = await wire.expect("session/new")
        await wire.write(answer(opening, {"sessionId": "s"}))
        with anyio.fail_after(30):
            async with OVER[over](wire, opening["params"]["mcpServers"][0]) as ask:
                await ask("tools/list", {})
                prompt = await wire.expect("session/prompt")
                yield ask, stream
                await wire.write(end_turn(prompt))
                await stream.wait()


@pytest.mark.draws
@pytest.mark.parametrize("over", OVER)
async def test_the_first_valid_result_in_the_order_of_the_wire_wins(over: str) -> None:
    for values in drawn(st.lists(st.integers(0, 9), min_size=2, max_size=12), EXAMPLES):
        valid = [value for value in values if not value % 2]

        def start(agent: Agent) -> ThoughtStream[object]:
            return agent.think(cast("type[object]", Even)).text("Go").stream(retries=99, reminders=0)

        async with calling(over, start) as (ask, stream):
            await ask(
                "tools/call",
                *({"name": "return_result", "arguments": {"result": value}} for value in values),
            )
        if valid:
            assert await stream.result == valid[0], values
        else:
            with pytest.raises(ResultInvalid) as caught:
                await stream.result
            assert caught.value.raw == {"result": values[-1]}


@pytest.mark.draws
@pytest.mark.parametrize("over", OVER)
async def test_tools_begin_in_the_order_of_the_wire(over: str) -> None:
    for numbers in drawn(st.permutations(range(8)), EXAMPLES):
        begun: list[int] = []

        async def work(number: int) -> str:
            begun.append(number)  # noqa: B023 - it is called before the next example
            return "done"

        def start(agent: Agent) -> ThoughtStream[object]:
            return agent.think().text("Go").tool(work).stream()

        async with calling(over, start) as (ask, _):
            await ask("tools/call", *({"name": "work", "arguments": {"number": each}} for each in numbers))
        assert begun == numbers


def form(id_: int, title: str) -> Json:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"sessionId": "s", "mode": "form", "message": title, "requestedSchema": schema}
    return request(id_, "elicitation/create", params)


@pytest.mark.draws
async def test_questions_reach_handlers_in_the_order_of_the_wire() -> None:
    for kinds in drawn(st.lists(st.booleans(), min_size=2, max_size=12), EXAMPLES):
        asked: list[str] = []

        async def handler(question: Question) -> bool:
            asked.append(question.tool_id or question.title)  # noqa: B023
            await anyio.lowlevel.checkpoint()
            return False

        async with wire_agent(on_question=handler) as (agent, wire):
            stream = agent.think().text("Go").stream()
            prompt = await wire.begin()
            titles = [str(number) for number in range(len(kinds))]
            await wire.write(
                *(
                    form(number, titles[number]) if is_form else permission(number, titles[number])
                    for number, is_form in enumerate(kinds)
                )
            )
            for _ in kinds:
                await wire.expect(None)
            await wire.write(end_turn(prompt))
            await stream.wait()
        assert asked == titles
