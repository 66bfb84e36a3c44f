"""Runs by the hundred on real servers that are killed now and then, and thousands who watch them."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import anyio
from soak.plays import pieces_of
from soak.soak_plan import HABITS
from soak.watching_client import Broken, Frames, ask, connected
from web_stage import read_entry

from thinkwell.journal import Entry
from thinkwell.web import RunEnded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from anyio.abc import TaskGroup
    from soak.server_process import ServerProcess
    from soak.soak_plan import Phase, PlannedRun, PlannedWatcher
    from soak.watching_client import Answer, Frame
    from web_stage import LogEntry

    from thinkwell.journal import Journal, RunRecord

__all__ = ("Outcome", "soak")

SILENCE: Final = 1.0
"""Seconds to wait for an event behind which a server is killed."""

LOOK_EVERY: Final = 0.5
"""Seconds after which it is looked at the server's memory again."""

BASE: Final = 150 << 20
"""Bytes of memory that a server may have without anybody who watches."""

PER_WATCHER: Final = 150 << 10
"""Bytes of memory that it may have for each who watches."""

TOLD: Final = 20
"""How much of what was wrong is told in words; the rest is counted."""

MANY: Final = 100
"""Runs of which some have to be hit when servers are killed."""

ENDINGS: Final = {"ends": "completed", "fails": "failed", "waits": "cancelled"}
"""How a run has to end that no kill has interrupted."""


@dataclass(slots=True)
class Outcome:
    """What came of a soak."""

    wrong: list[str] = field(default_factory=list[str])
    """What may not happen, and did."""
    seen: list[str] = field(default_factory=list[str])
    """Where events were lost, came again or differed, the first of them."""
    lost: int = 0
    """Events that a watcher did not get."""
    repeated: int = 0
    """Events that a watcher got again."""
    differing: int = 0
    """Events that are not the same for all, or not what the journal has."""
    statuses: Counter[str] = field(default_factory=Counter[str])
    """How the runs have ended."""
    counts: Counter[str] = field(default_factory=Counter[str])
    """What happened, how often."""
    entries: int = 0
    """Elements of all logs."""
    watching: int = 0
    """Streams that are open."""
    most_watching: int = 0
    """Streams that were open at once."""
    seconds: float = 0.0
    """How long the server had something to do."""
    peak: int = 0
    """The most memory that the server had, in bytes."""

    @property
    def bad(self) -> bool:
        """Whether it was not as it has to be."""
        return bool(self.wrong or self.lost or self.repeated or self.differing)

    def __str__(self) -> str:
        counts, statuses = self.counts, self.statuses
        ends = ", ".join(f"{number:,} {name}" for name, number in statuses.most_common())
        habits = ", ".join(f"{counts[name]:,} {name}" for name in HABITS)
        speed = counts["events"] / max(self.seconds, 0.1)
        peak = self.peak / (1 << 20)
        return f"""\
{statuses.total():,} runs: {ends}; {self.entries:,} entries in their logs
{counts["events"]:,} events were watched in {self.seconds:.0f} s: {speed:,.0f} a second
{counts["streams"]:,} streams, {self.most_watching:,} of them at once; watchers: {habits}
{counts["cuts"]:,} times one of them went and came back; {counts["late"]:,} came back to nothing more
{counts["kills"]} times a server was killed, and {counts["broken"]:,} streams with it
{counts["unavailable"]:,} times a server could not reach the one that has a run
{counts["again"]:,} starts were asked for again unheard, and {counts["doubts"]:,} though they were answered
a server had {peak:,.0f} MiB of memory at most
lost {self.lost}, repeated {self.repeated}, differing {self.differing}, wrong {len(self.wrong)}""" + "".join(
            f"\n    {line}" for line in (*self.seen, *self.wrong[:TOLD])
        )

    def see(self, what: str) -> None:
        """Note where an event was lost, came again or differed."""
        if len(self.seen) < TOLD:
            self.seen.append(what)


class _Run:
    """A run, as those see it who watch it."""

    def __init__(self, plan: PlannedRun) -> None:
        self.plan = plan
        self.id = ""
        self.asked_of: set[ServerProcess] = set()
        """Servers that were asked to start it: one of them has it."""
        self.started = anyio.Event()
        self.entries: list[bytes] = []
        """What the first one got who got that far."""
        self.ended = False
        self.was_killed = False
        """Whether its server was killed while it was not known to have ended."""


