"""Deliveries to many chats, with and without faults: nothing is lost, and nothing is refused at defaults."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from deliveries.chats import deliver_turns, some_turn, steady_turn, troubled

if TYPE_CHECKING:
    from deliveries.chats import ChatType


pytestmark = [pytest.mark.virtual_time, pytest.mark.long]


@pytest.mark.parametrize("kind", ["private", "group"])
async def test_no_edit_is_one_too_many(kind: ChatType) -> None:
    outcome = await deliver_turns([steady_turn(120)], kind)
    assert outcome.throttled == 0
    assert outcome.edits > (30 if kind == "group" else 90)
    assert not outcome.differing


async def test_twenty_chats_at_once_get_their_texts() -> None:
    dice = random.Random(20)
    outcome = await deliver_turns([some_turn(dice) for _ in range(20)], "private")
    assert (outcome.deliveries, outcome.throttled, outcome.reported, outcome.unclean) == (20, 0, 0, 0)
    assert outcome.differing == []


@pytest.mark.parametrize("seed", [90, 115, 180, *range(20)])
async def test_nothing_is_lost_where_much_goes_wrong(seed: int) -> None:
    outcome = await troubled(seed)  # without more tries, the first three lose answers, as does 12
    assert outcome.lost == []
