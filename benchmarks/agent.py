"""The agent of every measured client: it plays a turn that it rendered beforehand.

    python -I -S agent.py MIX COUNT SESSIONS [RATE]

It uses little of the standard library only: the time from spawn to the first event contains this program's
own start. Requests are scanned for their method and id instead of being parsed; the turn is one block of
bytes in memory, written in large pieces, so that no client ever waits for it. The turn starts when SESSIONS
prompts have come in; its updates are dealt round-robin to the sessions, COUNT to each. With a RATE, so many
updates are written in each second.
"""

from __future__ import annotations

import os
import sys
from itertools import cycle, islice
from time import monotonic, sleep

BLOCK = 1 << 20
"""Bytes offered to the pipe at once."""

TICK = 0.01
"""Seconds between two writes, with a rate."""

DIFF_BYTES = 1 << 20
"""Old and new text of one diff together."""

WORDS = (
    " the",
    " stream",
    " of",
    " tokens",
    ",",
    " as",
    " a",
    " model",
    " writes",
    " them",
    ":",
    " short",
    " —",
    " and",
    " many",
    ".\\n",
)
"""Texts of the chunks, already escaped for JSON."""

SOURCE_LINE = '    value = table.get(\\"key\\", default)  # one line of source\\n'
"""The contents of the diffs, already escaped for JSON."""

TOOL_INPUT = (
    '"status":"pending","rawInput":{"command":"make test","timeout":120},'
    '"locations":[{"path":"/project/Makefile","line":12}]'
)
"""Fields of a tool call at its start."""

IDENTITY = (
    '{"protocolVersion":1,"agentCapabilities":{},"authMethods":[],'
    '"agentInfo":{"name":"bench","title":"Benchmark agent","version":"1"}}'
)
"""The answer to initialize."""

MODES = '{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]}'
"""The modes that round trips switch between."""


def session_id(number: int) -> str:
    return f"session-{number:04d}"


def envelope(session: str, update: str) -> bytes:
    params = f'{{"sessionId":"{session}","update":{update}}}'
    return f'{{"jsonrpc":"2.0","method":"session/update","params":{params}}}\n'.encode()


def chunk(tag: str, message: str, text: str) -> str:
    content = f'{{"type":"text","text":"{text}"}}'
    return f'{{"sessionUpdate":"{tag}","content":{content},"messageId":"{message}"}}'


def tokens(session: str, count: int) -> list[bytes]:
    """Only short pieces of one message: the most frequent traffic there is."""
    period = [envelope(session, chunk("agent_message_chunk", "message-1", word)) for word in WORDS]
    return list(islice(cycle(period), count))


def mixed_step(session: str, step: int) -> list[bytes]:
    """Twenty updates of seven kinds: think, say, call a tool to its end, plan, report usage."""
    call = f'"toolCallId":"call-{step}"'
    output = '{"type":"content","content":{"type":"text","text":"120 passed in 3.41s"}}'
    entries = ",".join(
        f'{{"content":"Step {number}","priority":"medium","status":"{status}"}}'
        for number, status in enumerate(("completed", "in_progress", "pending", "pending"))
    )
    head = f'{{"sessionUpdate":"tool_call_update",{call}'
    updates = [
        *(chunk("agent_thought_chunk", f"thought-{step}", word) for word in WORDS[:6]),
        *(chunk("agent_message_chunk", f"message-{step}", word) for word in WORDS[6:14]),
        f'{{"sessionUpdate":"tool_call",{call},"title":"Run the tests","kind":"execute",{TOOL_INPUT}}}',
        f'{head},"status":"in_progress"}}',
        f'{head},"content":[{output}]}}',
        f'{head},"status":"completed","content":[{output}],"rawOutput":{{"exit":0}}}}',
        f'{{"sessionUpdate":"plan","entries":[{entries}]}}',
        f'{{"sessionUpdate":"usage_update","used":{1000 + step},"size":200000}}',
    ]
    return [envelope(session, update) for update in updates]