class _Soak:
    """A soak in progress."""

    def __init__(self, servers: Sequence[ServerProcess], outcome: Outcome) -> None:
        self.outcome = outcome
        self._servers = servers
        self._dice = random.Random(0)
        self._runs: list[_Run] = []
        self._ended = anyio.Event()
        """Set when another run has ended."""
        self._doomed: ServerProcess | None = None
        """Who is killed as soon as somebody gets an event from it."""
        self._struck = anyio.Event()
        """Set when it was."""

    async def main(self, phases: Sequence[Phase]) -> None:
        """Let it all happen."""
        began = time.monotonic()
        for server in self._servers:
            await server.start()
        async with anyio.create_task_group() as others:
            others.start_soon(self._look)
            async with anyio.create_task_group() as tasks:
                for phase in phases:
                    await self._play(phase, tasks, others)
            self.outcome.seconds = time.monotonic() - began
            await self._check_shown()
            # Some do not read, and are there still: the server has to end all the same.
            for server in self._servers:
                status = await server.stop()
                if status != 128 + signal.SIGTERM:
                    self.wrong(
                        f"at a SIGTERM, a server ended with status {status}; it said:\n{server.tail()}"
                    )
            others.cancel_scope.cancel()

    def wrong(self, what: str) -> None:
        """Note what may not happen."""
        self.outcome.wrong.append(what)

    def any_server(self, dice: random.Random) -> ServerProcess:
        """Return one of the servers, which may be dead."""
        return dice.choice(self._servers)

    async def _look(self) -> None:
        while True:
            for server in self._servers:
                server.look()
            await anyio.sleep(LOOK_EVERY)

    async def _play(self, phase: Phase, tasks: TaskGroup, others: TaskGroup) -> None:
        runs = {plan.number: _Run(plan) for plan in phase.runs}
        self._runs += runs.values()
        killing = anyio.Event()
        for run in runs.values():
            tasks.start_soon(self._run, run, killing if run.plan.start is None else None)
        for planned in phase.watchers:
            watcher = _Watcher(self, runs[planned.run.number], planned)
            (others if planned.habit == "deaf" else tasks).start_soon(watcher.main)
        if phase.ends is None:
            return
        while sum(run.ended for run in runs.values()) < phase.ends:
            self._ended = anyio.Event()
            await self._ended.wait()
        killing.set()
        await anyio.sleep(phase.mercy)
        await self._kill(self._servers[self.outcome.counts["kills"] % len(self._servers)])

    async def _kill(self, server: ServerProcess) -> None:
        """Kill a server just after an event has come: what was seen has to be stored."""
        server.look()
        children = server.children()
        self._doomed, self._struck = server, anyio.Event()
        with anyio.move_on_after(SILENCE):
            await self._struck.wait()
        self.took_from(self._doomed)
        await server.wait_killed(children)
        self.outcome.counts["kills"] += 1
        await server.start()

    def took_from(self, server: ServerProcess | None) -> None:
        """Note that somebody got events from a server. If it is to be killed, that happens now."""
        if server is None or server is not self._doomed:
            return
        self._doomed = None
        server.strike()
        for run in self._runs:
            run.was_killed = run.was_killed or (server in run.asked_of and not run.ended)
        self._struck.set()

    def waiting(self) -> str:
        """Say what has not ended."""
        numbers = [str(run.plan.number) for run in self._runs if not run.ended]
        return (
            f"{self.outcome.watching} streams are open, and of {len(numbers)} runs nobody has seen the end: "
            + (", ".join(numbers[:20]))
        )

    # Runs

    async def _run(self, run: _Run, killing: anyio.Event | None) -> None:
        """Start a run, as somebody who does not know whether it has worked; and cancel it, where it waits."""
        if killing is not None:
            await killing.wait()
        else:
            await anyio.sleep(run.plan.start or 0.0)
        plan = run.plan
        order: tuple[dict[str, str], dict[str, str]] = (
            {"prompt": plan.play.prompt, "title": str(plan.number)},
            {"Idempotency-Key": f"soak-{plan.number}"},
        )
        answer = await self.ask("POST", "/api/runs", *order, starts=run)
        run.id = answer["run"]["id"]
        run.started.set()
        if plan.play.ending == "waits":
            await anyio.sleep(plan.seconds)
            await self.ask("POST", f"/api/runs/{run.id}/cancel")
        if plan.doubt is not None:
            await anyio.sleep(plan.doubt)
            answer = await self.ask("POST", "/api/runs", *order)
            self.outcome.counts["doubts"] += 1
            if answer["run"]["id"] != run.id:
                self.wrong(f"run {plan.number} was started twice under the same key")

    def run_ended(self, run: _Run) -> None:
        """Note that somebody saw the end of a run."""
        if not run.ended:
            run.ended = True
            self._ended.set()

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        starts: _Run | None = None,
    ) -> Any:
        """Ask one server after the other until one answers.

        Args:
            method: How to ask.
            path: For what.
            body: What to send, as JSON.
            headers: What to say besides.
            starts: The run that begins by it.
        """
        while True:
            server = self.any_server(self._dice)
            if starts is not None:
                self.outcome.counts["again"] += bool(starts.asked_of)
                starts.asked_of.add(server)
            try:
                said = {**server.headers, **(headers or {})}
                status, answer = await ask(server.port, method, path, body, said)
            except Broken:
                await anyio.sleep(0.1)
                continue
            if status == 503 and len(self._servers) > 1:  # it has passed this on to one that was killed
                self.outcome.counts["unavailable"] += 1
                await anyio.sleep(0.5)
                continue
            if status >= 300:
                self.wrong(f"{method} {path} was answered {status}: {answer}")
            return answer

    # What has to be at the end

    async def _check_shown(self) -> None:
        """Look whether the server tells the same as the logs that were watched."""
        for run in self._runs:
            answer = await self.ask("GET", f"/api/runs/{run.id}")
            end = read_end(run)
            shown = answer["run"]["status"], answer["seq"]
            if end is None or shown != (end.status, end.seq):
                watched = "without an end" if end is None else f"as {end.status} with {end.seq}"
                self.wrong(
                    f"run {run.plan.number} is shown as {shown[0]} with {shown[1]} entries, and was watched "
                    f"{watched}"
                )
        found: list[str] = []
        page = "/api/runs?limit=100"
        while True:
            answer = await self.ask("GET", page)
            found += [record["id"] for record in answer["runs"]]
            if answer["next"] is None:
                break
            page = f"/api/runs?limit=100&before={answer['next']}"
        if Counter(found) != Counter(run.id for run in self._runs):
            self.wrong(f"{len(self._runs)} runs were started, and {len(found)} are listed")

    async def check_journal(self, journal: Journal) -> None:
        """Look whether the journal has what was watched, and what the agent has done."""
        if orphans := await journal.orphans():
            self.wrong(f"{len(orphans)} runs are running, and nobody has them")
        for run in self._runs:
            record = await journal.get(run.id)
            if record is None:
                self.wrong(f"run {run.plan.number} is not in the journal")
                continue
            data: list[bytes] = []
            while entries := await journal.read(run.id, len(data)):
                if [entry.seq for entry in entries] != list(range(len(data) + 1, entries[-1].seq + 1)):
                    self.wrong(f"the log of run {run.plan.number} has gaps")
                data += [entry.data for entry in entries]
            self.outcome.entries += len(data)
            self.outcome.statuses[record.status] += 1
            self._check_run(run, record, data)

    def _check_run(self, run: _Run, record: RunRecord, data: list[bytes]) -> None:
        number = run.plan.number
        if run.entries != data:
            self.outcome.differing += 1
            self.outcome.see(
                f"run {number}: {len(run.entries)} entries were watched, the journal has {len(data)}, and "
                f"{sum(map(bytes.__eq__, run.entries, data))} of them are the same"
            )
        if (record.last_seq, record.size) != (len(data), sum(map(len, data))):
            self.wrong(f"run {number}: {record} is not what its log has: {len(data)} entries")
        end = read_end(run)
        if end is None or end.status != record.status or record.ended is None:
            watched = "no end" if end is None else end.status
            self.wrong(f"run {number}: its log has {watched}, and its record says {record.status}")
            return
        play = run.plan.play
        done, planned = pieces_of(read_entries(run)), play.pieces
        if end.status != ENDINGS[play.ending] and not (end.status == "interrupted" and run.was_killed):
            cause = "its server was killed" if run.was_killed else "no server of it was killed"
            self.wrong(
                f"run {number} is {end.status}, though its agent was asked for {play.ending!r}: {cause}"
            )
        if end.status in ("interrupted", "cancelled"):
            planned = planned[: len(done)]
        if done != planned:
            self.wrong(
                f"run {number}: its log is not what the agent has done: it is {end.status} with {len(done)} "
                f"pieces, and {len(planned)} were to come"
            )
        if end.status == "completed" and end.result != play.answer:
            self.wrong(f"run {number} has the result {end.result!r} and not {play.answer!r}")


