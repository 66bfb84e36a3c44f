"""``thinkwell worker``: runs trials for other machines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from thinkwell._display.text import line
from thinkwell.cli._database import VARIABLE, DatabaseFileOption, DatabaseOption, database
from thinkwell.cli._errors import NO_AGENT, OK, needing, told
from thinkwell.cli._options import agent_names
from thinkwell.cli._process import Ending, log_to_stderr, say
from thinkwell.cli._trials import EXTRAS

if TYPE_CHECKING:
    from thinkwell.trials import Pace, Ready


def worker(
    agent: Annotated[
        list[str],
        typer.Option(
            "--agent",
            "-a",
            metavar="NAME",
            help="An agent to run. Repeatable. Those that do not start or are not logged in are left out.",
            autocompletion=agent_names,
            show_default=False,
        ),
    ],
    db: DatabaseOption = None,
    db_file: DatabaseFileOption = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="How many trials run at a time here.")
    ] = 4,
    at_once: Annotated[
        list[str] | None,
        typer.Option(
            "--at-once",
            metavar="NAME=N",
            help="How many trials of an agent run at a time, in all workers together. Repeatable.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        list[str] | None,
        typer.Option(
            "--rate",
            metavar="NAME=N/S",
            help="How many trials of an agent start in S seconds, in all workers together. Repeatable.",
            show_default=False,
        ),
    ] = None,
    recordings: Annotated[
        Path | None,
        typer.Option(
            "--recordings", metavar="DIR", help="A folder for recordings of the runs.", file_okay=False
        ),
    ] = None,
) -> None:
    """Run the trials of all plans in a store, on any number of machines, until Ctrl-C or SIGTERM.

    It leaves within 20 seconds; other workers go on with what it was doing. The store is usually a PostgreSQL
    database: one that others write to can have commands run here, as checks do.

    \b
    Examples:
      thinkwell worker -a claude -a codex --db postgresql://me@db/trials
      thinkwell worker -a claude --at-once claude=2 --rate claude=30/60

    \b
    Exit codes:
      1    the store cannot be used
      2    wrong usage
      3    none of the agents can be run here
      130  Ctrl-C
      143  SIGTERM
    """
    with told(), needing("worker", EXTRAS):
        store = database(db, db_file)
        if store is None:
            raise typer.BadParameter(
                f"there is none; give the store of the trials, or put it in {VARIABLE}", param_hint="--db"
            )
        raise typer.Exit(
            anyio.run(_run, store, agent, limit, _paces(agent, at_once or (), rate or ()), recordings)
        )


def _paces(agents: Sequence[str], at_once: Sequence[str], rates: Sequence[str]) -> dict[str, Pace]:
    from thinkwell.trials import Pace

    settings = dict[str, dict[str, Any]]()

    def read(
        option: str, pattern: str, given: Sequence[str], values: Callable[[re.Match[str]], dict[str, Any]]
    ) -> None:
        for each in given:
            name, _, what = each.partition("=")
            found = re.fullmatch(pattern, what)
            if found is None:
                example = "claude=2" if option == "--at-once" else "claude=30/60"
                raise typer.BadParameter(f"{each!r:.60}: write it as in {example}", param_hint=option)
            if name not in agents:
                raise typer.BadParameter(f"{name!r:.60} is none of this worker's agents", param_hint=option)
            settings.setdefault(name, {}).update(values(found))

    read("--at-once", "0*[1-9][0-9]*", at_once, lambda found: {"at_once": int(found[0])})
    read(
        "--rate",
        r"(0*[1-9][0-9]*)/(0*[1-9][0-9]*)",
        rates,
        lambda found: {"starts": int(found[1]), "seconds": float(found[2])},
    )
    return {name: Pace(**values) for name, values in settings.items()}


async def _run(
    store: str, agents: Sequence[str], limit: int, paces: dict[str, Pace], recordings: Path | None
) -> int:
    from thinkwell.trials import serve_worker

    log_to_stderr()
    ending, served = Ending(), list[str]()

    def ready(said: Ready) -> None:
        served.extend(said.agents)
        for name, why in said.refused.items():
            say(f"Not {name}: {line(why)}")
        say(f"Worker {said.worker} runs {', '.join(said.agents) or 'no agent'}")

    with ending.signals(), ending.scope:
        await serve_worker(store, agents=agents, limit=limit, paces=paces, recordings=recordings, ready=ready)
    return ending.exit_code or (OK if served else NO_AGENT)
