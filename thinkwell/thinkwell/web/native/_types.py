"""The types of the native API's requests and answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from thinkwell.events import JsonValue  # noqa: TC001 - types of fields, here and below
from thinkwell.journal import RunStatus  # noqa: TC001
from thinkwell.questions import ChooseOption, FormValue, Reply, StopRun, Verdict
from thinkwell.web._records import RunEnded  # noqa: TC001
from thinkwell.web._refusals import RequestInvalid

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from thinkwell.journal import RunRecord
    from thinkwell.questions import Answer

DESCRIBED: Final = (
    "About",
    "AnswerQuestion",
    "EventsQuery",
    "Health",
    "ListQuery",
    "RunList",
    "Secret",
    "Started",
    "State",
    "SteerRun",
)
"""The named schemas, besides the types that these contain."""

KEY: Final = re.compile(r"^[\x21-\x7e]([\x20-\x7e]{0,198}[\x21-\x7e])?$")
"""A valid idempotency key: characters that a header can carry safely."""

LISTED: Final = 100
MOST_LISTED: Final = 500
"""Most runs of an answer."""

LARGEST: Final = 2**53 - 1
"""The largest integer that every JSON parser supports (RFC 8259, section 6)."""


class ShownAgent(Struct, frozen=True, kw_only=True):
    """An agent, with the choices for its runs. The first of each is the default."""

    name: str
    title: str
    folders: list[str]
    permissions: list[str]
    models: list[str]
    timeout: float | None
    """Maximum seconds for a run; ``null``: no maximum."""


class ShownLimits(Struct, frozen=True, kw_only=True):
    """The limits of a server."""

    max_runs: int
    """Running and waiting runs, of all callers."""
    max_runs_per_caller: int
    max_waiting: int
    """Runs of a conversation that wait for their turn."""
    max_conversations: int
    """Unused conversations whose sessions stay open."""
    max_request: int
    """Bytes of a request's body."""
    max_watchers: int
    """Open event streams, of all callers."""
    max_watchers_per_caller: int


class Health(Struct, frozen=True, kw_only=True):
    """The server is running."""

    status: Literal["ok"] = "ok"


class About(Struct, frozen=True, kw_only=True):
    """The server, and the name of the caller."""

    version: str
    caller: str
    agents: list[ShownAgent]
    limits: ShownLimits


class ShownRun(Struct, frozen=True, kw_only=True):
    """The record of a run, without its events."""

    id: str
    agent: str
    created: float
    """When it was started, in seconds since the epoch."""
    caller: str
    """The caller that started it."""
    title: str
    """Its title, one line."""
    thread: str | None
    """The conversation that it is a turn of."""
    meta: dict[str, JsonValue]
    """The caller's data."""
    status: RunStatus
    input_required: bool
    """Whether it waits for an answer to a question."""
    ended: float | None
    """When it has ended, in seconds since the epoch."""
    last_seq: int
    """Number of its last event in the log."""


class Started(Struct, frozen=True, kw_only=True):
    """A started run."""

    run: ShownRun


class RunList(Struct, frozen=True, kw_only=True):
    """Some of the caller's runs, latest first."""

    runs: list[ShownRun]
    next: str | None
    """The ``before`` of the next page; ``null``: there are no more."""


class State(Struct, frozen=True, kw_only=True):
    """A run at one moment."""

    run: ShownRun
    seq: int
    """Number of the last event that it includes: watch from there."""
    view: dict[str, JsonValue]
    end: RunEnded | None
    """Its end; ``null``: it is running."""


class ListQuery(Struct, frozen=True, kw_only=True):
    """A selection of runs."""

    thread: str | UnsetType = UNSET
    """Only those of this conversation."""
    status: RunStatus | UnsetType = UNSET
    """Only runs with one of these."""
    before: str | UnsetType = UNSET
    """Only runs that were started before the run with this id."""
    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED)] = LISTED
    """Maximum number."""


class EventsQuery(Struct, frozen=True, kw_only=True):
    """A selection of events, and their format."""

    after: Annotated[int, Meta(ge=0, le=LARGEST)] = 0
    """Number of the last event that the client has."""
    include: str = "all"
    """Types of events, separated by commas; or ``all``, or ``default``: those for readers.

    The end is always sent.
    """
    format: Literal["native", "ai-sdk", "ag-ui"] = "native"
    """The format of events: as they are, or for clients of the Vercel AI SDK or of AG-UI, which get all of
    them."""


class Said(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer with a value: one of these."""

    option: str | None = None
    """Id of one of the options of a permission question."""
    form: dict[str, FormValue | None] | None = None
    """The values of a form, by the names of its fields; ``null`` leaves a field empty."""
    stop: Annotated[str, Meta(min_length=1)] | None = None
    """The question is denied and the run ends, for this reason."""

    @property
    def value(self) -> ChooseOption | StopRun | dict[str, FormValue | None]:
        """The answer, as in `thinkwell.questions`.

        Raises:
            RequestInvalid: There is none, or several.
        """
        match self:
            case Said(option=str(option), form=None, stop=None):
                return ChooseOption(option)
            case Said(option=None, form=dict(form), stop=None):
                return form
            case Said(option=None, form=None, stop=str(stop)):
                return StopRun(stop)
            case _:
                raise RequestInvalid("answer: give one of option, form and stop")


class AnswerQuestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to an open question."""

    question: str
    """Id of the question."""
    answer: bool | Verdict | Said
    """``true`` and ``false`` mean ``allow`` and ``deny``."""
    why: str | None = None
    """The reason, for the log."""

    @property
    def value(self) -> Answer:
        """The answer, as in `thinkwell.questions`.

        Raises:
            RequestInvalid: There is none, or several.
        """
        answer = self.answer
        value: bool | Verdict | ChooseOption | StopRun | Mapping[str, FormValue | None]
        value = answer.value if isinstance(answer, Said) else answer
        return value if self.why is None else Reply(value, self.why)


class SteerRun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message for the agent while it works."""

    text: Annotated[str, Meta(extra_json_schema={"pattern": r"\S"})]


class Secret(Struct, frozen=True, kw_only=True):
    """The login of a browser."""

    secret: str
    """The server's secret, or a token."""


def shown_run(record: RunRecord, waiting: Collection[str]) -> ShownRun:
    """Return the record of a run for callers.

    Args:
        record: The run.
        waiting: Ids of runs that wait for an answer.
    """
    same = {name: getattr(record, name) for name in ShownRun.__struct_fields__ if name != "input_required"}
    return ShownRun(input_required=record.id in waiting, **same)
