"""The native API on a port of this machine, with an agent that is quick: for programs that ask it anything.

Called with a kind of server of `real_servers` and a token. It writes its address, and ends when its standard
input does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import anyio
import anyio.to_thread

sys.path.insert(0, str(Path(__file__).parents[1]))

from asking import permission
from real_servers import ServerKind, backend_of, listening
from scripted import Played, scripted

from thinkwell.web import Access, Limits, RunServer, ServedAgent, web_app

if TYPE_CHECKING:
    from scripted import Turn


async def work(turn: Turn) -> None:
    """Do something, ask where the prompt says so, and end."""
    turn.think("What is that?")
    if "?" in turn.text:
        await turn.client.request_permission(permission(turn.session_id))
    if await turn.list_tools():
        await turn.returns(result=None)
    turn.say("It is done.")


async def main(kind: ServerKind) -> None:
    """Serve until standard input ends."""
    here = Path(__file__).parent
    agent = ServedAgent(
        open=lambda policy: scripted(agent=Played([work]), permissions=policy),
        folders={"here": here, "above": here.parent},
        permissions={"ask": "ask", "allow": "allow"},
        timeout=1.0,
    )
    limits = Limits(max_runs=1000, max_runs_per_caller=1000, max_request=100_000)
    server = RunServer({"scripted": agent}, limits=limits)
    app = web_app(server, access=Access({sys.argv[2]: "ada"}), page=False, letta=False)
    async with listening(app, kind) as address:
        print(address.url, flush=True)  # noqa: T201 - the program's answer
        await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)


if __name__ == "__main__":
    (chosen,) = (kind for kind in get_args(ServerKind) if kind == sys.argv[1])
    anyio.run(main, chosen, backend=backend_of(chosen))
