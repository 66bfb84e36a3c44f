"""`Handlers`: what may be registered, what an annotation makes of a message, which messages do not fit."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Mapping, MutableMapping  # noqa: TC003 - annotations that are read
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest
from listen.line_programs import listened, program
from listen.talkers import SOON
from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict

from thinkwell import MessageInvalid, ThinkwellError
from thinkwell.listen import AgentProgress, Handlers, Transcript, listen

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import AsyncGenerator, Callable, Generator

    from lines.program import Program

pytestmark = pytest.mark.anyio


class Model(BaseModel):
    message: str
    percent: float = 0


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    message: str
    due: date | None = None


@dataclass
class Data:
    message: str


class Typed(TypedDict):
    message: str


class Odd:
    """pydantic can make nothing of it."""


class Handler:
    """Something that can be called."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def __call__(self, message: Data) -> None:
        self.heard.append(message)

    async def method(self, message: Data) -> None:
        self.heard.append(message)


def at(handlers: Handlers) -> Callable[[Callable[..., object]], Callable[..., object]]:
    return handlers.on("progress")


async def run(handlers: Handlers, *messages: Mapping[str, object]) -> None:
    """Let a program write messages of type ``progress``."""

    async def play(program: Program) -> None:
        for fields in messages:
            await program.say("progress", **fields)

    await listened(play, handlers)


async def heard(*functions: Callable[..., object], **fields: object) -> None:
    """Let a program write the same message to each function, in a type of its own."""
    handlers = Handlers()
    for number, function in enumerate(functions):
        assert handlers.on(f"type {number}")(function) is function

    async def play(program: Program) -> None:
        for number in range(len(functions)):
            await program.say(f"type {number}", **fields)

    await listened(play, handlers)


# Annotations


async def test_models_dataclasses_and_typed_dicts_are_filled() -> None:
    seen: list[object] = []

    async def model(message: Model) -> None:
        seen.append(message)

    async def data(message: Data) -> None:
        seen.append(message)

    async def typed(message: Typed) -> None:
        seen.append(message)

    await heard(model, data, typed, message="Reading", percent="10", more=True)
    assert seen == [Model(message="Reading", percent=10), Data("Reading"), {"message": "Reading"}]


async def test_mappings_and_no_annotation_get_all_fields() -> None:
    seen: list[object] = []

    def bare(message):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        seen.append(cast("object", message))

    def anything(message: Any) -> None:
        seen.append(message)

    def whole(message: object) -> None:
        seen.append(message)

    def plain(message: dict) -> None:  # type: ignore[type-arg]
        seen.append(cast("object", message))

    def keyed(message: dict[str, Any]) -> None:
        seen.append(message)

    def mapping(message: Mapping[str, object]) -> None:
        seen.append(message)

    def mutable(message: MutableMapping[str, Any]) -> None:
        seen.append(message)

    functions: list[Callable[..., object]] = [bare, anything, whole, plain, keyed, mapping, mutable]
    await heard(*functions, seen.append, message="Reading", id=[1])
    assert seen == [{"message": "Reading", "id": [1]}] * 8


async def test_a_mapping_of_something_is_checked() -> None:
    seen: list[object] = []

    def numbers(message: Mapping[str, int]) -> None:
        seen.append(message)

    await heard(numbers, percent="10")
    assert seen == [{"percent": 10}]
    with pytest.raises(MessageInvalid) as failed:
        await heard(numbers, message="Reading")
    assert set(failed.value.errors) == {"message"}


async def test_what_a_handler_changes_is_its_own() -> None:
    seen: list[object] = []

    def change(message: dict[str, Any]) -> None:
        seen.append(dict(message))
        message.clear()

    handlers = Handlers()
    handlers.on("progress")(change)

    async def play(program: Program) -> None:
        await program.say("progress", message="Reading")

    async with program(play) as agent:
        with anyio.fail_after(SOON):
            stream = agent.think().text("Go").stream(include={"report"})
            await listen(stream, handlers)
            (report,) = [event async for event in stream]
    assert cast("Any", report).body == {"message": "Reading"}


async def test_strict_models_read_dates() -> None:
    seen: list[object] = []

    def note(message: Strict) -> None:
        seen.append(message)

    await heard(note, message="Reading", due="2026-01-31")
    assert seen == [Strict(message="Reading", due=date(2026, 1, 31))]
    with pytest.raises(MessageInvalid) as failed:
        await heard(note, message="Reading", more=True)
    assert failed.value.errors == {"more": "Extra inputs are not permitted"}


async def test_methods_objects_and_partials_are_handlers() -> None:
    handler = Handler()
    await heard(handler, message="one")
    await heard(handler.method, message="two")

    def both(first: list[object], message: Data, *, more: object = None) -> None:
        first.append(message)

    await heard(functools.partial(both, handler.heard, more=1), message="three")
    assert handler.heard == [Data("one"), Data("two"), Data("three")]


# What does not fit


async def test_a_message_that_does_not_fit_ends_the_run_and_names_its_fields() -> None:
    handlers = Handlers()

    @handlers.on("progress")
    async def note(message: AgentProgress) -> None:
        raise AssertionError(message)

    with pytest.raises(MessageInvalid) as failed:
        await run(handlers, {"percent": "half", "stage": 3})
    error = failed.value
    assert isinstance(error, ThinkwellError)
    assert isinstance(error, ValueError)
    assert (error.type, error.agent) == ("progress", "agent")
    assert set(error.errors) == {"message", "percent", "stage"}
    assert "half" not in str(error)
    assert "percent: " in str(error)
    assert "'agent'" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert "note()" in str(error)
    assert "its handler: it is empty. Annotate it" in str(MessageInvalid("log", {"": "it is empty"}))


