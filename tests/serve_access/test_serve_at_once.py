"""What ``thinkwell serve`` writes is sent at once."""

from __future__ import annotations

import asyncio
import socket

from thinkwell.cli._serve_sockets import listen


def test_the_system_does_not_wait_for_more_to_send() -> None:
    (listener,) = listen("127.0.0.1", 0)

    async def options() -> set[int]:
        found: set[int] = set()
        taken = asyncio.Event()

        def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            own = writer.get_extra_info("socket")
            found.add(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()
            taken.set()

        async with asyncio.timeout(10), await asyncio.start_server(take, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            await taken.wait()
            writer.close()
            await writer.wait_closed()
        return found

    assert asyncio.run(options()) == {1}
