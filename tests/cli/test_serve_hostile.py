"""What comes to ``thinkwell serve`` that no client sends, and what its log says of it."""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli.serve_process import ADA, BOB, Web, serving_web, started, watched
from cli.typing_in import LIMIT, home, scripted
from warm import TRUE

from thinkwell.testing import script

if sys.platform == "win32":
    pytest.skip("signals of POSIX systems", allow_module_level=True)

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ("home",)


pytestmark = pytest.mark.xdist_group("hostile")


@pytest.fixture(scope="module")
def web() -> Generator[Web]:
    """A server for all, who start no runs."""
    with serving_web("--agent", "builtin", "--journal", "memory") as web:
        yield web


@pytest.fixture
def talkative(home: Path) -> Generator[Web]:
    """A server that tells of every request."""
    with serving_web("--agent", "builtin", "--journal", "memory", "--verbose") as web:
        yield web


def sent(web: Web, request: str) -> bytes:
    """Send something, and return all that is answered until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", web.port), LIMIT) as connection:
        connection.sendall(request.encode("latin-1"))
        pieces: list[bytes] = []
        while piece := connection.recv(65_536):
            pieces.append(piece)
    return b"".join(pieces)


def statuses(answers: bytes) -> list[int]:
    """Return the statuses of all answers on a connection."""
    parts = answers.split(b"HTTP/1.1 ")[1:]
    return [int(part[:3]) for part in parts]


def test_hosts(web: Web) -> None:
    here = f"127.0.0.1:{web.port}"
    expected = {
        200: (
            here,
            "LOCALHOST",
            "localhost.",
            "localhost:",
            "[::1]",
            "[0:0:0:0:0:0:0:1]:1",
            "[::ffff:127.0.0.1]",
        ),
        421: ("localhost.evil.com", "127.0.0.1.nip.io", "0.0.0.0", "[::]", "[fe80::1]", "evil.localhost"),
        400: (
            *(f"{here}@evil.com", f"evil.com@{here}", f"{here}:80", "::1", "[::1%25lo]", "[::1%lo]"),
            *("localhost..", "127.1", "0x7f.1", "2130706433", "127.0.0.01", "localhost:0", "localhost:65536"),
            *("localhost#evil.com", "localhost?", "localhost/", "localhost\\evil.com", "localhost, evil.com"),
            *("localhost evil.com", "127.0.0.1%00.evil.com", "localhost\x00", "loc\xe4lhost", ""),
        ),
    }
    for status, hosts in expected.items():
        for host in hosts:
            head = f"Host: {host}\r\nAuthorization: Bearer {web.secret}\r\nConnection: close\r\n\r\n"
            assert statuses(sent(web, f"GET /api HTTP/1.1\r\n{head}")) == [status], host


def test_targets(web: Web) -> None:
    here = f"127.0.0.1:{web.port}"
    head = f"Authorization: Bearer {web.secret}\r\nConnection: close\r\n\r\n"

    def status(target: str, *hosts: str, version: str = "1.1") -> int:
        lines = "".join(f"Host: {host}\r\n" for host in hosts)
        (status,) = statuses(sent(web, f"GET {target} HTTP/{version}\r\n{lines}{head}"))
        return status

    assert status("/api", here) == 200
    assert status(f"http://{here}/api", here) == 200
    assert status("http://evil.example.org/api", here) == 421
    assert status(f"http://{here}/api", "evil.example.org") == 421
    assert status("/api", here, "evil.example.org") == 400
    assert status("/api") == 400
    assert status("*", here) == 400
    assert status("/api", version="1.0") == 400


BODIES = {
    "both lengths": "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "a signed length": "Content-Length: +5\r\n\r\nhello",
    "a negative length": "Content-Length: -1\r\n\r\n",
    "an unknown coding": "Transfer-Encoding: xchunked\r\n\r\nhello",
    "codings": "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "a blank before the colon": "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a lone carriage return": "X-Other: a\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk of no length": "Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
    "a chunk of any length": f"Transfer-Encoding: chunked\r\n\r\n{'F' * 21}\r\nhello\r\n",
}
"""Lengths on which a proxy before the server may not agree with it."""


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_no_request_hides_in_another(body: str, web: Web) -> None:
    head = f"Host: localhost\r\nAuthorization: Bearer {web.secret}\r\n"
    answers = sent(
        web, f"POST /api/runs HTTP/1.1\r\n{head}{body}GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    )
    assert statuses(answers) == [400], "and the connection is closed"


@pytest.mark.parametrize(
    ("target", "anybody", "known"),
    [
        ("/healthz?x", 200, 200),
        ("/%61pi", 401, 200),
        ("/api%2Fruns", 401, 200),
        *(
            (target, 401, 404)
            for target in ("/api/../healthz", "/healthz/../api", "//api", "/./api", "/api/")
        ),
        *(
            (target, 401, 404)
            for target in ("/API", "/api;x", "/api%00", "/healthz%3f", "/healthz#x", "/\\api")
        ),
        *((target, 401, 404) for target in ("/page.js/../../etc/passwd", "/api/runs/..%2f..%2fetc/passwd")),
        *(
            (target, 401, 404)
            for target in ("/api/runs/%00", "/api/runs/a%0d%0aX:y", f"/api/runs/{'a' * 9000}")
        ),
    ],
)
def test_paths(target: str, anybody: int, known: int, web: Web) -> None:
    head = "Host: localhost\r\nConnection: close\r\n"
    assert statuses(sent(web, f"GET {target} HTTP/1.1\r\n{head}\r\n")) == [anybody]
    told = f"Authorization: Bearer {web.secret}\r\n"
    assert statuses(sent(web, f"GET {target} HTTP/1.1\r\n{head}{told}\r\n")) == [known]


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data", ""]
)
@pytest.mark.parametrize("origin", ["null", "http://evil.example.org", "http://localhost:1", "own"])
def test_a_form_of_a_page_does_not_log_in(kind: str, origin: str, web: Web) -> None:
    body = json.dumps({"secret": web.secret})
    origin = f"http://localhost:{web.port}" if origin == "own" else origin
    head = f"Host: localhost:{web.port}\r\nOrigin: {origin}\r\nContent-Type: {kind}\r\nConnection: close\r\n"
    answer = sent(web, f"POST /api/session HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}")
    assert statuses(answer) == [415 if origin.endswith(str(web.port)) else 403]
    assert b"set-cookie" not in answer.lower()


# What is told


def test_no_request_writes_lines_into_the_log(talkative: Web) -> None:
    web = talkative
    head = "Host: localhost\r\nConnection: close\r\n\r\n"
    sent(web, f"GET /api/a%0aError:%20all%20is%20lost%0d%1b[2J HTTP/1.1\r\n{head}")
    told = web.until_told("GET /api/a")
    assert told.startswith("Info: GET /api/a Error: all is lost")
    assert told.endswith(": 401")
    assert "\x1b" not in told


def test_no_log_has_a_secret(talkative: Web) -> None:
    web = talkative
    assert web.secret is not None
    head = f"Host: localhost\r\nAuthorization: Bearer {web.secret}\r\nCookie: thinkwell={web.secret}\r\n"
    sent(web, f"GET /api?secret={web.secret} HTTP/1.1\r\n{head}Connection: close\r\n\r\n")
    sent(web, f"GET /?secret={web.secret}#secret={web.secret} HTTP/1.1\r\n{head}Connection: close\r\n\r\n")
    sent(web, f"GET /api HTTP/1.1\r\nX: {web.secret}\x00\r\n{head}\r\n")
    with web.client() as client:
        assert client.post("/api/session", json={"secret": web.secret}).status_code == 204
        assert client.post("/api/runs", json={"prompt": "Go.", "secret": web.secret}).status_code == 422
        assert watched(client, started(client))[-1]["status"] == "completed"
    ready = len(web.told)
    assert web.end_with(signal.SIGTERM) == 143
    assert any("Info: POST /api/session: 204" in line for line in web.told)
    assert not any(web.secret in line for line in web.told[ready:])


def test_an_agent_does_not_find_the_token(home: Path) -> None:
    agent = shlex.split(scripted(home, script.says("Hi.")))
    looks = (
        "import json, os, sys\n"
        "seen = {'own': dict(os.environ), 'of': os.stat(f'/proc/{os.getppid()}/environ').st_uid}\n"
        "json.dump(seen, open('seen.json', 'w'))\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = shlex.join([sys.executable, "-c", looks, *agent])
    env = {
        "ADAS_TOKEN": ADA,
        "THINKWELL_SERVE_TOKEN": BOB,
        "THINKWELL_SERVE_REDIS": "redis://:word@localhost",
    }
    agents = f"[agents.a]\ncommand = {json.dumps(command)}\n"
    config = f'journal = "memory"\n[callers.ada]\ntoken_env = "ADAS_TOKEN"\n{agents}'
    with serving_web(config=config, env=env) as web, web.client(ADA) as client:
        assert watched(client, started(client))[-1]["result"] == "Hi."
    seen = json.loads(Path("seen.json").read_text("utf-8"))
    assert not {*env.values()} & {*seen["own"].values()}
    assert "PATH" in seen["own"]
    assert seen["of"] == 0, "only root may look there"


@pytest.mark.skipif(sys.platform != "linux", reason="a call of Linux")
def test_what_is_private_stays_that_for_the_server_alone(home: Path) -> None:
    notes = "import ctypes\nwith open({!r}, 'a') as file: print(ctypes.CDLL(None).prctl(3), file=file)"
    watched_server = (
        "import runpy, sys\n"
        f"looks = compile({notes.format('server.txt')!r}, 'looks', 'exec')\n"
        "sys.addaudithook(lambda event, _: event == 'subprocess.Popen' and exec(looks))\n"
        "runpy.run_module('thinkwell', run_name='__main__', alter_sys=True)"
    )
    looks = f"{notes.format('agent.txt')}\nimport os, sys; os.execv(sys.argv[1], sys.argv[1:])"
    agent = shlex.split(scripted(home, script.says("Hi.")))
    command = shlex.join([sys.executable, "-c", looks, *agent])
    program = [sys.executable, "-W", "error", "-c", watched_server]
    with (
        serving_web("--journal", "memory", "--command", command, program=program) as web,
        web.client() as client,
    ):
        assert watched(client, started(client))[-1]["result"] == "Hi."
    assert {*Path("server.txt").read_text("utf-8").split()} == {"0"}, "when it starts an agent"
    assert Path("agent.txt").read_text("utf-8").split() == ["1"]


# How many may be connected


@pytest.mark.parametrize(
    ("soft", "hard", "files", "most"),
    [
        pytest.param(64, 4096, 769, 513, marks=pytest.mark.long),
        pytest.param(2000, 4096, 2000, 513, marks=pytest.mark.long),
        pytest.param(64, 512, 512, 256, marks=pytest.mark.long),
        (64, 128, 128, 1),
    ],
)
def test_as_many_connections_as_there_may_be_files(
    soft: int, hard: int, files: int, most: int, home: Path
) -> None:
    limited = [
        "sh",
        "-c",
        f'ulimit -S -n {soft} && ulimit -H -n {hard} && exec "$@"',
        "sh",
        TRUE,
        "-m",
        "thinkwell",
    ]
    asks = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    arguments = ("--agent", "builtin", "--journal", "memory")
    with (
        serving_web(*arguments, config="[limits]\nmax_watchers = 1\n", program=limited) as web,
        ExitStack() as silent,
    ):
        if sys.platform == "linux":
            limits = Path(f"/proc/{web.process.pid}/limits").read_text("utf-8")
            assert re.findall(r"Max open files +(\d+) +(\d+)", limits) == [(str(files), str(hard))]
        for _ in range(most - 2):
            silent.enter_context(socket.create_connection(("127.0.0.1", web.port), LIMIT))
        if most > 1:
            assert statuses(sent(web, asks)) == [200]
            silent.enter_context(socket.create_connection(("127.0.0.1", web.port), LIMIT))
        assert statuses(sent(web, asks)) == [503], "one too many"
