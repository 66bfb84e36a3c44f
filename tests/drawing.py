"""Values of Hypothesis for tests that hold an agent open: drawn first, sent one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from suite.tiers import few

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


def drawn(strategy: SearchStrategy[T], count: int) -> list[T]:
    """Return so many values at most; in `make test` a few of them. Tests that call it are marked `draws`."""
    values: list[T] = []

    @settings(
        max_examples=few(count),
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
        ],
    )
    @given(strategy)
    def draw(value: T) -> None:
        values.append(value)

    draw()
    return values
