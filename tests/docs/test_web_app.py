"""The page about web applications has one with a server of runs, and one by hand that does it all itself."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from builtin_stage import builtin_in_memory
from docs.pages import DOCS, snippets
from web_stage import Client

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, MutableMapping
    from pathlib import Path
    from typing import Any

    from starlette.applications import Starlette

PAGE = DOCS / "howto" / "web-app.md"


def source() -> str:
    """The program by hand."""
    (found,) = (code for _, code in snippets(PAGE) if code.startswith('"""Start runs'))
    return found


def mounting() -> str:
    """The program that mounts a server of runs."""
    return snippets(PAGE)[0][1]


class Browser:
    """Sends requests to an application, and reads answers as they come."""

    def __init__(self, app: Starlette, state: dict[str, Any]) -> None:
        self._app = app
        self._state = state

    @asynccontextmanager
    async def open(
        self, method: str, path: str, *, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> AsyncGenerator[Answer]:
        """Send a request. Leaving the block closes the connection."""
        answer = Answer()
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "headers": [(name.encode(), value.encode()) for name, value in (headers or {}).items()],
            "state": dict(self._state),
        }
        gone = anyio.Event()
        asked = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> MutableMapping[str, Any]:
            if asked:
                return asked.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._app, scope, receive, answer.send)
            await answer.begun.wait()
            yield answer
            gone.set()


class Answer:
    """What an application answers."""

    def __init__(self) -> None:
        self.status = 0
        self.begun = anyio.Event()
        self._parts: list[bytes] = []
        self._news = anyio.Event()
        self._ended = False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Take a message of the application."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.begun.set()
            return
        if message["body"]:  # the first is empty: it sends the head
            self._parts.append(message["body"])
        self._ended = not message.get("more_body")
        self._news.set()
        self._news = anyio.Event()

    async def part(self) -> str:
        """Wait for a piece of the answer."""
        while not self._parts:
            await self._news.wait()
        return self._parts.pop(0).decode()

    async def text(self) -> str:
        """Wait for the whole answer."""
        while not self._ended:
            await self._news.wait()
        return b"".join(self._parts).decode()


