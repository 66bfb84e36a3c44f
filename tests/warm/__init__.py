"""A Python that has imported thinkwell before: its programs are processes that begin within milliseconds.

The fixture `warm_python` puts an executable in the place of `sys.executable`. What is of thinkwell (``-m
thinkwell…``), and `SCRIPTS`, are run in forks of a server that did the imports, each in a session of its own
and with the terminal that it is given. Anything else is handed to the true Python.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

__all__ = ("TRUE", "takes_terminal", "warm_python", "warm_server")

FOLDER = Path(__file__).parent

_server = pytest.StashKey[str]()

TRUE = sys.executable
"""The Python that is started where nothing is warm."""

SCRIPTS = ("caller.py", "log_in.py", "remembering_agent.py", "programs/stubborn.py")
"""Those that import thinkwell. Without it the true Python is as quick."""

EXECUTABLE = """\
#!/bin/sh
case "${{PYTHONUTF8-}}${{PYTHONIOENCODING-}}" in ?*) exec '{python}' "$@" ;; esac
case "$1 $2 $3 $4 $5" in
-I* | -c*) ;;
*"-m thinkwell"* | {scripts}) exec '{python}' -I -S '{client}' '{address}' '{python}' "$@" ;;
esac
exec '{python}' "$@"
"""


@pytest.fixture(scope="session")
def warm_server(request: pytest.FixtureRequest) -> str:
    """The path of the executable; that of the true Python where there is no `os.fork`.

    Each folder of tests has a fixture of its own, and all have one server, until the end of the session.
    """
    stash = request.session.stash
    if _server not in stash:
        stack = ExitStack()
        request.session.addfinalizer(stack.close)
        stash[_server] = stack.enter_context(_serving()) if sys.platform != "win32" else TRUE
    return stash[_server]


@contextmanager
def _serving() -> Generator[str]:
    folder = Path(mkdtemp(prefix="warm-", dir=os.environ["PYTEST_DEBUG_TEMPROOT"]))
    executable, address = folder / "python", folder / "s"
    client = FOLDER / "client.py"
    text = EXECUTABLE.format(
        python=TRUE, client=client, address=address, scripts=" | ".join(f"*{name}*" for name in SCRIPTS)
    )
    executable.write_text(text, "utf-8")
    executable.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        listening.listen(64)
        server = subprocess.Popen(
            [TRUE, str(FOLDER / "server.py"), str(listening.fileno()), str(executable)],
            stdin=subprocess.PIPE,
            pass_fds=[listening.fileno()],
            start_new_session=True,
        )
    with server:
        yield str(executable)
    rmtree(folder, ignore_errors=True)


@pytest.fixture
def warm_python(warm_server: str, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """The path of the executable, which is `sys.executable` for the time of a test.

    Ctrl-C is heeded, here and in what is started, even where we were started to ignore it, as by ``nohup``.
    """
    monkeypatch.setattr(sys, "executable", warm_server)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield warm_server
    signal.signal(signal.SIGINT, before)


def takes_terminal(command: Sequence[str]) -> bool:
    """Return whether a command makes a terminal among its streams that of its session."""
    return sys.executable != TRUE and command[0] == sys.executable
