"""A memory with a bound."""

from __future__ import annotations

from thinkwell_acp._recent import Recent


def test_what_was_added_longest_ago_is_forgotten_first() -> None:
    recent = Recent(2)
    for name in ("a", "b", "a", "c"):
        recent.add(name)
    assert [name in recent for name in "abc"] == [True, False, True]


def test_what_is_discarded_makes_room() -> None:
    recent = Recent(2)
    recent.add("a")
    recent.add("b")
    recent.discard("b")
    recent.discard("unknown")
    recent.add("c")
    assert [name in recent for name in "abc"] == [True, False, True]
