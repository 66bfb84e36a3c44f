"""The application as a whole: by itself, in another program, and with somebody at the door."""

from __future__ import annotations

import json
import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from real_servers import SERVERS, ServerKind, backend_of, listening
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from web_stage import Client, hello, scripted_agent, served, started

from thinkwell.web import Access, RunServer, web_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, MutableMapping

    from anyio.abc import SocketStream
    from scripted import Turn
    from starlette.middleware.base import RequestResponseEndpoint
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send


ADA, BOB = "ada-has-this-token-1", "bob-has-this-token-2"


def server_of(*scripts: Any) -> RunServer:
    return RunServer({"scripted": scripted_agent(*(scripts or (hello,)))[0]})


# In another program


class Login:
    """Middleware of another program's: it knows who asks."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        scope["state"]["caller"] = headers.get(b"x-user", b"nobody").decode()
        await self._app(scope, receive, send)


async def own_page(request: Request) -> PlainTextResponse:
    return PlainTextResponse("mine")


@asynccontextmanager
async def around(server: RunServer, path: str = "/agents") -> AsyncGenerator[Client]:
    """A program that has the application under a path, and enters the server itself."""
    program = Starlette(
        routes=[Route("/", own_page), Mount(path, web_app(server, page=False))],
        middleware=[Middleware(Login)],
    )
    async with server:
        yield Client(program)


@pytest.mark.parametrize("path", ["/agents", "/a/b"])
async def test_it_is_mounted_under_a_path(path: str) -> None:
    async with around(server_of(), path) as client:
        assert await (await client.get("/")).body() == b"mine"
        answered = await client.post(f"{path}/api/runs", {"prompt": "Go."})
        assert answered.status == 201
        run = answered.headers["location"]
        assert run.startswith(f"{path}/api/runs/run-")
        assert (await client.events(f"{run}/events"))[-1].event == "end"
        assert (await client.get(run)).status == 200
        document = await (await client.get(f"{path}/api/openapi.json")).json()
        assert document["servers"] == [{"url": path}]
        assert (await client.get("/api/runs")).status == 404


async def test_the_program_around_tells_callers_apart() -> None:
    async with around(server_of()) as client:
        answered = await client.post("/agents/api/runs", {"prompt": "Go."}, headers={"x-user": "ada"})
        run = answered.headers["location"]
        assert (await (await client.get("/agents/api", headers={"x-user": "ada"})).json())["caller"] == "ada"
        assert (await client.get(run, headers={"x-user": "ada"})).status == 200
        assert (await client.get(run, headers={"x-user": "bob"})).status == 404
        listed = await (await client.get("/agents/api/runs", headers={"x-user": "bob"})).json()
        assert listed == {"runs": [], "next": None}


async def test_a_server_that_the_program_around_has_not_entered() -> None:
    program = Starlette(routes=[Mount("/agents", web_app(server_of()))])
    answered = await Client(program).post("/agents/api/runs", {"prompt": "Go."})
    assert answered.status == 503
    assert (await answered.json())["error"]["code"] == "unavailable"


# Its lifespan


@pytest.fixture
def life() -> Life:
    return Life()


class Life:
    """What a server says to an application of its beginning and end."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.over = anyio.Event()
        self.sent: list[str] = []

    async def of(self, app: ASGIApp) -> None:
        await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, self.receive, self.send)

    async def receive(self) -> MutableMapping[str, Any]:
        if not self.sent:
            return {"type": "lifespan.startup"}
        await self.over.wait()
        return {"type": "lifespan.shutdown"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.sent.append(message["type"])
        self.started.set()


@pytest.mark.parametrize("access", [None, Access({ADA: "ada"})])
async def test_its_lifespan_enters_the_server(life: Life, access: Access | None) -> None:
    server = server_of()
    app = web_app(server, access=access)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(life.of, app)
        with anyio.fail_after(5):
            await life.started.wait()
        assert server.is_open
        assert (await Client(app).get("/healthz")).status == 200
        life.over.set()
    assert not server.is_open
    assert life.sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_its_lifespan_leaves_a_server_alone_that_is_entered_already(life: Life) -> None:
    async with server_of() as server:
        app = web_app(server)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(life.of, app)
            life.over.set()
        assert server.is_open
    assert life.sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


# Who may


async def test_callers_are_known_by_their_tokens_and_see_their_own_runs() -> None:
    async with served(hello) as stage:
        app = web_app(stage.server, access=Access({ADA: "ada", BOB: "bob"}))
        ada = Client(app, headers={"authorization": f"Bearer {ADA}"})
        bob = Client(app, headers={"authorization": f"Bearer {BOB}"})
        nobody = Client(app)
        run = (await ada.post("/api/runs", {"prompt": "Go."})).headers["location"]
        assert (await (await ada.get(run)).json())["run"]["caller"] == "ada"
        assert (await ada.events(f"{run}/events"))[-1].event == "end"
        for path in ("", "/events"):
            assert (await bob.get(run + path)).status == 404
        answered = await nobody.get(run)
        assert answered.status == 401
        assert answered.headers["www-authenticate"].startswith("Bearer")
        assert (await nobody.get("/healthz")).status == 200


async def test_a_browser_watches_with_a_cookie() -> None:
    async with served(hello) as stage:
        app = web_app(stage.server, access=Access({ADA: "ada"}))
        browser = Client(app, headers={"origin": "http://127.0.0.1:8283"})
        answered = await browser.post("/api/session", {"secret": ADA})
        assert answered.status == 204
        cookie = answered.headers["set-cookie"].partition(";")[0]
        run = (await browser.post("/api/runs", {"prompt": "Go."}, headers={"cookie": cookie})).headers[
            "location"
        ]
        source = Client(app, headers={"cookie": cookie, "sec-fetch-site": "same-origin"})
        assert (await source.events(f"{run}/events"))[-1].event == "end"
        answered = await browser.get("/api/session", headers={"cookie": cookie})
        assert (answered.status, answered.headers["allow"]) == (405, "DELETE, POST")


# Time


@pytest.mark.virtual_time
class TestTime:
    """With a clock that jumps."""

    async def test_silence_is_broken_while_an_agent_thinks(self) -> None:
        async def think(turn: Turn) -> None:
            await anyio.sleep(40)
            turn.say("Hello.")

        async with served(think) as stage:
            client = Client(web_app(stage.server))
            run = (await client.post("/api/runs", {"prompt": "Go."})).headers["location"]
            async with client.stream("GET", f"{run}/events?include=message") as answered:
                text = b"".join([chunk async for chunk in answered.chunks])
        assert text.count(b": keep-alive\n\n") == 2
        assert text.index(b": keep-alive") < text.index(b"Hello.")

    @pytest.mark.parametrize("access", [None, Access({ADA: "ada"})], ids=["open", "guarded"])
    async def test_a_long_body_may_take_longer_and_no_body_may_take_forever(
        self, access: Access | None
    ) -> None:
        body = json.dumps({"prompt": "x" * 1_000_000}).encode()
        headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {ADA}".encode())]
        scope: Scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/api/runs",
            "query_string": b"",
            "headers": headers,
        }
        async with served(hello) as stage:
            app = web_app(stage.server, access=access)

            async def answered(pause: float) -> tuple[int, float]:
                """Return the status, and the seconds until then, of a request that comes in pieces."""
                left = [body[begin : begin + 50_000] for begin in range(0, len(body), 50_000)]
                sent: list[MutableMapping[str, Any]] = []

                async def receive() -> MutableMapping[str, Any]:
                    await anyio.sleep(pause)
                    return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

                async def send(message: MutableMapping[str, Any]) -> None:
                    message["at"] = anyio.current_time()
                    sent.append(message)

                began = anyio.current_time()
                await app(scope, receive, send)
                if sent[0]["status"] == 408:
                    assert (b"connection", b"close") in sent[0]["headers"]
                    assert json.loads(sent[1]["body"])["error"]["code"] == "too_slow"
                return sent[0]["status"], sent[0]["at"] - began

            assert (await answered(4))[0] == 201
            for pause, most in ((9, 60), (math.inf, 30)):
                status, seconds = await answered(pause)
                assert (status, round(seconds)) == (408, most)