@pytest.fixture
async def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Browser]:
    """A browser, and the application that it talks to."""
    (tmp_path / "parser.py").write_text("def parse(text):\n    return text.split()\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    builtin_in_memory(monkeypatch)
    names: dict[str, Any] = {"__name__": "app"}
    exec(compile(source(), "app.py", "exec"), names)  # the page's own text
    with anyio.fail_after(60):
        async with names["lifespan"](names["app"]) as state:
            yield Browser(names["app"], state)


async def begin(browser: Browser, prompt: str) -> str:
    """Start a run and return its path."""
    async with browser.open("POST", "/runs", body=prompt.encode()) as answer:
        assert answer.status == 201
        return f"/runs/{json.loads(await answer.text())['run']}"


def sent(text: str) -> list[tuple[str, str]]:
    """The messages of a stream: their ids, or their names, and their data."""
    found = re.findall(r"(?:id|event): (.*)\ndata: (.*)\n\n", text)
    assert (
        "".join(f"{'id' if key.isdigit() else 'event'}: {key}\ndata: {data}\n\n" for key, data in found)
        == text
    )
    return found


async def test_two_browsers_follow_the_same_run(browser: Browser) -> None:
    path = await begin(browser, "What is in this folder?")
    async with browser.open("GET", path) as first, browser.open("GET", path) as second:
        one, other = await first.text(), await second.text()
    assert one == other
    *events, end = sent(one)
    assert end == ("end", "completed")
    assert [key for key, _ in events] == [str(json.loads(data)["seq"]) for _, data in events]
    assert "parser.py" in one


async def test_a_browser_that_comes_back_goes_on_where_it_was(browser: Browser) -> None:
    path = await begin(browser, "What is in this folder?")
    async with browser.open("GET", path) as answer:
        [(seen, _)] = sent(await answer.part())
    async with browser.open("GET", path, headers={"last-event-id": seen}) as answer:
        again = sent(await answer.text())
    async with browser.open("GET", path, headers={"last-event-id": "nonsense"}) as answer:
        whole = sent(await answer.text())
    assert whole[1:] == again
    assert whole[0][0] == seen


async def test_watchers_see_a_cancellation(browser: Browser) -> None:
    path = await begin(browser, "What is in this folder?")
    async with browser.open("DELETE", path) as answer:
        assert answer.status == 202
    async with browser.open("GET", path) as answer:
        assert sent(await answer.text())[-1] == ("end", "ThoughtCancelled")


async def test_a_run_that_was_not_started(browser: Browser) -> None:
    async with browser.open("GET", "/runs/none") as answer:
        assert answer.status == 404


async def test_users_of_an_application_have_runs_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THINKWELL_AGENT", "builtin")
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")
    names: dict[str, Any] = {"__name__": "app"}
    exec(compile(mounting(), "app.py", "exec"), names)  # the page's own text
    names["USERS"]["a-key-of-his-own"] = "bob"
    app = names["app"]
    ada = Client(app, headers={"x-key": "a-key-of-her-own"})
    bob = Client(app, headers={"x-key": "a-key-of-his-own"})
    with anyio.fail_after(60):
        async with names["lifespan"](app):
            assert await (await ada.get("/")).body() == b"Hello ada."
            assert (await Client(app).get("/agents/api/runs")).status == 401
            answered = await ada.post("/agents/api/runs", {"prompt": "What is in this folder?"})
            run = answered.headers["location"]
            assert (await ada.events(f"{run}/events"))[-1].json()["status"] == "completed"
            assert (await (await ada.get(run)).json())["run"]["caller"] == "ada"
            assert (await bob.get(run)).status == 404
            assert (await ada.get("/agents/")).status == 200  # the page
    assert (tmp_path / "runs.db").exists()


def test_a_server_that_is_to_end_waits_for_no_watcher(tmp_path: Path) -> None:
    """What is shown for a shell: the flag, and what is asked."""
    text = PAGE.read_text("utf-8")
    (flags,) = re.findall(r"^\$ uvicorn (.*) app:app$", text, re.MULTILINE)
    (tmp_path / "app.py").write_text(mounting(), "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = subprocess.Popen(
            [*(sys.executable, "-m", "uvicorn"), *flags.split(), "--fd", str(listener.fileno()), "app:app"],
            cwd=tmp_path,
            env={**os.environ, "THINKWELL_AGENT": "builtin", "THINKWELL_BUILTIN_PACE": "100"},
            pass_fds=[listener.fileno()],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            body = b'{"prompt": "What is in this folder?"}'
            key = "X-Key: a-key-of-her-own\r\n"
            run = json.loads(_request(listener, "POST", "/agents/api/runs", body, key))["run"]["id"]
            with socket.create_connection(listener.getsockname(), timeout=60) as watching:
                head = f"GET /agents/api/runs/{run}/events HTTP/1.1\r\nHost: localhost\r\n{key}\r\n"
                watching.sendall(head.encode())
                assert b"200 OK" in watching.recv(65536)
                process.terminate()
                process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode in (0, -15)


@pytest.mark.long
def test_it_is_served_as_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(source(), "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "uvicorn",
                "--fd",
                str(listener.fileno()),
                "--log-level",
                "warning",
                "app:app",
            ],
            cwd=tmp_path,
            env={**os.environ, "THINKWELL_AGENT": "builtin", "THINKWELL_BUILTIN_PACE": "0"},
            pass_fds=[listener.fileno()],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            run = json.loads(_request(listener, "POST", "/runs", b"What is in this folder?"))["run"]
            followed = _request(listener, "GET", f"/runs/{run}")
        finally:
            process.terminate()
            _, errors = process.communicate(timeout=30)
    assert followed.endswith(b"event: end\ndata: completed\n\n")
    assert errors == ""


def _request(listener: socket.socket, method: str, path: str, body: bytes = b"", headers: str = "") -> bytes:
    """Send a request and return the body of the answer; the connection waits until the server takes it."""
    with socket.create_connection(listener.getsockname(), timeout=60) as connection:
        head = f"{method} {path} HTTP/1.0\r\nHost: localhost\r\n{headers}"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    return answer.partition(b"\r\n\r\n")[2]
