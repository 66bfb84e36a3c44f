"""The steps of a scripted agent, as values: a script is a sequence of these.

They are plain data, so a script can be compared, written to a file and played by another process. The
methods of `Script` that make them say what they do.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable  # noqa: TC003 - types of a field
from typing import Annotated, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta, Struct

from thinkwell.events import JsonValue  # noqa: TC001 - type of a field

OptionKind: TypeAlias = Literal["allow_once", "allow_always", "reject_once", "reject_always"]
"""The kind of an option of a permission question."""

StopReason: TypeAlias = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"] | str
"""How a turn ends; other reasons are allowed."""

UsedKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
"""The kind of a tool call."""

UsedStatus: TypeAlias = Literal["pending", "in_progress", "completed", "failed"]
"""The last status of a tool call."""

Count: TypeAlias = Annotated[int, Meta(ge=0)]
"""A count."""

Seconds: TypeAlias = Annotated[float, Meta(ge=0)]
"""A duration."""

ExitCode: TypeAlias = Annotated[int, Meta(ge=0, le=255)]
"""The exit code of a process."""

SHOWN_WIDTH: Final = 200
"""How many characters of a step are shown in a message."""


class _Step(Struct, frozen=True, kw_only=True, tag_field="step", omit_defaults=True):
    """The base of all steps. Its tag is the name of the method that makes it."""

    def __str__(self) -> str:
        shown: list[str] = []
        for field in msgspec.structs.fields(self):
            value = getattr(self, field.name)
            if field.required:
                shown.append(repr(value))
            elif value != field.default:
                shown.append(f"{field.name}={value!r}")
        text = f"{self.__struct_config__.tag}({', '.join(shown)})"
        return text if len(text) <= SHOWN_WIDTH else f"{text[: SHOWN_WIDTH - 2]}…)"


class Thinks(_Step, frozen=True, kw_only=True, tag="thinks"):
    """A piece of thought."""

    text: str
    message_id: str | None = None


class Says(_Step, frozen=True, kw_only=True, tag="says"):
    """A piece of a message."""

    text: str
    message_id: str | None = None


class Plans(_Step, frozen=True, kw_only=True, tag="plans"):
    """A whole plan."""

    entries: tuple[str, ...]
    done: Count = 0


class FileDiff(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change of a file, shown in a tool call."""

    path: str
    new_text: str
    old_text: str | None = None


class Uses(_Step, frozen=True, kw_only=True, tag="uses"):
    """A call of one of the agent's own tools, as it reports it."""

    title: str
    kind: UsedKind = "other"
    input: JsonValue = None
    output: JsonValue = None
    text: str | None = None
    diff: FileDiff | None = None
    path: str | None = None
    status: UsedStatus = "completed"
    id: str | None = None
    name: str | None = None


class Updates(_Step, frozen=True, kw_only=True, tag="updates"):
    """Any update, as on the wire."""

    update: JsonValue
    session_id: str | None = None


class Calls(_Step, frozen=True, kw_only=True, tag="calls"):
    """A call of a tool that the client offers."""

    tool: str
    arguments: dict[str, JsonValue]
    expect_error: bool | str | None = False


class Returns(_Step, frozen=True, kw_only=True, tag="returns"):
    """A call of ``return_result``."""

    value: JsonValue
    expect_error: bool | str | None = False
    streamed: bool = False


class Asks(_Step, frozen=True, kw_only=True, tag="asks"):
    """A permission question."""

    title: str
    options: tuple[str, ...] = ("allow_once", "reject_once")
    expect: str | None = None
    kind: UsedKind = "other"
    input: JsonValue = None
    path: str | None = None
    id: str | None = None


class AsksForm(_Step, frozen=True, kw_only=True, tag="asks_form"):
    """A form."""

    message: str
    schema: dict[str, JsonValue]
    expect: str | dict[str, JsonValue] | None = None


class Reads(_Step, frozen=True, kw_only=True, tag="reads"):
    """A file, read through the client."""

    path: str
    expect: str | None = None
    expect_error: bool | str | None = False


class Writes(_Step, frozen=True, kw_only=True, tag="writes"):
    """A file, written through the client."""

    path: str
    text: str
    expect_error: bool | str | None = False


