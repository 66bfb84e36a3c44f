"""What the suite promises of itself: tiers, groups, and cases that leave nothing behind."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from suite.tiers import BOTH_LOOPS

TESTS = Path(__file__).parents[1]

CASES = """
import socket, subprocess, sys, tempfile, threading

KEPT = []
SLEEPER = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]

def test_a_thread():
    stopped = threading.Event()
    KEPT.append(stopped)
    threading.Thread(target=stopped.wait, name="left thread", daemon=True).start()

def test_a_child():
    KEPT.append(subprocess.Popen(SLEEPER))

def test_an_orphan():
    orphaning = f"import subprocess; print(subprocess.Popen({SLEEPER}).pid)"
    subprocess.run([sys.executable, "-I", "-S", "-c", orphaning], check=True)

def test_an_open_port():
    KEPT.append(socket.create_server(("127.0.0.1", 0)))

def test_a_file_where_it_runs():
    open("left.txt", "w").close()

def test_a_temporary_file():
    KEPT.append(tempfile.mkstemp(prefix="left-"))

def test_nothing(tmp_path):
    (tmp_path / "own.txt").touch()
    with socket.create_server(("127.0.0.1", 0)):
        ended = threading.Thread(target=print)
        ended.start()
        subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)
    ended.join()
"""

ENDING = """
import os, signal, pytest

@pytest.fixture(scope="session", autouse=True)
def ended_at_last():
    yield
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            marked = f"SUITE_WORKER={os.getpid()}" in open(f"/proc/{name}/environ").read()
        except OSError:
            continue
        if marked and int(name) != os.getpid():
            os.kill(int(name), signal.SIGKILL)
"""


TIERS = """
import pytest

async def test_a_wing(anyio_backend):
    pass

@pytest.mark.parametrize("anyio_backend", ["trio"])
def test_of_one_loop(anyio_backend):
    pass

@pytest.mark.parametrize("anyio_backend", ["asyncio", pytest.param("trio", marks=pytest.mark.long)])
@pytest.mark.parametrize("n", range(4))
def test_dear(n, anyio_backend):
    pass

@pytest.mark.long
def test_at_length():
    pass
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder, with the suite's plugins and no others but xdist."""
    plugins = ("xdist", "suite.leftovers", "suite.progress", "suite.scheduling", "suite.tiers")
    given = [word for plugin in (*plugins, "no:cacheprovider") for word in ("-p", plugin)]
    markers = "markers = long: as here\n  interop: as here\n"
    (folder / "pytest.ini").write_text(f"[pytest]\n{markers}filterwarnings = ignore\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *given, *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(TESTS), "PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="processes and sockets are looked for in /proc")
def test_what_a_case_leaves_fails_it(tmp_path: Path) -> None:
    (tmp_path / "test_leaving.py").write_text(CASES)
    (tmp_path / "conftest.py").write_text(ENDING)
    output = run(tmp_path, "--tb=short", "--patience", "0.2").stdout
    for what in (
        "thread 'left thread'",
        r"process \d+: .*time.sleep",
        "listens: .*127",
        r"/left\.txt",
        "/left-",
    ):
        assert re.search(f"The test has left .*{what}", output), (what, output)
    assert len(re.findall("^ERROR .*test_(?:a|an)_", output, re.MULTILINE)) == 6, output
    assert "test_nothing" not in output


