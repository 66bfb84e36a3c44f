"""Distributes the cases to the workers.

xdist's own scheduler looks at all cases whenever one begins or ends: a minute with fifteen thousand of them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pytest
from xdist.scheduler import LoadGroupScheduling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

AHEAD: Final = 2
"""How many cases a worker has at least, while there are any."""


class Names(list[str]):
    """The cases of a worker in its order, each found at once."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self._places: Final = {name: place for place, name in enumerate(names)}

    def index(self, name: str, *_limits: object) -> int:
        """Return where a case is."""
        return self._places[name]


class Scheduling(LoadGroupScheduling):
    """Keeps groups together, and forgets those that have ended: it counts all that it knows for each case."""

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Note what a worker has collected."""
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Names(collection)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Note that a case has ended."""
        super().mark_test_complete(node, item_index, duration)
        group = self._split_scope(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][group].values()):
            del self.assigned_work[node][group]

    def remove_node(self, node: WorkerController) -> str | None:
        """Give what a worker has not run to the others, but for the case that ended it, which is returned."""
        left = self.assigned_work.pop(node)
        waiting = {name: group for group, unit in left.items() for name, ended in unit.items() if not ended}
        ended_it = next(iter(waiting), None)
        if ended_it is not None:
            left[waiting[ended_it]][ended_it] = True
            self.workqueue.update({group: left[group] for group in dict.fromkeys(waiting.values())})
            for other in self.nodes:
                self._reschedule(other)
        return ended_it

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Give a worker a group; where it has just died, `remove_node` takes it back."""
        with suppress(OSError):
            super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        """Give a worker what to run: of its last case it has to know that it is the last."""
        if node in self.registered_collections:
            while not node.shutting_down and self._pending_of(self.assigned_work[node]) <= AHEAD:
                if self.workqueue:
                    self._assign_work_unit(node)
                else:
                    node.shutdown()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Take the place of xdist's own scheduler."""
    return Scheduling(config, log) if config.option.dist == "loadgroup" else None