class Runs(_Step, frozen=True, kw_only=True, tag="runs"):
    """A command in a terminal of the client."""

    command: str
    arguments: tuple[str, ...] = ()
    expect: str | None = None
    expect_error: bool | str | None = False


class Expects(_Step, frozen=True, kw_only=True, tag="expects"):
    """A text that the prompt of this turn must contain."""

    text: str


class Hears(_Step, frozen=True, kw_only=True, tag="hears"):
    """Wait for a steering message, and check it."""

    text: str


class Does(_Step, frozen=True, kw_only=True, tag="does"):
    """The user's function. It cannot be written to a file."""

    function: Callable[..., Awaitable[str | None]]

    def __str__(self) -> str:
        return f"does({getattr(self.function, '__qualname__', type(self.function).__name__)})"


class Sends(_Step, frozen=True, kw_only=True, tag="sends"):
    """Any bytes on the wire."""

    data: bytes


class FloodsStderr(_Step, frozen=True, kw_only=True, tag="floods_stderr"):
    """Bytes on standard error."""

    size: Count


class Pauses(_Step, frozen=True, kw_only=True, tag="pauses"):
    """A pause."""

    seconds: Seconds


class Hangs(_Step, frozen=True, kw_only=True, tag="hangs"):
    """Nothing happens until the turn is cancelled, or not even then."""

    deaf: bool = False


class Stops(_Step, frozen=True, kw_only=True, tag="stops"):
    """The end of a turn."""

    reason: str = "end_turn"
    late: tuple[Telling, ...] = ()


class Fails(_Step, frozen=True, kw_only=True, tag="fails"):
    """The end of a turn by an error."""

    code: int = -32603
    message: str = "Internal error"
    data: JsonValue = None


class HangsUp(_Step, frozen=True, kw_only=True, tag="hangs_up"):
    """The end of the connection."""


class Crashes(_Step, frozen=True, kw_only=True, tag="crashes"):
    """The end of the process."""

    exit_code: ExitCode = 1


Telling: TypeAlias = Thinks | Says | Plans | Uses | Updates | Sends | FloodsStderr | Pauses
"""A step that only sends: it needs no turn."""

Ending: TypeAlias = Stops | Fails | HangsUp | Crashes
"""A step that ends its turn."""

Step: TypeAlias = (
    Telling
    | Calls
    | Returns
    | Asks
    | AsksForm
    | Reads
    | Writes
    | Runs
    | Expects
    | Hears
    | Does
    | Hangs
    | Ending
)
"""Every kind of step."""


_WANTED: Final[dict[object, tuple[str, tuple[type, ...]]]] = {
    str: ("a str", ()),
    str | None: ("a str", ()),
    tuple[str, ...]: ("each as a str", ()),
    bytes: ("bytes or a str", ()),
    bool: ("True or False", ()),
    bool | str | None: ("True, False, None or a str", ()),
    int: ("a whole number", ()),
    Count: ("a whole number from 0 on", (int,)),
    ExitCode: ("a whole number from 0 to 255", (int,)),
    Seconds: ("a number of seconds from 0 on", (int, float)),
    UsedKind: (f"one of {', '.join(get_args(UsedKind))}", (str,)),
    UsedStatus: (f"one of {', '.join(get_args(UsedStatus))}", (str,)),
}
"""By type of a field: the description of valid values, and the types that may be out of range."""


@functools.cache
def _wanted(step: type[Struct]) -> dict[str, object]:
    return {field.name: field.type for field in msgspec.structs.fields(step)}


def check(step: Struct, call: str) -> None:
    """Check the fields of a step.

    Args:
        step: The step, or a part of it.
        call: The method that makes it.

    Raises:
        TypeError: A field has the wrong type.
        ValueError: It is out of its range, or cannot be written as JSON.
    """
    for name, wanted in _wanted(type(step)).items():
        value = getattr(step, name)
        try:
            msgspec.convert(value, wanted)
        except msgspec.ValidationError:
            words, kinds = _WANTED[wanted]
            message = f"{call}({name}={value!r:.100}): give {words}"
            if type(value) in kinds:
                raise ValueError(message) from None
            raise TypeError(f"{message}, not {type(value).__name__}") from None
    try:
        msgspec.json.encode(step)
    except ValueError as exc:
        raise ValueError(f"{call}(…): this cannot be written as JSON: {exc}") from exc
