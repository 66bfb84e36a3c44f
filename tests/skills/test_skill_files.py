"""Reading the files of a skill: what an agent gets of each kind, and that it gets no others."""

from __future__ import annotations

import base64
import os
import random
import socket
import threading
from itertools import product
from pathlib import Path

import anyio
import pytest
from scripted import Turn, scripted
from skills.folders import read, text, told, write_skill
from suite.tiers import few

from thinkwell.skills import Skill, load_skill

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
SECRET = "TOP-SECRET"


async def test_kinds_of_files(tmp_path: Path) -> None:
    contents: dict[str, str | bytes] = {
        "a.md": "# Ä\n",
        "bom.txt": b"\xef\xbb\xbfx",
        "empty.txt": "",
        "logo.png": PNG,
        "picture.bin": PNG,
        "drawing.svg": "<svg/>",
        "latin.txt": b"caf\xe9",
        "nul.txt": b"a\0b",
        "some.pdf": b"%PDF-\xff",
        "data.json.gz": b"\x1f\x8b\xff",
        "noname": b"\xff\xfe",
    }
    folder = write_skill(tmp_path / "notes", files=contents)
    virtual = Skill("notes", "Writes.", files=contents)
    for skill in (folder, virtual):
        names = ["a.md", "bom.txt", "empty.txt", "drawing.svg"]
        answers = await read(skill, *names)
        assert [text(answer) for answer in answers] == ["# Ä\n", "x", "", "<svg/>"]
        image = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
        assert [a["content"] for a in await read(skill, "logo.png", "picture.bin")] == [[image], [image]]
        for name, mime_type in (
            ("latin.txt", "text/plain"),
            ("nul.txt", "text/plain"),
            ("some.pdf", "application/pdf"),
            ("data.json.gz", "application/octet-stream"),
            ("noname", "application/octet-stream"),
        ):
            (answer,) = await read(skill, name)
            (block,) = answer["content"]
            data = contents[name]
            assert isinstance(data, bytes)
            assert block == {
                "type": "resource",
                "resource": {
                    "uri": f"skill://notes/{name}",
                    "mimeType": mime_type,
                    "blob": base64.b64encode(data).decode(),
                },
            }


async def test_paths_that_are_fine(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "notes", files={"references/deep/a.md": "deep", ".hidden": "hidden"})
    virtual = Skill("notes", "Writes.", files={"./references//deep/a.md": "deep", ".hidden": "hidden"})
    for skill in (folder, virtual):
        answers = await read(skill, "references/deep/a.md", "./references//deep/./a.md", ".hidden")
        assert [text(answer) for answer in answers] == ["deep", "deep", "hidden"]
    assert text((await read(folder, "SKILL.md"))[0]).startswith("---\nname: notes")


async def test_a_file_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "notes", files={"a.md": "a", "b/c.md": "c"})
    for skill, files in (
        (folder, "'a.md', 'b/c.md'"),
        (Skill("notes", "Writes.", files={"a.md": "a", "b/c.md": "c"}), "'a.md', 'b/c.md'"),
    ):
        answers = await read(skill, "x.md", "b/x", "x" * 300)
        said = [text(answer, is_error=True) for answer in answers]
        assert said[0] == f"path: there is no file 'x.md'. It must be one of {files}"
        assert said[1].startswith("path: there is no file 'b/x'")
        assert "cannot be read: File name too long" in said[2] or "there is no file" in said[2]
    (answer,) = await read(Skill("notes", "Writes."), "x.md")
    assert text(answer, is_error=True) == "path: there is no file 'x.md'. This skill has no files"


async def test_only_some_names_are_told_in_an_error() -> None:
    skill = Skill("notes", "Writes.", files={f"{number:02}.md": "" for number in range(60)})
    (answer,) = await read(skill, "x.md")
    assert text(answer, is_error=True).endswith("'49.md' and 10 more")


async def test_what_is_too_large(tmp_path: Path) -> None:
    limit = 1024 * 1024
    folder = write_skill(tmp_path / "notes", files={"just.txt": b"x" * limit})
    with (folder / "huge.bin").open("wb") as file:
        file.truncate(50 * 1024 * limit)
    virtual = Skill("notes", "Writes.", files={"just.txt": b"x" * limit, "more.bin": b"x" * (limit + 1)})
    fits, huge = await read(folder, "just.txt", "huge.bin")
    assert text(fits) == "x" * limit
    large = "path: 'huge.bin' is too large: 53,687,091,200 bytes, where 1,048,576 can be read"
    assert text(huge, is_error=True) == large
    fits, more = await read(virtual, "just.txt", "more.bin")
    assert len(text(fits)) == limit
    assert "'more.bin' is too large: 1,048,577 bytes" in text(more, is_error=True)


