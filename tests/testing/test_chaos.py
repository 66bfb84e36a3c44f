"""What goes wrong on a connection: what comes out of it is what went in, but for what is said to be wrong."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import anyio
import pytest

from thinkwell.testing import DEFAULT_RATES, Chaos, ChaoticTransport, Fault, chaotic
from thinkwell_acp import ConnectionBroken, memory_transport_pair

Json = dict[str, Any]

HUGE = 8 * 1024 * 1024


def line(message: Json) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()


def update(text: str, session: str = "s") -> Json:
    content = {"type": "text", "text": text}
    body = {"sessionUpdate": "agent_message_chunk", "content": content}
    return {"method": "session/update", "params": {"sessionId": session, "update": body}}


def prompt(id_: int, session: str = "s") -> bytes:
    return line({"id": id_, "method": "session/prompt", "params": {"sessionId": session, "prompt": []}})


def answer(id_: int, **result: object) -> Json:
    return {"id": id_, "result": result}


def through(chaos: Chaos, *messages: Json) -> list[bytes]:
    """Return the lines that come out."""
    pieces = chaos.incoming([line(message) for message in messages])
    data = b"".join(piece.data for piece in pieces)
    assert [line + b"\n" for piece in pieces for line, _ in piece.lines] == data.splitlines(keepends=True)
    return data.splitlines()


def texts(lines: list[bytes]) -> list[str]:
    messages = [json.loads(line) for line in lines]
    return [
        str(message.get("id", ""))
        or message["params"]["update"]
        .get("content", {})
        .get("text", message["params"]["update"].get("token"))
        for message in messages
    ]


def test_nothing_goes_wrong_without_faults() -> None:
    chaos = Chaos(1, rates={})
    messages = [update("a"), {"id": 1, "method": "x"}, answer(7), update("b")]
    assert through(chaos, *messages) == [line(message) for message in messages]
    assert chaos.injected == Counter()
    assert chaos.messages == 4
    assert through(chaos) == []


def test_the_seed_decides() -> None:
    def played(seed: int) -> tuple[list[bytes], Counter[Fault]]:
        chaos = Chaos(seed)
        chaos.outgoing(prompt(1))
        out = [piece.data for n in range(30) for piece in chaos.incoming([line(update(f"ü{n}"))])]
        return out, chaos.injected

    assert played(3) == played(3)
    assert played(3) != played(4)
    assert sum(played(3)[1].values()) > 10


def test_bytes_are_split_anywhere() -> None:
    chaos = Chaos(1, rates={Fault.SPLIT: 1.0, Fault.DELAY: 1.0}, delays=[2.0])
    cuts = 0
    for n in range(50):
        pieces = chaos.incoming([line(update(f"{n} 𝄞" * 20)), line(update("b"))])
        assert (
            b"".join(piece.data for piece in pieces)
            == line(update(f"{n} 𝄞" * 20)) + b"\n" + line(update("b")) + b"\n"
        )
        assert sum(len(piece.lines) for piece in pieces) == 2
        assert all(piece.delay == 2.0 for piece in pieces)
        for piece in pieces[:-1]:
            try:
                piece.data.decode()
            except UnicodeDecodeError:
                cuts += 1
    assert cuts > 5, "inside of characters too"
    assert chaos.longest_delay == 2.0


@pytest.mark.parametrize(
    ("fault", "extra"),
    [
        (Fault.NOISE, 1),
        (Fault.HUGE_NOISE, 1),
        (Fault.HUGE_UPDATE, 1),
        (Fault.UNKNOWN_UPDATE, 1),
        (Fault.UNKNOWN_ANSWER, 1),
        (Fault.UNKNOWN_REQUEST, 1),
    ],
)
def test_lines_are_made_up(fault: Fault, extra: int) -> None:
    chaos = Chaos(5, rates={}, at={2: fault})
    through(chaos, update("first"))
    pieces = chaos.incoming([line(update("a"))])
    lines = [made for piece in pieces for made in piece.lines]
    assert len(lines) == 1 + extra
    assert lines[-1] == (line(update("a")), None)
    assert lines[0][1] is fault
    assert chaos.injected == {fault: extra}
    if fault in (Fault.HUGE_NOISE, Fault.HUGE_UPDATE):
        assert len(lines[0][0]) >= HUGE
    if fault is Fault.UNKNOWN_REQUEST:
        assert not chaos.outgoing(line({"id": json.loads(lines[0][0])["id"], "error": {}})), (
            "that is for nobody"
        )


def test_updates_are_made_up_for_known_sessions_only() -> None:
    chaos = Chaos(5, rates={Fault.UNKNOWN_UPDATE: 1.0})
    assert through(chaos, {"id": 1, "method": "x"}) == [line({"id": 1, "method": "x"})]


def test_updates_come_early() -> None:
    chaos = Chaos(5, rates={Fault.EARLY_UPDATE: 1.0})
    assert chaos.outgoing(line({"id": 4, "method": "session/new", "params": {}}))
    assert texts(through(chaos, answer(4, sessionId="s"))) == ["chaos-update-1 early", "4"]
    chaos.outgoing(line({"id": 5, "method": "session/new", "params": {}}))
    assert through(chaos, answer(5, nothing=1)) == [line(answer(5, nothing=1))]


def test_updates_come_late_and_in_order() -> None:
    chaos = Chaos(5, at={2: Fault.LATE_UPDATES}, rates={})
    chaos.outgoing(prompt(1))
    assert texts(through(chaos, update("a"), update("b"), update("c", "other"))) == ["c"]
    assert texts(through(chaos, answer(1))) == ["1", "a", "b"]
    assert chaos.injected == {Fault.LATE_UPDATES: 1}


def test_updates_that_were_held_back_come_at_the_end() -> None:
    chaos = Chaos(5, at={2: Fault.LATE_UPDATES}, rates={Fault.UNKNOWN_UPDATE: 1.0})
    chaos.outgoing(prompt(1))
    assert through(chaos, update("a"), update("b")) == []
    assert texts([out for piece in chaos.finish() for out, _ in piece.lines]) == ["a", "b"]


def test_updates_of_different_sessions_are_swapped() -> None:
    chaos = Chaos(5, rates={Fault.SWAP: 1.0})
    assert texts(through(chaos, update("a", "one"), update("b", "two"))) == ["b", "a"]
    assert texts(through(chaos, update("c", "one"), update("d", "one"))) == ["c", "d"]
    assert texts(through(chaos, update("e", "one"), {"id": 1, "method": "x"})) == ["e", "1"]
    assert texts(through(chaos, update("f", "one"))) == []
    assert texts([out for piece in chaos.finish() for out, _ in piece.lines]) == ["f"]
    assert chaos.injected == {Fault.SWAP: 1}


def test_what_is_made_up_does_not_overtake_what_is_held_back() -> None:
    chaos = Chaos(5, rates={}, at={1: Fault.SWAP, 2: Fault.UNKNOWN_UPDATE, 3: Fault.SWAP})
    told = texts(through(chaos, update("a"), update("b"), update("c"), update("d")))
    assert [text for text in told if "chaos" not in text] == ["a", "b", "c", "d"]
    late = Chaos(5, rates={}, at={2: Fault.SWAP, 3: Fault.LATE_UPDATES})
    late.outgoing(prompt(1))
    assert texts(through(late, update("a"), update("b"), answer(1))) == ["a", "1", "b"]


def test_answers_come_twice_or_as_errors() -> None:
    chaos = Chaos(5, rates={}, at={1: Fault.DUPLICATE_ANSWER, 2: Fault.ERROR_ANSWER, 3: Fault.ERROR_ANSWER})
    assert through(chaos, answer(1)) == [line(answer(1))] * 2
    (error,) = through(chaos, answer(2))
    assert json.loads(error)["error"]["code"] == -32603
    failed = {"id": 3, "error": {"code": 1, "message": ""}}
    assert through(chaos, failed) == [line(failed)], "it is one already"


def test_requests_come_twice_and_the_agent_hears_one_answer() -> None:
    chaos = Chaos(5, rates={Fault.DUPLICATE_REQUEST: 1.0})
    request = {"id": 9, "method": "session/request_permission", "params": {"sessionId": "s"}}
    assert through(chaos, request) == [line(request)] * 2
    assert chaos.outgoing(line(answer(9)))
    assert not chaos.outgoing(line(answer(9)))
    assert through(chaos, {"method": "note"}) == [line({"method": "note"})]


def test_an_id_may_be_used_again() -> None:
    chaos = Chaos(5, rates={}, at={1: Fault.DUPLICATE_REQUEST})
    request = {"id": 9, "method": "x", "params": [1]}
    through(chaos, request)
    assert chaos.outgoing(line(answer(9)))
    through(chaos, request)
    assert chaos.outgoing(line(answer(9)))
    assert chaos.outgoing(line({"id": 9, "result": None})), "that is for others to refuse"


def test_what_is_no_message_passes() -> None:
    chaos = Chaos(5, rates={})
    assert b"".join(piece.data for piece in chaos.incoming([b"no message"])) == b"no message\n"
    assert chaos.outgoing(b"no message")


def test_nothing_is_likely_by_default_that_would_break_a_run() -> None:
    fatal = {Fault.DROP, Fault.HALF_LINE, Fault.HANG, Fault.STUCK}
    assert not {*fatal, Fault.ERROR_ANSWER} & DEFAULT_RATES.keys()


# The transport


def pair(**options: Any) -> tuple[ChaoticTransport, Any]:
    ours, theirs = memory_transport_pair()
    return chaotic(ours, Chaos(1, **options)), theirs


async def test_bytes_pass_both_ways() -> None:
    ours, theirs = pair(rates={})
    with anyio.fail_after(30):
        await theirs.send(line(update("a"))[:9])
        await theirs.send(line(update("a"))[9:] + b"\n" + b"rest")
        assert await ours.receive() == line(update("a")) + b"\n"
        await ours.send(prompt(1) + b"\n" + prompt(2) + b"\n")
        assert await theirs.receive() == prompt(1) + b"\n" + prompt(2) + b"\n"
        await ours.reached(3)
        assert [passed.way for passed in ours.chaos.passed] == ["in", "out", "out"]
        await ours.aclose()
        assert ours.left_at is not None
        with pytest.raises(anyio.EndOfStream):
            await theirs.receive()


async def test_a_reader_that_is_cancelled_loses_nothing() -> None:
    ours, theirs = pair(rates={Fault.DELAY: 1.0}, delays=[0.05])
    with anyio.fail_after(30):
        with anyio.move_on_after(0.01):
            await ours.receive()
        await theirs.send(line(update("a")) + b"\n")
        with anyio.move_on_after(0.01):
            await ours.receive()
        assert await ours.receive() == line(update("a")) + b"\n"


async def test_the_end_of_the_other_side_is_passed_on_with_what_was_held_back() -> None:
    ours, theirs = pair(rates={Fault.SWAP: 1.0})
    with anyio.fail_after(30):
        await theirs.send(line(update("a")) + b"\n")
        await theirs.aclose()
        assert await ours.receive() == line(update("a")) + b"\n"
        for _ in range(2):
            with pytest.raises(anyio.EndOfStream):
                await ours.receive()
        await ours.aclose()
        assert ours.left_at is None, "it was not we who ended it"


class Gone:
    """A transport that says why it has ended."""

    async def receive(self) -> bytes:
        raise ConnectionBroken("why")

    async def send(self, item: bytes, /) -> None:
        raise AssertionError(item)

    async def aclose(self) -> None:
        pass


async def test_why_it_ended_is_passed_on() -> None:
    with pytest.raises(ConnectionBroken, match="why"):
        await chaotic(Gone(), Chaos(1, rates={})).receive()


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.HALF_LINE])
async def test_the_connection_is_dropped_at_a_line_of_the_agents(fault: Fault) -> None:
    ours, theirs = pair(rates={}, at={2: fault})
    with anyio.fail_after(30):
        await theirs.send(line(update("a")) + b"\n" + line(update("b")) + b"\n")
        data = await ours.receive()
        assert data == line(update("a")) + b"\n"
        if fault is Fault.HALF_LINE:
            half = await ours.receive()
            assert half
            assert line(update("b")).startswith(half)
        with pytest.raises(anyio.EndOfStream):
            await ours.receive()
        with pytest.raises(anyio.EndOfStream):
            await theirs.receive()
        with pytest.raises(anyio.BrokenResourceError):
            await ours.send(prompt(1) + b"\n")
    assert ours.chaos.injected == {fault: 1}
    assert ours.chaos.messages == 2, "what comes behind it does not count"


async def test_the_connection_is_dropped_at_a_line_of_ours() -> None:
    ours, theirs = pair(rates={}, at={2: Fault.DROP})
    ended = anyio.Event()

    async def read() -> None:
        with pytest.raises(anyio.EndOfStream):
            await ours.receive()
        ended.set()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(anyio.BrokenResourceError):
                await ours.send(prompt(1) + b"\n" + prompt(2) + b"\n")
            await ended.wait()
        assert await theirs.receive() == prompt(1) + b"\n"


async def test_the_connection_hangs() -> None:
    ours, theirs = pair(rates={}, at={1: Fault.HANG})
    with anyio.fail_after(30):
        await ours.send(prompt(1) + b"\n")
        await ours.send(prompt(2) + b"\n")
        await theirs.send(line(update("a")) + b"\n")
        with anyio.move_on_after(0.05) as scope:
            await ours.receive()
        assert scope.cancelled_caught
        with anyio.move_on_after(0.05) as scope:
            await theirs.receive()
        assert scope.cancelled_caught
        await theirs.aclose()
        with pytest.raises(anyio.EndOfStream):
            await ours.receive()


async def test_the_agent_reads_no_more() -> None:
    ours, theirs = pair(rates={}, at={1: Fault.STUCK})
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:

            async def write() -> None:
                with pytest.raises(anyio.ClosedResourceError):
                    await ours.send(prompt(1) + b"\n")

            tasks.start_soon(write)
            await theirs.send(line(update("a")) + b"\n")
            assert await ours.receive() == line(update("a")) + b"\n"
            await ours.aclose()


async def test_writes_take_a_while() -> None:
    ours, theirs = pair(rates={Fault.SLOW_WRITE: 1.0}, delays=[0.02])
    began = anyio.current_time()
    with anyio.fail_after(30):
        await ours.send(prompt(1) + b"\n")
        assert await theirs.receive() == prompt(1) + b"\n"
    assert anyio.current_time() - began >= 0.02
