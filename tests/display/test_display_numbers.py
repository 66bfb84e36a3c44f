"""Numbers as people read them."""

from __future__ import annotations

import pytest

from thinkwell import RunView, TokenCounts
from thinkwell import events as ev
from thinkwell._display.numbers import clock, count, money, plural, seconds
from thinkwell._display.usage import context_share, usage_words
from thinkwell.events import Cost


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0.0s"),
        (-1, "0.0s"),
        (3.21, "3.2s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (37.4, "37s"),
        (59.4, "59s"),
        (59.6, "1:00"),
        (102, "1:42"),
        (605, "10:05"),
        (3723, "1:02:03"),
        (360_000, "100:00:00"),
        (float("nan"), "?"),
        (float("inf"), "?"),
    ],
)
def test_seconds(value: float, shown: str) -> None:
    assert seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "00:00"), (102, "01:42"), (3723, "1:02:03"), (-5, "00:00"), (float("inf"), "00:00")],
)
def test_clock(value: float, shown: str) -> None:
    assert clock(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1k"),
        (18_234, "18.2k"),
        (99_949, "99.9k"),
        (99_960, "100k"),
        (200_000, "200k"),
        (999_499, "999k"),
        (999_500, "1M"),
        (1_500_000, "1.5M"),
        (2_000_000_000, "2G"),
        (10**15, "1.0e+15"),
    ],
)
def test_count(value: int, shown: str) -> None:
    assert count(value) == shown


@pytest.mark.parametrize(
    ("amount", "currency", "shown"),
    [
        (0.0612, "USD", "$0.06"),
        (0.0012, "USD", "$0.0012"),
        (0, "EUR", "€0.00"),
        (1234.5, "CHF", "1,234.50 CHF"),
        (1, "", "1.00"),
        (1, "\x1b[2Jx\n", "1.00 x"),
        (float("inf"), "GBP", "£?"),
    ],
)
def test_money(amount: float, currency: str, shown: str) -> None:
    assert money(Cost(amount=amount, currency=currency)) == shown


def test_plural() -> None:
    assert (plural(1, "file"), plural(0, "file"), plural(1_200, "file")) == (
        "1 file",
        "0 files",
        "1,200 files",
    )
    assert plural(2, "entry", "entries") == "2 entries"


@pytest.mark.parametrize(
    ("used", "size", "share"),
    [
        (10**400, 10, 1.0),
        (5, 10**400, 0.0),
        (-(10**400), 10, 0.0),
        (10**400, 2 * 10**400, 0.5),
        (1, -5, None),
    ],
)
def test_numbers_that_are_none(used: int, size: int, share: float | None) -> None:
    usage = ev.UsageUpdate(used=used, size=size, cost=ev.Cost(amount=float("nan"), currency="\x1b[2J"))
    view = RunView(usage=usage)
    assert context_share(view) == share
    assert "\x1b" not in usage_words(view)


@pytest.mark.parametrize(("input_", "cached"), [(-3, 3), (-7, 3), (5, -3)])
def test_negative_tokens_have_no_share(input_: int, cached: int) -> None:
    view = RunView(tokens=TokenCounts(input=input_, output=-1, cached_read=cached))
    assert usage_words(view) == f"{input_} in · -1 out"
