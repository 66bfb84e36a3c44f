"""Every journal keeps pieces of data for its server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from thinkwell.journal import Journal

EVERY_BYTE = bytes(range(256))


async def test_a_piece_is_kept_until_it_is_replaced_or_forgotten(journal: Journal) -> None:
    assert await journal.pick("token", "a") is None
    await journal.put("token", "a", b"one")
    assert await journal.pick("token", "a") == b"one"
    await journal.put("token", "a", b"two")
    assert await journal.pick("token", "a") == b"two"
    await journal.put("token", "a", None)
    assert await journal.pick("token", "a") is None
    await journal.put("token", "a", None)


async def test_pieces_hold_any_bytes_under_any_name(journal: Journal) -> None:
    names = ["", " ", "a b", "a,b", "A", "a", "ä", "漢字", "x\0y", "'", "*", "%", "\n", "n" * 1000]
    datas = [b"", EVERY_BYTE, b" ,", b"x" * 100_000]
    kept = {name: datas[number % len(datas)] for number, name in enumerate(names)}
    for name, data in kept.items():
        await journal.put("a kind", name, data)
    assert await journal.pick_all("a kind") == list(kept.items())
    for name, data in kept.items():
        assert await journal.pick("a kind", name) == data
    assert await journal.pick("a kind", "\ud800") is None


async def test_kinds_are_apart(journal: Journal) -> None:
    await journal.put("a", "x", b"1")
    await journal.put("b", "x", b"2")
    await journal.put("ab", "", b"3")
    assert await journal.pick("a", "x") == b"1"
    assert await journal.pick_all("b") == [("x", b"2")]
    assert await journal.pick_all("c") == []
    await journal.put("a", "x", None)
    assert await journal.pick_all("a") == []
    assert await journal.pick("b", "x") == b"2"


async def test_pieces_come_in_the_order_in_which_they_were_kept_first(journal: Journal) -> None:
    for name in "cab":
        await journal.put("kind", name, b"old")
    await journal.put("kind", "c", b"new")
    assert await journal.pick_all("kind") == [("c", b"new"), ("a", b"old"), ("b", b"old")]
    await journal.put("kind", "a", None)
    await journal.put("kind", "d", b"")
    await journal.put("kind", "a", b"again")
    assert await journal.pick_all("kind") == [("c", b"new"), ("b", b"old"), ("d", b""), ("a", b"again")]


async def test_many_keep_pieces_at_once(journal: Journal) -> None:
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(journal.put, "kind", f"name-{number % 20}", b"%d" % (number // 20))
    pieces = await journal.pick_all("kind")
    assert sorted(name for name, _ in pieces) == sorted(f"name-{number}" for number in range(20))


async def test_pieces_are_no_entries(journal: Journal) -> None:
    await journal.put("kind", "name", b"x" * 1000)
    assert await journal.size() == 0
    assert await journal.runs() == []
