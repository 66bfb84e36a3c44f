"""`RunServer`: runs that callers start, watch, answer and stop."""

from __future__ import annotations

import logging
import time
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from msgspec import Struct

from thinkwell._conversations.agent_keeper import AgentKeeper
from thinkwell._conversations.conversations import Conversations
from thinkwell._core.exit import Opening
from thinkwell._core.schema.arguments import check_seconds
from thinkwell.channels import ConversationBusy, RouterClosed
from thinkwell.journal import JournalConflict, JournalError, MemoryJournal, RunRecord
from thinkwell.web._calls import Asked, Replied, asked_answer
from thinkwell.web._ends import Ends
from thinkwell.web._live import UNCLEAR, LiveRun, replied
from thinkwell.web._records import EntryWriter, Reduced, RunEnded
from thinkwell.web._refusals import (
    RequestInvalid,
    RunNotFound,
    RunStillRunning,
    ServerUnavailable,
    TooManyRuns,
)
from thinkwell.web._remote_runs import RemoteRuns, goes_on
from thinkwell.web._requests import Limits, check_request, check_room
from thinkwell.web._run_ids import new_run_id
from thinkwell.web._threads import Place, Threads
from thinkwell.web._waiting import waiting_runs
from thinkwell.web._watching import Watcher
from thinkwell.web._workers import warn_of_workers

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from types import TracebackType
    from typing import Self

    from anyio.abc import TaskGroup

    from thinkwell import Agent, Session
    from thinkwell._conversations.conversation import Turn
    from thinkwell.journal import Journal, Retention, RunStatus
    from thinkwell.questions import Answer
    from thinkwell.tools import Tool
    from thinkwell.view import RunView
    from thinkwell.web._requests import ServedAgent, StartRun
    from thinkwell.web._watching import Tail

LOOK_EVERY: Final = 5.0
"""Seconds between searches for runs whose server has died."""

PRUNE_EVERY: Final = 60.0
"""Seconds between searches for runs that are too old or too many."""

PRUNE_THREADS_EVERY: Final = 3600.0
"""Seconds between searches for conversations without runs."""

MOST_LISTED: Final = 1000

MOST_KEY: Final = 200
"""Most characters of an idempotency key."""

logger = logging.getLogger("thinkwell")


class RunState(Struct, frozen=True, kw_only=True):
    """A run at one moment."""

    record: RunRecord
    seq: int
    """Number of the last entry that it includes."""
    view: RunView
    end: RunEnded | None = None
    """Its end."""


