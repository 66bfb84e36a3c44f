"""`read_plan`: trials that are written down in a TOML file."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import msgspec
from anyio import to_thread
from msgspec import Struct

from thinkwell import JsonSchema, ThinkBuilder, think
from thinkwell._core.schema.settings import convert_settings, path_from, unknown_key
from thinkwell._display.urls import without_password
from thinkwell.permissions import PermissionMode  # noqa: TC001 - type of a field
from thinkwell.trials._checks import Check, Command, Judge
from thinkwell.trials._errors import PlanError, WorktreeError
from thinkwell.trials._forecast import Forecast, forecast
from thinkwell.trials._plan import Limits, Plan, make_plan
from thinkwell.trials._reference import Reference
from thinkwell.trials._travel import Repository
from thinkwell.trials._worktree import Worktree

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from thinkwell.trials._report import Report
    from thinkwell.trials._trial import Trial

__all__ = ("PlanFile", "read_plan")

T = TypeVar("T")


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the file."""


class TaskSection(Section, frozen=True):
    """What is asked: a text that comes before the input, or a function of the input."""

    text: str = ""
    function: str | None = None
    output: str | None = None
    """A type's import path."""
    schema: str | None = None
    """Or a file with a JSON Schema."""
    system: str | None = None


class WorkspaceSection(Section, frozen=True):
    """Where the agents work."""

    repository: str
    """A folder or a URL."""
    ref: str | None = None
    dirty: Literal["refuse", "copy"] = "refuse"
    untracked: bool = False
    ignored: bool = False
    files: str | None = None
    """A URL for what is large."""


class CheckSection(Section, frozen=True):
    """What says whether a trial has passed: one of the first three."""

    command: str | tuple[str, ...] | None = None
    function: str | None = None
    judge: str | None = None
    """The agent."""
    criteria: str = ""
    model: str | None = None
    least: float | None = None
    timeout: float = 600.0


class File(Section, frozen=True):
    """The content of the file."""

    task: str | TaskSection
    inputs: list[Any] | dict[str, Any] | str
    """The inputs, or a file with them."""
    agents: tuple[str, ...]
    repeat: int = 1
    limit: int = 4
    timeout: float | None = None
    idle_timeout: float | None = None
    permissions: PermissionMode = "allow"
    workspace: str | WorkspaceSection | None = None
    check: str | CheckSection | None = None
    budget: Limits | None = None
    store: str | None = None
    recordings: str | None = None


class PlanFile:
    """Trials that are written down in a file: what `read_plan` returns."""

    def __init__(self, plan: Plan, store: str, recordings: str | None) -> None:
        self.store: str = store
        """A path of an SQLite file, or the URL of a PostgreSQL database."""
        self._plan = plan
        self._recordings = recordings

    async def run(
        self,
        *,
        worker: bool = True,
        rerun_errors: bool = False,
        on_change: Callable[[Sequence[Trial]], object] = lambda _: None,
    ) -> Report:
        """Run the trials that have not ended, and return the report of all; see `trials`."""
        from thinkwell.trials._engine.running import run_plan  # imports SQLAlchemy

        return await run_plan(
            self._plan,
            store=self.store,
            worker=worker,
            rerun_errors=rerun_errors,
            recordings=self._recordings,
            on_change=on_change,
        )

    async def forecast(self, *, rerun_errors: bool = False) -> Forecast:
        """Return what would run, and what it may cost. Nothing is started, and no store is made.

        Args:
            rerun_errors: Whether those would run again that ended with the status ``error``.

        Raises:
            StoreError: The store cannot be used.
        """
        from thinkwell.trials._engine.running import kept_trials  # imports SQLAlchemy

        kept = await to_thread.run_sync(kept_trials, self._plan, self.store)
        return forecast(self._plan, kept, rerun_errors=rerun_errors)


def read_plan(path: str | os.PathLike[str], *, store: str | os.PathLike[str] | None = None) -> PlanFile:
    """Read a file with a plan, and check it. This blocks, while git runs and modules are imported.

    Args:
        path: The TOML file. Paths in it are relative to its folder.
        store: Where to keep the trials, instead of what the file says. By default that is an SQLite file
            beside it, with its name.

    Raises:
        PlanError: The file cannot be used; the error names the key.
        AgentNotFound: An agent is unknown or not installed, and the trials run on this machine.
    """
    source = Path(path)
    folder = source.absolute().parent
    try:
        file = convert_settings(tomllib.loads(_text_of(source)), File, _unknown)
        kept = str(store) if store is not None else _store(file, folder, source)
        recordings = None if file.recordings is None else str(path_from(folder, file.recordings))
        plan = _plan(file, folder, travels="://" in kept)
    except (TypeError, ValueError) as exc:  # tomllib's, too
        raise PlanError(str(source), str(exc)) from None
    except (OSError, WorktreeError) as exc:
        raise PlanError(str(source), f"workspace: {exc}") from exc
    if "://" not in kept:
        plan.find_agents()
    return PlanFile(plan, kept, recordings)