async def test_a_file_that_is_written_after_the_skill_was_loaded(tmp_path: Path) -> None:
    skill = load_skill(write_skill(tmp_path / "notes"))
    (tmp_path / "notes" / "log.txt").write_text("new", "utf-8")
    assert text((await read(skill, "log.txt"))[0]) == "new"


async def test_a_file_that_holds_more_than_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one does that grows while it is read."""
    limit = 1024 * 1024
    folder = write_skill(tmp_path / "notes", files={"log.txt": b"x" * (limit + 10)})
    fstat = os.fstat

    def before(descriptor: int) -> os.stat_result:
        info = fstat(descriptor)
        small = (*info[:6], 1, *info[7:10])
        return os.stat_result(small) if info.st_size == limit + 10 else info

    monkeypatch.setattr(os, "fstat", before)
    (answer,) = await read(folder, "log.txt")
    assert "is too large: 1,048,577 bytes" in text(answer, is_error=True)


async def test_what_is_no_regular_file(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "notes", files={"references/a.md": "a", "a.md": "a"})
    os.mkfifo(folder / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    previous = Path.cwd()
    os.chdir(folder)  # the path of a socket has to be short
    try:
        listener.bind("socket")
    finally:
        os.chdir(previous)
    with listener:
        answers = await read(folder, "references", "pipe", "socket", "a.md/b")
    said = [text(answer, is_error=True) for answer in answers]
    assert said[0].startswith("path: 'references' is a folder; name a file in it")
    assert said[1].startswith("path: 'pipe' is not a regular file")
    assert said[2].startswith("path: 'socket' cannot be read: ")
    assert "'a.md/b' leads through a symbolic link, or through a file" in said[3]


# Ways out

TARGETS = ("secret.txt", "outside/secret.txt", "etc/passwd", "notes2/secret.txt")
ESCAPES = tuple(
    prefix + climb + target
    for prefix, climb, target in product(
        (
            "",
            "./",
            "references/",
            "references/../",
            "/",
            "//",
            "~/",
            "C:/",
            "C:",
            "\\\\host\\share\\",
            "a.md/",
        ),
        ("../", "../../", "..//", "./../", "..\\", "../references/../../", "%2e%2e/", "..\0/"),
        TARGETS,
    )
)
LINKS = (
    "file-link",
    "folder-link/secret.txt",
    "inner/link/secret.txt",
    "loop",
    "to-root/etc/passwd",
    "up/x.txt",
)


def guarded(tmp_path: Path) -> Path:
    """Write a skill with a secret everywhere around it, and links that lead to it."""
    folder = write_skill(
        tmp_path / "skills" / "notes", files={"references/a.md": "a", "inner/b.md": "b", "a.md": "a"}
    )
    for place in (tmp_path, tmp_path / "skills", tmp_path / "outside", tmp_path / "skills" / "notes2"):
        place.mkdir(exist_ok=True)
        (place / "secret.txt").write_text(SECRET)
    (folder / "file-link").symlink_to(tmp_path / "secret.txt")
    (folder / "folder-link").symlink_to(tmp_path / "outside")
    (folder / "inner" / "link").symlink_to("../../notes2")
    (folder / "loop").symlink_to("loop")
    (folder / "to-root").symlink_to("/")
    (folder / "up").symlink_to("references")
    return folder


@pytest.mark.draws
async def test_no_path_leads_out(tmp_path: Path) -> None:
    folder = guarded(tmp_path)
    absolute = [str(tmp_path / "secret.txt"), (tmp_path / "secret.txt").as_uri(), "/etc/passwd", "", ".", "/"]
    assert len(ESCAPES) > 350
    attempts = [*random.Random(1).sample(ESCAPES, few(len(ESCAPES))), *LINKS, *absolute]
    answers = await read(folder, *attempts)
    let_through = [path for path, answer in zip(attempts, answers, strict=True) if not answer["isError"]]
    assert let_through == []
    assert SECRET not in repr(answers)
    virtual = Skill("notes", "Writes.", files={"a.md": "a"})
    assert all(answer["isError"] for answer in await read(virtual, *attempts))


async def test_a_way_out_is_called_so(tmp_path: Path) -> None:
    answers = await read(guarded(tmp_path), "../x", "/x", "C:\\x", "folder-link/secret.txt", "file-link", ".")
    said = [text(answer, is_error=True).split(". It must")[0] for answer in answers]
    linked = "leads through a symbolic link, or through a file; links are not followed"
    assert said == [
        "path: '../x' points out of the skill; give a path below its folder",
        "path: '/x' points out of the skill; give a path below its folder",
        "path: 'C:\\\\x' is not a path of a file; put / between folders",
        f"path: 'folder-link/secret.txt' {linked}",
        f"path: 'file-link' {linked}",
        "path: '.' names no file",
    ]


@pytest.mark.long
async def test_a_link_that_is_swapped_in_while_files_are_read(tmp_path: Path) -> None:
    folder = guarded(tmp_path)
    (folder / "inner" / "secret.txt").write_text("harmless")
    stop = threading.Event()
    swaps: list[int] = []

    def swap() -> None:
        inner, aside = folder / "inner", folder / "aside"
        while not stop.is_set():
            inner.rename(aside)
            inner.symlink_to(tmp_path / "outside")
            inner.unlink()
            aside.rename(inner)
            swaps.append(1)

    async def script(turn: Turn) -> None:
        said: list[str] = []
        for _ in range(150):
            answer = await turn.call("read_skill_file", {"skill": "notes", "path": "inner/secret.txt"})
            said.append(repr(answer))
        turn.say("leaked" if SECRET in "".join(said) else "safe")

    thread = threading.Thread(target=swap)
    with anyio.fail_after(30):
        async with scripted(script) as agent:
            builder = agent.think().text("Go").skill(folder)
            thread.start()
            try:
                assert await builder.run() == "safe"
            finally:
                stop.set()
                await anyio.to_thread.run_sync(thread.join)
    assert swaps


async def test_another_folder_in_the_place_of_the_skill(tmp_path: Path) -> None:
    folder = guarded(tmp_path)
    skill = load_skill(folder)
    folder.rename(tmp_path / "moved")
    (said,) = await read(skill, "a.md")
    assert "there is no file 'a.md'" in text(said, is_error=True)
    folder.symlink_to(tmp_path / "outside")
    (said,) = await read(skill, "secret.txt")
    assert "leads through a symbolic link" in text(said, is_error=True)
    folder.unlink()
    (tmp_path / "outside").rename(folder)
    (said,) = await read(skill, "secret.txt")
    assert "the skill's folder is no longer the one" in text(said, is_error=True)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
async def test_a_file_without_permission(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "notes", files={"a.md": "a"})
    (folder / "a.md").chmod(0)
    (said,) = await read(folder, "a.md")
    assert "'a.md' cannot be read: Permission denied" in text(said, is_error=True)


# The list


async def test_the_list_of_files(tmp_path: Path) -> None:
    folder = guarded(tmp_path)
    for hidden in (".git/config", "__pycache__/x.pyc", ".env"):
        (folder / hidden).parent.mkdir(exist_ok=True)
        (folder / hidden).write_text("hidden")
    (folder / os.fsdecode(b"caf\xe9.txt")).write_text("a name without a form in UTF-8")
    (answer,) = await told([folder], ("activate_skill", {"name": "notes"}))
    said = text(answer)
    assert said.startswith(
        "Be brief.\n\nFiles of this skill, for read_skill_file with skill 'notes'; they are"
    )
    assert f"in the folder {folder.resolve()}:\n" in said
    assert said.endswith(":\n- a.md (1 bytes)\n- inner/b.md (1 bytes)\n- references/a.md (1 bytes)")


async def test_a_list_has_an_end(tmp_path: Path) -> None:
    many = {f"{number:04}.md": "" for number in range(600)}
    folder = write_skill(tmp_path / "notes")
    for name in many:
        (folder / name).touch()
    for skill in (folder, Skill("notes", "Writes.", files=many)):
        (answer,) = await told([skill], ("activate_skill", {"name": "notes"}))
        lines = text(answer).split("\n")
        assert lines[-1] == "- and perhaps more"
        assert 500 <= len(lines) <= 510
