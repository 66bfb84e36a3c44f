"""Reading a page as a browser does: what elements it has, and what text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

ELEMENTS = frozenset({
    "blockquote", "code", "dd", "del", "details", "div", "dl", "dt", "em", "li", "mark", "ol", "p", "pre",
    "span", "strong", "style", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul",
})  # fmt: skip
"""What a page is made of."""

CLASSES = re.compile(r"thinkwell-run|tw-[a-z0-9_-]+( tw-[a-z0-9_-]+)*")


class Page(HTMLParser):
    """A page that was read. It fails by everything that is not ours."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        """What is written on it, without the style."""
        self.unfolded = 0
        """How many ``details`` are open."""
        self.elements: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS, tag
        for name, value in attrs:
            match name:
                case "class":
                    assert CLASSES.fullmatch(value or ""), value
                case "open":
                    assert (tag, value) == ("details", None)
                    self.unfolded += 1
                case _:
                    assert (tag, name) == ("ol", "start")
                    assert (value or "").isdecimal(), value
        self.elements.append(tag)
        self._open.append(tag)
        if tag in ("dd", "div", "dt", "li", "p", "pre", "summary", "tr"):
            self.text += "\n"

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)

    @property
    def lines(self) -> list[str]:
        """The lines of the text that are not empty."""
        return [line.strip() for line in self.text.splitlines() if line.strip()]