async def test_a_field_within_a_field_is_named() -> None:
    def note(message: dict[str, list[Data]]) -> None:
        raise AssertionError(message)

    with pytest.raises(MessageInvalid) as failed:
        await heard(note, steps=[{"message": "a"}, {}])
    assert failed.value.errors == {"steps.1.message": "Field required"}


# What cannot be registered


async def refused(function: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        Handlers().on("progress")(function)


async def test_a_function_without_a_parameter_is_named_by_file_and_line() -> None:
    def nothing() -> None: ...

    line = nothing.__code__.co_firstlineno
    await refused(
        nothing, rf"handler .*nothing\(\) \(.*test_listen_handlers\.py:{line}\): it takes no message"
    )

    def named(*, message: Data) -> None: ...

    await refused(named, "it takes no message")


async def test_other_parameters_need_defaults() -> None:
    def two(message: Data, other: int) -> None: ...

    await refused(two, "also wants 'other'")

    def optional(message: Data, other: int = 1, *rest: int, key: int = 2, **keys: int) -> None: ...

    Handlers().on("progress")(optional)

    def key(message: Data, *, other: int) -> None: ...

    await refused(key, "also wants 'other'")

    def gathered(*messages: Data) -> None: ...

    Handlers().on("progress")(gathered)


async def test_what_is_no_function() -> None:
    await refused(3, "3 is no function")
    await refused(Data, "is no function")
    await refused(max, r"handler max\(\): its parameters are unknown; wrap it")


async def test_generators_are_no_handlers() -> None:
    def many(message: Data) -> Generator[int]:
        yield 1

    async def more(message: Data) -> AsyncGenerator[int]:
        yield 1

    await refused(many, "it is a generator")
    await refused(more, "it is a generator")


async def test_an_annotation_that_cannot_be_read() -> None:
    def late(message: OrderedDict[str, int]) -> None: ...

    await refused(late, "an annotation cannot be read: name 'OrderedDict' is not defined")


async def test_an_annotation_that_pydantic_makes_nothing_of() -> None:
    handlers = Handlers()

    @handlers.on("progress")
    def note(message: Odd) -> None: ...

    with pytest.raises(TypeError, match=r"note\(\).*pydantic can make nothing of its annotation"):
        await run(handlers)


async def test_a_type_has_one_handler() -> None:
    handlers = Handlers()

    @handlers.on("progress")
    def first(message: Data) -> None: ...

    with pytest.raises(ValueError, match=r"'progress'.*there is a handler already, handler .*first\(\)"):
        handlers.on("progress")(first)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"type": 3}, TypeError, "type=3"),
        ({"type": " "}, ValueError, "type=' '"),
        ({"by": None}, TypeError, "by=None"),
        ({"by": ""}, ValueError, "by=''"),
        ({"concurrency": 0}, ValueError, "concurrency=0: give 1 or more"),
        ({"concurrency": -1}, ValueError, "concurrency"),
        ({"concurrency": 1.5}, TypeError, "concurrency"),
        ({"timeout": 0}, ValueError, "timeout"),
        ({"timeout": "1"}, TypeError, "timeout"),
    ],
)
async def test_arguments_are_checked(arguments: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        Handlers().on(**({"type": "progress"} | arguments))


async def test_arguments_of_handlers_are_checked() -> None:
    with pytest.raises(TypeError, match="transcript"):
        Handlers(transcript=cast("Any", []))
    with pytest.raises(ValueError, match="max_repeats=0"):
        Handlers(max_repeats=0)
    with pytest.raises(TypeError, match="max_repeats"):
        Handlers(max_repeats=cast("Any", "many"))
    Handlers(max_repeats=None)


async def test_they_tell_what_they_are() -> None:
    transcript = Transcript()
    handlers = Handlers(transcript=transcript)
    assert repr(handlers) == "<Handlers of nothing>"
    handlers.on("progress")(Handler())
    handlers.on("log")(Handler())
    assert repr(handlers) == "<Handlers of progress, log>"
    assert handlers.transcript is transcript


async def test_what_is_registered_later_is_for_later_listens() -> None:
    handlers = Handlers()
    seen: list[object] = []

    @handlers.on("progress")
    def first(message: Data) -> None:
        if not seen:
            handlers.on("log")(seen.append)
        seen.append(message)

    async def play(program: Program) -> None:
        await program.say("progress", message="Reading")
        await program.say("log", message="Note")

    for _ in range(2):
        async with program(play) as agent:
            with anyio.fail_after(SOON):
                await agent.think().text("Go").listen(handlers)
    assert seen == [Data("Reading"), Data("Reading"), {"message": "Note"}] or seen == [
        Data("Reading"),
        {"message": "Note"},
        Data("Reading"),
    ]


async def test_names_that_an_agent_has_chosen_do_nothing_in_an_error() -> None:
    handlers = Handlers()

    @handlers.on("progress")
    def note(message: Strict) -> None:
        raise AssertionError(message)

    nasty = {f"\x1b[2J\nAgent: all is well {number}": 1 for number in range(1000)}

    async def play(program: Program) -> None:
        await program.say("progress", message="x", **nasty)

    with pytest.raises(MessageInvalid) as failed:
        await listened(play, handlers)
    text = str(failed.value)
    assert "\x1b" not in text
    assert "\n" not in text
    assert len(text) < 5000
    assert len(failed.value.errors) == 20
