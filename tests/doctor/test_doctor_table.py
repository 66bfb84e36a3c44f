"""The table of a diagnosis, for people, and its JSON, for programs."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from thinkwell import AuthMethod
from thinkwell.agents import Quirk
from thinkwell.doctor import Check, Diagnosis, Status, Verdict

GOLDEN = """\
Mine (mine)
npx --yes mine@1.0 'two words'

ok       found               0.21 s  /usr/bin/npx (node v24.1.0, npm 11.4.0)
ok       installed          12.50 s  installed now: npm package mine@1.0
warning  version                     mine 1.1, while its profile starts 1.0
         -> what its profile knows was seen with that version
FAILED   login                       it wants a login first (Authentication
                                     required)
         -> with its own program:
         $ mine login --with-a-very-long-option-that-does-not-fit --into-a-line-of-eighty-columns
         -> or by whatever else there is, which is told here at such a length
            that it has to be broken
skipped  session                     it wants a login before that
ok       tools over stdio  120.00 s  it has fetched the list of tools; runs go
                                     this way
ok       ends                0.04 s  it exits by itself when its input is closed
         | one
         | two

Known of it:
- It has a habit that takes more than one line to tell, as many have. (seen with
  1.0, 2026-11-22)

mine wants a login; whether it works cannot be known before that.
"""

MINE = Diagnosis(
    agent="mine",
    title="Mine",
    command=("npx", "--yes", "mine@1.0", "two words"),
    version="1.1",
    capabilities={"loadSession": True},
    auth_methods=(AuthMethod(id="browser", name="Browser"),),
    ways=("stdio",),
    quirks=(
        Quirk(
            about="It has a habit that takes more than one line to tell, as many have.",
            version="1.0",
            seen=dt.date(2026, 11, 22),
        ),
    ),
    checks=(
        Check(name="found", status="ok", detail="/usr/bin/npx (node v24.1.0, npm 11.4.0)", seconds=0.214),
        Check(name="installed", status="ok", detail="installed now: npm package mine@1.0", seconds=12.5),
        Check(
            name="version",
            status="warning",
            detail="mine 1.1, while its profile starts 1.0",
            hint="what its profile knows was seen with that version",
        ),
        Check(
            name="login",
            status="failed",
            detail="it wants a login first (Authentication required)",
            hint="with its own program:\n"
            "$ mine login --with-a-very-long-option-that-does-not-fit --into-a-line-of-eighty-columns\n"
            "or by whatever else there is, which is told here at such a length that it has to be broken",
        ),
        Check(name="session", status="skipped", detail="it wants a login before that"),
        Check(
            name="tools over stdio",
            status="ok",
            detail="it has fetched the list of tools; runs go this way",
            seconds=120,
        ),
        Check(
            name="ends",
            status="ok",
            detail="it exits by itself when its input is closed",
            seconds=0.04,
            stderr="one\ntwo\n",
        ),
    ),
)


def test_a_table() -> None:
    assert MINE.table(width=80) == GOLDEN
    assert max(map(len, MINE.table().splitlines())) <= 100


def test_json_has_everything() -> None:
    told = json.loads(MINE.to_json())
    assert list(told) == [
        "verdict",
        "ok",
        "login_wanted",
        "agent",
        "title",
        "command",
        "version",
        "capabilities",
        "auth_methods",
        "ways",
        "checks",
        "quirks",
    ]
    assert (told["verdict"], told["ok"], told["login_wanted"]) == ("unknown", False, True)
    assert told["checks"][0] == {
        "name": "found",
        "status": "ok",
        "detail": "/usr/bin/npx (node v24.1.0, npm 11.4.0)",
        "seconds": 0.214,
        "hint": "",
        "stderr": "",
    }
    assert told["quirks"][0]["seen"] == "2026-11-22"
    assert told["auth_methods"][0]["id"] == "browser"


OPEN = "mine starts and opens a session. Whether it works cannot be known without a prompt."
LOGIN = "mine wants a login; whether it works cannot be known before that."
SERVERS = " Not all of your MCP servers work with it: "


@pytest.mark.parametrize(
    ("failed", "odd", "code", "verdict", "words"),
    [
        ((), [], 0, "works", "mine works."),
        ((), ["warning"], 0, "works", "mine works, with 1 warning."),
        ((), ["warning"] * 2, 0, "works", "mine works, with 2 warnings."),
        ((), ["unknown"], 0, "unknown", OPEN),
        ((), ["unknown", "warning"], 0, "unknown", OPEN.replace(".", ", with 1 warning.", 1)),
        (("login",), ["warning"], 3, "unknown", LOGIN),
        (("login", "ends"), [], 1, "does not", "mine does not work: login, ends."),
        (("found",), [], 1, "does not", "mine does not work: found."),
        (
            ("typed result",),
            [],
            1,
            "does not",
            "mine works for text, but not for typed results or tools: typed result.",
        ),
        (
            ("tools over acp", "tools over stdio"),
            ["unknown"],
            1,
            "does not",
            "mine does not work for typed results or tools: tools over acp, tools over stdio.",
        ),
        (("answer",), [], 1, "does not", "mine does not work: answer."),
        (("session", "tools over acp"), [], 1, "does not", "mine does not work: session, tools over acp."),
        (("server a",), ["warning"], 1, "works", f"mine works, with 1 warning.{SERVERS}server a."),
        (("mcp servers",), ["unknown"], 1, "unknown", f"{OPEN}{SERVERS}mcp servers."),
        (("login", "server a", "server b"), [], 1, "unknown", f"{LOGIN}{SERVERS}server a, server b."),
    ],
)
def test_the_verdict(
    failed: tuple[str, ...], odd: list[Status], code: int, verdict: Verdict, words: str
) -> None:
    bad = [Check(name=name, status="failed") for name in failed]
    more = [Check(name=f"odd {number}", status=status) for number, status in enumerate(odd)]
    diagnosis = Diagnosis(agent="mine", checks=(*bad, *more, Check(name="fine", status="ok")))
    assert diagnosis.exit_code == code
    assert diagnosis.ok is (code == 0)
    assert diagnosis.login_wanted is (code == 3)
    assert diagnosis.verdict == verdict
    assert diagnosis.table().splitlines()[0] == "mine"
    assert diagnosis.table().splitlines()[-1] == words


def skipped(*names: str, why: str = "it does not run") -> tuple[Check, ...]:
    return tuple(Check(name=name, status="skipped", detail=why) for name in names)


def test_what_is_skipped_for_one_reason_is_one_line() -> None:
    checks = (
        *skipped("found", "installed", why="it runs already"),
        Check(name="starts", status="failed", detail="it does not run"),
        *skipped("version", "protocol", "login"),
        *skipped("session", why="another"),
    )
    diagnosis = Diagnosis(agent="mine", checks=checks)
    assert diagnosis.table().splitlines()[2:-2] == [
        "skipped  found                       it runs already",
        "skipped  installed                   it runs already",
        "FAILED   starts                      it does not run",
        "skipped  3 more checks               it does not run",
        "skipped  session                     another",
    ]
    assert [each["name"] for each in json.loads(diagnosis.to_json())["checks"]] == [
        each.name for each in checks
    ]


def test_a_long_name_has_a_line_of_its_own() -> None:
    check = Check(name="server \u202ewith-a-long-name", status="ok", detail="it starts", seconds=1)
    assert Diagnosis(agent="mine", checks=(check,)).table().splitlines()[2:-2] == [
        r"ok       server \u202ewith-a-long-name",
        "                             1.00 s  it starts",
    ]


def rows(detail: str, *, hint: str = "", width: int = 80) -> list[str]:
    """The lines of a check of which an agent has said this."""
    check = Check(name="version", status="ok", detail=detail, hint=hint)
    table = Diagnosis(agent="mine", checks=(check,)).table(width)
    return table.splitlines()[2:-2]


def test_what_does_not_show_is_escaped() -> None:
    (row,) = rows("\x1b[2J\u202e\x07\x9b\u00a0")
    assert row.endswith(r"\x1b[2J\u202e\x07\x9b\xa0")


def test_lines_of_an_agent_stay_in_their_column() -> None:
    _, second, hint = rows("a\n \nok       login", hint="\x1b\n\n")[:3]
    assert second == " " * 37 + "ok       login"
    assert hint == "         -> \\x1b"


def columns(text: str) -> int:
    """Return how many columns a terminal takes for a text of which nothing combines."""
    return len(text) + sum(char in "日本" for char in text)


def test_wide_characters_take_two_columns() -> None:
    plain, wide = (
        Diagnosis(agent="mine", checks=(Check(name=name, status="ok", detail="fine"),)).table()
        for name in ("abcde", "日本e\u0301")
    )
    assert plain.replace("abcde", "日本e\u0301") == wide
    lines = rows("日本 " * 30)
    assert len(lines) > 1
    assert max(map(columns, lines)) <= 80


def test_long_words_are_kept_whole_and_endless_ones_are_not() -> None:
    assert rows("short /a/" + "b" * 100)[1] == " " * 37 + "/a/" + "b" * 100
    assert max(map(len, rows("x" * 1000))) <= 37 + 200


def test_an_agent_that_says_very_much_fills_no_screen() -> None:
    lines = rows("word " * 10_000, width=1)
    assert len(lines) == 12
    assert lines[-1].strip() == "…"
