"""thinkwell's blocking API: the same work as `thinkwell_client`, by a plain `for` in the main thread."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.clients import _common as common
from benchmarks.clients.thinkwell_client import KINDS
from thinkwell import Message, Thought, ToolUpdate
from thinkwell.events import DiffContent
from thinkwell.sync import open_agent

if TYPE_CHECKING:
    from thinkwell.sync import ThoughtStream


def consume(stream: ThoughtStream[str], expected: int) -> common.Reading:
    first = last = 0.0
    updates = characters = 0
    for event in stream:
        if not updates:
            first = perf_counter()
        updates += 1
        if isinstance(event, Message | Thought):
            characters += len(event.text)
        elif isinstance(event, ToolUpdate):
            for part in event.content or ():
                if isinstance(part, DiffContent):
                    characters += len(part.new_text)
        if updates == expected:
            last = perf_counter()
    return common.Reading(first, last, updates, characters)


if __name__ == "__main__":
    given = common.order()
    if given.action != "stream":
        raise SystemExit("only the stream is measured for the blocking API")
    with open_agent(command=given.command) as agent:
        meter = common.Meter(given)
        turn = agent.think().text("go").stream(include=KINDS)
        figures = meter.throughput([consume(turn, given.count)])
    common.report(figures)
