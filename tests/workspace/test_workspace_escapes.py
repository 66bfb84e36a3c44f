"""Paths that lead out of a workspace, each tried with a read, a write and a command's folder."""

from __future__ import annotations

import ctypes
import itertools
import os
import random
import shutil
import sys
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

import anyio
import pytest
from suite.tiers import few
from workspace.workspace_agent import Peer, agent
from workspace.workspace_scene import NAME, OURS, SECRET, Scene

from thinkwell.workspace import Workspace
from thinkwell_acp import RpcError

WRITTEN = "written by the agent\n"
AT_FDCWD, RENAME_EXCHANGE = -100, 2

Operation: TypeAlias = Callable[[Peer, str], Awaitable[str]]


async def read(peer: Peer, path: str) -> str:
    return await peer.read(path)


async def write(peer: Peer, path: str) -> str:
    await peer.write(path, WRITTEN)
    return WRITTEN


async def run(peer: Peer, path: str) -> str:
    """The folder in which a command ran."""
    return await peer.folder(path)


OPERATIONS: tuple[Operation, ...] = (read, write, run)


def serving(*roots: Path) -> AbstractAsyncContextManager[Peer]:
    return agent(Workspace(*roots, write=True, terminal=True))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "base")


@pytest.mark.draws
async def test_no_path_leads_out(scene: Scene) -> None:
    """Whatever exists there or not: the answer is an error."""
    paths = scene.attempts()
    assert len(paths) >= 400
    attempts = random.Random(1).sample(paths, few(len(paths)))
    before = scene.around()
    let_through: list[str] = []
    with anyio.fail_after(60):
        async with serving(scene.root) as peer:
            for path, operation in itertools.product(attempts, OPERATIONS):
                try:
                    got = await operation(peer, path)
                except RpcError:
                    continue
                let_through.append(f"{operation.__name__} {path}: {got}")
    summary = f"{len(attempts)} paths, {len(let_through)} let through"
    assert not let_through, (summary, let_through)
    assert scene.around() == before


async def test_the_error_does_not_tell_what_exists_outside(scene: Scene) -> None:
    pairs = [
        (f"{scene.outside}/secret.txt", f"{scene.outside}/nothing.txt"),
        (f"{scene.root}/../outside/secret.txt", f"{scene.root}/../outside/nothing.txt"),
        (f"{scene.root}/abs/secret.txt", f"{scene.root}/abs/nothing.txt"),
        (f"{scene.root}/file-abs", f"{scene.root}/new-abs"),
    ]
    async with serving(scene.root) as peer:
        for pair, operation in itertools.product(pairs, OPERATIONS):
            said: list[tuple[int, str, object]] = []
            for path in pair:
                with pytest.raises(RpcError) as caught:
                    await operation(peer, path)
                shown = str(caught.value.data).replace(path, "PATH")
                said.append((caught.value.code, caught.value.message.replace(path, "PATH"), shown))
            assert said[0] == said[1]
            assert "outside the workspace" in said[0][1]


async def test_links_that_stay_are_followed(scene: Scene) -> None:
    """Nothing is refused that needs not be."""
    links = {
        "in-rel": "sub",
        "in-abs": f"{scene.root}/sub",
        "in-round": f"../{NAME}/sub",
        "in-chain": "in-rel/deep/..",
        "in-file": "sub/file.txt",
    }
    for name, target in links.items():
        (scene.root / name).symlink_to(target)
    root = str(scene.root)
    paths = [f"{root}/{name}/file.txt" for name in links if name != "in-file"]
    paths += [f"{root}/in-file", f"{root}/../{NAME}/sub/file.txt", f"//{root}//sub/./deep/../file.txt"]
    async with serving(scene.root) as peer:
        for path in paths:
            assert await read(peer, path) == OURS, path
            await write(peer, path)
            assert (scene.root / "sub" / "file.txt").read_text() == WRITTEN
            (scene.root / "sub" / "file.txt").write_text(OURS)
            assert await run(peer, str(Path(path).parent)) in (f"{root}/sub", root)
    assert all((scene.root / name).is_symlink() for name in links)


# Exchanged while we look. Python tells an audit hook of every `open`, `mkdir`, `rename` and start of a
# process just before it does it: there, the ground is moved. A hook cannot be taken out again, so it is
# there once and does something only where it is armed.


class Ambush:
    """Does something just before the nth step of an operation."""

    def __init__(self) -> None:
        self.action: Callable[[], None] | None = None
        self.countdown = 0
        self.installed = False

    def hook(self, event: str, args: tuple[object, ...]) -> None:
        if self.action is None or event not in ("open", "os.mkdir", "os.rename", "subprocess.Popen"):
            return
        del args
        self.countdown -= 1
        if self.countdown == 0:
            action, self.action = self.action, None
            action()

    @contextmanager
    def before(self, step: int, action: Callable[[], None]) -> Generator[None]:
        if not self.installed:
            sys.addaudithook(self.hook)
            self.installed = True
        self.action, self.countdown = action, step
        try:
            yield
        finally:
            self.action = None


AMBUSH = Ambush()


def link_for_file(scene: Scene) -> None:
    (scene.root / "sub/deep/file.txt").unlink()
    (scene.root / "sub/deep/file.txt").symlink_to(scene.outside / "secret.txt")


def link_for_new_file(scene: Scene) -> None:
    (scene.root / "sub/deep/new.txt").symlink_to(scene.outside / "new.txt")


def link_for_folder(scene: Scene) -> None:
    (scene.root / "sub/deep").rename(scene.root / "parked")
    (scene.root / "sub/deep").symlink_to(scene.outside)


