"""A target: inputs, and what has to hold for each of them."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
from fuzz.bounds import CostsTooMuch, bounded
from fuzz.hostile import is_array, is_object
from hypothesis import HealthCheck, Phase, given, seed, settings

from thinkwell.testing import virtual_backend

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from hypothesis import strategies as st

BACKENDS: Final = ("asyncio", "trio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Something that takes what others send.

    Attributes:
        name: What it is called.
        inputs: What it is given.
        check: Gives it one input and asserts what has to hold. It may raise nothing else.
        weight: Examples in the ordinary tests.
    """

    name: str
    inputs: st.SearchStrategy[Any]
    check: Callable[[Any], None]
    weight: int = 60

    def run(self, examples: int, with_seed: int | None = None) -> int:
        """Try that many examples and return how many were tried.

        Args:
            examples: How many.
            with_seed: Where chance begins; ``None``: always with the same.

        Raises:
            Exception: One did not hold. Its notes have the input.
        """
        tried = 0
        exceeded: list[tuple[Any, CostsTooMuch]] = []

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=with_seed is None,
            phases=(Phase.generate, Phase.target, Phase.shrink),
            suppress_health_check=[
                HealthCheck.too_slow,
                HealthCheck.data_too_large,
                HealthCheck.large_base_example,
            ],
            report_multiple_bugs=False,
        )
        @given(self.inputs)
        def each(given_input: Any) -> None:
            nonlocal tried
            if exceeded:
                # To look for a smaller input that takes as long would take for ever.
                if given_input == exceeded[0][0]:
                    raise exceeded[0][1]
                return
            tried += 1
            try:
                with bounded(size_of(given_input)):
                    self.check(given_input)
            except CostsTooMuch as exc:
                exceeded.append((given_input, exc))
                raise

        (each if with_seed is None else seed(with_seed)(each))()
        return tried


def size_of(value: Any) -> int:
    """Return about how many bytes an input has."""
    if isinstance(value, bytes | str):
        return len(value)
    if isinstance(value, tuple):
        value = list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if is_object(value):
        value = [*value, *value.values()]
    return sum(map(size_of, value)) if is_array(value) else 8


def told(error: str, *, where: bool = True) -> None:
    """Assert that an error says something, and where."""
    assert error
    assert where, error


def on_both(check: Callable[[Any], Awaitable[None]]) -> Callable[[Any], None]:
    """Return a check that runs on both event loops, with time that passes when nothing else can."""

    def run(value: Any) -> None:
        for backend in BACKENDS:
            name, options = virtual_backend(backend)
            with silence():
                anyio.run(check, value, backend=name, backend_options=options)

    return run


class _Alarm(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.failures: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            self.failures.append(f"{record.getMessage()}: {record.exc_info and record.exc_info[1]!r}")


@contextmanager
def silence() -> Generator[None]:
    """Keep the logs from the screen, and fail when one of them says that something of ours has failed."""
    alarm = _Alarm()
    loggers = [logging.getLogger(name) for name in ("thinkwell", "thinkwell_acp")]
    for logger in loggers:
        logger.addHandler(alarm)
        logger.propagate = False
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(alarm)
            logger.propagate = True
    assert not alarm.failures, alarm.failures