@pytest.mark.long
def test_a_run_that_costs_more_than_it_may_fails(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it():\n    sum(range(3_000_000))\n")
    assert run(tmp_path, "--most-cpu", "1000").returncode == 0
    dear = run(tmp_path, "--most-cpu", "0.01")
    assert dear.returncode == 1
    assert "1 passed" in dear.stdout
    assert "more than 0 s of processor time" in dear.stdout


def test_what_runs_on_both_loops_knows_of_a_loop() -> None:
    for place in BOTH_LOOPS:
        texts = [file.read_text("utf-8") for file in TESTS.parent.glob(f"{place}*.py")]
        assert any("async def test_" in text or "backend" in text for text in texts), place


def test_each_case_of_a_wing_runs_on_one_loop_and_long_files_are_not_even_imported(tmp_path: Path) -> None:
    for folder in ("web", "stream"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / f"test_{folder}.py").write_text(TIERS)
    whole = tmp_path / "tests" / "web" / "test_whole.py"
    whole.write_text("import pytest\npytestmark = pytest.mark.long\n\nraise RuntimeError\n")
    quick = run(tmp_path, "--collect-only", "-q", "-m", "not interop and not long").stdout
    assert quick.count("web.py::test_a_wing") == 1
    assert quick.count("stream.py::test_a_wing") == 2
    assert quick.count("::test_of_one_loop") == 2
    assert quick.count("web.py::test_dear") == 4
    assert "test_at_length" not in quick
    whole.unlink()
    long = run(tmp_path, "--collect-only", "-q", "-m", "long and not interop").stdout
    assert long.count("web.py::test_a_wing") == 1
    assert long.count("::test_a_wing") == 1
    assert long.count("::test_at_length") == 2
    assert "test_of_one_loop" not in long


@pytest.mark.long
def test_a_failure_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert 0\ndef test_other(missing):\n    pass\n")
    output = run(tmp_path).stdout
    at_once, _, rest = output.partition("= ERRORS =")
    assert "FAILED test_it.py::test_it (call)" in at_once
    assert "FAILED test_it.py::test_other (setup)" in at_once
    assert "1 failed, 1 error" in rest


TABLES = """
import pytest

@pytest.mark.parametrize("n", [pytest.param(-1, marks=pytest.mark.long), *range(20)])
async def test_many(n, anyio_backend):
    pass

@pytest.mark.parametrize("n", range(2))
def test_two(n):
    pass
"""


@pytest.mark.long
def test_the_whole_suite_runs_some_rows_of_a_table_and_a_folder_all(tmp_path: Path) -> None:
    (tmp_path / "tests" / "stream").mkdir(parents=True)
    (tmp_path / "tests" / "stream" / "test_it.py").write_text(TABLES)

    def cases(tier: str, *folder: str) -> set[str]:
        listed = run(tmp_path, "-o", "testpaths=tests", "--collect-only", "-q", "-m", tier, *folder).stdout
        return {line for line in listed.splitlines() if "::" in line}

    some, rest = cases("not long"), cases("long")
    assert len([name for name in some if "test_many" in name]) == 5 * 2
    assert len([name for name in some if "test_two" in name]) == 1
    assert len(rest) == 16 * 2 + 1
    assert not some & rest
    assert len(cases("not long", "tests/stream")) == 20 * 2 + 2
    assert len(cases("long", "tests/stream")) == 2


@pytest.mark.long
def test_a_group_stays_on_one_worker(tmp_path: Path) -> None:
    case = "import os, pytest\n@pytest.mark.xdist_group('one')\n@pytest.mark.parametrize('n', range(4))\n"
    (tmp_path / "test_it.py").write_text(
        f"{case}def test_it(n):\n    open('workers', 'a').write(f'{{os.getpid()}} ')\n"
    )
    (tmp_path / "workers").touch()
    assert run(tmp_path, "-n", "2", "--dist", "loadgroup").returncode == 0
    assert len(set((tmp_path / "workers").read_text().split())) == 1


DEAD_BUT_NOT_KNOWN_TO_BE = """
import time

def pytest_runtest_logreport(report):
    if "[6]" in report.nodeid and report.when == "setup" and hasattr(report, "node"):
        while not report.node._down:
            time.sleep(0.01)
        report.node._down = False
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("workers", "conftest"), [("2", ""), ("1", DEAD_BUT_NOT_KNOWN_TO_BE)], ids=("two", "one")
)
def test_a_worker_that_dies_costs_the_case_that_it_ran(workers: str, conftest: str, tmp_path: Path) -> None:
    case = "import os, pytest\n@pytest.mark.parametrize('n', range(20))\n"
    (tmp_path / "test_it.py").write_text(f"{case}def test_it(n):\n    n == 7 and os._exit(1)\n")
    (tmp_path / "conftest.py").write_text(conftest)
    output = run(tmp_path, "-n", workers, "--dist", "loadgroup").stdout
    assert "crashed while running 'test_it.py::test_it[7]'" in output, output
    assert "1 failed, 19 passed" in output
