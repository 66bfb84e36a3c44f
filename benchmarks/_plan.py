"""The measurements, the clients, and the bars for the figures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, assert_never

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One client on one event loop."""

    key: str
    label: str
    package: str | None
    """The import package that it needs."""
    module: str
    backend: str = "asyncio"


THINKWELL = Peer(key="thinkwell", label="thinkwell, asyncio", package="thinkwell", module="thinkwell_client")
TRIO = replace(THINKWELL, key="thinkwell_trio", label="thinkwell, trio", backend="trio")
SYNC = Peer(key="thinkwell_sync", label="thinkwell.sync", package="thinkwell", module="thinkwell_sync_client")
OFFICIAL = Peer(key="official", label="official SDK", package="acp", module="official_client")
ACP_CLIENT = Peer(key="acp_client", label="acp-client", package="acp_client", module="acp_client_client")
RAW = Peer(key="raw", label="bytes read, dropped", package=None, module="raw_client")
PEERS = (THINKWELL, TRIO, SYNC, OFFICIAL, ACP_CLIENT, RAW)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A measurement on several peers."""

    key: str
    title: str
    action: Literal["stream", "unread", "round_trip", "idle", "startup", "import"]
    peers: tuple[Peer, ...]
    mix: str = "tokens"
    count: int
    """Updates per session, requests, or seconds."""
    sessions: int = 1
    through: str = ""
    """What else thinkwell's stream goes through."""
    repeat: int = 1
    """Samples per round: short ones need more of them."""


MIXED = {"mixed": "Mixed kinds", "unannounced": "Mixed kinds, calls never announced"}
"""The mixes with tool calls and plans."""

THROUGH = {
    "filter": "read through a filter",
    "listener": "with a listener",
    "budget": "with a budget",
    "tools": "own tools offered",
}
"""What else thinkwell's streams go through."""


