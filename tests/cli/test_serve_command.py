"""``thinkwell serve`` as a program, with clients on a port of this machine."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from cli.serve_process import ADA, BOB, Watching, Web, serving_web, started, watched, watching
from cli.typing_in import LIMIT, home, scripted

from thinkwell.testing import Script, script

if TYPE_CHECKING:
    from collections.abc import Sequence

if sys.platform == "win32":
    pytest.skip("signals of POSIX systems", allow_module_level=True)

from cli.terminal import processes_with

__all__ = ("home",)


def play(home: Path, played: Script) -> tuple[str, str]:
    """Return the options for an agent that plays a script."""
    return "--command", scripted(home, played)


def raw(web: Web, request: str) -> str:
    """Send what no client would, and return the first line of the answer."""
    with socket.create_connection(("127.0.0.1", web.port), LIMIT) as connection:
        connection.sendall(request.encode())
        answer = connection.recv(65_536).decode()
    return answer.partition("\r\n")[0]


def test_from_the_first_run_to_the_end(home: Path) -> None:
    with serving_web("--agent", "builtin") as web:
        assert web.told[0].startswith("Serving builtin. Runs are kept in ")
        assert web.told[0].endswith("runs.db. Ctrl-C ends it.")
        assert web.secret is not None
        assert len(web.secret) == 43
        with web.client() as client:
            about = client.get("/api").json()
            assert about["caller"] == "operator"
            assert [agent["name"] for agent in about["agents"]] == ["builtin"]
            run_id = started(client, "What does parser.py do?")
            entries = watched(client, run_id)
            assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1))
            assert entries[-1]["status"] == "completed"
            assert "parser.py" in entries[-1]["result"]
            assert watched(client, run_id, params={"after": len(entries) - 2}) == entries[-2:]
            assert client.get("/api/runs").json()["runs"][0]["id"] == run_id
        assert web.end_with(signal.SIGTERM) == 143
    assert len(web.told) == 2, "nothing is said of what went well"
    assert processes_with(str(home)) == []
    (file,) = home.parent.rglob("runs.db")
    assert (file.stat().st_mode | file.parent.stat().st_mode) & 0o077 == 0, (
        "only their owner may read the runs"
    )


def test_a_browser_gives_the_printed_secret(home: Path) -> None:
    with serving_web() as web, httpx.Client(base_url=web.url) as browser:
        ours = {"origin": web.url.rstrip("/"), "sec-fetch-site": "same-origin"}
        assert browser.get("/healthz").json() == {"status": "ok"}
        assert browser.get("/api").status_code == 401
        assert browser.post("/api/session", json={"secret": "wrong"}, headers=ours).status_code == 401
        given = browser.post("/api/session", json={"secret": web.secret}, headers=ours)
        assert given.status_code == 204
        assert f"thinkwell-{web.port}=" in given.headers["set-cookie"]
        assert browser.get("/api", headers=ours).json()["caller"] == "operator"
        assert browser.get("/api").status_code == 403
        assert browser.post("/api/runs", json={"prompt": "Go."}, headers=ours).status_code == 201
        assert browser.post("/api/runs", json={"prompt": "Go."}).status_code == 403
        evil = {"origin": "http://localhost:3000"}
        assert browser.post("/api/runs", json={"prompt": "Go."}, headers=evil).status_code == 403
        assert browser.delete("/api/session", headers=ours).status_code == 204
        assert browser.get("/api", headers=ours).status_code == 401


def test_who_does_not_get_in(home: Path) -> None:
    with serving_web(env={"THINKWELL_SERVE_TOKEN": ADA}) as web:
        assert web.told[-1] == f"Ready at {web.url} for callers with the token of operator"
        with web.client(ADA) as client:
            assert client.get("/api").status_code == 200
            for host in ("evil.example.org", "evil.example.org:80", "0.0.0.0", f"127.0.0.1.evil:{web.port}"):
                assert client.get("/api", headers={"host": host}).status_code == 421
            forged = {
                "host": "evil.example.org",
                "x-forwarded-host": "localhost",
                "forwarded": "host=localhost",
            }
            assert client.get("/", headers=forged).status_code == 421
            assert client.get("/api", headers={"host": f"LOCALHOST.:{web.port}"}).status_code == 200
            evil = {"origin": "https://evil.example.org"}
            assert client.post("/api/runs", json={"prompt": "Go."}, headers=evil).status_code == 403
            assert "access-control-allow-origin" not in client.get("/api", headers=evil).headers
        with web.client(BOB) as client:
            statuses = [client.get("/api").status_code for _ in range(12)]
            assert statuses == [401] * 10 + [429] * 2
            refused = client.post("/api/session", json={"secret": "guessed"})
            assert refused.status_code == 429
            assert 0 < int(refused.headers["retry-after"]) <= 60
        with web.client(ADA) as client:
            assert client.get("/api").status_code == 200, "others guess, and are not let in for her"
        web.until_told("Warning: A client at 127.0.0.1 guesses secrets, or has an old one")


def test_what_is_too_long_is_not_taken(home: Path) -> None:
    with serving_web("--verbose", config="[limits]\nmax_request = 1000\n") as web, web.client() as client:
        answer = client.post("/api/runs", json={"prompt": "x" * 1000})
        assert answer.status_code == 413
        pieces = (b"x" * 400 for _ in range(10))
        answer = client.post("/api/runs", content=pieces, headers={"content-type": "application/json"})
        assert answer.status_code == 413
        head = f"POST /api/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {web.secret}\r\n"
        assert raw(web, f"{head}Content-Length: 100000000000\r\n\r\n").split(" ")[1] == "413"
        assert client.get("/api", params={"token": "in-a-query"}).status_code == 200
        web.until_told("Info: GET /api: 200")
        assert not any("in-a-query" in line for line in web.told)


# How it ends


def test_watchers_are_released_at_the_end(home: Path) -> None:
    with serving_web(*play(home, script.says("So far, so good").hangs())) as web, ExitStack() as stack:
        client = stack.enter_context(web.client(limits=httpx.Limits(max_connections=None)))
        run_id = started(client)
        all_of_them = [stack.enter_context(watching(client, run_id)) for _ in range(30)]
        for one in all_of_them:
            assert one.until("message")["text"] == "So far, so good"
        with ThreadPoolExecutor(30) as pool:
            web.send(signal.SIGTERM)
            kinds = list(pool.map(kinds_of, all_of_them))
        assert not any("end" in each for each in kinds), "the run is not over for them"
        assert web.end() == 143
    assert processes_with(str(home)) == []
    with serving_web("--agent", "builtin") as web, web.client() as client:
        entries = watched(client, run_id)
        assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1))
        assert entries[-1]["type"] == "end"
        assert entries[-1]["status"] == "interrupted"
        assert client.get("/api/runs", params={"status": "running"}).json()["runs"] == []


def kinds_of(watching_it: Watching) -> list[str]:
    """Return of which types the entries are that are still to come."""
    return [entry["type"] for entry in watching_it]


def test_a_second_signal_ends_it_at_once(home: Path) -> None:
    with serving_web(*play(home, script.says("Hm").hangs(deaf=True))) as web, web.client() as client:
        with watching(client, started(client)) as one:
            one.until("message")
            web.send(signal.SIGINT)
            list(one)
        assert web.end_with(signal.SIGINT) == 130
    assert processes_with(str(home)) == []


@pytest.mark.parametrize("signals", [(signal.SIGTERM,), (signal.SIGINT, signal.SIGTERM)], ids=str)
def test_a_client_that_never_ends_its_request(signals: Sequence[signal.Signals], home: Path) -> None:
    with serving_web("--journal", "memory") as web:
        head = f"POST /api/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {web.secret}\r\n"
        with socket.create_connection(("127.0.0.1", web.port), LIMIT) as connection:
            connection.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
            with web.client() as client:
                assert client.get("/healthz").status_code == 200
            for number in signals:
                web.send(number)
            assert web.end() in [128 + number for number in signals]
    assert len(web.told) == 2


def test_two_signals_at_once(home: Path) -> None:
    with serving_web(*play(home, script.says("Hm").hangs(deaf=True))) as web, web.client() as client:
        with watching(client, started(client)) as one:
            one.until("message")
            web.send(signal.SIGINT)
            web.send(signal.SIGTERM)
            with suppress(httpx.TransportError):  # it is cut off
                list(one)
        assert web.end() in (130, 143)
    assert processes_with(str(home)) == []


def test_an_agent_that_does_not_want_to_end(home: Path) -> None:
    with serving_web(*play(home, script.says("Hm").hangs(deaf=True))) as web, web.client() as client:
        with watching(client, started(client)) as one:
            one.until("message")
        assert web.end_with(signal.SIGINT) == 130
    assert processes_with(str(home)) == []


def test_a_signal_while_an_agent_starts(home: Path) -> None:
    waits = f"{sys.executable} -c 'import time; time.sleep(600)  # {home}'"
    with serving_web("--command", waits) as web, web.client() as client:
        started(client)
        while len(processes_with(str(home))) < 2:  # the command, and what it has started
            assert client.get("/healthz").status_code == 200
        assert web.end_with(signal.SIGTERM) == 143
    assert processes_with(str(home)) == []


def test_a_server_that_was_killed_leaves_its_runs_to_the_next_one(home: Path) -> None:
    options = ("--journal", "runs.db", *play(home, script.says("So far").hangs()))
    env = {"THINKWELL_SERVE_TOKEN": ADA}
    with serving_web(*options, env=env) as web, web.client(ADA) as client:
        run_id = started(client)
        with watching(client, run_id) as one:
            seen = one.until("message")["seq"]
            web.process.kill()
            assert web.end() == -signal.SIGKILL
    with serving_web(*options, env=env) as web, web.client(ADA) as client:
        web_told = web.told[0]
        assert run_id in web_told
        assert "interrupted" in web_told
        rest = watched(client, run_id, headers={"last-event-id": str(seen)})
        assert rest[-1]["status"] == "interrupted"
        assert [entry["seq"] for entry in rest] == list(range(seen + 1, seen + 1 + len(rest)))


def test_an_agent_that_was_killed_is_started_again(home: Path) -> None:
    with serving_web(*play(home, script.says("First.").hangs())) as web, web.client() as client:
        for _ in range(2):
            with watching(client, started(client)) as one:
                assert one.until("message")["text"] == "First."
                os.kill(agent_pid(home), signal.SIGKILL)
                end = one.until("end")
            assert end["status"] == "failed"
            assert end["error"]["name"] == "AgentExited"
            assert str(home) not in json.dumps(end)
        assert client.get("/healthz").status_code == 200


def test_only_the_operator_reads_what_an_agent_wrote_to_standard_error(home: Path) -> None:
    command = f"{sys.executable} -c 'import sys; sys.exit(\"no model\")'"
    for token in (None, ADA):
        env = {} if token is None else {"THINKWELL_SERVE_TOKEN": token}
        with serving_web("--command", command, env=env) as web, web.client(token) as client:
            error = watched(client, started(client))[-1]["error"]
            assert error.get("stderr") == ("no model" if token is None else None)
            assert error["exit_code"] == 1


def agent_pid(home: Path) -> int:
    """Return which process plays the script."""
    (pid,) = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if str(home).encode() in (words := path.read_bytes()) and b"thinkwell.testing" in words.split(b"\0")
    ]
    return pid


def test_standard_error_without_a_reader(home: Path) -> None:
    with serving_web("--agent", "builtin", "--verbose") as web, web.client() as client:
        assert web.process.stderr is not None
        web.process.stderr.close()
        assert watched(client, started(client))[-1]["status"] == "completed"
        web.send(signal.SIGINT)
        assert web.process.wait(LIMIT) == 130


# Settings


def test_several_agents_folders_permissions_and_callers(home: Path) -> None:
    for folder in ("api", "web"):
        (home / folder).mkdir()
        (home / folder / f"{folder}_file.py").write_text("", "utf-8")
    (home / "careful.toml").write_text('otherwise = "deny"\n', "utf-8")
    (home / "bob").write_text(f"{BOB}\n", "utf-8")
    (home / "bob").chmod(0o600)
    script.says("Played.").save(home / "script.json")
    command = shlex.join([sys.executable, "-m", "thinkwell.testing", str(home / "script.json")])
    config = f"""
        journal = "memory"
        hosts = ["think.example.org"]
        origins = ["https://app.example.org"]
        proxies = ["10.0.0.0/8"]
        session_age = 3600
        idle_after = false

        [callers.ada]
        token_env = "ADAS_TOKEN"
        [callers.bob]
        token_file = "bob"

        [permissions]
        careful = "careful.toml"

        [agents.reader]
        agent = "builtin"
        title = "Reads"
        folders = {{ api = "api", web = "web" }}
        permissions = ["careful", "ask", "deny"]
        timeout = 600
        idle_timeout = false
        question_timeout = 5
        max_tokens = 100000
        max_cost = 10

        [agents.player]
        command = {json.dumps(command)}

        [limits]
        max_runs = 2

        [retention]
        max_age = 86400
    """
    with serving_web(config=config, env={"ADAS_TOKEN": ADA}) as web:
        assert (
            web.told[0]
            == "Serving reader, player. Runs are kept in memory, as long as this runs. Ctrl-C ends it."
        )
        assert web.told[1].endswith("for callers with the token of ada, bob")
        with web.client(ADA) as ada, web.client(BOB) as bob:
            about = ada.get("/api").json()
            assert about["caller"] == "ada"
            assert str(home) not in json.dumps(about)
            reader, player = about["agents"]
            assert (reader["name"], reader["title"]) == ("reader", "Reads")
            assert reader["folders"] == ["api", "web"]
            assert reader["permissions"] == ["careful", "ask", "deny"]
            assert (player["folders"], player["permissions"]) == (["default"], ["ask"])
            run_id = ""
            for folder in ("api", "web"):
                run_id = started(ada, "What is here?", agent="reader", folder=folder)
                assert f"{folder}_file.py" in watched(ada, run_id)[-1]["result"]
            assert watched(ada, started(ada, agent="player"))[-1]["result"] == "Played."
            assert bob.get(f"/api/runs/{run_id}").status_code == 404
            assert bob.get("/api/runs").json()["runs"] == []
            for wrong in (
                {"folder": "/etc"},
                {"folder": "../web"},
                {"permissions": "allow"},
                {"agent": "claude"},
            ):
                refused = ada.post("/api/runs", json={"prompt": "Go.", **wrong})
                assert refused.status_code == 422
            host = {"host": "think.example.org", "origin": "https://app.example.org"}
            shared = ada.get("/api", headers=host)
            assert shared.headers["access-control-allow-origin"] == "https://app.example.org"


def test_options_go_before_the_file(home: Path) -> None:
    (home / "other").mkdir()
    (home / "other" / "lexer.py").write_text("", "utf-8")
    (home / "rules.toml").write_text('otherwise = "deny"\n', "utf-8")
    (home / "token").write_text(ADA, "utf-8")
    (home / "token").chmod(0o400)
    config = 'journal = "memory"\nhost = "::1"\nport = 1\npage = true\n[agents.claude]\n'
    options = ("--agent", "builtin", "--cwd", "other", "--permissions", "rules.toml", "--host", "127.0.0.1")
    more = ("--journal", "mine.db", "--token-file", "token", "--no-page", "--no-letta")
    with serving_web(*options, *more, config=config) as web, web.client(ADA) as client:
        assert web.told[0] == "Serving builtin. Runs are kept in mine.db. Ctrl-C ends it."
        (agent,) = client.get("/api").json()["agents"]
        assert (agent["folders"], agent["permissions"]) == (["default"], ["rules"])
        result = watched(client, started(client, "What is here?"))[-1]["result"]
        assert "lexer.py" in result
        assert "parser.py" not in result
        assert client.get("/").status_code == 404
        assert client.get("/v1/health/").status_code == 404
    assert (home / "mine.db").is_file()


def test_without_a_page_the_token_is_told(home: Path) -> None:
    with serving_web("--no-page", "--journal", "memory", ready=False) as web:
        line = web.until_told("Ready at ")
        address, _, token = line.removeprefix("Ready at ").partition(" with the token ")
        assert httpx.get(f"{address}api", headers={"authorization": f"Bearer {token}"}).status_code == 200


def test_elsewhere_it_takes_a_token_and_warns(home: Path) -> None:
    env = {"THINKWELL_SERVE_TOKEN": ADA}
    with serving_web("--host", "0.0.0.0", "--journal", "memory", env=env) as web, web.client(ADA) as client:
        assert web.url.startswith("http://127.0.0.1:")
        web.until_told("Warning: Anyone who can reach this port can try tokens")
        web.until_told("Put a proxy before it that speaks https")
        assert client.get("/api").status_code == 200
    config = 'host = "0.0.0.0"\nproxies = ["127.0.0.1"]\nhosts = ["think.example.org"]\njournal = "memory"\n'
    with serving_web(config=config, env=env) as web, web.client(ADA) as client:
        assert web.url.startswith("http://think.example.org:")
        told = f"http://127.0.0.1:{web.port}/api"
        assert client.get(told, headers={"host": "think.example.org"}).status_code == 200
        assert web.end_with(signal.SIGTERM) == 143
        assert len(web.told) == 2


def test_localhost_is_every_address_of_it(home: Path) -> None:
    with serving_web("--host", "localhost", "--journal", "memory") as web, web.client() as client:
        assert web.url.startswith("http://localhost:")
        assert client.get("/api").status_code == 200
        assert client.get(f"http://127.0.0.1:{web.port}/api").status_code == 200


@pytest.mark.skipif(not socket.has_ipv6, reason="there is no IPv6")
def test_an_address_of_ipv6(home: Path) -> None:
    with serving_web("--host", "::1", "--journal", "memory") as web, web.client() as client:
        assert web.url.startswith("http://[::1]:")
        assert client.get("/api").status_code == 200
        ours = {"origin": web.url.rstrip("/")}
        assert client.post("/api/session", json={"secret": web.secret}, headers=ours).status_code == 204
    env = {"THINKWELL_SERVE_TOKEN": ADA}
    with serving_web("--host", "::", "--journal", "memory", env=env) as web, web.client(ADA) as client:
        assert web.url.startswith("http://[::1]:")
        assert client.get("/api").status_code == 200


@pytest.mark.long
def test_a_run_without_watchers_is_cancelled_where_that_is_wanted(home: Path) -> None:
    config = 'abandoned_after = 3\njournal = "memory"\n'
    with serving_web(*play(home, script.says("Hm").hangs()), config=config) as web, web.client() as client:
        run_id = started(client)
        with watching(client, run_id) as one:
            one.until("message")
        web_run: dict[str, object] = {"status": "running"}
        while web_run["status"] == "running":
            web_run = client.get(f"/api/runs/{run_id}").json()["run"]
        assert web_run["status"] == "cancelled"


# What goes wrong


def test_a_port_that_is_taken(home: Path) -> None:
    with serving_web("--journal", "memory") as web:
        port = str(web.port)
        with serving_web("--journal", "memory", "--port", port, ready=False) as second:
            assert second.end() == 1
            (told,) = second.told
            assert told.startswith(f"Error: port {port} of 127.0.0.1 is taken by another program, maybe by ")
            assert told.endswith(f"End that, or give another one: --port {int(port) + 1}, or 0 for any")


def test_a_journal_that_is_taken(home: Path) -> None:
    with serving_web("--journal", "runs.db"), serving_web("--journal", "runs.db", ready=False) as second:
        assert second.end() == 1
        assert second.told[0].startswith("Error: the journal ")


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("192.0.2.1", "this machine has no address 192.0.2.1"),
        ("nobody.invalid", "there is no host nobody.invalid"),
        ("a" * 70, "there is no host aaa"),
    ],
)
def test_a_host_of_another_machine(host: str, told: str, home: Path) -> None:
    env = {"THINKWELL_SERVE_TOKEN": ADA}
    with serving_web("--host", host, "--journal", "memory", env=env, ready=False) as web:
        assert web.end() in (1, 2)
        assert told in "\n".join(web.told)
