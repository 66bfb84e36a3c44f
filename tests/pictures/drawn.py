"""The pictures of terminals: SVG, the same bytes each time on every machine."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import pytest
from msgspec.json import decode
from progress.golden import recording, steps_in
from progress.stage import LiveTerminal, draw_board
from progress.terminal import Terminal
from trials.reported import many_trials

from pictures.stories import ALL_PROMPTS, FALLBACK, fall_back
from pictures.terminal_svg import terminal_svg
from thinkwell.doctor import Diagnosis
from thinkwell.testing import virtual_backend
from thinkwell.trials import Spent, Table, Trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from progress.stage import State

FOLDER: Final = Path(__file__).parents[2] / "docs" / "pictures"
"""Where the pictures are, and what they are made from."""

COLUMNS: Final = 100
TALL: Final = 72
"""Rows of a terminal that holds a whole run."""


def story(name: str) -> Path:
    """Return the file of a recorded run."""
    return FOLDER / f"{name}.ndjson"


def run(name: str, columns: int = COLUMNS, *, until: Callable[[State], bool] | None = None) -> str:
    """Return a run in a terminal: at its end, or as soon as something is so."""
    live = LiveTerminal(columns, TALL)
    states = steps_in(story(name))
    end = len(states) if until is None else 1 + next(at for at, state in enumerate(states) if until(state))
    for state in states[:end]:
        questions = state.view.questions
        live.draw(replace(state, asking=questions[0].id if questions else None))
    if until is None:
        live.finish(states[-1])
    return terminal_svg(live.terminal, ALL_PROMPTS[name])


def several() -> str:
    """Return several runs in one display: one works, one asks, one has failed."""
    live = LiveTerminal(COLUMNS, TALL)
    shown = {
        "search": [state for state in steps_in(story("search")) if state.now < 6],
        "release": [state for state in steps_in(story("release")) if state.now < 2.4],
        "tests": steps_in(recording("died")),
    }
    live.draw(*(replace(states[-1], label=label) for label, states in shown.items()))
    return terminal_svg(live.terminal, "async with Live(*streams, labels=labels)")


def fallback() -> str:
    """Return a run that was tried again and then given to another agent, at its end."""
    live = LiveTerminal(COLUMNS, TALL)
    backend, options = virtual_backend("asyncio")
    states = anyio.run(fall_back, backend=backend, backend_options=options)
    for state in states:
        live.draw(state)
    live.finish(states[-1])
    return terminal_svg(live.terminal, FALLBACK)


def diagnosis() -> str:
    """Return what the doctor has found."""
    terminal = Terminal(COLUMNS, TALL)
    found = decode((FOLDER / "doctor.json").read_bytes(), type=Diagnosis)
    terminal.write(found.table(COLUMNS).replace("\n", "\r\n"))
    return terminal_svg(terminal, f"thinkwell doctor {found.agent}")


def trials() -> str:
    """Return trials of two agents: some have ended, some run."""
    terminal = Terminal(COLUMNS, TALL)
    table = Table(console=terminal.console)
    table(())  # none has ended before
    table(trials_under_way())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: 312.0)
        draw_board(terminal, table._state)
    return terminal_svg(terminal, "thinkwell trials plan.toml")


def trials_under_way() -> list[Trial]:
    """Return trials of which half have ended."""
    whole = sorted(many_trials(3, ("claude", "codex"), 3), key=lambda trial: trial.repeat)
    doing = (("editing src/parser.py", 12), ("running pytest -q", 9), ("thinking", 4), ("starting claude", 0))
    return [
        *whole[:7],
        *(
            Trial(
                input=each.input,
                agent=each.agent,
                repeat=each.repeat,
                status="running" if phase else "waiting",
                phase=phase,
                spent=Spent(tool_calls=calls),
            )
            for each, (phase, calls) in zip(whole[7:], chain(doing, repeat(("", 0))), strict=False)
        ),
    ]


def works(state: State) -> bool:
    """Whether a command that goes on has written something."""
    return any(tool.kind == "execute" and tool.content for tool in state.view.tools.values())


def asks(state: State) -> bool:
    """Whether a question is open."""
    return bool(state.view.questions)


def writes(state: State) -> bool:
    """Whether a part of a result is there that may go on."""
    return any(tool.title == "return_result" and "files" in tool.input for tool in state.view.tools.values())


def helps(state: State) -> bool:
    """Whether both sub-agents work, and one has said something."""
    return any(agent.text for agent in state.view.agents.values())


DRAWN: Final[dict[str, Callable[[], str]]] = {
    "terminal.svg": partial(run, "search"),
    "terminal-60.svg": partial(run, "search", 60),
    "running.svg": partial(run, "search", until=works),
    "question.svg": partial(run, "search", until=asks),
    "form.svg": partial(run, "form", until=asks),
    "draft.svg": partial(run, "draft", until=writes),
    "release.svg": partial(run, "release"),
    "steered.svg": partial(run, "steered"),
    "helpers.svg": partial(run, "helpers", until=helps),
    "fallback.svg": fallback,
    "several.svg": several,
    "doctor.svg": diagnosis,
    "trials.svg": trials,
}
"""What makes each of them."""