class RunServer:
    """Starts runs for callers, and stores their logs in a journal, from which they can be watched.

    Use it as ``async with RunServer(…) as server:``. Leaving the block disconnects watchers, then stops the
    active runs (``interrupted``). It is independent of HTTP: see `web_app`.

    Args:
        agents: The agents that callers may use, by the names that callers use. The first is the default.
        journal: Where to store the runs; by default in memory. The server opens and closes it.
        limits: Limits for callers.
        retention: Which runs to delete; by default none.
        idle_after: Seconds without a turn after which the session of a conversation is closed; ``None`` for
            never.
        abandoned_after: Seconds without a watcher after which a run is cancelled, except while it
            waits for an answer. By default it continues without watchers.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: There is no agent, or an argument is out of range.
    """

    def __init__(
        self,
        agents: Mapping[str, ServedAgent],
        *,
        journal: Journal | None = None,
        limits: Limits | None = None,
        retention: Retention | None = None,
        idle_after: float | None = 3600.0,
        abandoned_after: float | None = None,
    ) -> None:
        if not agents:
            raise ValueError('RunServer(agents={}): give at least one: {"claude": served_agent("claude")}')
        for name, seconds in (("idle_after", idle_after), ("abandoned_after", abandoned_after)):
            if seconds is not None:
                check_seconds(name, seconds)
        self.agents: Mapping[str, ServedAgent] = dict(agents)
        self.journal: Journal = MemoryJournal() if journal is None else journal
        self.limits: Limits = limits or Limits()
        self._retention = retention
        self._idle_after = idle_after
        self._abandoned_after = abandoned_after
        self._conversations: dict[tuple[str, str], Conversations] = {}
        self._lives: dict[str, LiveRun] = {}
        """The running runs of this process."""
        self._threads = Threads(self.journal)
        self._recent: dict[str, Conversations] = {}
        """The conversations with a session, the last used one at the end."""
        self._ends = Ends(self.journal)
        self._remote_runs = RemoteRuns(self.journal, abandoned_after)
        self._watchers: set[Watcher] = set()
        self._opening: Opening[Self] | None = None
        self._runs: TaskGroup | None = None
        self._tasks: TaskGroup | None = None
        self._leaving = False

    def __repr__(self) -> str:
        state = f"{len(self._lives)} runs" if self._runs is not None else "closed"
        return f"<RunServer {state}>"

    @property
    def is_open(self) -> bool:
        """Whether its block is open."""
        return self._runs is not None

    async def __aenter__(self) -> Self:
        if self.is_open:
            raise RuntimeError("this RunServer has already been entered")
        opening = Opening("the server", lambda _: self._opened())
        await opening.start()
        self._opening = opening
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._opening is not None
        await self._opening.__aexit__(kind, error, traceback)

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[Self]:
        warn_of_workers(self.journal)
        async with self.journal, anyio.create_task_group() as self._tasks:
            self._leaving = False
            self.journal.serve(partial(_asked, self._lives))
            await self._end_orphans()
            self._tasks.start_soon(self._look_for_orphans)
            self._tasks.start_soon(self._prune_threads)
            if self._retention is not None:
                self._tasks.start_soon(_prune, self.journal, self._retention)
            try:
                async with anyio.create_task_group() as self._runs, AsyncExitStack() as stack:
                    for name, agent in self.agents.items():
                        for permissions, policy in agent.permissions.items():
                            conversations = Conversations(
                                AgentKeeper(partial(agent.open, policy)),
                                self._session,
                                idle_after=self._idle_after,
                                max_waiting=self.limits.max_waiting,
                            )
                            await stack.enter_async_context(conversations.open())
                            self._conversations[name, permissions] = conversations
                    yield self
                    self.begin_leaving()
            finally:
                self._runs = None
                self._conversations.clear()
                self.journal.serve(None)
                self._tasks.cancel_scope.cancel()

    def close_watchers(self) -> None:
        """Disconnect all watchers at once. They reconnect when a server is back, and resume."""
        for watcher in tuple(self._watchers):
            watcher.close()
        for live in self._lives.values():
            live.tail.close()
        self._remote_runs.close()

    def begin_leaving(self) -> None:
        """Start no more runs, and disconnect all watchers, including new ones.

        This is the first part of leaving the block, for programs that have to do something before the rest:
        an HTTP server ends when no client is connected any more.
        """
        self._leaving = True
        self.close_watchers()

    # For callers

    async def start(
        self, request: StartRun, *, caller: str, key: str | None = None, tools: Sequence[Tool] = ()
    ) -> RunRecord:
        """Start a run, which continues with or without watchers.

        Args:
            request: The request.
            caller: The caller.
            key: The caller's idempotency key. The same key does not start another run.
            tools: Tools for the agent, in addition to its own.

        Returns:
            The record of the run, or of the one started earlier with the same key.

        Raises:
            RequestInvalid: The operator does not offer this, or a value is invalid.
            TooManyRuns: The maximum number of runs is reached.
            ServerUnavailable: The server is closing.
            JournalUnwritable: There is no room for the run.
            JournalError: The run cannot be stored.
        """
        checked = check_request(request, self.agents)
        if key is not None and not 0 < len(key) <= MOST_KEY:
            raise RequestInvalid(f"the key of a request has 1 to {MOST_KEY} characters")
        if self._runs is None or self._leaving:
            raise ServerUnavailable("the server is closing; try again when it is back")
        for live in self._lives.values():
            if key is not None and (live.record.caller, live.record.key) == (caller, key) and live.is_kept:
                return live.record  # a caller with as many runs as allowed can ask for one again, too
        check_room(self.limits, Counter(live.record.caller for live in self._lives.values()), caller)
        await self._ends.store()  # without room for that, there is none for more
        writer = EntryWriter()
        record = RunRecord(
            id=new_run_id(),
            agent=checked.agent,
            created=time.time(),
            caller=caller,
            title=writer.text(checked.title),
            thread=request.thread,
            key=key,
            meta=request.meta,
        )
        live, stored = LiveRun(record, checked, tools, writer), record
        self._lives[record.id] = live
        try:
            live.turn = await self._ask(live.place, checked.permissions)
            with anyio.CancelScope(shield=True):  # every run in the journal has to be ended
                stored = await self._create(record)
                live.is_kept = stored.id == record.id
                if live.is_kept:
                    self._runs.start_soon(self._run, live)
            return stored
        finally:
            if not live.is_kept:
                if live.turn is not None:
                    await live.turn.end()
                del self._lives[record.id]

    async def get(self, run_id: str, *, caller: str) -> RunRecord:
        """Return the record of a run.

        Raises:
            RunNotFound: The caller has no such run.
        """
        record = await self.journal.get(run_id)
        if record is None or record.caller != caller:
            raise RunNotFound(in_memory=isinstance(self.journal, MemoryJournal))
        return self._ends.shown(record)

    async def runs(
        self,
        *,
        caller: str,
        thread: str | None = None,
        status: RunStatus | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[RunRecord]:
        """Return a caller's runs, the newest first; see `Journal.runs`."""
        limit = max(1, min(limit, MOST_LISTED))
        return await self._ends.runs(caller=caller, thread=thread, status=status, before=before, limit=limit)

    async def waiting(self, records: Iterable[RunRecord]) -> frozenset[str]:
        """Return the ids of the runs that wait for an answer, on any server.

        Args:
            records: The runs, as `runs` and `get` return them.
        """
        return await waiting_runs(self.journal, records)

    async def state(self, run_id: str, *, caller: str) -> RunState:
        """Return the current state of a run.

        Raises:
            RunNotFound: The caller has no such run.
        """
        record = await self.get(run_id, caller=caller)
        live = self._lives.get(run_id)
        reduced = Reduced(record) if live is None else live.reduced
        view = await reduced.read(self.journal)
        unstored = self._ends.get(run_id)
        end = reduced.end if unstored is None else unstored.end
        if end is not None and record.status == "running":  # it existed when this began
            record = await self.get(run_id, caller=caller)
        return RunState(record=record, seq=reduced.seq if end is None else end.seq, view=view, end=end)

    @asynccontextmanager
    async def watch(self, run_id: str, *, caller: str, after: int = 0) -> AsyncGenerator[Watcher]:
        """Watch a run inside a block, from its first entry, or after the one with a number.

        Raises:
            RunNotFound: The caller has no such run.
        """
        record = await self.get(run_id, caller=caller)
        live, unstored = self._lives.get(run_id), self._ends.get(run_id)
        following: AbstractContextManager[Tail | None] = nullcontext()  # the journal has all of it
        if live is not None:
            following = live.watch()
        elif unstored is not None:
            following = nullcontext(unstored.tail)
        elif record.status == "running" and self._tasks is not None:
            following = self._remote_runs.watch(record, self._tasks)
        with following as tail:
            watcher = Watcher(self.journal, record, tail, after)
            if self._leaving:
                watcher.close()
            self._watchers.add(watcher)
            try:
                yield watcher
            finally:
                watcher.close()
                self._watchers.discard(watcher)

    async def answer(
        self, run_id: str, question_id: str, answer: Answer, *, caller: str, by: str = "human"
    ) -> None:
        """Answer an open question of a run, on whichever server it runs.

        Args:
            run_id: The run.
            question_id: The question.
            answer: See `thinkwell.questions`.
            caller: The caller.
            by: Who answers, for the log.

        Raises:
            RunNotFound: The caller has no such run.
            QuestionClosed: It has no such open question.
            AnswerRefused: The answer does not fit the question, which stays open.
            ServerUnavailable: The server that has the run does not answer.
        """
        record = await self.get(run_id, caller=caller)
        await self._tell(record, asked_answer(question_id, answer, by))

    async def steer(self, run_id: str, text: str, *, caller: str) -> None:
        """Tell the agent of a run something while it works; see `ThoughtStream.steer`.

        Args:
            run_id: The run, on whichever server it runs.
            text: What to tell it.
            caller: The caller.

        Raises:
            RunNotFound: The caller has no such run.
            RequestInvalid: The text is blank.
            MessageNotTaken: The agent does not take it, or the run has not begun, or has ended.
            ServerUnavailable: The agent, or the server that has the run, does not say whether it was taken.
        """
        record = await self.get(run_id, caller=caller)
        if not text.strip():
            raise RequestInvalid("text: it is blank; say what to tell the agent")
        await self._tell(record, Asked(what="steer", text=text))

    async def cancel(self, run_id: str, *, caller: str) -> None:
        """Cancel a run. No effect if it has ended.

        Raises:
            RunNotFound: The caller has no such run.
            ServerUnavailable: The server that has the run does not answer.
        """
        record = await self.get(run_id, caller=caller)
        if record.status == "running":
            await self._tell(record, Asked(what="cancel"))

    async def delete(self, run_id: str, *, caller: str) -> None:
        """Delete a run that has ended.

        Raises:
            RunNotFound: The caller has no such run.
            RunStillRunning: The run has not ended.
        """
        await self.get(run_id, caller=caller)
        try:
            gone = await self.journal.delete(run_id)
        except JournalConflict:
            raise RunStillRunning from None
        if not gone:
            raise RunNotFound

    # Runs

    async def _create(self, record: RunRecord) -> RunRecord:
        try:
            stored = await self.journal.create(record)
        except JournalError:
            if self.is_open:  # it may have been stored, without an owner
                self._end_later(record)
            raise
        if not self.is_open:  # the process that opens the journal next ends it
            raise ServerUnavailable("the server is closing; try again when it is back")
        return stored

    async def _ask(self, place: Place, permissions: str) -> Turn:
        conversations = self._conversations[place.agent, permissions]
        try:
            if not place.single and await self._threads.is_elsewhere(place):
                conversations.reset(place.key)
            turn = conversations.ask(place.key, once=place.single)
        except ConversationBusy:
            raise TooManyRuns(
                f"{self.limits.max_waiting} runs of that conversation wait for their turn, and no more may"
            ) from None
        except RouterClosed:
            raise ServerUnavailable("the server is closing; try again when it is back") from None
        if not place.single:
            self._recent.pop(place.key, None)
            self._recent[place.key] = conversations
            self._close_oldest()
        return turn

    def _close_oldest(self) -> None:
        """Close the sessions of the conversations that were unused for longest."""
        known = self._open_threads()
        self._recent = {key: each for key, each in self._recent.items() if key in known}
        surplus = len(self._recent) - self.limits.max_conversations
        if surplus > 0:
            busy = {live.place.key for live in self._lives.values()}
            idle = [key for key in self._recent if key not in busy]
            for key in idle[:surplus]:
                self._recent.pop(key).reset(key)

    def _open_threads(self) -> set[str]:
        """Return the keys of the conversations that are running, or might be."""
        return {key for conversations in self._conversations.values() for key in conversations.user_ids}

    def _session(self, agent: Agent, key: str) -> AbstractAsyncContextManager[Session]:
        place = msgspec.json.decode(key, type=Place)
        folder = None if place.folder is None else self.agents[place.agent].folders[place.folder]
        if not place.single:
            return self._threads.session(agent, place, folder)
        live = self._lives.get(place.name)
        return agent.session(cwd=folder, output=None if live is None else live.checked.output)

    async def _run(self, live: LiveRun) -> None:
        """Run a run, and write all of it to the journal. Never raises."""
        served = self.agents[live.record.agent]
        try:
            async with anyio.create_task_group() as tasks:
                if self._abandoned_after is not None:
                    tasks.start_soon(live.cancel_unwatched, self._abandoned_after)
                try:
                    await live.main(
                        served, self.journal, self._threads, self._ends, is_leaving=lambda: self._leaving
                    )
                except Exception as exc:  # otherwise the server would end, with all other runs
                    if isinstance(exc, JournalError):
                        about = "Run %s goes no further, as its log cannot be kept: %s"
                        logger.error(about, live.record.id, exc)
                    else:
                        logger.error("Run %s goes no further, by a mistake", live.record.id, exc_info=exc)
                    self._end_later(live.record)
                tasks.cancel_scope.cancel()
        finally:
            live.tail.close()
            del self._lives[live.record.id]

    def _end_later(self, record: RunRecord) -> None:
        assert self._tasks is not None
        self._tasks.start_soon(self._end_unkept, record)

    async def _end_unkept(self, record: RunRecord) -> None:
        """End a run in the journal as soon as that is possible again."""
        while True:
            try:
                known = await self.journal.get(record.id)
                if known is not None and known.status == "running":
                    await self._ends.interrupt(known)
            except JournalError:
                await anyio.sleep(LOOK_EVERY)
            else:
                return

    # Other processes

    async def _tell(self, record: RunRecord, asked: Asked) -> None:
        live = self._lives.get(record.id)
        if live is not None:
            await live.do(asked)
            return
        try:
            answer = await self.journal.call(record.id, msgspec.json.encode(asked))
        except JournalConflict:
            if await goes_on(self.journal, record.id):
                again = UNCLEAR if asked.what == "steer" else "try again"
                raise ServerUnavailable(f"the server that has the run does not answer; {again}") from None
            answer = msgspec.json.encode(await replied(asked, None))
        msgspec.json.decode(answer, type=Replied).raise_refusal()

    # Background tasks

    async def _look_for_orphans(self) -> None:
        while True:
            await anyio.sleep(LOOK_EVERY)
            await self._end_orphans()
            with suppress(JournalError):  # then the next time
                await self._ends.store()

    async def _end_orphans(self) -> None:
        try:
            orphans = await self.journal.orphans()
        except JournalError as exc:
            logger.warning("It cannot be looked for runs whose server has died: %s", exc)
            return
        for record in orphans:
            logger.warning("Run %s was interrupted by the end of its server", record.id)
            try:
                await self._ends.interrupt(record)
            except JournalConflict as exc:
                logger.warning("Run %s could not be ended: %s", record.id, exc)
            except JournalError as exc:  # no process gets it again
                logger.warning("Run %s cannot be ended yet: %s", record.id, exc)
                self._end_later(record)

    async def _prune_threads(self) -> None:
        while True:
            await anyio.sleep(PRUNE_THREADS_EVERY)
            try:
                await self._threads.prune(self._open_threads())
            except JournalError as exc:
                logger.warning("Conversations without runs cannot be forgotten: %s", exc)


async def _asked(lives: Mapping[str, LiveRun], run_id: str, body: bytes) -> bytes:
    """Perform the request of another process about a run of this one."""
    asked = msgspec.json.decode(body, type=Asked)
    return msgspec.json.encode(await replied(asked, lives.get(run_id)))


async def _prune(journal: Journal, retention: Retention) -> None:
    while True:
        try:
            await retention.prune(journal, time.time())
        except JournalError as exc:
            logger.warning("Runs that are too old cannot be forgotten: %s", exc)
        await anyio.sleep(PRUNE_EVERY)
