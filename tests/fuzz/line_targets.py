"""Programs that speak lines, at their worst."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from fuzz.hostile import CUTS, IDS, LEAVES, LONG_RUN, LONGEST, blocks_of, damaged, repeated, spoilt
from fuzz.target import Target, on_both
from hypothesis import strategies as st

from thinkwell import FormQuestion, ThinkwellError, open_agent
from thinkwell_acp import memory_transport_pair

if TYPE_CHECKING:
    from thinkwell import Question
    from thinkwell import questions as asking

_TEXTS = repeated(["a", " ", "\n", "\r", "\\n", '"', "{", "\u00e4", "\x1b[31m", "\u2028", "\x00"])
_IDS = IDS | st.integers() | st.none() | LEAVES
_KINDS = st.sampled_from(
    [
        "partial",
        "partial",
        "progress",
        "log",
        "question",
        "question",
        "approval",
        "approval",
        "own",
        "init_ack",
    ]
)
_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "id": _IDS,
        "text": _TEXTS,
        "message": _TEXTS,
        "stage": IDS,
        "percent": st.integers(-1, 101) | st.floats() | LEAVES,
        "level": st.sampled_from(["debug", "info", "WARN", ""]) | LEAVES,
        "question": _TEXTS,
        "description": _TEXTS,
        "context": _TEXTS,
        "options": st.lists(IDS | _TEXTS | LEAVES, max_size=5) | LEAVES,
        "code": st.integers() | LEAVES,
    },
)


@st.composite
def _messages(draw: st.DrawFn) -> bytes:
    kind = draw(_KINDS | st.sampled_from(["result", "error"]))
    message: Any = {"type": kind, **draw(_FIELDS)}
    if not draw(st.integers(0, 3)):
        message = spoilt(message, draw)
    return msgspec.json.encode(message)


PROGRAM_LINES = damaged(st.one_of(_messages(), _messages(), _messages(), st.binary(max_size=20)))
LINE_STREAMS = st.lists(PROGRAM_LINES, min_size=1, max_size=8)
LIMIT = 2 * max(LONGEST, 250_000)


def _answer(question: Question) -> asking.Answer:
    return {question.fields[-1].name: "x"} if isinstance(question, FormQuestion) else True


async def check_run(given: tuple[list[bytes], list[int]]) -> None:
    """Whatever a program writes, each run comes to an end, and leaving the block as well."""
    lines, cuts = given
    stream = b"\n".join(lines)
    ours, theirs = memory_transport_pair()
    with anyio.fail_after(600):
        async with open_agent(
            transport=ours, protocol="ndjson", permissions="ask", on_question=_answer
        ) as agent:
            runs = [agent.think().text("Go").stream(include="all") for _ in range(2)]
            await anyio.wait_all_tasks_blocked()
            for block in blocks_of(stream, cuts):
                await theirs.send(block)
            await anyio.wait_all_tasks_blocked()
            await theirs.aclose()
            for run in runs:
                with suppress(ThinkwellError):
                    assert isinstance(await run.result, str)
                await run.wait()
                assert run.view.error is not None or run.view.stop_reason == "end_turn"


TARGETS = (
    Target(
        name="line run",
        inputs=st.tuples(LINE_STREAMS, CUTS),
        check=on_both(check_run),
        weight=60 if LONG_RUN else 25,
    ),
)
