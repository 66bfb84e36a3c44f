"""DBOS as the dispatcher: it hands each trial to one worker. Nothing of it is public.

A workflow is a trial; its arguments are the plan and the trial's name. DBOS has a schema of its own, and the
same version in all releases: a worker of the next one goes on with what this one has queued.
"""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING, Any, Final, NoReturn

from dbos import DBOS, WorkflowStatusString
from dbos import _serialization as dbos_serialization

from thinkwell.trials._engine.settings import Pace
from thinkwell.trials._engine.store import MAX_ATTEMPTS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from thinkwell.trials._engine.store import Name, Store

__all__ = ("Dispatcher",)

SCHEMA: Final = "thinkwell_dbos"
APPLICATION: Final = "thinkwell"
VERSION: Final = "thinkwell-trials-1"
"""Raised only when trials queued by the release before cannot be run any more."""

WORKFLOW: Final = "thinkwell.trial"

POLL: Final = 0.2
"""Seconds between two looks at a queue."""

DEAD: Final = (
    WorkflowStatusString.ERROR.value,
    WorkflowStatusString.CANCELLED.value,
    WorkflowStatusString.MAX_RECOVERY_ATTEMPTS_EXCEEDED.value,
)
"""A workflow in one of these never runs again. None of ours ends so by itself."""


class Dispatcher:
    """Takes trials from the queues, and puts them there. There can be one in a process.

    Args:
        store: The store.
        worker: The worker's id.
        run: Runs a trial. It is called in a thread of its own for each.
    """

    def __init__(self, store: Store, worker: str, run: Callable[[str, Name, int], None]) -> None:
        self._store = store
        _refuse_pickles()
        logging.getLogger("dbos").setLevel(logging.CRITICAL)
        DBOS(
            config={
                "name": APPLICATION,
                "system_database_engine": store.engine,
                "system_database_url": store.url.render_as_string(hide_password=False),
                "dbos_system_schema": SCHEMA,
                "application_version": VERSION,
                "executor_id": worker,
                "serializer": dbos_serialization.DBOSPortableJSON,
                "use_listen_notify": False,
                "log_level": "CRITICAL",
            }
        )

        @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=MAX_ATTEMPTS)
        def trial(plan: str, given: str, agent: str, repeat: int, dispatch: int) -> None:
            run(str(plan), (str(given), str(agent), int(repeat)), int(dispatch))

    def launch(self, agents: Collection[str], limit: int, paces: Mapping[str, Pace]) -> None:
        """Begin to take the trials of some agents.

        Args:
            agents: The agents.
            limit: How many trials of one agent to take at a time.
            paces: The limits of agents, for all workers together.
        """
        DBOS.listen_queues([_queue(agent) for agent in agents])
        DBOS.launch()
        for agent in agents:
            pace = paces.get(agent, Pace())
            DBOS.register_queue(
                _queue(agent),
                worker_concurrency=limit if pace.at_once is None else min(limit, pace.at_once),
                global_concurrency=pace.at_once,
                limiter=None if pace.starts is None else {"limit": pace.starts, "period": pace.seconds},
                polling_interval_sec=POLL,
                on_conflict="always_update" if agent in paces else "never_update",
            )

    def dispatch(self) -> None:
        """Put what waits in a queue."""
        while waiting := self._store.open_trials(dispatched=False):
            for plan, name, dispatch in waiting:
                DBOS.enqueue_workflow_with_options(
                    {
                        "workflow_name": WORKFLOW,
                        "queue_name": _queue(name[1]),
                        "workflow_id": _workflow(plan, name, dispatch),
                        "app_version": VERSION,
                    },
                    plan,
                    *name,
                    dispatch,
                )
            self._store.dispatched(waiting)

    def take_over(self, living: Collection[str]) -> None:
        """Queue again what workers have left that live no more.

        Args:
            living: The ids of the workers that live.
        """
        queues = dict[str, list[str]]()
        for found in _listed(WorkflowStatusString.PENDING.value):
            if found.executor_id not in living and found.queue_name is not None:
                queues.setdefault(found.queue_name, []).append(found.workflow_id)
        for queue, ids in queues.items():
            DBOS.resume_workflows(ids, queue_name=queue)

    def revive(self) -> None:
        """Queue again what DBOS has given up, though the trial has not ended."""
        given_up = {found.workflow_id for found in _listed(*DEAD)}
        if given_up:
            for plan, name, dispatch in self._store.open_trials(dispatched=True):
                if _workflow(plan, name, dispatch) in given_up:
                    self._store.dispatch_again(plan, name, dispatch)


def _listed(*statuses: str) -> Iterable[Any]:
    return DBOS.list_workflows(status=list(statuses), name=WORKFLOW, load_input=False, load_output=False)


def _queue(agent: str) -> str:
    return f"thinkwell:{agent}"


def _workflow(plan: str, name: Name, dispatch: int) -> str:
    """Return the id of a workflow: that of a trial which was put in a queue for the nth time."""
    digest = hashlib.sha256("\0".join((plan, name[0], name[1], str(name[2]))).encode()).hexdigest()
    return f"{digest[:32]}-{dispatch}"


def _refuse_pickles() -> None:
    """Have DBOS read nothing but JSON.

    It reads each row in the format that the row names, not that of its configuration: a pickle in a shared
    database would run code on every worker.
    """

    def refuse(_self: object, _data: str) -> NoReturn:
        raise ValueError("this row is no JSON, and thinkwell has not written it")

    dbos_serialization.DefaultSerializer.deserialize = refuse  # type: ignore[method-assign, assignment]
