"""Behaves as npx or uvx does, as far as thinkwell sees. It fetches nothing, and knows nothing of thinkwell.

What it is called with is added to the file FETCHER_LOG, a line of JSON each. How it installs, FETCHER says:
``works``, ``fails``, ``hangs`` (with a child, both connected to the port FETCHER_PORT), ``waits`` (until that
port says so), ``vanishes`` or ``breaks`` (afterwards it is not there, or no program).
"""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

ODD_AGENT = str(Path(__file__).parents[2] / "agent" / "programs" / "odd_agent.py")
WAIT = "import sys; sys.stdin.buffer.read()"


def connection() -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(os.environ["FETCHER_PORT"])))


def hang(*, stubborn: bool = False) -> None:
    with connection() as line:
        line.set_inheritable(True)
        if stubborn:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with subprocess.Popen([sys.executable, "-S", "-c", WAIT], close_fds=False, stdin=subprocess.PIPE):
            line.sendall(b"!")
            while True:
                signal.pause()


def install(place: Path, me: Path) -> None:
    mode = os.environ.get("FETCHER", "works")
    sys.stderr.write(f"fetcher: {mode}\n")
    sys.stderr.flush()
    if mode == "fails":
        sys.stderr.write("404 Not Found\n")
        sys.exit(7)
    if mode == "hangs":
        hang()
    if mode == "waits":
        with connection() as line:
            line.sendall(b"!")
            line.recv(1)
    sys.stdout.write("noise\n" * 50_000)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("{}")
    if mode == "vanishes":
        me.unlink()
    elif mode == "breaks":
        me.write_text("no program")


def run(*arguments: str) -> None:
    sys.stdout.flush()
    mode = os.environ.get("FETCHED", "works")
    os.execv(sys.executable, [sys.executable, "-S", ODD_AGENT, mode, *arguments])


def npx(me: Path, *arguments: str) -> None:
    """Keep packages as libnpmexec does: under a hash of what was asked for."""
    rest = [word for word in arguments if word not in ("--yes", "--prefer-offline")]
    only = rest[0].startswith("--package=")
    spec = rest[0].removeprefix("--package=")
    caches = [value for name, value in os.environ.items() if name.lower() == "npm_config_cache" and value]
    cache = Path(caches[0]) if caches else Path.home() / ".npm"
    key = hashlib.sha512(spec.encode()).hexdigest()[:16]
    package = spec[: spec.rindex("@")]
    place = cache / "_npx" / key / "node_modules" / package / "package.json"
    if not place.exists():
        install(place, me)
    if not only:
        run(*rest[1:])


def uvx(me: Path, *arguments: str) -> None:
    """Keep packages by what was asked for."""
    rest = [word for word in arguments if word != "--offline"]
    offline = len(rest) < len(arguments)
    if rest[0] == "--from":
        spec, program, *rest = rest[1:]
    else:
        spec, *rest = rest
        program = spec.partition("@")[0]
    place = Path(os.environ["UV_CACHE_DIR"]) / spec
    if offline and os.environ.get("FETCHER") == "hangs offline":
        hang(stubborn=True)
    if not place.exists():
        if offline:
            sys.exit(1)
        install(place, me)
    if program != "python":
        run(program, *rest)


with Path(os.environ["FETCHER_LOG"]).open("a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\n")
{"npx": npx, "uvx": uvx}[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
