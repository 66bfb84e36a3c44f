"""A workspace served to an agent: the requests `fs/*` and `terminal/*`."""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from scripted import Played, scripted
from workspace.workspace_agent import agent

from thinkwell.workspace import Workspace
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s
from thinkwell_acp.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Awaitable


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "file").write_bytes(b"one\r\ntwo\nthree")
    return folder


@pytest.mark.parametrize(
    ("read", "write", "terminal"),
    [(False, False, False), *((True, *given) for given in product((False, True), repeat=2))],
)
async def test_only_what_is_advertised_is_served(
    root: Path, *, read: bool, write: bool, terminal: bool
) -> None:
    handler = Played([])
    workspace = Workspace(root, write=write, terminal=terminal) if read else None
    async with scripted(agent=handler, workspace=workspace) as opened, opened.session() as session:
        offered = handler.requests("initialize")[0].client_capabilities
        id_, side = session.id or "", handler.client
        assert offered.fs == s.FileSystemCapabilities(read_text_file=read, write_text_file=write)
        assert offered.terminal == terminal
        file = s.ReadTextFileRequest(session_id=id_, path=f"{root}/file")
        new = s.WriteTextFileRequest(session_id=id_, path=f"{root}/new", content="new")
        command = s.CreateTerminalRequest(session_id=id_, command=sys.executable, args=("-c", "pass"))
        output = s.TerminalOutputRequest(session_id=id_, terminal_id="t")
        wait = s.WaitForTerminalExitRequest(session_id=id_, terminal_id="t")
        kill = s.KillTerminalRequest(session_id=id_, terminal_id="t")
        release = s.ReleaseTerminalRequest(session_id=id_, terminal_id="t")
        calls: list[tuple[bool, Awaitable[object]]] = [
            (read, side.read_text_file(file)),
            (write, side.write_text_file(new)),
            (terminal, side.create_terminal(command)),
            (terminal, side.terminal_output(output)),
            (terminal, side.wait_for_terminal_exit(wait)),
            (terminal, side.kill_terminal(kill)),
            (terminal, side.release_terminal(release)),
        ]
        for served, call in calls:
            code = None
            try:
                await call
            except RpcError as exc:
                code = exc.code
            assert (code == METHOD_NOT_FOUND) == (not served)
    assert (root / "new").exists() == write


async def test_large_files_are_read_in_parts(root: Path) -> None:
    (root / "large").write_text("é" * 100)
    async with agent(Workspace(root, write=True, max_read_bytes=51, max_write_bytes=51)) as peer:
        with pytest.raises(RpcError, match="read it in parts") as caught:
            await peer.read(root / "large")
        assert caught.value.code == INVALID_PARAMS
        assert caught.value.data == {"path": f"{root}/large", "reason": "size"}
        part = await peer.answer(root / "large", line=1)
        assert part.content == "é" * 25
        assert part.meta == {"thinkwell/truncated": True}
        with pytest.raises(RpcError, match="52 bytes are more than 51"):
            await peer.write(root / "large", "é" * 26)
    assert (root / "large").read_text() == "é" * 100


async def test_a_missing_file(root: Path) -> None:
    async with agent(Workspace(root)) as peer:
        with pytest.raises(RpcError, match="Resource not found: ") as caught:
            await peer.read(root / "no such file")
        assert caught.value.code == RESOURCE_NOT_FOUND
        path = f"{root}/no such file"
        assert caught.value.data == {"path": path, "reason": "missing", "uri": Path(path).as_uri()}


async def test_missing_as_empty_is_for_files_within_the_roots(root: Path) -> None:
    (root / "binary").write_bytes(b"\xff")
    async with agent(Workspace(root, missing_as_empty=True)) as peer:
        assert await peer.read(root / "missing") == ""
        for path in (f"{root}/../missing", root / "binary"):
            with pytest.raises(RpcError) as caught:
                await peer.read(path)
            assert caught.value.code == INVALID_PARAMS


async def test_a_cancelled_read_ends(root: Path) -> None:
    """Of a file with a terabyte of zeros, from its second line on."""
    with (root / "endless").open("wb") as file:
        file.truncate(1 << 40)
    async with agent(Workspace(root)) as peer:
        with anyio.move_on_after(0.05) as scope:
            await peer.read(root / "endless", line=2)
        assert scope.cancelled_caught
        assert await peer.read(root / "file", 2, 1) == "two\n"


async def test_a_cancelled_write_leaves_all_or_nothing(root: Path) -> None:
    content = "x" * 5_000_000
    async with agent(Workspace(root, write=True)) as peer:
        for number in range(10):
            with anyio.move_on_after(number / 1000):
                await peer.write(root / f"file-{number}", content)
    names = {path.name for path in root.iterdir()}
    assert not [name for name in names if name.startswith(".")]
    assert all(path.stat().st_size == len(content) for path in root.glob("file-*"))


