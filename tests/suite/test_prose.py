"""What the check of the project's prose finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suite.prose import bad_words, words_of

if TYPE_CHECKING:
    from pathlib import Path

MODULE = '''
def somebody(nobody: int) -> None:
    """Ask somebody.

    Not ``somebody``.
    """
    # Nobody is there
    raise ValueError(f"{nobody} agents of yours answered")
'''

PAGE = """
# Whoever asks

It prints what is no message.

`whoever` is a [name](#whoever):

```python
whoever = 1
```
"""


def found(path: Path, text: str) -> list[tuple[int, str]]:
    path.write_text(text)
    return sorted((line, word) for line, word, _ in bad_words(words_of(path)))


def test_words_are_found_where_a_person_reads_them(tmp_path: Path) -> None:
    assert found(tmp_path / "module.py", MODULE) == [(3, "somebody"), (7, "Nobody"), (8, "of yours")]
    assert found(tmp_path / "page.md", PAGE) == [(2, "Whoever"), (4, "what is no")]
