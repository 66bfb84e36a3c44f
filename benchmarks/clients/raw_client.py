"""No client at all: reads the agent's bytes and drops them. The ceiling that agent and pipe set for all."""

from __future__ import annotations

import json
import os
import subprocess
from time import perf_counter
from typing import IO

from benchmarks.clients import _common as common

READ_SIZE = 1 << 18
ANSWERS = 1
"""Lines in the turn that are not updates: the answer to each prompt."""


def request(pipe: IO[bytes], number: int, method: str) -> None:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {}}
    os.write(pipe.fileno(), json.dumps(message).encode() + b"\n")


def consume(pipe: IO[bytes], task: common.Order) -> common.Reading:
    total = (task.count + ANSWERS) * task.sessions
    first, lines = 0.0, 0
    buffer = bytearray(READ_SIZE)
    while lines < total and (size := os.readv(pipe.fileno(), [buffer])):
        first = first or perf_counter()
        lines += buffer.count(b"\n", 0, size)
    return common.Reading(first, perf_counter(), lines - ANSWERS * task.sessions, 0)


def stream(task: common.Order) -> common.Figures:
    with subprocess.Popen(task.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        request(agent.stdin, 0, "initialize")
        os.read(agent.stdout.fileno(), READ_SIZE)
        meter = common.Meter(task)
        for number in range(task.sessions):
            request(agent.stdin, number + 1, "session/prompt")
        figures = meter.throughput([consume(agent.stdout, task)])
        agent.stdin.close()
    return figures


if __name__ == "__main__":
    given = common.order()
    if given.action != "stream":
        raise SystemExit("only the stream can be read raw")
    common.report(stream(given))
