"""``python tests/suite/prose.py``: read what the project says in plain words, and print what reads badly.

The documentation, docstrings, comments and messages are read, without the code in them: by proselint, and by
a short list of words of our own. `make static` fails when anything is found.
"""
# ruff: noqa: T201

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
import tempfile
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
READ: Final = (
    "*.md",
    "docs/**/*.md",
    "benchmarks/*.md",
    "acp/**/*.py",
    "thinkwell/**/*.py",
    "examples/**/*.py",
    "benchmarks/**/*.py",
)

WORDS: Final = {
    r"whoever|somebody|nobody": "say who: you, the agent, the user; or turn the sentence round",
    r"(is|are) told of": "say what happens: gets, learns, receives",
    r"none of its own": "say what it lacks",
    r"of yours": "your",
    r"goes on at": "continues at",
    r"he|his|him": "you, the user, they",
    r"what is no": "name it: malformed, other, missing; or say: a value that is not a …",
    r"(is|are|was|were) not there": "is missing, does not exist, is not installed",
    r"anew": "again; or a verb with re-: reopen, restart, redraw",
    r"in vain": "say what failed, or timed out",
    r"(came|becomes?|became) of|what (it|they) (comes?|came) to": "the result, the outcome; what happens to",
    r"in the place of": "instead of",
    r"to be had": "available",
    r"holds no model": "is not a model",
    r"heed(s|ed)?": "follow, obey; not: ignore",
}
"""What we do not write, and what to write instead."""

OFF: Final = (
    "typography",  # quotes, dots and dashes are those of code
    "weasel_words.very",  # it forbids the word, and jokes about it
    "lexical_illusions",  # a heading and the sentence below it may begin alike
    "spelling.consistency",  # the names of CSS and of the protocol are American
    "annotations.misc",  # it takes the word for a mark
)
"""The checks of proselint that are not ours."""

CODE: Final = re.compile(
    r"^ *(```|~~~).*?^ *\1 *$|^(?: {4}|\t).*?$|``.+?``|`[^`\n]+`|\]\([^)\s]*\)|<[^>\n]+>",
    re.MULTILINE | re.DOTALL,
)


def main() -> int:
    """Print what is found, and return an exit status."""
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted({path for pattern in READ for path in ROOT.glob(pattern)}):
            prose = words_of(path)
            copy = Path(folder, f"{path.relative_to(ROOT)}.txt")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(prose, encoding="utf-8")
            for line, word, advice in bad_words(prose):
                found += 1
                print(f"{path.relative_to(ROOT)}:{line}: {word!r}: {advice}")
        config = Path(folder, "config.json")
        config.write_text(json.dumps({"checks": dict.fromkeys(OFF, False)}), encoding="utf-8")
        command = (sys.executable, "-m", "proselint", "check", "--config", str(config), folder)
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        if said:
            found += said.count("\n") + 1
            print(said.replace(f"{Path(folder).resolve()}/", "").replace(".txt:", ":"))
    return found > 0


def bad_words(prose: str) -> Iterator[tuple[int, str, str]]:
    """Return the line of each word of `WORDS`, the word, and what to do instead."""
    for pattern, advice in WORDS.items():
        for match in re.finditer(rf"\b({pattern})\b", prose, re.IGNORECASE):
            yield prose.count("\n", 0, match.start()) + 1, match[0], advice


def words_of(path: Path) -> str:
    """Return the text of a file with nothing but its words, each in its line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        text = _said(text)
    return CODE.sub(lambda match: re.sub(r"[^\n]+", " ", match[0]), text)


def _said(source: str) -> str:
    """Return the docstrings, comments and messages of a module, each in its line. Longer texts are data."""
    lines = [""] * (source.count("\n") + 1)
    tree = ast.parse(source)
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            said = node.value.split("\n")
            for number, line in enumerate(said if node in docstrings else said[:1], node.lineno - 1):
                lines[number] += f"{line.strip()} "
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith(
            ("# noqa", "# type", "# pyright", "# pragma")
        ):
            lines[token.start[0] - 1] = token.string.lstrip("#: ")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
