"""Round trips of single requests over thinkwell's protocol layer, `thinkwell_acp`."""

from __future__ import annotations

from time import perf_counter

import anyio

from benchmarks.clients import _common as common
from thinkwell_acp import connect, stdio_transport
from thinkwell_acp.schema import NewSessionRequest, SetSessionModeRequest


async def round_trip(task: common.Order) -> common.Figures:
    times: list[float] = []
    async with stdio_transport(task.command) as transport, connect(transport) as client:
        await client.initialize()
        session = await client.new_session(NewSessionRequest(cwd="/", mcp_servers=()))
        for _ in range(common.WARM_UP + task.count):
            sent = perf_counter()
            await client.set_session_mode(
                SetSessionModeRequest(session_id=session.session_id, mode_id="code")
            )
            times.append(perf_counter() - sent)
    return common.round_trips(times[common.WARM_UP :])


if __name__ == "__main__":
    given = common.order()
    if given.action != "round_trip":
        raise SystemExit("only round trips are measured on the protocol layer alone")
    common.report(anyio.run(round_trip, given, backend=given.backend))
