"""The guard before the whole application, behind real servers and with what clients can make of HTTP."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

import anyio
import httpx
import pytest
from real_servers import ONE_OR_ALL, Listening, ServerKind, backend_of, listening
from serve_access.guarded import ADA, BOB, access
from web_stage import scripted_agent

from thinkwell.web import Limits, RunServer, web_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from scripted import Turn

LIMIT = 30
END = "\r\n"


@pytest.fixture(params=ONE_OR_ALL)
def kind(request: pytest.FixtureRequest) -> ServerKind:
    """A server."""
    return cast("ServerKind", request.param)


@pytest.fixture
def anyio_backend(kind: ServerKind) -> str:
    """The event loop that it runs on."""
    return backend_of(kind)


async def says_and_waits(turn: Turn) -> None:
    turn.say("Hello")
    await anyio.sleep_forever()


@asynccontextmanager
async def behind(kind: ServerKind, **limits: int) -> AsyncGenerator[Listening]:
    """A server with an agent that says something, and does not end."""
    agent, _ = scripted_agent(says_and_waits, says_and_waits)
    server = RunServer({"scripted": agent}, limits=Limits(**limits))
    app = web_app(server, access=access(hosts=["think.example.org"]))
    with anyio.fail_after(LIMIT):
        async with listening(app, kind) as address:
            yield address


def client(address: Listening, token: str | None = None) -> httpx.AsyncClient:
    """Somebody with a token, or a browser."""
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return httpx.AsyncClient(base_url=address.url, headers=headers, timeout=LIMIT)


async def status(address: Listening, request: str) -> int:
    """Send what no client would, and return the status of the answer."""
    async with await address.connect() as stream:
        await stream.send(request.encode("latin-1"))
        answer = await stream.receive()
    return int(answer.split(b" ")[1])


async def test_who_gets_in(kind: ServerKind) -> None:
    async with behind(kind) as address, client(address, ADA) as ada, client(address) as browser:
        assert (await ada.get("/api")).json()["caller"] == "ada"
        refused = await browser.get("/api")
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        assert refused.headers["x-content-type-options"] == "nosniff"
        assert (await browser.head("/api")).status_code == 401
        assert (await browser.get("/healthz")).status_code == 200
        ours = {"origin": address.url}
        given = await browser.post("/api/session", json={"secret": BOB}, headers=ours)
        assert given.status_code == 204
        assert (await browser.get("/api", headers=ours)).json()["caller"] == "bob"
        assert (await browser.get("/api")).status_code == 403
        assert (await browser.post("/api/runs", json={"prompt": "Go."})).status_code == 403
        started = await browser.post("/api/runs", json={"prompt": "Go."}, headers=ours)
        assert started.status_code == 201
        path = started.headers["location"]
        assert (await browser.get(path, headers=ours)).status_code == 200
        assert (await ada.get(path)).status_code == 404, "it is another's"
        assert (await browser.delete("/api/session", headers=ours)).status_code == 204
        assert (await browser.get("/api", headers=ours)).status_code == 401


async def test_as_what_a_server_is_asked(kind: ServerKind) -> None:
    async with behind(kind) as address:
        here = f"127.0.0.1:{address.port}"
        head = f"Authorization: Bearer {ADA}\r\nConnection: close\r\n\r\n"

        async def asked(target: str, *lines: str) -> int:
            named = "".join(f"{line}{END}" for line in lines)
            return await status(address, f"GET {target} HTTP/1.1{END}{named}{head}")

        assert await asked("/api", f"Host: {here}") == 200
        assert await asked("/api", f"HOST:LocalHost.:{address.port}") == 200
        assert await asked("/api", "Host: think.example.org") == 200
        assert await asked(f"http://{here}/api", f"Host: {here}") == 200
        assert await asked("/api", "Host: evil.example.org") == 421
        assert await asked("/api", "Host: evil.example.org", f"X-Forwarded-Host: {here}") == 421
        assert await asked("http://evil.example.org/api", f"Host: {here}") == 421
        assert await asked("/api", f"Host: {here}", "Host: evil.example.org") == 400
        assert await asked("/api", f"Host: {here}, evil.example.org") == 400
        assert await asked("*", f"Host: {here}") == 400


async def test_how_much_is_taken(kind: ServerKind) -> None:
    async with behind(kind, max_request=1000) as address, client(address, ADA) as ada:
        assert (await ada.post("/api/runs", json={"prompt": "x" * 1000})).status_code == 413

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(5):
                yield b"x" * 400

        chunked = await ada.post("/api/runs", content=pieces(), headers={"content-type": "application/json"})
        assert chunked.status_code == 413
        assert chunked.json()["error"]["code"] == "too_large"
        head = f"POST /api/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADA}\r\n"
        assert await status(address, f"{head}Content-Length: 100000000000\r\n\r\n") == 413


async def test_how_many_may_watch(kind: ServerKind) -> None:
    async with behind(kind, max_watchers_per_caller=2) as address, client(address, ADA) as ada:
        started = await ada.post("/api/runs", json={"prompt": "Go."})
        events = f"{started.headers['location']}/events"
        async with ada.stream("GET", events) as first, ada.stream("GET", events) as second:
            assert (first.status_code, second.status_code) == (200, 200)
            async with client(address, ADA) as more:
                refused = await more.get(events)
                assert refused.status_code == 429
                assert refused.json()["error"]["code"] == "too_many_watchers"
                assert refused.headers["retry-after"] == "5"
        again = 429
        while again == 429:  # until the server has learned that they have gone
            again = await status_of_stream(ada, events)
        assert again == 200


async def status_of_stream(ada: httpx.AsyncClient, path: str) -> int:
    async with ada.stream("GET", path) as response:
        return response.status_code