def plan(*, quick: bool) -> tuple[Measurement, ...]:
    """All measurements, in full or in a size that only shows that everything runs."""

    def size(full: int, small: int) -> int:
        return small if quick else full

    streaming = (THINKWELL, TRIO, SYNC, OFFICIAL, ACP_CLIENT, RAW)
    many = (THINKWELL, TRIO, OFFICIAL, RAW)
    repeat = size(4, 1)
    return (
        Measurement(key="tokens", title="Tokens", action="stream", peers=streaming, count=size(200_000, 200)),
        *(
            Measurement(
                key=mix,
                title=title,
                action="stream",
                peers=streaming,
                mix=mix,
                count=size(100_000, 200),
            )
            for mix, title in MIXED.items()
        ),
        *(
            Measurement(
                key=f"mixed_{through}",
                title=f"Mixed kinds, {title}",
                action="stream",
                peers=(THINKWELL, TRIO, OFFICIAL),
                mix="mixed",
                count=size(100_000, 200),
                through=through,
            )
            for through, title in THROUGH.items()
        ),
        Measurement(
            key="diffs",
            title="Diffs of 1 MB",
            action="stream",
            peers=streaming,
            mix="diffs",
            count=size(200, 3),
        ),
        Measurement(
            key="sessions",
            title=f"Tokens, {size(200, 4)} sessions on one connection",
            action="stream",
            peers=many,
            count=size(500, 25),
            sessions=size(200, 4),
        ),
        Measurement(
            key="unread",
            title=f"{size(200_000, 500):,} mixed updates unread",
            action="unread",
            peers=(THINKWELL, TRIO, OFFICIAL, ACP_CLIENT),
            mix="mixed",
            count=size(200_000, 500),
        ),
        Measurement(
            key="unread_5x",
            title=f"{size(1_000_000, 2_500):,} mixed updates unread",
            action="unread",
            peers=(THINKWELL,),
            mix="mixed",
            count=size(1_000_000, 2_500),
        ),
        Measurement(
            key="round_trip",
            title="Request round trip",
            action="round_trip",
            peers=(THINKWELL, TRIO, OFFICIAL, ACP_CLIENT),
            count=size(3_000, 20),
            repeat=size(3, 1),
        ),
        Measurement(
            key="idle",
            title="An idle agent",
            action="idle",
            peers=(THINKWELL, TRIO, OFFICIAL),
            count=size(8, 0),
        ),
        Measurement(
            key="startup",
            title="Start",
            action="startup",
            peers=(THINKWELL, TRIO, OFFICIAL, ACP_CLIENT),
            count=10,
            repeat=repeat,
        ),
        Measurement(
            key="import",
            title="Import",
            action="import",
            peers=(THINKWELL, OFFICIAL, ACP_CLIENT),
            count=1,
            repeat=repeat,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table of medians."""

    measurement: str
    figure: str
    title: str
    unit: str
    scale: float = 1.0
    """The factor to that unit."""


def rows(measurements: tuple[Measurement, ...]) -> tuple[Row, ...]:
    """The lines of the table, in the order of the measurements."""
    found: list[Row] = []
    for measurement in measurements:
        figures: list[tuple[str, str, str, float]]
        match measurement.action:
            case "stream":
                figures = [
                    ("updates_per_second", "updates", "1/s", 1.0),
                    ("cpu_per_100k", "CPU per 100,000 updates", "s", 1.0),
                ]
            case "unread":
                figures = [
                    ("grown_bytes", "memory grown", "MiB", 1 / MIB),
                    ("peak_bytes", "memory at the peak", "MiB", 1 / MIB),
                ]
            case "round_trip":
                figures = [("p50_seconds", "p50", "µs", 1e6), ("p99_seconds", "p99", "µs", 1e6)]
            case "idle":
                figures = [("cpu_seconds", f"CPU in {measurement.count} s", "ms", 1e3)]
            case "startup":
                figures = [
                    ("program_to_first_seconds", "program start to first event", "ms", 1e3),
                    ("spawn_to_first_seconds", "agent's spawn to first event, imports done", "ms", 1e3),
                ]
            case "import":
                figures = [("import_seconds", "fresh interpreter", "ms", 1e3)]
            case other:
                assert_never(other)
        found += [
            Row(
                measurement=measurement.key,
                figure=figure,
                title=f"{measurement.title}: {title}",
                unit=unit,
                scale=scale,
            )
            for figure, title, unit, scale in figures
        ]
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A ratio of two medians that must be reached, or not exceeded."""

    title: str
    figure: str
    over: tuple[str, Peer]
    """Measurement and peer of the numerator."""
    under: tuple[str, Peer]
    bound: float
    at_least: bool

    def met(self, ratio: float) -> bool:
        """Whether a measured ratio clears the bar."""
        return ratio >= self.bound if self.at_least else ratio <= self.bound


def faster(measurement: str, other: Peer, bound: float, *, ours: Peer = THINKWELL) -> Bar:
    """A bar on updates per second."""
    return Bar(
        title=f"{measurement}: updates per second, {ours.label} / {other.label}",
        figure="updates_per_second",
        over=(measurement, ours),
        under=(measurement, other),
        bound=bound,
        at_least=True,
    )


def smaller(title: str, measurement: str, figure: str, bound: float) -> Bar:
    """A bar on a figure for which less is better, against the official SDK."""
    over, under = (measurement, THINKWELL), (measurement, OFFICIAL)
    return Bar(title=title, figure=figure, over=over, under=under, bound=bound, at_least=False)


TRIO_BOUND = 0.85
"""Trio within 15 % of asyncio."""

SYNC_BOUND = 0.8
"""The blocking API within 20 % of the asynchronous one: two threads take turns at the interpreter."""

LINEAR_BOUND = 5.5
"""Five times the updates, five times the memory, and a tenth more for the allocator's granularity."""

BARS = (
    faster("tokens", OFFICIAL, 12),
    faster("mixed", OFFICIAL, 8),
    faster("diffs", OFFICIAL, 1.5),
    faster("sessions", OFFICIAL, 6),
    faster("tokens", ACP_CLIENT, 2.5),
    faster("mixed", ACP_CLIENT, 1.6),
    faster("diffs", ACP_CLIENT, 1.5),
    *(
        faster(measurement, THINKWELL, TRIO_BOUND, ours=TRIO)
        for measurement in ("tokens", "mixed", "diffs", "sessions")
    ),
    *(faster(measurement, THINKWELL, SYNC_BOUND, ours=SYNC) for measurement in ("tokens", "mixed")),
    smaller("unread: memory grown, thinkwell / official SDK", "unread", "grown_bytes", 0.25),
    Bar(
        title="unread: memory grown is linear, five times the updates / once",
        figure="grown_bytes",
        over=("unread_5x", THINKWELL),
        under=("unread", THINKWELL),
        bound=LINEAR_BOUND,
        at_least=False,
    ),
    smaller("import: thinkwell / official SDK", "import", "import_seconds", 0.35),
    smaller("round_trip: p50, thinkwell / official SDK", "round_trip", "p50_seconds", 1),
    smaller(
        "startup: program start to first event, thinkwell / official SDK",
        "startup",
        "program_to_first_seconds",
        0.45,
    ),
)
