"""A folder to be kept to, and all around it what must not be touched, with the paths that lead there."""

from __future__ import annotations

import os
import random
import unicodedata
from pathlib import Path

SECRET = "secret: do not tell\n"
OURS = "ours\n"
NAME = unicodedata.normalize("NFC", "wörk")

SIBLINGS = (
    f"{NAME}-evil",
    f"{NAME}evil",
    f"{NAME}.",
    f"{NAME} ",
    f" {NAME}",
    NAME.upper(),
    NAME.capitalize(),
    unicodedata.normalize("NFD", NAME),
    f"{NAME}\u200b",
    f"\u200b{NAME}",
    "ｗörk",
    "work",
    f"{NAME}\\..",
    NAME[:-1],
)
"""Names of folders that look like the root's."""


class Scene:
    """The folders of one test.

    ``base/wörk`` is the root. ``base/outside`` and the siblings hold secrets. A small scene has no siblings
    and no links.
    """

    def __init__(self, base: Path, *, small: bool = False) -> None:
        self.base = base
        self.root = base / NAME
        self.outside = base / "outside"
        for folder in (self.outside / "sub" / "deep", *(base / name for name in SIBLINGS if not small)):
            folder.mkdir(parents=True)
            for name in ("file.txt", "secret.txt"):
                (folder / name).write_text(SECRET)
        for folder in (self.outside, self.outside / "sub"):
            for name in ("file.txt", "secret.txt"):
                (folder / name).write_text(SECRET)
        os.mkfifo(self.outside / "pipe")
        (self.root / "sub" / "deep").mkdir(parents=True)
        for folder in (self.root, self.root / "sub", self.root / "sub" / "deep"):
            (folder / "file.txt").write_text(OURS)
        self.links = {} if small else self._links()
        for name, target in self.links.items():
            (self.root / name).symlink_to(target)

    def _links(self) -> dict[str, str]:
        """Links below the root that leave it, or lead to nothing."""
        up = f"../{self.outside.name}"
        links = {
            "abs": f"{self.outside}",
            "abs-slash": f"{self.outside}/",
            "abs-double": f"//{str(self.outside).replace('/', '//')}",
            "abs-dots": f"{self.root}/../outside",
            "abs-self": f"{self.root}/sub/../../outside",
            "rel": up,
            "rel-dots": f"./sub/.././{up}",
            "rel-deep": f"sub/deep/../../{up}",
            "up": "..",
            "up-slash": "../",
            "slash": "/",
            "file-abs": f"{self.outside}/secret.txt",
            "file-rel": f"{up}/secret.txt",
            "new-abs": f"{self.outside}/new.txt",
            "new-rel": f"{up}/new.txt",
            "new-folder": f"{up}/new/new.txt",
            "pipe": f"{up}/pipe",
            "zero": "/dev/zero",
            "stdin": "/dev/stdin",
            "tty": "/dev/tty",
            "proc-root": f"/proc/self/root{self.outside}",
            "proc-cwd": "/proc/self/cwd",
            "proc-fd": "/proc/self/fd",
            "loop": "loop",
            "loop-a": "loop-b",
            "loop-b": "sub/../loop-a",
            "sub/rel": f"../{up}",
            "sub/abs": f"{self.outside}/sub",
            "sub/deep/rel": f"../../{up}",
            "sub/deep/up": "../../..",
            "sub/deep/back": "../../abs/sub",
            "sibling": f"../{NAME}-evil",
            "sibling-abs": f"{self.base}/{NAME}-evil",
        }
        for kind, end in (("abs", "abs"), ("rel", "sub/rel"), ("up", "up/outside")):
            names = [f"chain-{kind}-{number}" for number in range(5)]
            links |= dict(zip(names, [*names[1:], end], strict=True))
        return links

    def attempts(self, seed: int = 1) -> list[str]:
        """Paths that lead out of the root, for the system at least."""
        paths = [*self._direct(), *self._dotted(), *self._linked(), *self._random(seed)]
        return list(dict.fromkeys(paths))

    def _direct(self) -> list[str]:
        base, proc = (
            str(self.base),
            ("/proc/self/root", "/proc/self/cwd/../../../../../../../..", "/dev/fd/.."),
        )
        paths = [f"{self.outside}/{name}" for name in ("secret.txt", "missing.txt", "sub", "new/new.txt", "")]
        paths += [
            f"{base}/{name}{tail}" for name in SIBLINGS for tail in ("", "/", "/secret.txt", "/new.txt")
        ]
        paths += [f"{way}{self.outside}/secret.txt" for way in proc]
        paths += [
            "/",
            "//",
            "/.",
            "/..",
            base,
            f"{base}/",
            f"{base}/.",
            "/etc/passwd",
            "/etc",
            "/dev/null",
            "/tmp",
        ]
        return [*paths, f"{base.upper()}/{NAME}/file.txt", f"/{base.lower()}/{NAME.upper()}/file.txt"]

    def _dotted(self) -> list[str]:
        ways = (
            "..", "../.", "./..", ".//..//", "sub/../..", "sub/deep/../../..", "sub//..//..", "sub/./.././..",
            "missing/../..", "file.txt/../..", "sub/../sub/../..", f"../{NAME}/..", f"../../{self.base.name}",
        )  # fmt: skip
        ends = ("outside/secret.txt", "outside/new.txt", f"{NAME}-evil/secret.txt", "outside", "outside/")
        return [f"{self.root}/{way}/{end}" for way in ways for end in ends]

    def _linked(self) -> list[str]:
        tails = ("", "/", "/secret.txt", "/new.txt", "/../outside/secret.txt", "/sub/../secret.txt")
        return [f"{self.root}/{link}{tail}" for link in self.links for tail in tails]

    def _random(self, seed: int) -> list[str]:
        rng = random.Random(seed)
        names = ["..", "..", ".", "", "sub", "deep", "outside", NAME, "secret.txt", "file.txt", *self.links]
        made = (f"{self.root}/{'/'.join(rng.choices(names, k=rng.randint(1, 7)))}" for _ in range(600))
        return [path for path in made if self.leaves(path)]

    def leaves(self, path: str) -> bool:
        """Whether the system goes elsewhere by this path than into the root, or nowhere."""
        try:
            real = Path(path).resolve(strict=True)
        except (OSError, RuntimeError):
            return False
        return not real.is_relative_to(self.root.resolve())

    def around(self) -> dict[str, tuple[int, int, str]]:
        """Everything but the root: kind, time of change, content."""
        seen: dict[str, tuple[int, int, str]] = {}
        for folder, folders, files in os.walk(self.base):
            folders[:] = [name for name in folders if Path(folder, name) != self.root]
            for path in (Path(folder, name) for name in (*folders, *files)):
                status = path.lstat()
                seen[str(path)] = (
                    status.st_mode,
                    status.st_mtime_ns,
                    path.read_text() if path.is_file() else "",
                )
        return seen
