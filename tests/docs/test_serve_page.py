"""The page about serving runs: what it shows is what happens."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest
from cli.serve_process import ADA, serving_web, started, watched, watching
from cli.typing_in import LIMIT, home
from debian_packages import find_program
from docs.commands import check_unit, keys_of, refused
from docs.pages import DOCS, files

from thinkwell.testing import script
from thinkwell.web import Limits

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

if sys.platform == "win32":
    pytest.skip("signals of POSIX systems", allow_module_level=True)

__all__ = ("home",)

PAGE = DOCS / "howto" / "serve.md"
TEXT = PAGE.read_text("utf-8")


def keys(heading: str) -> list[str]:
    """What the rows of a table are about."""
    rows = TEXT.partition(heading)[2].partition("\n\n")[0]
    return re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE)


def test_the_tables_have_every_key_and_no_other(tmp_path: Path) -> None:
    assert set(keys("| Key | |")) | {"limits", "retention"} == set(keys_of("serve", tmp_path))
    assert keys("| Key of an agent | |") == keys_of("serve", tmp_path, "[agents.a]")
    limits, retention = re.findall(r"^\| `(?:limits|retention)` \| (.*?) \|", TEXT, re.MULTILINE)
    told = {
        name: int(number.replace(",", "")) for name, number in re.findall(r"`(\w+)`[^(]*\(([\d,]+)\)", limits)
    }
    assert told == {name: getattr(Limits(), name) for name in keys_of("serve", tmp_path, "[limits]")}
    assert re.findall(r"`(\w+)`", retention) == keys_of("serve", tmp_path, "[retention]")


def test_the_file_can_be_used(tmp_path: Path) -> None:
    """Nothing is wrong with it but that the files and folders which it names are not here."""
    shown = files(PAGE)["serve.toml"]
    careful = tmp_path / "careful.toml"
    missing = f"agents.claude: permissions: careful: {careful}: it is not deny, ask, allow or a file"
    assert missing in refused("serve", tmp_path / "serve.toml", shown)
    careful.write_text(files(DOCS / "howto" / "permissions.md").get("careful.toml", ""), "utf-8")
    assert "agents.claude.folders: there is no folder /srv/api" in refused(
        "serve", tmp_path / "serve.toml", shown
    )
    settings = tomllib.loads(shown)
    assert list(settings["agents"]) == ["claude", "reader"]
    assert settings["retention"] == {"max_age": 30 * 24 * 3600}


def test_the_unit_starts_a_command_that_there_is() -> None:
    check_unit((DOCS / "howto" / "serve-service.md").read_text("utf-8"), "thinkwell-serve.service")


@contextmanager
def nginx(folder: Path, port: int, without: str) -> Generator[int]:
    """Run nginx with the settings of the page but one, for a server on a port. Yields its own port."""
    program = find_program("nginx")
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not on PATH, which makes a certificate: install it")
    key, certificate = folder / "think.key", folder / "think.pem"
    made = ["-keyout", str(key), "-out", str(certificate), "-subj", "/CN=think.example.org"]
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", *made]
    subprocess.run(command, check=True, capture_output=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        own: int = taken.getsockname()[1]
    server = files(PAGE)["think.conf"]
    for shown, here in (
        ("listen 443 ssl", f"listen 127.0.0.1:{own} ssl"),
        ("/etc/ssl/think.pem", str(certificate)),
        ("/etc/ssl/think.key", str(key)),
        ("127.0.0.1:8283", f"127.0.0.1:{port}"),
    ):
        assert server.count(shown) == 1
        server = server.replace(shown, here)
    server = server.replace(without, "") if without else server
    names = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "\n".join(f"{name}_temp_path {folder / name};" for name in names)
    (folder / "nginx.conf").write_text(
        f"worker_processes 1;\npid {folder / 'nginx.pid'};\nerror_log stderr warn;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{places}\n{server}\n}}\n",
        "utf-8",
    )
    command = [program.path, "-p", str(folder), "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off;"]
    with subprocess.Popen(command, env=dict(program.env), stderr=subprocess.PIPE) as process:
        try:
            while process.poll() is None:
                try:
                    socket.create_connection(("127.0.0.1", own), LIMIT).close()
                except ConnectionRefusedError:
                    continue
                break
            else:
                assert process.stderr is not None
                raise AssertionError(process.stderr.read().decode())
            yield own
        finally:
            process.terminate()


@pytest.mark.long
@pytest.mark.parametrize("without", ["", "proxy_buffering off;"])
def test_behind_nginx(without: str, home: Path, tmp_path: Path) -> None:
    script.says("Hello").hangs().save(home / "script.json")
    agent = f"{sys.executable} -m thinkwell.testing {home / 'script.json'}"
    config = f"""
        journal = "memory"
        hosts = ["think.example.org"]
        proxies = ["127.0.0.1"]
        [agents.a]
        command = "{agent}"
    """
    folder = tmp_path / "nginx"
    folder.mkdir()
    with (
        serving_web(config=config, env={"THINKWELL_SERVE_TOKEN": ADA}) as web,
        nginx(folder, web.port, without) as port,
    ):
        named = {"host": "think.example.org"}
        with httpx.Client(
            base_url=f"https://127.0.0.1:{port}", headers=named, verify=False, timeout=LIMIT
        ) as browser:
            assert browser.get("/healthz").status_code == 200
            browser.headers["origin"] = "https://think.example.org"
            refused = browser.post("/api/session", json={"secret": "wrong"})
            assert refused.status_code == 401
            given = browser.post("/api/session", json={"secret": ADA})
            assert given.status_code == 204
            cookie = given.headers["set-cookie"]
            assert cookie.startswith("__Host-thinkwell-443=")
            assert cookie.endswith("; Secure")
            browser.headers["cookie"] = cookie.partition(";")[0]
            answer = browser.post("/api/runs", json={"prompt": "Go."})
            assert answer.status_code == 201
            path = answer.headers["location"]
            with browser.stream("GET", f"{path}/events") as stream:
                lines = stream.iter_lines()
                assert any('"text":"Hello"' in line for line in lines), "while the run goes on"
            evil = {"origin": "https://evil.example.org"}
            assert browser.post("/api/runs", json={"prompt": "Go."}, headers=evil).status_code == 403
            assert browser.get("/api", headers={"host": "evil.example.org"}).status_code == 421


@pytest.mark.usefixtures("warm_python")
def test_what_is_said_at_the_beginning_and_a_run_from_a_shell(home: Path) -> None:
    """Also what the lines with curl do, for a client that is everywhere."""
    said = re.findall(r"^(Serving .*)\n(Ready .*)$", TEXT, re.MULTILINE)[0]
    with serving_web("--agent", "builtin") as web, web.client() as client:
        for shown, told in zip(said, web.told, strict=True):
            shape = re.escape(shown).replace("claude", "builtin").replace("8283", r"\d+")
            shape = re.sub(r"secret=.*", r"secret=[\\w-]{43}", shape)
            shape = re.sub(r"/home.*?runs", r"/.*/thinkwell/runs", shape)
            assert re.fullmatch(shape, told)
        run_id = started(client, "What is in this folder?")
        with watching(client, run_id) as one:
            assert next(iter(one))["seq"] == 1
        assert watched(client, run_id)[-1]["type"] == "end"
        curl = shutil.which("curl")
        if curl is None:
            pytest.skip("curl is not on PATH: install it")
        (shown,) = re.findall(r"^\$ (curl -H .*?)\n\{", TEXT, re.DOTALL | re.MULTILINE)
        typed = shown.replace("$SECRET", web.secret or "").replace("8283", str(web.port))
        done = subprocess.run(["/bin/sh", "-c", typed], capture_output=True, check=True, timeout=LIMIT)
        assert done.stdout.startswith(b'{"run":{"id":"run-')