# Real servers


class TestServed:
    """Behind uvicorn and hypercorn."""

    @pytest.fixture(params=SERVERS)
    def kind(self, request: pytest.FixtureRequest) -> ServerKind:
        found: ServerKind = request.param
        return found

    @pytest.fixture
    def anyio_backend(self, kind: ServerKind) -> str:
        return backend_of(kind)

    async def test_a_run_from_its_start_to_its_end(self, kind: ServerKind) -> None:
        with anyio.fail_after(30):
            async with listening(web_app(server_of()), kind) as server:
                body = b'{"prompt": "Go."}'
                started = await _asked(await server.connect(), "POST", "/api/runs", body)
                assert started.startswith(b"HTTP/1.1 201 ")
                run = json.loads(started.rpartition(b"\r\n\r\n")[2])["run"]["id"]
                events = await _asked(await server.connect(), "GET", f"/api/runs/{run}/events")
                assert b"event: end\n" in events
                assert events.endswith(b"\r\n0\r\n\r\n")
                gone = await _asked(await server.connect(), "GET", f"/api/runs/{run}/events?after=9999")
                assert gone.startswith(b"HTTP/1.1 204 ")

    # On trio, BaseHTTPMiddleware of starlette before 1.9 leaves a generator behind.
    @pytest.mark.filterwarnings("ignore:Async generator 'starlette:ResourceWarning")
    async def test_a_stream_behind_what_programs_put_around_an_application(self, kind: ServerKind) -> None:
        class Noting(BaseHTTPMiddleware):
            async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
                request.state.caller = "ada"
                return await call_next(request)

        async def for_ever(turn: Turn) -> None:
            turn.say("I begin.")
            await anyio.sleep_forever()

        server = server_of(for_ever)
        app, over = web_app(server, page=False), anyio.Event()

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await app(scope, receive, send)
            finally:
                over.set()

        around = [Middleware(GZipMiddleware, minimum_size=1), Middleware(Noting)]
        program = Starlette(routes=[Mount("/agents", watched)], middleware=around)
        with anyio.fail_after(30):
            async with server, listening(program, kind) as address:
                run = await started(server, caller="ada")
                async with await address.connect() as connection:
                    head = f"GET /agents/api/runs/{run.id}/events HTTP/1.1\r\nHost: x\r\n"
                    await connection.send(f"{head}Accept-Encoding: gzip\r\n\r\n".encode())
                    text = b""
                    while b"I begin." not in text:
                        text += await connection.receive()
                await over.wait()
        assert b"content-encoding" not in text.lower()


async def _asked(connection: SocketStream, method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    answer = bytearray()
    async with connection:
        await connection.send(head.encode() + body)
        async for piece in connection:
            answer += piece
    return bytes(answer)