def _store(file: File, folder: Path, source: Path) -> str:
    store = file.store or f"{source.stem}.sqlite"
    if without_password(store) != store:
        raise ValueError(
            "store: a password does not belong in this file; put the address in the environment variable "
            "THINKWELL_DB, or in a file that only you can read, and name that with --db-file"
        )
    return store if "://" in store else str(path_from(folder, store))


def _plan(file: File, folder: Path, *, travels: bool) -> Plan:
    return make_plan(
        _named("task", lambda: _task(file.task, folder)),
        inputs=_named("inputs", lambda: _inputs(file.inputs, folder)),
        agents=file.agents,
        workspace=_named("workspace", lambda: _workspace(file.workspace, folder)),
        check=_named("check", lambda: _check(file.check, folder)),
        budget=_named("budget", lambda: None if file.budget is None else file.budget.budget()),
        travels=travels,
        repeat=file.repeat,
        limit=file.limit,
        timeout=file.timeout,
        idle_timeout=file.idle_timeout,
        permissions=file.permissions,
    )


def _named(key: str, make: Callable[[], T]) -> T:
    """Name the key in what goes wrong."""
    try:
        return make()
    except (TypeError, ValueError, OSError, PlanError) as exc:
        raise ValueError(f"{key}: {exc}") from exc


def _task(given: str | TaskSection, folder: Path) -> ThinkBuilder[Any] | Callable[..., object]:
    task = TaskSection(text=given) if isinstance(given, str) else given
    if task.function is not None:
        if task != TaskSection(function=task.function):
            raise ValueError(
                "with a function, the rest of the table has no meaning: it returns the whole task"
            )
        return cast("Callable[..., object]", _imported(task.function, folder))
    output: Any = None
    if task.output is not None and task.schema is not None:
        raise ValueError("give output or schema, not both")
    if task.output is not None:
        output = _imported(task.output, folder)
    if task.schema is not None:
        output = JsonSchema(
            msgspec.json.decode(_text_of(path_from(folder, task.schema)), type=dict[str, Any])
        )
    builder: ThinkBuilder[Any] = think(output)
    if task.text:
        builder = builder.text(task.text if task.text[-1].isspace() else f"{task.text}\n")
    return builder if task.system is None else builder.system(task.system, fallback="prompt")


def _inputs(given: list[Any] | dict[str, Any] | str, folder: Path) -> Any:
    if not isinstance(given, str):
        return given
    text = _text_of(path := path_from(folder, given))
    if path.suffix == ".json":
        return json.loads(text)
    lines = [line for line in text.splitlines() if line.strip()]
    return [json.loads(line) for line in lines] if path.suffix in (".jsonl", ".ndjson") else lines


def _workspace(given: str | WorkspaceSection | None, folder: Path) -> Worktree | Repository | None:
    if given is None:
        return None
    space = WorkspaceSection(repository=given) if isinstance(given, str) else given
    if "://" in space.repository or re.match(r"[\w.-]+@[\w.-]+:", space.repository):
        if space != WorkspaceSection(repository=space.repository, ref=space.ref, files=space.files):
            raise ValueError("dirty, untracked and ignored are for a folder, not for a URL")
        return Repository(space.repository, ref=space.ref, files=space.files)
    tree = Worktree(
        path_from(folder, space.repository),
        ref=space.ref,
        dirty=space.dirty,
        untracked=space.untracked,
        ignored=space.ignored,
    )
    return tree if space.files is None else Repository(tree, files=space.files)


def _check(given: str | CheckSection | None, folder: Path) -> Check | None:
    if given is None:
        return None
    check = CheckSection(command=given) if isinstance(given, str) else given
    if [check.command, check.function, check.judge].count(None) != 2:
        raise ValueError("give one of command, function and judge")
    if check.command is not None:
        return Command(check.command, timeout=check.timeout)
    if check.judge is not None:
        return Judge(check.judge, check.criteria, model=check.model, least=check.least, timeout=check.timeout)
    return cast("Check", _imported(check.function or "", folder))


def _imported(name: str, folder: Path) -> object:
    """Return something of a module, which may be in the folder of the file."""
    module, colon, path = name.partition(":")
    if not (module and colon and path):
        raise ValueError(f'{name!r:.100} is no import path; write "module:name"')
    return Reference(module=module, name=path, folder=str(folder)).find()


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except OSError as exc:
        raise ValueError(f"{path}: {exc.strerror}") from None


def _unknown(at: str, key: str) -> str:
    sections: dict[str, type[Struct]] = {"": File, "task": TaskSection, "workspace": WorkspaceSection}
    sections |= {"check": CheckSection, "budget": Limits}
    return unknown_key(at, key, sections[at].__struct_fields__)
