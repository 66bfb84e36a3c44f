"""Properties tried on examples of Hypothesis: a few of them in `make test`, many in `make test-all`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

__all__ = ("tried",)


def tried(
    *strategies: SearchStrategy[Any], few: int = 40, many: int = 300
) -> Callable[[Callable[..., None]], Callable[[int], None]]:
    """Make a test of a function that checks one example."""

    def decorate(check: Callable[..., None]) -> Callable[[int], None]:
        @pytest.mark.parametrize("examples", [few, pytest.param(many, marks=pytest.mark.long)])
        def test(examples: int) -> None:
            limits = settings(max_examples=examples)
            limits(given(*strategies)(check))()

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return decorate
