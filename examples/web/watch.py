"""Start a run on a server and watch it: the connection is lost in the middle, and resumes at the next event.

THINKWELL_URL=http://127.0.0.1:8283 THINKWELL_TOKEN=… python examples/web/watch.py
"""

import json
import os
from collections.abc import AsyncIterator

import anyio
import httpx

from thinkwell import Message, ToolStart, event_from_json

PROMPT = "Which files are here, and what is in them?"


async def events(client: httpx.AsyncClient, run: str, after: int) -> AsyncIterator[tuple[int, str, str]]:
    """Yield number, name and data of each event after a number, as they come."""
    number, name = after, "message"
    async with client.stream("GET", f"/api/runs/{run}/events", params={"after": after}) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            field, _, value = line.partition(": ")
            if field == "id":
                number = int(value)
            elif field == "event":
                name = value
            elif field == "data":
                yield number, name, value
                name = "message"


def tell(data: str) -> None:
    """Print an event."""
    match event_from_json(data):
        case Message(text=text):
            print(text, end="")
        case ToolStart(title=title):
            print(f"[{title}]")
        case _:
            pass


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['THINKWELL_TOKEN']}"}
    async with httpx.AsyncClient(base_url=os.environ["THINKWELL_URL"], headers=headers, timeout=60) as client:
        response = await client.post("/api/runs", json={"prompt": PROMPT})
        response.raise_for_status()
        run = response.json()["run"]["id"]

        seen, ended = 0, False
        while not ended:
            async for number, name, data in events(client, run, after=seen):
                assert number == seen + 1  # nothing is lost, and nothing is repeated
                seen, ended = number, name == "end"
                if not ended:
                    tell(data)
                else:
                    end = json.loads(data)
                    print(f"\n{end['status']} after {end['at']:.1f} s and {seen} events")
                if seen == 20:  # as if the connection were lost
                    print("… cut off …")
                    break


if __name__ == "__main__":
    anyio.run(main)
