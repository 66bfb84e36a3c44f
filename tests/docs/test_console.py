"""Every line for a shell that the documentation shows with the command `thinkwell` is one that it takes."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest
from docs.commands import takes
from docs.pages import PAGES, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FENCE = re.compile(r"^```(?:console|text|bash|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CALL = re.compile(r"(?:^\$ |[|;&] *|^\$ .*\| *)thinkwell +(.*)$", re.MULTILINE)
REST = frozenset("|<>;&")
"""What ends the arguments of a command, for a shell."""


def calls() -> Iterator[tuple[Path, str]]:
    """The arguments of each call of the command, with the page that shows it."""
    for page in PAGES:
        for fence in FENCE.findall(page.read_text("utf-8")):
            for line in CALL.findall(fence.replace("\\\n", " ")):
                yield page, line


def arguments(line: str) -> list[str]:
    """What a shell makes of a line, up to where something else begins."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    end = next((place for place, word in enumerate(words) if word[0] in REST), len(words))
    return words[:end]


@pytest.mark.parametrize(
    ("page", "line"), [pytest.param(*call, id=f"{call[0].relative_to(ROOT)}:{call[1]}") for call in calls()]
)
def test_the_command_takes_what_a_page_shows(page: Path, line: str) -> None:
    takes(*arguments(line))


def test_the_pages_show_some() -> None:
    assert len(list(calls())) > 5
