"""Real browsers, driven from Python by way of Node.js."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debian_packages import find_program
from node_packages import node_command, node_environment

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ("Browser", "Tab", "browsing")

SCRIPTS = Path(__file__).with_name("script")
"""The driver of each browser, and what others run in the page."""


class Tab:
    """A tab of the browser. What is not found or does not come within some seconds fails."""

    def __init__(self, browser: Browser, number: int) -> None:
        self.browser = browser
        self.number = number

    def do(self, call: str, *given: Any) -> Any:
        """Call a method of Playwright's page, or a command of the driver."""
        return self.browser.do(self.number, call, *given)

    def go(self, url: str) -> None:
        self.do("goto", url)

    def reload(self) -> None:
        self.do("reload")

    def click(self, selector: str) -> None:
        self.do("click", selector)

    def press(self, key: str) -> None:
        self.do("keyboard.press", key)

    def type(self, selector: str, text: str) -> None:
        self.do("fill", selector, text)

    def choose(self, selector: str, value: str) -> None:
        self.do("selectOption", selector, value)

    def see(self, selector: str, *, attached: bool = False) -> None:
        """Wait until something can be seen, or is there at least."""
        self.do("waitForSelector", selector, {"state": "attached" if attached else "visible"})

    def miss(self, selector: str) -> None:
        """Wait until something cannot be seen, or is not there."""
        self.do("waitForSelector", selector, {"state": "hidden"})

    def until(self, expression: str) -> None:
        """Wait until an expression is true in the page."""
        self.do("until", expression)

    def value(self, expression: str) -> Any:
        """The value of an expression in the page."""
        return self.do("value", expression)

    def text(self, selector: str) -> str:
        """The text of the first such element."""
        text: str = self.do("innerText", selector)
        return text

    def texts(self, selector: str) -> list[str]:
        texts: list[str] = self.do("texts", selector)
        return texts

    def count(self, selector: str) -> int:
        number: int = self.do("count", selector)
        return number

    def shot(self, path: Path) -> None:
        """Take a picture of what can be seen."""
        self.do("shot", str(path))

    @property
    def problems(self) -> list[str]:
        """Errors, warnings, violations of the policy and dialogs since it was asked last."""
        problems: list[str] = self.do("problems")
        return problems

    @property
    def requests(self) -> list[str]:
        """What was requested since it was asked last."""
        requests: list[str] = self.do("requests")
        return requests


class Browser:
    """A browser. Tabs that are opened one by one share nothing: no cookies, nothing that is kept."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._ids = count(1)

    def do(self, tab: int | None, call: str, *given: Any) -> Any:
        number = next(self._ids)
        command = json.dumps({"id": number, "tab": tab, "call": call, "given": given})
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the driver has ended with {self._process.wait()}"
        said = json.loads(line)
        assert said["id"] == number
        assert "error" not in said, f"{call}{given}: {said['error']}"
        return said["value"]

    @contextmanager
    def tab(
        self, *, of: Tab | None = None, clean: bool = True, hurry: bool | None = None, **options: Any
    ) -> Generator[Tab]:
        """Open a tab for the time of a block.

        Args:
            of: The tab whose cookies it shares.
            clean: Whether nothing may have gone wrong in it.
            hurry: Whether the page waits for tenths of the seconds after which it tries something again. By
                default it does where something may go wrong.
            options: What Playwright's `newContext` takes.
        """
        options.setdefault("viewport", {"width": 1200, "height": 800})
        options["hurry"] = not clean if hurry is None else hurry
        tab = Tab(self, self.do(None, "open", {**options, "of": None if of is None else of.number}))
        try:
            yield tab
            if clean:
                assert tab.problems == []
        finally:
            tab.do("close")


@contextmanager
def browsing(
    folder: Path, name: str = "chromium", *flags: str, fonts: Path | None = None
) -> Generator[Browser]:
    """Start a browser for the time of a block.

    Args:
        folder: Where it keeps what it needs while it runs.
        name: The program that it is. With ``firefox-esr``, tabs have few of their methods.
        flags: What Chromium is given besides.
        fonts: A configuration of fontconfig; by default it has the fonts of the machine.
    """
    program = find_program(name)
    environment = node_environment({**program.env, "TMPDIR": str(folder), "HOME": str(folder)})
    # It begins and ends processes as it likes, which no case has to answer for.
    environment.pop("SUITE_WORKER", None)
    if fonts is not None:
        environment["FONTCONFIG_FILE"] = str(fonts)
    process = subprocess.Popen(
        node_command(SCRIPTS / f"{name}.mjs", program.path, *flags),
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        yield Browser(process)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()  # it ends the browser then, and itself
        try:
            process.wait(20)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
