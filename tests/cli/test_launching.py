"""What is said while an agent is installed, which may take minutes."""

from __future__ import annotations

import pytest

from thinkwell.cli._launching import launching_shown
from thinkwell.cli._terminal import How
from thinkwell.events import Phase, PhaseChanged

PHASES: tuple[Phase, ...] = ("launching", "installing", "initializing")


@pytest.mark.parametrize(
    ("how", "told"),
    [
        (How(), "[phase]  installing npm package x@1\n"),
        (How(quiet=True), ""),
        (How(as_json=True), ""),
    ],
    ids=str,
)
def test_an_installation_is_told(how: How, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with launching_shown("mine", how) as launching:
        for phase in PHASES:
            launching(PhaseChanged(phase=phase, detail="npm package x@1"))
    assert capsys.readouterr() == ("", told)