def mixed(session: str, count: int) -> list[bytes]:
    """Every kind of update that a working agent sends, in its proportions."""
    per_step = len(mixed_step(session, 0))
    steps = -(-count // per_step)
    return [line for step in range(steps) for line in mixed_step(session, step)][:count]


def unannounced(session: str, count: int) -> list[bytes]:
    """Twenty updates: text, calls that were never announced, one with a small diff, and a plan."""
    entries = '[{"content":"Step","priority":"medium","status":"in_progress"}]'
    diff = f'{{"type":"diff","path":"/project/table.py","oldText":"{SOURCE_LINE}","newText":"{SOURCE_LINE}"}}'
    lines: list[bytes] = []
    for step in range(-(-count // 20)):
        calls = [
            f'{{"sessionUpdate":"tool_call_update","toolCallId":"call-{step}-{number}",'
            f'"title":"Run the tests","kind":"execute",{TOOL_INPUT}{rest}}}'
            for number, rest in enumerate(("", "", "", "", f',"content":[{diff}]'))
        ]
        updates = [
            *(chunk("agent_thought_chunk", f"thought-{step}", word) for word in WORDS[:6]),
            *(chunk("agent_message_chunk", f"message-{step}", word) for word in WORDS[6:14]),
            *calls,
            f'{{"sessionUpdate":"plan","entries":{entries}}}',
        ]
        lines += [envelope(session, update) for update in updates]
    return lines[:count]


def many(session: str, count: int) -> list[bytes]:
    """Short pieces of successive messages, a hundred pieces each."""
    texts = islice(cycle(WORDS), count)
    return [
        envelope(session, chunk("agent_message_chunk", f"message-{number // 100}", text))
        for number, text in enumerate(texts)
    ]


def interleaved(session: str, count: int) -> list[bytes]:
    """Short pieces of two messages in turn, as from two workers of an agent."""
    texts = islice(cycle(WORDS), count)
    return [
        envelope(session, chunk("agent_message_chunk", f"message-{number % 2}", text))
        for number, text in enumerate(texts)
    ]


def working(session: str, count: int) -> list[bytes]:
    """Short pieces of text, and one update in a hundred of a tool call or of the plan."""
    period = tokens(session, 99)
    entries = '[{"content":"Step","priority":"medium","status":"in_progress"}]'
    lines: list[bytes] = []
    for number in range(-(-count // 100)):
        call = f'"toolCallId":"call-{number // 3}"'
        kinds = (
            f'{{"sessionUpdate":"tool_call",{call},"title":"Run the tests","kind":"execute",{TOOL_INPUT}}}',
            f'{{"sessionUpdate":"plan","entries":{entries}}}',
            f'{{"sessionUpdate":"tool_call_update",{call},"status":"completed"}}',
        )
        lines += [*period, envelope(session, kinds[number % 3])]
    return lines[:count]


def diffs(session: str, count: int) -> list[bytes]:
    """One tool call, then updates of it that each carry a diff of a large file."""
    text = SOURCE_LINE * (DIFF_BYTES // 2 // len(SOURCE_LINE))
    content = f'{{"type":"diff","path":"/project/table.py","oldText":"{text}","newText":"{text}"}}'
    call = '"toolCallId":"call-1"'
    start = f'{{"sessionUpdate":"tool_call",{call},"title":"Edit table.py","kind":"edit","status":"pending"}}'
    update = f'{{"sessionUpdate":"tool_call_update",{call},"status":"in_progress","content":[{content}]}}'
    return [envelope(session, start), *[envelope(session, update)] * (count - 1)]


MIXES = {
    "tokens": tokens,
    "mixed": mixed,
    "diffs": diffs,
    "unannounced": unannounced,
    "many": many,
    "interleaved": interleaved,
    "working": working,
}


def render(mix: str, count: int, sessions: int) -> bytes:
    """All bytes of the turn except the answers to its prompts."""
    turns = [MIXES[mix](session_id(number), count) for number in range(sessions)]
    if sessions == 1:
        return b"".join(turns[0])
    return b"".join(line for lines in zip(*turns, strict=True) for line in lines)


def value_of(line: bytes, key: bytes) -> bytes:
    """The first scalar under a key, as on the wire, whatever spaces the encoder adds."""
    at = line.find(b'"' + key + b'"')
    if at < 0:
        return b""
    start = line.index(b":", at) + 1
    ends = [end for end in (line.find(mark, start) for mark in b",}") if end >= 0]
    return line[start : min(ends)].strip()


class Agent:
    """Answers requests line by line and plays the turn once enough prompts are in."""

    def __init__(self, turn: bytes, sessions: int, rate: float = 0.0) -> None:
        self.turn = turn
        self.rate = rate
        self.sessions = sessions
        self.opened = 0
        self.prompts: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Put bytes on the wire, large pieces at a time."""
        view = memoryview(data)
        while view:
            view = view[os.write(1, view[:BLOCK]) :]

    def reply(self, request: bytes, result: str) -> None:
        """Answer a request whose id is given as on the wire."""
        self.write(b'{"jsonrpc":"2.0","id":' + request + b',"result":' + result.encode() + b"}\n")

    def handle(self, line: bytes) -> None:
        """Answer a request; ignore other messages."""
        method, request = value_of(line, b"method"), value_of(line, b"id")
        if not method or not request:
            return
        if method == b'"initialize"':
            self.reply(request, IDENTITY)
        elif method == b'"session/new"':
            session = session_id(self.opened % self.sessions)
            self.opened += 1
            self.reply(request, f'{{"sessionId":"{session}","modes":{MODES}}}')
        elif method == b'"session/prompt"':
            self.prompts.append(request)
            if len(self.prompts) == self.sessions:
                self.play()
        else:
            self.reply(request, "{}")

    def play(self) -> None:
        """Write the turn, then the answers to its prompts."""
        if self.rate:
            self.trickle()
        else:
            self.write(self.turn)
        for request in self.prompts:
            self.reply(request, '{"stopReason":"end_turn"}')
        self.prompts.clear()

    def trickle(self) -> None:
        """Write the turn at its rate, whatever the clock and the pipe do in between."""
        lines = self.turn.splitlines(keepends=True)
        begun, done = monotonic(), 0
        while done < len(lines):
            due = min(len(lines), int((monotonic() - begun + TICK) * self.rate))
            self.write(b"".join(lines[done:due]))
            done = due
            sleep(TICK)

    def serve(self) -> None:
        """Answer until the client closes its end."""
        rest = b""
        while data := os.read(0, BLOCK):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self.handle(line)


def main() -> None:
    mix, count, sessions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rate = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0
    Agent(render(mix, count, sessions), sessions, rate).serve()


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        os._exit(0)
