"""A Chromium without a window, controlled over a pipe by the Chrome DevTools Protocol."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import tempfile
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncGenerator

CHROMIUM = "THINKWELL_BENCH_CHROMIUM"
"""Environment variable with the path of a Chromium."""

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

PATIENCE = 90.0
"""Seconds after which a page does not answer."""

PIPED = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1'
"""Starts a program with its pipe on the right descriptors: it reads 3 and writes 4."""

LOADED = """
new Promise(done => document.readyState === "complete" ? done() : addEventListener("load", () => done()))
"""

OPTIONS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-gpu",
)


def find_chromium() -> str | None:
    """The path of a Chromium; `None` if there is none."""
    found = (shutil.which(name) for name in NAMES)
    return os.environ.get(CHROMIUM) or next(filter(None, found), None)


class Tab:
    """A page of the browser."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session

    async def go(self, url: str) -> None:
        """Load a page."""
        said = await self._browser.call("Page.navigate", self._session, url=url)
        if "errorText" in said:
            raise SystemExit(f"the browser does not load {url}: {said['errorText']}")
        await self.value(LOADED)

    async def before(self, script: str) -> None:
        """Run a script in each page before the page's own."""
        await self._browser.call("Page.enable", self._session)
        await self._browser.call("Page.addScriptToEvaluateOnNewDocument", self._session, source=script)

    async def metrics(self) -> dict[str, float]:
        """The browser's own counts of the page, such as the seconds of its scripts."""
        await self._browser.call("Performance.enable", self._session)
        said = await self._browser.call("Performance.getMetrics", self._session)
        return {each["name"]: each["value"] for each in said["metrics"]}

    async def value(self, expression: str) -> Any:
        """The value of an expression in the page; of a promise, once it is resolved."""
        said = await self._browser.call(
            "Runtime.evaluate",
            self._session,
            expression=f"(async () => await ({expression}))()",
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in said:
            details = said["exceptionDetails"]
            raise SystemExit(details.get("exception", {}).get("description", details["text"]))
        return said["result"].get("value")


class Chromium:
    """A browser that does one thing at a time."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._numbers = count(1)

    async def call(self, method: str, session: str | None = None, **params: Any) -> Any:
        """Call a method of the browser, or of one of its pages."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        number = next(self._numbers)
        about = {} if session is None else {"sessionId": session}
        asked = {"id": number, "method": method, "params": params, **about}
        self._process.stdin.write(json.dumps(asked).encode() + b"\0")
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    said = json.loads((await self._process.stdout.readuntil(b"\0"))[:-1])
                    if said.get("id") == number:
                        break
        except TimeoutError:
            raise SystemExit(f"the browser does not answer {method} within {PATIENCE:g} s") from None
        except asyncio.IncompleteReadError:
            raise SystemExit(f"the browser ended, with status {await self._process.wait()}") from None
        if "error" in said:
            raise SystemExit(f"{method}: {said['error']['message']}")
        return said["result"]

    async def open(self) -> Tab:
        """Open an empty page."""
        target = await self.call("Target.createTarget", url="about:blank")
        attached = await self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        return Tab(self, attached["sessionId"])


@asynccontextmanager
async def started_chromium(program: str) -> AsyncGenerator[Chromium]:
    """Run a browser; no state is kept from one to the next."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # As root it does not run in its sandbox.
        options = [*OPTIONS, f"--user-data-dir={folder}", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            *("-c", PIPED, "sh", program, *options),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 24,
            start_new_session=True,
        )
        try:
            yield Chromium(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()  # it ends then
            try:
                async with asyncio.timeout(10):
                    await process.wait()
            except TimeoutError:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
