"""The value: what a program may ask for, and what is refused at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from thinkwell.workspace import MAX_READ_BYTES, Workspace

if TYPE_CHECKING:
    from pathlib import Path


def test_a_workspace_only_reads_unless_more_is_asked_for(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert workspace.roots == (tmp_path,)
    assert not workspace.write
    assert not workspace.terminal
    assert not workspace.shell_lines
    assert workspace.max_read_bytes == MAX_READ_BYTES
    assert workspace == Workspace(str(tmp_path))
    assert hash(workspace) == hash(Workspace(str(tmp_path)))
    with pytest.raises(AttributeError):
        workspace.write = True  # type: ignore[misc]


def test_relative_roots_are_taken_from_the_current_folder_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path)
    workspace = Workspace("a", "b", deny=[".env*"])
    monkeypatch.chdir("/")
    assert workspace.roots == (tmp_path / "a", tmp_path / "b")
    assert workspace.deny == (".env*",)


@pytest.mark.parametrize("name", ["missing", "file"])
def test_a_root_must_be_a_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=f"there is no folder .*{name}"):
        Workspace(tmp_path, tmp_path / name)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"shell_lines": True}, "needs terminal=True"),
        ({"deny": ".env"}, "sequence of patterns"),
        ({"deny": [""]}, "none of them empty"),
        ({"deny": ["/"]}, "none of them empty"),
        ({"max_read_bytes": 0}, "max_read_bytes=0"),
        ({"max_write_bytes": -1}, "max_write_bytes=-1"),
        ({"output_limit": -1}, "the least is 0"),
        ({"max_terminals": 0}, "the least is 1"),
    ],
    ids=str,
)
def test_senseless_settings_are_refused(tmp_path: Path, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Workspace(tmp_path, **arguments)


def test_an_empty_root_is_refused() -> None:
    """It would be the current folder, which nobody asked for."""
    with pytest.raises(ValueError, match="name a folder"):
        Workspace("")