async def test_writes_at_the_same_time_do_not_mix(root: Path) -> None:
    texts = [str(number) * 100_000 for number in range(10)]
    async with agent(Workspace(root, write=True)) as peer:
        async with anyio.create_task_group() as tasks:
            for text in texts:
                tasks.start_soon(peer.write, root / "file", text)
        assert await peer.read(root / "file") in texts
    assert {path.name for path in root.iterdir()} == {"file", "sub"}


# Terminals


async def test_folders_of_commands(root: Path) -> None:
    (root / "link").symlink_to("sub")
    async with agent(Workspace(root, terminal=True), cwd=root / "sub") as peer:
        assert await peer.folder() == f"{root}/sub"
        assert await peer.folder(str(root)) == str(root)
        assert await peer.folder(f"{root}/link/../sub/") == f"{root}/sub"
        async with peer.session(root) as other:
            assert await other.folder() == str(root)
        for cwd, code, reason in (
            ("file", INVALID_PARAMS, "path"),
            (f"{root}/..", INVALID_PARAMS, "outside"),
            ("/", INVALID_PARAMS, "outside"),
            (f"{root}/file", INVALID_PARAMS, "kind"),
            (f"{root}/missing", RESOURCE_NOT_FOUND, "missing"),
        ):
            with pytest.raises(RpcError) as caught:
                await peer.folder(cwd)
            assert caught.value.code == code
            assert f"'reason': '{reason}'" in str(caught.value.data)
        assert await other.folder() == f"{root}/sub", "it is closed, and has no folder any more"
        assert await peer.unknown().folder() == f"{root}/sub"


async def test_a_session_outside_the_roots_runs_nothing(root: Path) -> None:
    async with agent(Workspace(root / "sub", terminal=True), cwd=root) as peer:
        with pytest.raises(RpcError, match="outside the workspace"):
            await peer.folder()
        assert await peer.folder(f"{root}/sub") == f"{root}/sub"


async def test_programs_are_named_relative_to_the_folder_they_run_in(root: Path) -> None:
    script = root / "sub" / "script"
    script.write_text(f"#!{sys.executable}\nimport sys\nprint(sys.argv[1:])\n")
    script.chmod(0o755)
    async with agent(Workspace(root, terminal=True)) as peer:
        terminal = await peer.start("a b", command="./script", cwd=f"{root}/sub")
        assert await peer.output(terminal) == "['a b']\n"


async def test_the_environment_is_the_agents(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    async with agent(Workspace(root, terminal=True), env={"ONLY": "this"}) as peer:
        code = "import json, os; print(json.dumps(dict(os.environ)))"
        seen = json.loads(await peer.output(await peer.start("-c", code)))
    assert seen["ONLY"] == "this"
    assert "PATH" in seen
    assert "CLAUDECODE" not in seen


@pytest.mark.parametrize("shell_lines", [False, True])
async def test_shell_lines_only_where_allowed(root: Path, *, shell_lines: bool) -> None:
    async with agent(Workspace(root, terminal=True, shell_lines=shell_lines)) as peer:
        line = "cd ./sub && pwd"
        if shell_lines:
            assert await peer.output(await peer.start(command=line)) == f"{root}/sub\n"
        else:
            with pytest.raises(RpcError) as caught:
                await peer.start(command=line)
            assert caught.value.code == RESOURCE_NOT_FOUND


async def test_the_workspaces_limits_hold_for_terminals(root: Path) -> None:
    async with agent(Workspace(root, terminal=True, output_limit=5, max_terminals=1)) as peer:
        first = await peer.start("-c", "print('123456789', end='')")
        assert await peer.output(first) == "56789"
        await peer.start("-c", "import signal; signal.pause()")
        with pytest.raises(RpcError) as caught:
            await peer.output(first)
        assert caught.value.code == RESOURCE_NOT_FOUND
        with pytest.raises(RpcError, match="release a terminal first") as caught:
            await peer.start("-c", "pass")
        assert caught.value.code == INTERNAL_ERROR


async def test_no_descriptor_is_left_open(root: Path) -> None:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc")
    async with agent(Workspace(root, write=True, terminal=True)) as peer:
        await peer.folder()
        await peer.read(root / "file")
        before = len([*Path("/proc/self/fd").iterdir()])
        for _ in range(20):
            await peer.read(root / "file")
            await peer.write(root / "sub/x", "x")
            for path in (root / "missing", f"{root}/..", root / "sub", f"{root}/file/x"):
                with pytest.raises(RpcError):
                    await peer.read(path)
                with pytest.raises(RpcError):
                    await peer.start("a\0b", cwd=str(path) if str(path).endswith("sub") else f"{path}/x")
        assert len([*Path("/proc/self/fd").iterdir()]) == before
