"""What the native API is sent and answers."""

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
"""What there is a schema of, by its name here, beside what these are made of."""

KEY: Final = re.compile(r"^[\x21-\x7e]([\x20-\x7e]{0,198}[\x21-\x7e])?$")
"""What names a request: what a header can say without doubt."""

LISTED: Final = 100
MOST_LISTED: Final = 500
"""Runs of an answer."""

LARGEST: Final = 2**53 - 1
"""The largest number that every reader of JSON has (RFC 8259, section 6)."""


class ShownAgent(Struct, frozen=True, kw_only=True):
    """An agent, and what can be chosen of it. What comes first is the default."""

    name: str
    title: str
    folders: list[str]
    permissions: list[str]
    models: list[str]
    timeout: float | None
    """Seconds that a run may take; ``null``: any time."""


class ShownLimits(Struct, frozen=True, kw_only=True):
    """How much a server lets callers have."""

    max_runs: int
    """Runs that go on or wait, of all callers."""
    max_runs_per_caller: int
    max_waiting: int
    """Runs of a conversation that wait for their turn."""
    max_conversations: int
    """Conversations whose sessions stay open while they are unused."""
    max_request: int
    """Bytes of a request's body."""
    max_watchers: int
    """Streams of events that are open, of all callers."""
    max_watchers_per_caller: int


class Health(Struct, frozen=True, kw_only=True):
    """Whether a server is there."""

    status: Literal["ok"] = "ok"


class About(Struct, frozen=True, kw_only=True):
    """What a server is, and whom it takes the caller for."""

    version: str
    caller: str
    agents: list[ShownAgent]
    limits: ShownLimits


class ShownRun(Struct, frozen=True, kw_only=True):
    """What is known of a run beside its events."""

    id: str
    agent: str
    created: float
    """When it was started, in seconds since the epoch."""
    caller: str
    """Who has started it."""
    title: str
    """What it is about, in a line."""
    thread: str | None
    """The conversation that it is a turn of."""
    meta: dict[str, JsonValue]
    """What the caller has added."""
    status: RunStatus
    input_required: bool
    """Whether it waits for an answer to a question."""
    ended: float | None
    """When it has ended, in seconds since the epoch."""
    last_seq: int
    """Number of its last event, as far as the log has them."""


class Started(Struct, frozen=True, kw_only=True):
    """A run that was started."""

    run: ShownRun


class RunList(Struct, frozen=True, kw_only=True):
    """Some of the caller's runs, the newest first."""

    runs: list[ShownRun]
    next: str | None
    """What to give as ``before`` to get those that come behind; ``null``: there are none."""


class State(Struct, frozen=True, kw_only=True):
    """A run at one moment."""

    run: ShownRun
    seq: int
    """Number of the last event that counts in it: watch from there."""
    view: dict[str, JsonValue]
    end: RunEnded | None
    """How it has ended; ``null``: it goes on."""


class ListQuery(Struct, frozen=True, kw_only=True):
    """Which runs to list."""

    thread: str | UnsetType = UNSET
    """Only those of this conversation."""
    status: RunStatus | UnsetType = UNSET
    """Only those."""
    before: str | UnsetType = UNSET
    """Only those that were started before the run with this id."""
    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED)] = LISTED
    """How many at most."""


class EventsQuery(Struct, frozen=True, kw_only=True):
    """Which events to send, and how."""

    after: Annotated[int, Meta(ge=0, le=LARGEST)] = 0
    """Number of the last event that was seen already."""
    include: str = "all"
    """Kinds of events, with commas between them; or ``all``, or ``default``: what a reader wants to see. The
    end is always sent."""
    format: Literal["native", "ai-sdk", "ag-ui"] = "native"
    """How events are written: as they are, or for the clients of the Vercel AI SDK or of AG-UI, who get all
    of them."""


class Said(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer that is more than a word: one of these."""

    option: str | None = None
    """Id of one of the options of a permission question."""
    form: dict[str, FormValue | None] | None = None
    """What a form is filled in with, by the names of its fields; ``null`` leaves a field empty."""
    stop: Annotated[str, Meta(min_length=1)] | None = None
    """The question is denied and the run ended, for this reason."""

    @property
    def value(self) -> ChooseOption | StopRun | dict[str, FormValue | None]:
        """The answer, as `thinkwell.questions` has it.

        Raises:
            RequestInvalid: It is none, or several.
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
        """The answer, as `thinkwell.questions` has it.

        Raises:
            RequestInvalid: It is none, or several.
        """
        answer = self.answer
        value: bool | Verdict | ChooseOption | StopRun | Mapping[str, FormValue | None]
        value = answer.value if isinstance(answer, Said) else answer
        return value if self.why is None else Reply(value, self.why)


class SteerRun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something to tell the agent while it works."""

    text: Annotated[str, Meta(extra_json_schema={"pattern": r"\S"})]


class Secret(Struct, frozen=True, kw_only=True):
    """What makes a browser known."""

    secret: str
    """The server's secret, or a token."""


def shown_run(record: RunRecord, waiting: Collection[str]) -> ShownRun:
    """Return what callers may know of a run.

    Args:
        record: The run.
        waiting: Ids of runs that wait for an answer.
    """
    same = {name: getattr(record, name) for name in ShownRun.__struct_fields__ if name != "input_required"}
    return ShownRun(input_required=record.id in waiting, **same)
