"""``thinkwell trials``: the trials of a plan."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import anyio
import msgspec
import typer

from thinkwell._display.cells import cells, pad
from thinkwell._display.numbers import plural, seconds
from thinkwell._display.text import line
from thinkwell._display.urls import without_password
from thinkwell.cli._database import DatabaseFileOption, DatabaseOption, database
from thinkwell.cli._errors import LIMIT, NO_RESULT, OK, needing, told
from thinkwell.cli._options import JsonOption, QuietOption, file_option
from thinkwell.cli._process import Ending, log_to_stderr

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from thinkwell.trials import Forecast, PlanFile, Report

EXTRAS: Final = {"sqlalchemy": "trials", "dbos": "trials", "scipy": "trials"}
"""The extra that installs each missing package."""


def trials(
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN", help="The TOML file of the plan.", show_default=False)
    ],
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on where an earlier call ended; what has ended does not run again."
        ),
    ] = False,
    rerun_errors: Annotated[
        bool, typer.Option("--rerun-errors", help="Run those again, too, that ended with an error.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would run and what it may cost. Nothing is started.")
    ] = False,
    db: DatabaseOption = None,
    db_file: DatabaseFileOption = None,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Leave the work to those of `thinkwell worker`.")
    ] = False,
    report: Annotated[
        Path | None, file_option("--report", "Write a report there, as a page of HTML, for a browser.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a task over many inputs, with several agents, several times each.

    The plan says the task, the inputs, the agents, the worktree and the check. Each trial that has ended is
    kept, by default in an SQLite file beside the plan, so that nothing is lost when the program or the
    machine dies: --resume runs the rest.

    \b
    Examples:
      thinkwell trials plan.toml --dry-run
      thinkwell trials plan.toml --report report.html
      thinkwell trials plan.toml --resume --json > report.json

    \b
    Exit codes:
      0    every trial has ended with a result; the check may have failed
      1    some have ended without one
      2    wrong usage, or the plan cannot be used; nothing was started
      5    the budget is used up
      130  Ctrl-C; --resume goes on
    """
    with told(), needing("trials", EXTRAS):
        from thinkwell.trials import PlanError, read_plan

        try:
            file = read_plan(plan, store=database(db, db_file))
        except PlanError as exc:
            raise typer.BadParameter(str(exc), param_hint="PLAN") from None
        forecast = anyio.run(partial(file.forecast, rerun_errors=rerun_errors))
        if dry_run:
            typer.echo(msgspec.json.encode(forecast).decode() if as_json else str(forecast))
            return
        _check_resume(forecast, file, resume=resume)
        run = partial(file.run, worker=not no_worker, rerun_errors=rerun_errors)
        raise typer.Exit(anyio.run(_run, run, report, as_json, quiet))


def _check_resume(forecast: Forecast, file: PlanFile, *, resume: bool) -> None:
    store = without_password(file.store)
    if resume and not forecast.kept:
        raise typer.BadParameter(f"there are no trials of this plan in {store}", param_hint="--resume")
    if forecast.kept and not resume:
        raise typer.BadParameter(
            f"{store} has {plural(forecast.kept, 'trial')} of this plan ({forecast.ended} have ended); "
            "go on with --resume, or use another store with --db",
            param_hint="PLAN",
        )


async def _run(
    run: Callable[..., Awaitable[Report]], report_file: Path | None, as_json: bool, quiet: bool
) -> int:
    from thinkwell.trials import Table

    log_to_stderr()
    ending, table = Ending(), Table()
    with ending.signals(), ending.scope:
        async with nullcontext() if quiet else table:
            report = await run(on_change=table)
        if report_file is not None:
            await report.save(report_file)
        typer.echo(report.to_json() if as_json else _summary(report))
        statuses = {trial.status for trial in report.trials}
        return LIMIT if "cancelled" in statuses else NO_RESULT if "error" in statuses else OK
    return ending.exit_code


def _summary(report: Report) -> str:
    """Return a table with a row for each agent."""
    rows = [("AGENT", "PASSED", "RATE", "COST", "TIME")]
    for each in report.agents:
        rate, cost, took = each.rate, each.cost, each.seconds
        rows.append(
            (
                line(each.agent),
                f"{each.passed}/{each.trials}",
                "" if rate is None else f"{rate.value:.0%} ({rate.low:.0%} to {rate.high:.0%})",
                "" if cost is None else f"${cost.value:.2f}",
                "" if took is None else seconds(took.value),
            )
        )
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(pad, row, widths)).rstrip() for row in rows)
