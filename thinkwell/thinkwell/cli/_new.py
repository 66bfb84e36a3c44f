"""``thinkwell new``: a starter project, its files, and where it may be created."""

from __future__ import annotations

import json
import keyword
import os
import re
import shlex
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import resources
from importlib.metadata import distribution
from pathlib import Path
from typing import Annotated, Final

import typer

from thinkwell._version import VERSION

TEMPLATES: Final = {
    "pyproject.toml": "pyproject.toml.in",
    "README.md": "README.md.in",
    ".gitignore": "gitignore.in",
    "src/@MODULE@/__init__.py": "init.py.in",
    "src/@MODULE@/main.py": "main.py.in",
    "tests/test_main.py": "test_main.py.in",
}
"""The files of a project, with their templates, whose names no tool takes for its own files."""

LONGEST_NAME: Final = 50
"""Most characters of a name, for the line lengths of the templates."""

_NAME: Final = re.compile(r"[A-Za-z]([A-Za-z0-9._-]*[A-Za-z0-9])?")
"""A name that PyPI accepts, if a module can have it too."""

_TAKEN: Final = frozenset(
    {
        *("anyio", "h11", "idna", "jsonschema", "msgspec", "pydantic", "pydantic_core", "rich", "trio"),
        *("typer", "typing_extensions", "thinkwell", "thinkwell_acp", "pytest", "src", "test", "tests"),
    }
)
"""Modules that the program or pytest needs: one of the same name would hide them."""


def new(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to create it. Existing files are kept.")
    ],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="The name of the project. Default: that of the folder."),
    ] = None,
) -> None:
    """Create a starter project: a small program with a typed result, its test, and their settings.

    No file is overwritten.

    \b
    Examples:
      thinkwell new my-review && cd my-review && uv run my-review .
      thinkwell new . --name my-review        in the folder that is there
    """
    chosen = _derived(folder) if name is None else name
    try:
        module = _module(chosen, given=name is not None)
        files = _files(chosen, module)
        _check_free(folder, files)
        _make_project(folder, files)
    except NewProjectError as exc:
        raise typer.BadParameter(str(exc), param_hint="FOLDER" if name is None else "--name") from exc
    typer.echo(_next_steps(folder, chosen, module, files))


class NewProjectError(Exception):
    """The project cannot be created there, or not by that name."""


def _files(name: str, module: str) -> dict[str, str]:
    """Return the texts of a project's files, by path."""
    requirement, settings = _requirement()
    values = {"@NAME@": name, "@MODULE@": module, "@REQUIREMENT@": requirement, "@SETTINGS@": settings}
    return {_filled(path, values): _filled(_template(source), values) for path, source in TEMPLATES.items()}


def _make_project(folder: Path, texts: dict[str, str]) -> None:
    """Write the files of a project. If that fails, delete what was written.

    Raises:
        NewProjectError: A file has appeared meanwhile, or the disk refuses.
    """
    made: list[Path] = []
    try:
        for name, text in texts.items():
            path = folder / name
            _make_folder(path.parent, made)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                made.append(path)
                file.write(text)
    except OSError as exc:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise NewProjectError(f"{exc.filename or folder}: {exc.strerror}. Nothing was made") from exc


def _next_steps(folder: Path, project: str, module: str, names: Iterable[str]) -> str:
    """Return the message about the created project."""
    enter = [] if folder == Path() else [f"  cd {shlex.quote(str(folder))}"]
    return "\n".join(
        [
            f"Made {project} in {folder.absolute()}:",
            *(f"  {name}" for name in names),
            "",
            "Next:",
            *enter,
            f"  uv run {project} .                # the built-in agent: no key, no model",
            f"  uv run {project} . --agent claude",
            "  uv run --group test pytest",
            "",
            f"Without uv: see README.md. The program is src/{module}/main.py",
        ]
    )


def _derived(folder: Path) -> str:
    """Return a valid name for a project from that of a folder."""
    name = re.sub(r"[^A-Za-z0-9._]+", "-", folder.absolute().resolve().name)
    return name.strip("-._").lower()


def _module(name: str, *, given: bool) -> str:
    """Return the name of a project's module.

    Raises:
        NewProjectError: The name cannot be used.
    """
    advice = "give another" if given else "give one with --name"
    what = f"the name {name!r}" if name else "the folder's name"
    if len(name) > LONGEST_NAME:
        raise NewProjectError(f"{what} is longer than {LONGEST_NAME} characters: {advice}")
    if _NAME.fullmatch(name) is None:
        raise NewProjectError(
            f"{what} cannot be a project's: it has to begin with a letter, to end with a letter or a digit, "
            f"and to have only letters, digits, and - _ . between: {advice}"
        )
    module = re.sub(r"[-_.]+", "_", name).lower()
    if keyword.iskeyword(module) or module in _TAKEN or module in sys.stdlib_module_names:
        raise NewProjectError(
            f"{what} cannot be a project's: its module would be {module}, which is another's: {advice}"
        )
    return module


def _requirement() -> tuple[str, str]:
    """Return how a project requires thinkwell, and the settings that this needs.

    If it was installed from a file, a folder or a repository, an index may not have it: the project takes it
    from there, too.
    """
    from_index = f"thinkwell[cli]>={VERSION}"
    source = distribution("thinkwell").read_text("direct_url.json")  # PEP 610
    if source is None:
        return from_index, ""
    found = json.loads(source)
    url, repository = found["url"], found.get("vcs_info")
    if repository is not None:
        url = f"{repository['vcs']}+{url}@{repository['commit_id']}"
    reason = f'thinkwell was installed from there; with an index, require "{from_index}"'
    return (
        f"thinkwell[cli] @ {url}",
        f"\n[tool.hatch.metadata]\nallow-direct-references = true  # {reason}\n",
    )


def _template(name: str) -> str:
    return resources.files("thinkwell.cli").joinpath("templates", name).read_text("utf-8")


def _filled(text: str, values: dict[str, str]) -> str:
    for sign, value in values.items():
        text = text.replace(sign, value)
    return text


def _check_free(folder: Path, texts: dict[str, str]) -> None:
    """Check that no file would be overwritten.

    Raises:
        NewProjectError: A file would be.
    """
    there = [name for name in texts if os.path.lexists(folder / name)]
    if there:
        raise NewProjectError(
            f"{folder} has {', '.join(there)} already, and nothing is written over: choose another folder"
        )
    for name in texts:
        for parent in [folder, *(folder / part for part in Path(name).parents)]:
            if os.path.lexists(parent) and not parent.is_dir():
                raise NewProjectError(f"{parent} exists and is not a folder: choose another folder")


def _make_folder(folder: Path, made: list[Path]) -> None:
    """Create a folder and its parents, and note which."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir()
        made.append(path)