class _Watcher:
    """Somebody who watches a run until its end, unless he gives up."""

    def __init__(self, soak: _Soak, run: _Run, plan: PlannedWatcher) -> None:
        self._soak = soak
        self._run = run
        self._plan = plan
        self._dice = random.Random(plan.seed)
        self._counts = soak.outcome.counts
        self._cuts = self._dice.randint(1, 4) if plan.habit == "resuming" else 0
        """How often he goes and comes back."""
        self._seq = 0
        self._ended = False

    async def main(self) -> None:
        await self._run.started.wait()
        await anyio.sleep(self._plan.delay)
        self._counts[self._plan.habit] += 1
        leaves = self._plan.habit in ("deaf", "vanishing")
        ended = False
        while not ended:
            server = self._soak.any_server(self._dice)
            life = server.life
            try:
                ended = await self._look(server, self._some_bytes() if self._cuts or leaves else None)
            except Broken as exc:
                if life and life == server.life:
                    self._soak.wrong(f"a stream broke off, though the server was there: {exc!r}")
                self._counts["broken"] += bool(life)
                ended = self._ended  # he may have had all of it
                await anyio.sleep(self._dice.uniform(0, 0.5))
                continue
            if leaves:
                return
            if not ended:
                if not self._cuts:
                    self._soak.wrong(f"a stream of run {self._run.plan.number} ended before the run")
                    return
                self._cuts -= 1
                self._counts["cuts"] += 1
                await anyio.sleep(self._dice.choice((0, 0, self._dice.uniform(0, 1))))
        if self._plan.habit == "resuming" and self._dice.random() < 0.3:
            await self._come_late()

    def _some_bytes(self) -> int:
        dice = self._dice
        return dice.choice((0, 1, 40, dice.randint(1, 2_000), dice.randint(1, 30_000)))

    async def _look(self, server: ServerProcess, most: int | None) -> bool:
        """Watch until the end, or until so many bytes have come. Return whether it was the end."""
        async with self._connected(server) as answer:
            if answer.status != 200:
                said = await answer.body()
                self._soak.wrong(f"a stream of run {self._run.plan.number}: {answer.status} {said!r}")
                return True
            outcome = self._soak.outcome
            self._counts["streams"] += 1
            outcome.watching += 1
            outcome.most_watching = max(outcome.most_watching, outcome.watching)
            try:
                await self._read(server, answer, most)
            finally:
                outcome.watching -= 1
            if most is not None and not self._ended:
                await self._leave(answer)
        return self._ended

    def _connected(self, server: ServerProcess) -> AbstractAsyncContextManager[Answer]:
        path, headers = f"/api/runs/{self._run.id}/events", server.headers
        if self._seq:
            way = self._dice.random()
            if way < 0.3:
                path += f"?after={self._seq}"
            else:
                headers["Last-Event-ID"] = str(self._seq)
                if way < 0.5:
                    path += "?after=0"  # as a page that comes back does: what it had first, and what it has
        slow = self._plan.habit in ("slow", "deaf")
        return connected(server.port, path, headers=headers, slow=slow)

    async def _read(self, server: ServerProcess, answer: Answer, most: int | None) -> None:
        frames = Frames()
        left = most
        while not self._ended and left != 0:
            if self._plan.habit == "slow":
                await anyio.sleep(self._plan.pause)
                data = await answer.read(self._plan.sip)
            else:
                data = await answer.read()
            if not data:
                return
            if left is not None:  # in the middle of an event, mostly, which is then as if it had not come
                data = data[:left]
                left -= len(data)
            found = frames.feed(data)
            self._take(found)
            if found:
                self._soak.took_from(server)
        if any(not other.startswith((b":", b"retry: ")) for other in frames.others):
            self._soak.wrong(f"something that is no event: {frames.others}")
        if most is None and await answer.read():
            self._soak.wrong("something comes behind the end of a run")

    async def _leave(self, answer: Answer) -> None:
        if self._plan.habit == "deaf":
            await anyio.sleep_forever()
        if self._plan.habit == "vanishing" or self._dice.random() < 0.5:
            answer.hang_up()

    def _take(self, frames: Sequence[Frame]) -> None:
        outcome, entries = self._soak.outcome, self._run.entries
        self._counts["events"] += len(frames)
        for frame in frames:
            if frame.id <= self._seq:
                outcome.repeated += 1
                self._see(f"event {frame.id} came again, behind event {self._seq}")
                continue
            if frame.id > self._seq + 1:
                outcome.lost += frame.id - self._seq - 1
                self._see(f"event {frame.id} came behind event {self._seq}")
            self._seq = frame.id
            if frame.id == len(entries) + 1:
                entries.append(frame.data)
            elif frame.id <= len(entries) and entries[frame.id - 1] != frame.data:
                outcome.differing += 1
                self._see(f"event {frame.id} is not what another one got")
            if frame.event == "end":
                self._ended = True
                self._soak.run_ended(self._run)

    def _see(self, what: str) -> None:
        """Note what is wrong with an event."""
        self._soak.outcome.see(f"run {self._run.plan.number}, a {self._plan.habit} watcher: {what}")

    async def _come_late(self) -> None:
        """Ask for what comes behind the end."""
        while True:
            try:
                async with self._connected(self._soak.any_server(self._dice)) as answer:
                    if answer.status != 204:
                        self._soak.wrong(f"what comes behind the end was answered {answer.status}")
                self._counts["late"] += 1
            except Broken:
                await anyio.sleep(0.1)
            else:
                return


