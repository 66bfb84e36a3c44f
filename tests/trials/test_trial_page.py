"""The page of a report: what is in it, and what cannot be."""

from __future__ import annotations

import logging
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from trials.reported import changes, many_trials
from trials.repositories import ON_POSIX

from thinkwell.testing import ScriptedAgent, script
from thinkwell.trials import Report, Trial, Worktree

if TYPE_CHECKING:
    from pathlib import Path

    from trials.repositories import Repository

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><!-- \x1b[31m\x07\u202e</pre></details>"


class Page(HTMLParser):
    """The elements, attributes and texts of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements = list[str]()
        self.attributes = list[tuple[str, str | None]]()
        self.texts = list[str]()
        self.open = list[str]()
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def saved(path: Path, *trials: Trial) -> str:
    """Save a report, and return its page."""
    anyio.run(Report(trials).save, path)
    return path.read_text("utf-8")


def test_it_tells_all_and_names_no_address(tmp_path: Path) -> None:
    html = saved(tmp_path / "report.html", *many_trials(inputs=4))
    page = Page(html)
    for told in (
        "60 trials · 32 passed · 22 failed · 6 with an error · $5.83",
        "Pass rate",
        "not known",
        "issue-24",
        "[exit code 1]\n1 failed, 11 passed",
        "The agent has exited with code 1.",
        "3 attempts",
        "Empty fields are kept.",
        "src/parser.py+3−1",
        "  12 +             return []",
        "new tests/test_parser.py+2−0",
    ):
        assert told in page.text, told
    assert "//" not in re.sub(r"</?[a-z]", "", html).replace("/*", "")
    assert "script" not in page.elements
    policy = re.findall('Content-Security-Policy" content="(.*)">', html)
    assert [each.partition("'sha256-")[0] for each in policy] == ["default-src 'none'; style-src "]
    links = [value for name, value in page.attributes if name == "href"]
    ids = [value for name, value in page.attributes if name == "id"]
    assert links == [f"#{each}" for each in ids]
    assert len(ids) == 60


def test_what_was_written_by_others_is_text(tmp_path: Path) -> None:
    patch = f"diff --git a/x b/{HOSTILE}\n--- a/x\n+++ b/{HOSTILE}\n@@ -1 +1 @@\n-{HOSTILE}\n+{HOSTILE}\n"
    common: Any = {"repeat": 1, "detail": HOSTILE, "changes": changes(patch)}
    html = saved(
        tmp_path / "report.html",
        Trial(input=HOSTILE, agent=HOSTILE, status="passed", result=HOSTILE, **common),
        Trial(input="b", agent="c", status="failed", result={HOSTILE: [HOSTILE]}, **common),
        Trial(input="b", agent="d", status="error", error=HOSTILE, **common),
    )
    page = Page(html)
    assert not {"script", "img"} & set(page.elements)
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert page.text.count("<script>alert(1)</script><img src=x onerror=alert(2)>\"'><!-- ") >= 15
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", html)


@pytest.mark.long
@pytest.mark.parametrize("letter", ["x", "語", "<", "\x1b"])
def test_200_trials_take_ten_megabytes_at_most(tmp_path: Path, letter: str) -> None:
    rows = "".join(f"+def f{n}(): return {letter * 30!r}\n".replace("\\x1b", "\x1b") for n in range(6_000))
    patch = f"diff --git a/f.py b/f.py\n--- a/f.py\n+++ b/f.py\n@@ -0,0 +1,6000 @@\n{rows}"
    long = letter * 200_000
    trials = many_trials(10, ("claude", "codex"), 10)
    big = [
        Trial(
            input=each.input,
            agent=each.agent,
            repeat=each.repeat,
            status="failed",
            detail=long,
            result=long,
            error=long,
            changes=changes(patch),
        )
        for each in trials
    ]
    html = saved(tmp_path / "report.html", *big)
    assert 1_000_000 < (tmp_path / "report.html").stat().st_size < 10_000_000
    assert html.count("more is not shown") == 200
    assert Page(html).elements.count("details") == 200


async def test_runs_have_their_replays_in_a_folder_beside_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ScriptedAgent(script.says("Fixed it.")).open(record=tmp_path / "run.ndjson") as agent:
        await agent.think().text("Fix it.").run()
    (tmp_path / "broken.ndjson").write_text("{}")
    recordings = {
        1: str(tmp_path / "run.ndjson"),
        2: str(tmp_path / "broken.ndjson"),
        3: None,
        4: str(tmp_path / "gone"),
    }
    trials = [Trial(input="a", agent="b", repeat=n, recording=each) for n, each in recordings.items()]
    with caplog.at_level(logging.WARNING, "thinkwell"):
        await Report(trials).save(tmp_path / "all of it.html")
    html = (tmp_path / "all of it.html").read_text("utf-8")
    assert re.findall('href="([^#"]*)"', html) == ["all%20of%20it-runs/1.html"]
    assert [path.name for path in (tmp_path / "all of it-runs").iterdir()] == ["1.html"]
    assert "Fixed it." in (tmp_path / "all of it-runs" / "1.html").read_text("utf-8")
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "The recording of trial ('a', 'b', 2) is left out",
        "The recording of trial ('a', 'b', 4) is left out",
    ]
    await Report(trials).save(tmp_path / "all of it.html")
    assert (tmp_path / "all of it.html").read_text("utf-8") == html


def test_a_report_of_nothing(tmp_path: Path) -> None:
    assert "0 trials" in Page(saved(tmp_path / "report.html")).text
    html = saved(tmp_path / "report.html", Trial(input="a", agent="b", repeat=1))
    assert "1 trial · 1 waiting" in Page(html).text


@ON_POSIX
async def test_changes_are_shown_as_git_has_made_them(tmp_path: Path, repository: Repository) -> None:
    async with Worktree(repository.path) as tree:
        (tree.path / "app.py").write_text("one\ntwo, changed\nthree\n+++ b/evil\n-- \n")
        (tree.path / "old.txt").unlink()
        (tree.path / "run.sh").chmod(0o755)
        (tree.path / "logo.png").write_bytes(bytes(300))
        (tree.path / 'ä "quoted" name').write_text("no line end")
        (tree.path / "docs" / "long").write_text("x" * 5_000 + "\r\n" + "\n".join(map(str, range(5_000))))
        (tree.path / "empty").write_text("")
    trial = Trial(input="a", agent="b", repeat=1, status="passed", changes=tree.changes)
    await Report([trial]).save(tmp_path / "report.html")
    text = Page((tmp_path / "report.html").read_text("utf-8")).text
    for told in (
        "app.py+3−1",
        "   2 -two\n   2 +two, changed\n   3   three\n   4 ++++ b/evil\n   5 +-- \n",
        "old.txt (deleted)+0−1",
        "run.sh (executable)+0−0",
        "logo.png (binary)+0−0",
        'new ä "quoted" name+1−0',
        "new docs/long+5001−0",
        "x…\n   2 +0\n",
        "new empty+0−0",
    ):
        assert re.sub(r"\s", "", told) in re.sub(r"\s", "", text), told
    assert "… 1,201 more lines" in text


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ("no patch at all", "Changes"),
        ("no patch\ndiff --git a/x b/x\n@@ -0,0 +1 @@\n+y\n", "x+1−0   1 + y"),
        ("diff --git nothing\ndiff --git a/x b/x\n@@ -?\n+z\n@@ -0,0 +1 @@\n+y\n", "x+1−0   1 + y"),
        (
            "diff --git a/x b/x\n@@ -0,0 +1,900000 @@\n" + "+y\n" * 200_000,
            "… the rest is too long to be shown",
        ),
    ],
    ids=["none", "some", "malformed", "long"],
)
def test_malformed_and_long_patches(tmp_path: Path, patch: str, told: str) -> None:
    trial = Trial(input="a", agent="b", repeat=1, status="passed", changes=changes(patch))
    assert told in Page(saved(tmp_path / "report.html", trial)).text
