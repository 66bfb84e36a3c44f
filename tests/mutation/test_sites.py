"""The mutants that a seed draws are places in the sources, and the same ones each time."""

from __future__ import annotations

import warnings

import pytest

from mutation.sites import ROOT, drawn

pytestmark = pytest.mark.long


def test_a_seed_draws_the_same_mutants_and_each_changes_one_line_of_a_source_that_still_compiles() -> None:
    mutants = drawn(10, seed=1)
    assert mutants == drawn(10, seed=1)
    assert len({(mutant.file, mutant.line) for mutant in mutants}) == 10
    for mutant in mutants:
        text = (ROOT / mutant.file).read_bytes()
        before, after = text.splitlines(), mutant.applied_to(text).splitlines()
        assert [
            number for number, (old, new) in enumerate(zip(before, after, strict=True), 1) if old != new
        ] == [mutant.line]
        with warnings.catch_warnings(action="ignore"):
            compile(mutant.applied_to(text), mutant.file, "exec")
            compile(mutant.probed_in(text), mutant.file, "exec")