def read_entries(run: _Run) -> list[LogEntry]:
    """Return the log of a run."""
    return [read_entry(Entry(number, data)) for number, data in enumerate(run.entries, 1)]


def read_end(run: _Run) -> RunEnded | None:
    """Return the end of a run, where its log has one, in its place."""
    ends = [
        (number, entry) for number, entry in enumerate(read_entries(run), 1) if isinstance(entry, RunEnded)
    ]
    return ends[0][1] if [number for number, _ in ends] == [len(run.entries)] else None


async def soak(servers: Sequence[ServerProcess], phases: Sequence[Phase], limit: float) -> Outcome:
    """Let it all happen, and return what came of it.

    Args:
        servers: Servers of one journal that are not started yet. They are killed in turn.
        phases: What happens.
        limit: Seconds after which something hangs.
    """
    outcome = Outcome()
    soaking = _Soak(servers, outcome)
    try:
        with anyio.move_on_after(limit) as limited:
            await soaking.main(phases)
    finally:
        for server in servers:
            server.close()
    if limited.cancelled_caught:
        soaking.wrong(f"it has not ended after {limit:.0f} s: {soaking.waiting()}")
        return outcome
    async with servers[0].journal() as journal:
        await soaking.check_journal(journal)
    _check_plan(soaking, phases)
    watchers = max(len(phase.watchers) for phase in phases)
    outcome.peak = max(server.peak for server in servers)
    if outcome.peak > BASE + PER_WATCHER * watchers:
        soaking.wrong(f"a server had {outcome.peak:,} bytes of memory")
    if left := sum(len(server.left) for server in servers):
        soaking.wrong(f"{left} agents outlived their server")
    return outcome


def _check_plan(soaking: _Soak, phases: Sequence[Phase]) -> None:
    """Look whether it happened: where nobody watches and nobody is killed, nothing is lost."""
    outcome = soaking.outcome
    # One who does not read may still be on his way when all is over.
    came = sum(outcome.counts[habit] for habit in HABITS if habit != "deaf")
    planned = sum(watcher.habit != "deaf" for phase in phases for watcher in phase.watchers)
    if came != planned:
        soaking.wrong(f"{planned} watchers were to come, and {came} came")
    if outcome.counts["unavailable"] and not outcome.counts["kills"]:
        soaking.wrong(f"{outcome.counts['unavailable']} times a server was not reached, and none was killed")
    hit = outcome.statuses["interrupted"] and outcome.counts["broken"]
    if outcome.counts["kills"] and outcome.statuses.total() >= MANY and not hit:
        soaking.wrong("no run ended with its server, or nobody watched one: nothing is shown by the kills")
