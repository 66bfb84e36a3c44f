"""Notebooks, executed by a Jupyter kernel."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ("Output", "execute", "printed")

PATIENCE: Final = 180
"""Seconds for a kernel to start, and for a cell: a busy machine takes its time."""


class Output(TypedDict):
    """What is looked at of an output of a cell."""

    data: dict[str, str]
    text: str


def execute(cells: Sequence[str], folder: Path) -> list[list[Output]]:
    """Execute the cells of a notebook in a folder; return the outputs of each."""
    import nbclient  # these take their time to import
    import nbformat

    code: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    written: dict[str, Any] = {
        "cells": [{**code, "id": f"cell-{number}", "source": cell} for number, cell in enumerate(cells)],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    notebook = cast("Callable[..., Any]", nbformat.reads)(json.dumps(written), as_version=4)
    path = {"metadata": {"path": str(folder)}}
    client = nbclient.NotebookClient(
        notebook, timeout=PATIENCE, startup_timeout=PATIENCE, kernel_name="python3", resources=path
    )
    with pytest.MonkeyPatch.context() as patch:  # nothing of it into the user's folders
        for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(variable, str(folder / variable.lower()))
        client.execute()
    return [
        [Output(data=output.get("data", {}), text=output.get("text", "")) for output in cell.outputs]
        for cell in notebook.cells
    ]


def printed(outputs: list[Output]) -> str:
    """Return what a cell has printed."""
    return "".join(output["text"] for output in outputs)
