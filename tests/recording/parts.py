"""The parts of a recorder that need no run: they take out secrets, also those that come in pieces."""
# Private: sans-I/O. Thousands of texts are cut at every place: to record a run for each would take minutes.

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar, cast

from thinkwell._recording import _failures, _holding, _recorder, _redact

if TYPE_CHECKING:
    from collections.abc import Generator, Hashable, Mapping
    from pathlib import Path

    from thinkwell.events import JsonValue
    from thinkwell_acp import Transport

R = TypeVar("R")

REDACTED = "[redacted]"


class Released(NamedTuple, Generic[R]):
    """A record that waits no more."""

    record: R
    text: str | None


class Redactor(Protocol):
    """Takes secrets out."""

    def text(self, text: str) -> str:
        """Return a text without them."""
        ...

    def redact(self, value: JsonValue) -> JsonValue:
        """Return a message without them."""
        ...

    def answers(self, content: JsonValue, schema: JsonValue) -> JsonValue:
        """Return the answers to a form without them."""
        ...

    def raw(self, line: bytes) -> str:
        """Return a line that is no message without them."""
        ...

    def scan(self, text: str) -> object:
        """Look a text through; where it was the last one, return what was found."""
        ...

    def learn(self, value: str) -> None:
        """Know a secret from now on."""
        ...


class Holder(Protocol[R]):
    """Holds back records whose text may end in the middle of a secret."""

    def add(
        self, record: R, stream: Hashable = None, text: str | None = None, size: int = 0
    ) -> list[Released[R]]:
        """Take a record, and return those that wait no more."""
        ...

    def close(self, stream: Hashable) -> list[Released[R]]:
        """Nothing more comes of a text."""
        ...

    def pause(self, stream: Hashable) -> list[Released[R]]:
        """Something else comes before a text goes on."""
        ...

    @property
    def holds(self) -> bool:
        """Whether something waits."""
        ...

    def settle(self) -> list[Released[R]]:
        """Nothing has come for a while."""
        ...

    def flush(self) -> list[Released[R]]:
        """Nothing more comes."""
        ...


def redactor_of(
    environment: Mapping[str, str] | None = None, given: Mapping[str, str] | None = None
) -> Redactor:
    """Return one that knows the variables of the process, and those that its user has given to the agent."""
    return _redact.Redactor(environment or {}, given or {})


def holder_of(redactor: Redactor, limit: int | None = None) -> Holder[R]:
    """Return one that holds back so many characters at most."""
    made: _holding.Holder[R] = _holding.Holder(
        cast("_redact.Redactor", redactor), *(() if limit is None else (limit,))
    )
    return cast("Holder[R]", made)


def memory_of(redactor: Redactor) -> int:
    """Return of how many texts one remembers something, of the kind that it remembers most of."""
    made = cast("_redact.Redactor", redactor)
    return max(len(made._memo), len(made._keys), len(made._innocent))


def remembered(holder: Holder[R]) -> int:
    """Return of how many texts something is remembered."""
    return len(cast("_holding.Holder[R]", holder)._streams)


@contextmanager
def recorded_transport(path: Path, transport: Transport, *, max_line: int) -> Generator[Transport]:
    """A connection of which everything is recorded, for the time of a block."""
    recorder = _recorder.Recorder(path, _redact.Redactor({}, {}), lambda: 0.0)
    with recorder:
        yield recorder.tapped(transport, max_line)


def failure_fields(error: Exception) -> dict[str, object]:
    """Return the attributes of an error as they are recorded."""
    return dict(_failures.failure_of(error).fields)
