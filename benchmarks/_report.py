"""Medians, ratios and bars, as Markdown and as JSON."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from benchmarks._plan import ACP_CLIENT, BARS, OFFICIAL, PEERS, THINKWELL, Bar, Measurement, Row, rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks._plan import Peer
    from benchmarks._runner import Results

DISTRIBUTIONS = ("thinkwell", "agent-client-protocol", "acp-client", "anyio", "trio", "msgspec", "pydantic")

ABSENT = "–"

ENOUGH = 5
"""Samples from which on quartiles are meaningful."""


def middle(results: Results, measurement: str, peer: Peer, figure: str) -> float | None:
    """The median of one figure, if there are samples of it."""
    samples = results.samples.get(measurement, {}).get(peer.key, [])
    return median(sample[figure] for sample in samples) if samples else None


def spread(results: Results, measurement: str, peer: Peer, figure: str, scale: float) -> str:
    """The median, with the quartiles if there are enough samples for them."""
    samples = results.samples.get(measurement, {}).get(peer.key, [])
    if not samples:
        return ABSENT
    values = [sample[figure] * scale for sample in samples]
    if len(values) < ENOUGH:
        return number(median(values))
    low, _, high = quantiles(values, n=4, method="inclusive")
    return f"{number(median(values))} ({number(low)}–{number(high)})"


def ratio(over: float | None, under: float | None) -> float | None:
    """One median divided by another, if both were measured."""
    return over / under if over is not None and under else None


def number(value: float | None) -> str:
    """Three significant digits, with thousands separators."""
    if value is None:
        return ABSENT
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    ruler = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ruler, *lines))


def environment() -> dict[str, Any]:
    """The environment of the figures, besides the code."""
    versions: dict[str, str] = {}
    for name in DISTRIBUTIONS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "versions": versions,
    }


def bar_ratio(results: Results, bar: Bar) -> float | None:
    """The measured ratio for a bar."""
    return ratio(middle(results, *bar.over, bar.figure), middle(results, *bar.under, bar.figure))


def medians_table(results: Results, lines: Sequence[Row]) -> str:
    """Medians of every peer, and how thinkwell compares with the two others."""
    shown = [peer for peer in PEERS if any(peer.key in samples for samples in results.samples.values())]
    others = [peer for peer in (OFFICIAL, ACP_CLIENT) if peer in shown and THINKWELL in shown]
    header = [
        "median (quartiles)",
        "unit",
        *(peer.label for peer in shown),
        *(f"thinkwell / {peer.label}" for peer in others),
    ]
    cells: list[list[str]] = []
    for line in lines:
        found = {peer: middle(results, line.measurement, peer, line.figure) for peer in shown}
        values = [spread(results, line.measurement, peer, line.figure, line.scale) for peer in shown]
        ratios = [number(ratio(found[THINKWELL], found[peer])) for peer in others]
        cells.append([line.title, line.unit, *values, *ratios])
    return table(header, cells)


def bars_table(results: Results, bars: Sequence[Bar]) -> str:
    """The bars, the measured ratios, and whether they are met."""
    cells: list[list[str]] = []
    for bar in bars:
        measured = bar_ratio(results, bar)
        verdict = "not measured" if measured is None else "yes" if bar.met(measured) else "**no**"
        cells.append([bar.title, f"{'≥' if bar.at_least else '≤'} {bar.bound:g}", number(measured), verdict])
    return table(["bar, as a ratio of medians", "required", "measured", "met"], cells)


def relevant_bars(measurements: Sequence[Measurement]) -> tuple[Bar, ...]:
    """The bars on the chosen measurements."""
    keys = {measurement.key for measurement in measurements}
    return tuple(bar for bar in BARS if bar.over[0] in keys)


def as_markdown(results: Results, measurements: tuple[Measurement, ...]) -> str:
    """The whole report as Markdown."""
    facts = environment()
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    parts = [
        f"Python {facts['python']}, {facts['system']}, {facts['processors']} processors; {versions}.",
        medians_table(results, rows(measurements)),
        bars_table(results, relevant_bars(measurements)),
    ]
    if results.missing:
        parts.append(f"Not installed, not measured: {', '.join(results.missing)}.")
    for reason in dict.fromkeys(results.failures.values()):
        names = [name for name, failure in results.failures.items() if failure == reason]
        parts.append(f"Failed: {'; '.join(names)}: {reason}")
    return "\n\n".join(parts)


def as_json(results: Results, measurements: tuple[Measurement, ...], *, rounds: int) -> dict[str, Any]:
    """The whole report as JSON: every sample, the medians, the bars."""
    medians = {
        key: {
            peer: {figure: median(sample[figure] for sample in samples) for figure in samples[0]}
            for peer, samples in peers.items()
        }
        for key, peers in results.samples.items()
    }
    bars = [
        {
            "title": bar.title,
            "at_least" if bar.at_least else "at_most": bar.bound,
            "measured": measured,
            "met": None if measured is None else bar.met(measured),
        }
        for bar in relevant_bars(measurements)
        for measured in (bar_ratio(results, bar),)
    ]
    return {
        "environment": environment(),
        "rounds": rounds,
        "medians": medians,
        "bars": bars,
        "failures": results.failures,
        "missing": results.missing,
        "samples": results.samples,
    }
