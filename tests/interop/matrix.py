"""The matrix agent by scenario: what the tests with real agents came to, as a table."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = (
    "MAIN",
    "MORE",
    "SCENARIOS",
    "Explanation",
    "Matrix",
    "Outcome",
    "Table",
    "Try",
    "explanations",
    "inserted",
)

SCENARIOS = (
    "typed result",
    "our tool called first",
    "nested models",
    "two turns in one session",
    "permission allowed",
    "permission denied",
    "permission cancelled",
    "cancel in mid text",
    "cancel in mid tool",
    "model error",
    "invalid result repaired",
    "our tools not seen",
    "three sessions at once",
    "closed without a process left",
    "user's MCP server over stdio",
    "user's MCP server over http",
    "user's MCP server over sse",
    "started by its profile",
    "doctor",
    "doctor with a prompt",
)
"""The rows, in their order."""

BACKENDS = frozenset({"asyncio", "trio"})

Outcome: TypeAlias = Literal["passed", "failed", "not offered"]
"""`not offered`: the agent does not advertise what is needed, and the test has seen that we say so."""

SIGNS: dict[Outcome, str] = {"passed": "✓", "failed": "✗", "not offered": "–"}
NOT_RUN = "?"

END = "<!-- end of the matrix -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A matrix of the page."""

    command: str
    """What runs its cells and writes it."""
    scenarios: tuple[str, ...]

    @property
    def begin(self) -> str:
        """The line of the page after which it stands; `END` follows it."""
        return f"<!-- matrix: written by `{self.command}` -->"


MAIN = Table(command="make interop MATRIX=write", scenarios=SCENARIOS)
MORE = Table(
    command="make interop AGENTS=more MATRIX=write",
    scenarios=tuple(
        scenario
        for scenario in SCENARIOS
        if scenario not in ("permission cancelled", "our tools not seen", "started by its profile")
        and not scenario.startswith("user's MCP server")
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """What one test came to, for one scenario."""

    agent: str
    scenario: str
    backend: str
    outcome: Outcome
    shows: str = ""
    """What stands in the cell instead of the sign for a test that passed."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a cell is not green, or green in a way that is not obvious."""

    agent: str
    """As the column is headed, without the version."""
    scenario: str
    reason: str
    wire: tuple[str, ...] = ()
    """What shows it: lines of a recording, shortened."""
    fault: bool = False
    """Whether the agent fails the scenario by itself; `test_official_sdk` has those that fail each time."""


class Matrix:
    """Collects what tests came to, and shows it."""

    def __init__(self, table: Table = MAIN) -> None:
        self.table = table
        self._tries: list[Try] = []
        self._names: dict[str, str] = {}
        self.explained: tuple[Explanation, ...] = ()
        """What is known of cells; of those that there are not, too."""

    def add(self, result: Try) -> None:
        """Take what one test came to.

        Raises:
            ValueError: There is no such scenario.
        """
        if result.scenario not in self.table.scenarios:
            raise ValueError(f"{result.scenario!r} is none of {', '.join(self.table.scenarios)}")
        self._tries.append(result)

    def name(self, agent: str, told: str) -> None:
        """Note name and version that an agent gives of itself."""
        self._names[agent] = told

    @property
    def agents(self) -> tuple[str, ...]:
        """The columns, by name: the tests come in random order."""
        return tuple(sorted({result.agent for result in self._tries}))

    @property
    def missing(self) -> tuple[str, ...]:
        """The cells that were not tried on every backend, in words."""
        return tuple(
            f"{agent}: {scenario}"
            for agent in self.agents
            for scenario in self.table.scenarios
            if BACKENDS - {result.backend for result in self._of(agent, scenario)}
        )

    def cell(self, agent: str, scenario: str) -> str:
        """Return the sign of a cell: a failure counts more than all else."""
        tries = self._of(agent, scenario)
        outcomes = {result.outcome for result in tries}
        if outcomes == {"passed"} and tries[0].shows:
            return " / ".join(dict.fromkeys(result.shows for result in tries))
        worst: tuple[Outcome, ...] = ("failed", "passed", "not offered")
        return next((SIGNS[outcome] for outcome in worst if outcome in outcomes), NOT_RUN)

    def text(self) -> str:
        """Return the table for a terminal."""
        rows = self._rows()
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = [
            "  ".join(field.ljust(width) for field, width in zip(row, widths, strict=True)) for row in rows
        ]
        return "\n".join(line.rstrip() for line in lines)

    def markdown(self, *, date: str, machine: str) -> str:
        """Return the table and its explanations for a page.

        Args:
            date: The day of the run, as it is to be shown.
            machine: Versions of Python and Node.js, and the system.
        """
        head, *rows = self._rows()
        table = [_row(head), _row(["---", *[":-:"] * len(self.agents)]), *map(_row, rows)]
        names = "; ".join(f"{agent} calls itself {told}" for agent, told in sorted(self._names.items()))
        said = f"Run on {date} with {machine}, each cell on asyncio and on trio."
        columns = {_name(agent): agent for agent in self.agents}
        notes = self._notes().items()
        shown = [text for number, note in notes for text in _explained(number, note, columns[note.agent])]
        return "\n".join([*table, "", f"{said} {names}." if names else said, *shown])

    def _of(self, agent: str, scenario: str) -> list[Try]:
        return [result for result in self._tries if (result.agent, result.scenario) == (agent, scenario)]

    def _notes(self) -> dict[int, Explanation]:
        """Number the explanations of the cells that there are, by row and column."""
        agents = [_name(agent) for agent in self.agents]
        cells = [(scenario, agent) for scenario in self.table.scenarios for agent in agents]
        places = {cell: place for place, cell in enumerate(cells)}
        shown = [note for note in self.explained if (note.scenario, note.agent) in places]
        shown.sort(key=lambda note: places[note.scenario, note.agent])
        return dict(enumerate(shown, 1))

    def _rows(self) -> list[list[str]]:
        notes: dict[tuple[str, str], str] = {}
        for number, note in self._notes().items():
            cell = (note.agent, note.scenario)
            notes[cell] = f"{notes.get(cell, '')} [{number}]"
        return [
            ["", *self.agents],
            *(
                [
                    scenario,
                    *(
                        self.cell(agent, scenario) + notes.get((_name(agent), scenario), "")
                        for agent in self.agents
                    ),
                ]
                for scenario in self.table.scenarios
            ),
        ]


def _row(fields: Sequence[str]) -> str:
    return f"| {' | '.join(fields)} |"


def _name(column: str) -> str:
    return column.rpartition(" ")[0]


def _explained(number: int, note: Explanation, agent: str) -> list[str]:
    title = f"**[{number}] {agent}, {note.scenario}.** {note.reason.strip()}"
    return ["", title] if not note.wire else ["", title, "", "```text", *note.wire, "```"]


def explanations() -> tuple[Explanation, ...]:
    """Read what is known of cells."""
    text = Path(__file__).with_name("explanations.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, tuple[Explanation, ...]])["explanation"]


def inserted(page: str, matrix: str, table: Table = MAIN) -> str:
    """Return a page with its matrix replaced.

    Raises:
        ValueError: The page has no place for it.
    """
    before, begin, rest = page.partition(table.begin)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks the lines {table.begin} and {END}")
    return f"{before}{begin}\n\n{matrix}\n\n{END}{after}"