def link_for_parent(scene: Scene) -> None:
    (scene.root / "sub").rename(scene.root / "parked")
    (scene.root / "sub").symlink_to("../outside/sub")


def link_for_root(scene: Scene) -> None:
    scene.root.rename(scene.base / "parked")
    scene.root.symlink_to(scene.outside)


def folder_moved_out(scene: Scene) -> None:
    (scene.root / "sub/deep").rename(scene.base / "moved")
    (scene.root / "sub/deep").symlink_to(scene.base / "moved")


def parent_moved_up(scene: Scene) -> None:
    (scene.root / "sub").rename(scene.base / "moved")


def link_for_made_folder(scene: Scene) -> None:
    (scene.root / "sub/made").symlink_to(scene.outside)


def pipe_for_file(scene: Scene) -> None:
    (scene.root / "sub/deep/file.txt").unlink()
    os.mkfifo(scene.root / "sub/deep/file.txt")


SWAPS = (
    link_for_file,
    link_for_new_file,
    link_for_folder,
    link_for_parent,
    link_for_root,
    folder_moved_out,
    parent_moved_up,
    link_for_made_folder,
    pipe_for_file,
)
USES: tuple[tuple[Operation, str], ...] = (
    (read, "sub/deep/file.txt"),
    (read, "sub/deep/../deep/file.txt"),
    (write, "sub/deep/file.txt"),
    (write, "sub/deep/new.txt"),
    (write, "sub/made/new.txt"),
    (write, "sub/deep/../deep/file.txt"),
    (run, "sub/deep"),
)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a command's folder is entered by its path")
@pytest.mark.parametrize("each", [4, pytest.param(1, marks=pytest.mark.long)])
async def test_what_is_exchanged_between_check_and_use(tmp_path: Path, each: int) -> None:
    """Every exchange, or every fourth, just before every step of every operation."""
    tried, fired = 0, 0
    wrong: list[str] = []
    numbers = itertools.count()
    with anyio.fail_after(120):
        for swap, (operation, target) in list(itertools.product(SWAPS, USES))[::each]:
            # Until the root's parent is open, nothing that is exchanged has been looked at.
            for step in itertools.count(len((tmp_path / "0" / NAME).parts)):
                scene = Scene(tmp_path / str(next(numbers)), small=True)
                async with serving(scene.root) as peer:
                    before = scene.around()
                    with AMBUSH.before(step, partial(swap, scene)):
                        try:
                            got = await operation(peer, f"{scene.root}/{target}")
                        except RpcError:
                            got = ""
                        late = AMBUSH.action is not None
                tried += 1
                fired += not late
                wrong += [
                    f"{swap.__name__} before step {step} of {operation.__name__} {target}: {complaint}"
                    for complaint in complaints(scene, before, got)
                ]
                shutil.rmtree(scene.base)
                if late:
                    break
    summary = f"{tried} tried, {fired} exchanges, {len(wrong)} let through"
    assert not wrong, (summary, wrong)
    assert fired >= 200 // each, summary


def complaints(scene: Scene, before: dict[str, tuple[int, int, str]], got: str) -> list[str]:
    """What went wrong outside: something told, changed or left behind."""
    found: list[str] = []
    if SECRET in got or (got.startswith("/") and got.startswith(str(scene.outside))):
        found.append(f"got {got!r}")
    after = scene.around()
    found += [
        f"changed {path}" for path, state in before.items() if after.get(path, (0, 0, ""))[2] != state[2]
    ]
    # What was in the workspace and is moved out of it takes with it what was written there.
    ours = (str(scene.base / "moved"), str(scene.base / "parked"), str(scene.root))
    found += [f"made {path}" for path in after.keys() - before.keys() if not path.startswith(ours)]
    found += [f"left {path}" for path in scene.base.rglob(".thinkwell-*")]
    return found


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="needs an exchange in one step")
async def test_a_thread_that_exchanges_folder_and_link_all_the_time(scene: Scene) -> None:
    """The same without a script: each attempt meets the folder or the link."""
    link = scene.base / "link"
    link.symlink_to(scene.outside / "sub")
    names = os.fsencode(scene.root / "sub"), os.fsencode(link)
    renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    before = {path: state[2] for path, state in scene.around().items() if path.startswith(str(scene.outside))}
    done = threading.Event()
    swaps = 0

    def exchange() -> None:
        nonlocal swaps
        while not done.is_set():
            assert renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0, ctypes.get_errno()
            swaps += 1

    thread = threading.Thread(target=exchange)
    answers: dict[str, int] = {}
    with anyio.fail_after(60):
        async with serving(scene.root) as peer:
            thread.start()
            try:
                for number in range(400):
                    operation = run if number % 20 == 0 else (read, write)[number % 2]
                    path = "sub/deep" if operation is run else "sub/deep/file.txt"
                    try:
                        got = await operation(peer, f"{scene.root}/{path}")
                    except RpcError:
                        got = "refused"
                    # Taken while it was in the root, the folder may be at the link's place by now.
                    at_home = got in (str(scene.root / "sub/deep"), str(link / "deep"))
                    where = "a folder of ours" if at_home else got
                    answers[where] = answers.get(where, 0) + 1
            finally:
                done.set()
                thread.join()
    assert answers.keys() <= {OURS, WRITTEN, "refused", "a folder of ours"}, (answers, swaps)
    assert before == {
        path: state[2] for path, state in scene.around().items() if path.startswith(str(scene.outside))
    }
    assert not [*scene.base.rglob(".thinkwell-*")]
