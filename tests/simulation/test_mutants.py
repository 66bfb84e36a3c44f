"""The list of deliberate bugs fits the sources."""

from __future__ import annotations

from .mutants import MUTANTS, ROOT, place


def test_the_place_of_each_mutant_is_there_once() -> None:
    for mutant in MUTANTS:
        place(mutant, ROOT)
        assert mutant.before != mutant.after, mutant.name
