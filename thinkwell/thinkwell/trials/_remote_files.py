"""Files at a URL that all workers can reach: what is too large for the store."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from thinkwell._display.urls import without_password
from thinkwell.trials._errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ("check_files", "read_file", "write_file")


def write_file(folder: str, name: str, content: bytes) -> str:
    """Write a file in a folder at a URL, and return its own URL.

    Raises:
        PlanError: It cannot be written.
    """
    url = f"{folder.rstrip('/')}/{name}"
    with _opened(url, "wb") as file:
        file.write(content)
    return url


def read_file(url: str) -> bytes:
    """Return the content of a file at a URL.

    Raises:
        PlanError: It cannot be read.
    """
    with _opened(url, "rb") as file:
        content: bytes = file.read()
        return content


@cache
def check_files(folder: str) -> None:
    """Check once that files can be written in a folder at a URL, before work is done for them.

    An empty file stays there, always the same one.

    Raises:
        PlanError: They cannot.
    """
    write_file(folder, "thinkwell-can-write-here", b"")


@contextmanager
def _opened(url: str, mode: str) -> Generator[Any]:
    shown = without_password(url)
    try:
        fsspec: Any = import_module("fsspec")  # it has no types, and is slow to import
        with fsspec.open(url, mode, **({"auto_mkdir": True} if url.startswith("file:") else {})) as file:
            yield file
    except ImportError as exc:  # also where fsspec needs another package for the scheme
        raise PlanError(shown, f"it needs a package that is not installed: {exc}") from exc
    except Exception as exc:  # those of the service, too
        doing = "written" if mode == "wb" else "read"
        raise PlanError(
            shown, f"it cannot be {doing} ({type(exc).__name__}: {exc})".replace(url, shown)
        ) from exc
