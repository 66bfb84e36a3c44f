"""Lists in pages, as Letta's clients read them: by the id of the last item, until a page is empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Literal, Protocol, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from thinkwell.journal import RunRecord, RunStatus
    from thinkwell.web._serving import RunServer

MOST: Final = 1000
"""Most items of a page."""


FIRST: Final = 100
"""Records of the first read. Each further read has twice as many: long pages are rare."""

MOST_AT_ONCE: Final = 1000
"""Most records of one read."""


class _Named(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_Named)


class Page(Struct, frozen=True, kw_only=True):
    """The part of a list that the query of a request wants; by default the latest items, latest first."""

    usual: ClassVar[int] = 50
    """Items of a page, by default."""
    after: str | None = None
    """Id of the item before it, in the requested order."""
    before: str | None = None
    """Id of the item after it."""
    limit: int | None = None
    order: Literal["asc", "desc"] | None = None
    ascending: bool | None = None
    """The older name of `order`."""

    @property
    def most(self) -> int:
        """Most items of the page."""
        return max(1, min(self.usual if self.limit is None else self.limit, MOST))

    @property
    def oldest_first(self) -> bool:
        """The requested order."""
        return bool(self.ascending) if self.order is None else self.order == "asc"

    @property
    def cursor(self) -> str | None:
        """Id of the item next to it; ``None``: it is the beginning."""
        return self.before if self.after is None else self.after

    @property
    def forwards(self) -> bool:
        """Whether it is read from the cursor towards newer items."""
        return self.oldest_first != self._is_reversed

    @property
    def _is_reversed(self) -> bool:
        """Whether it is read against the requested order."""
        return self.after is None and self.before is not None

    def in_order(self, found: list[T]) -> list[T]:
        """Return the items after the cursor in the requested order."""
        items = found[: self.most]
        return items[::-1] if self._is_reversed else items

    def beyond(self, items: list[T]) -> list[T]:
        """Return the items of a list after the cursor; none if the item next to it was deleted."""
        if self.cursor is None:
            return items
        return items[next((n for n, item in enumerate(items, 1) if item.id == self.cursor), len(items)) :]

    def of(self, items: list[T]) -> list[T]:
        """Return the part of a list, whose oldest item is its first.

        It is empty if the item next to it was deleted.
        """
        return self.in_order(self.beyond(items if self.forwards else items[::-1]))


class LongPage(Page, frozen=True, kw_only=True):
    """The same of a list whose pages are longer by default."""

    usual: ClassVar[int] = 100


class Runs:
    """A caller's runs, latest first, read from the journal as needed.

    Args:
        server: The server of the runs.
        caller: The caller.
        thread: Only runs of this conversation.
        status: Only runs with one of these.
        before: Only runs older than the one with this id.
        until: Only runs newer than the one with this id.
    """

    def __init__(
        self,
        server: RunServer,
        *,
        caller: str,
        thread: str | None = None,
        status: RunStatus | None = None,
        before: str | None = None,
        until: str | None = None,
    ) -> None:
        self._server = server
        self._caller = caller
        self._thread = thread
        self._status: RunStatus | None = status
        self._before = before
        self._until = until
        self._limit = FIRST
        self._page: Iterator[RunRecord] = iter(())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RunRecord:
        record = next(self._page, None)
        if record is None:
            self._page = iter(
                await self._server.runs(
                    caller=self._caller,
                    thread=self._thread,
                    status=self._status,
                    before=self._before,
                    limit=self._limit,
                )
            )
            self._limit = min(2 * self._limit, MOST_AT_ONCE)
            record = next(self._page, None)
        if record is None or record.id == self._until:
            raise StopAsyncIteration
        self._before = record.id
        return record
