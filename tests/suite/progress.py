"""A line of progress instead of dots; at the end the slowest folders and the processor time."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Final, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from _pytest.terminal import TerminalReporter

SHOWN: Final = 12
"""How many folders are listed."""

EVERY: Final = 10.0
"""Seconds between two lines where the output is not a terminal."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the limit of processor time."""
    parser.addoption("--most-cpu", type=float, help="fail when the run takes more seconds of processor time")


def pytest_configure(config: pytest.Config) -> None:
    """Report the progress of a run of its own: a worker's is reported by its controller."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config), "suite-progress")


def pytest_report_to_serializable(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Escape lone surrogates: what a worker sends is UTF-8. Leave out what nothing reads."""
    if isinstance(report, pytest.TestReport):
        if report.passed:
            report.keywords = {}
        report.sections = [(name, _encodable(text)) for name, text in report.sections]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Three for two processors: a worker waits at times, but each one's imports cost processor time."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return processors + (processors + 1) // 2


class Progress:
    """Counts cases as they end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.begun = time.monotonic()
        self.shown = self.begun
        self.counts = Counter[str]()
        self.seconds: dict[str, float] = {}
        self.cases = Counter[str]()
        self.total = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Print no letters for what passes or fails."""
        if self.config.option.verbose > 0:
            return None
        if report.failed:
            what = "error" if report.when in ("setup", "teardown") else "failed"
            return what, "", what.upper()
        if report.when == "call" and report.passed:
            return "passed", "", ""
        return None

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Note how many cases there are."""
        self.total = len(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note how many cases there are."""
        self.total = len(session.items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a phase of a case."""
        folder = "/".join(report.nodeid.split("::")[0].split("/")[:2])
        self.seconds[folder] = self.seconds.get(folder, 0.0) + report.duration
        if report.when == "call" or report.outcome != "passed":
            self.counts[report.outcome] += 1
        if report.failed and self.config.option.verbose == 0:  # the run may take half an hour more
            self._reporter.ensure_newline()
            self._reporter.write_line(f"FAILED {report.nodeid} ({report.when})", red=True)
            self._reporter.flush()
        if report.when == "teardown":
            self.cases[folder] += 1
            self._show()

    @pytest.hookimpl(tryfirst=True, wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Print what the run has cost, when the workers are gone and their time is known."""
        yield
        reporter = self._reporter
        reporter.ensure_newline()
        if len(self.seconds) > 1:
            slowest = sorted(self.seconds.items(), key=lambda item: -item[1])[:SHOWN]
            costs = (f"{folder} {spent:.0f} s, {self.cases[folder]} cases" for folder, spent in slowest)
            reporter.write_line("slowest folders: " + "; ".join(costs))
        wall, used = time.monotonic() - self.begun, sum(os.times()[:4])
        reporter.write_line(f"{wall:.0f} s of wall time, {used:.0f} s of processor time")
        most = session.config.getoption("--most-cpu")
        if most is not None and used > most:
            reporter.write_line(f"That is more than {most:.0f} s of processor time.", red=True)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @property
    def _reporter(self) -> TerminalReporter:
        return cast("TerminalReporter", self.config.pluginmanager.get_plugin("terminalreporter"))

    def _show(self) -> None:
        done, now = sum(self.cases.values()), time.monotonic()
        on_terminal = sys.stdout.isatty()
        if self.config.option.verbose == 0 and now - self.shown > (0.2 if on_terminal else EVERY):
            self.shown = now
            failed = f", {self.counts['failed']} failed" if self.counts["failed"] else ""
            line = f"{done} of {self.total} cases{failed}, {now - self.begun:.0f} s"
            if on_terminal:
                self._reporter.rewrite(line, erase=True)
            else:
                self._reporter.write_line(line)
                self._reporter.flush()


def _encodable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
