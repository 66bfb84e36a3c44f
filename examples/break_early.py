"""Leave the loop when you have seen enough: that cancels nothing, and loses nothing.

python examples/break_early.py
"""

from __future__ import annotations

import anyio

from thinkwell import Thought, ThoughtCancelled, open_agent


async def main() -> None:
    async with open_agent() as agent:
        stream = agent.think(int).text("How many functions are in this project?").stream()
        async for event in stream:
            if isinstance(event, Thought):
                print(f"first thought: {event.text.strip()} …")
                break

        # The run has continued meanwhile. A new loop begins with the first event again.
        thoughts = [event.text async for event in stream if isinstance(event, Thought)]
        print(f"all thoughts: {len(''.join(thoughts).split())} words")
        print(f"result: {await stream.result}")

        # To end a run early, say so: by cancel(), or by leaving an `async with` block.
        async with agent.think(int).text("And how many classes?").stream() as unwanted:
            pass
        try:
            await unwanted.result
        except ThoughtCancelled:
            print("the second run was cancelled")


if __name__ == "__main__":
    anyio.run(main)
