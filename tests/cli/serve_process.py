"""``thinkwell serve`` as a program, and a client of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
from cli.running import Running, given_up
from cli.typing_in import LIMIT, thinkwell

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

__all__ = ("ADA", "BOB", "Watching", "Web", "serving_web")

ADA = "ada-has-this-token-1"
BOB = "bob-has-this-token-2"


class Watching:
    """Somebody who watches a run."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.iter_lines()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The entries, each when it comes."""
        for line in self._lines:
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))

    def until(self, kind: str) -> dict[str, Any]:
        """Wait for an entry of a type."""
        return next(entry for entry in self if entry["type"] == kind)


class Web(Running):
    """``thinkwell serve``, running."""

    secrets = (ADA, BOB)

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__(process)
        self.url = ""
        self.secret: str | None = None
        """The one that it has printed."""

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def client(self, token: str | None = None, **options: Any) -> httpx.Client:
        """A program that has a token, by default the printed one."""
        token = token or self.secret
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=LIMIT, verify=False, **options)


@contextmanager
def serving_web(
    *arguments: str,
    config: str = "",
    ready: bool = True,
    env: dict[str, str] | None = None,
    program: Sequence[str] | None = None,
) -> Generator[Web]:
    """Run the command for the time of a block, on any port.

    Args:
        arguments: Of the command.
        config: What its file says, if it shall have one.
        ready: Whether to wait until it takes requests.
        env: What the environment has besides.
        program: What to start as the command, in the place of a warm one.
    """
    if config:
        Path("serve.toml").write_text(config, "utf-8")
        arguments = ("--config", "serve.toml", *arguments)
    with (
        subprocess.Popen(
            [*(program or thinkwell()), "serve", "--port", "0", *arguments],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**{k: v for k, v in os.environ.items() if k != "THINKWELL_SERVE_TOKEN"}, **(env or {})},
            encoding="utf-8",
        ) as process,
        given_up(process),
    ):
        web = Web(process)
        if ready:
            line = web.until_told("Ready at ")
            web.url, _, secret = line.split(" ")[2].partition("#secret=")
            web.secret = secret or None
        yield web
        if process.poll() is None:
            assert web.end_with(signal.SIGTERM) == 143


def started(client: httpx.Client, prompt: str = "Go.", **request: Any) -> str:
    """Start a run, and return its id."""
    answer = client.post("/api/runs", json={"prompt": prompt, **request})
    assert answer.status_code == 201, answer.text
    run_id: str = answer.json()["run"]["id"]
    return run_id


@contextmanager
def watching(client: httpx.Client, run_id: str, **options: Any) -> Generator[Watching]:
    """Watch a run for the time of a block."""
    with client.stream("GET", f"/api/runs/{run_id}/events", **options) as response:
        assert response.status_code == 200, response.read()
        yield Watching(response)


def watched(client: httpx.Client, run_id: str, **options: Any) -> list[dict[str, Any]]:
    """Watch a run to its end, or until the server lets go."""
    with watching(client, run_id, **options) as watching_it:
        return list(watching_it)
