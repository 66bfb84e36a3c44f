"""The list of deliberate bugs fits the sources."""

from __future__ import annotations

import pytest

from .mutants import MUTANTS, ROOT, Mutant, place


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_place_of_a_mutant_is_there_once(mutant: Mutant) -> None:
    place(mutant, ROOT)
    assert mutant.before != mutant.after
