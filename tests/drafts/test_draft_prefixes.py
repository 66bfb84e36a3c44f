"""Whatever byte an agent has come to, a draft is a part of the result."""

from __future__ import annotations

import json
import random
import string
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal  # noqa: TC003 - pydantic reads it
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NotRequired
from uuid import UUID

import anyio
import pytest
from annotated_types import Ge, Lt, MaxLen, MinLen
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
)
from pydantic_core import from_json
from typing_extensions import TypedDict

from thinkwell.testing import ScriptedAgent, ScriptedTurn, script
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell import Draft

    Make = Callable[[random.Random], Any]

pytestmark = pytest.mark.virtual_time

VALUES = 510
"""How many values are made, of all types together."""

LETTERS = string.ascii_letters + string.digits + ' "\\/{}[],:\n\té😀\u2028'


def text(rng: random.Random) -> str:
    return "".join(rng.choices(LETTERS, k=rng.randint(0, 8)))


def word(rng: random.Random) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=rng.randint(1, 6)))


def whole(rng: random.Random) -> int:
    return rng.choice((0, 1, -1, rng.randint(-10_000, 10_000)))


def real(rng: random.Random) -> float:
    return rng.choice((0.5, -12.75, 1e300, 1e-7, rng.random()))


def listed(make: Make, least: int = 0) -> Make:
    return lambda rng: [make(rng) for _ in range(rng.randint(least, 4))]


def record(**fields: Make) -> Make:
    return lambda rng: {name: make(rng) for name, make in fields.items()}


def some(make: Make, **optional: Make) -> Make:
    """Make an object some of whose fields are missing, in any order."""

    def made(rng: random.Random) -> Any:
        fields = {**make(rng), **{name: each(rng) for name, each in optional.items() if rng.random() < 0.5}}
        return dict(rng.sample([*fields.items()], len(fields)))

    return made


class Item(BaseModel):
    line: int
    note: str = "none"


class Plain(BaseModel):
    title: str
    score: int
    good: bool
    share: float


class Defaults(BaseModel):
    a: str = "a"
    b: int = 1
    c: list[str] = []
    d: Item | None = None


class Nested(BaseModel):
    head: Item
    items: list[Item]
    tail: str


class Aliased(BaseModel):
    model_config = ConfigDict(extra="forbid")
    first: str = Field(alias="First Name")
    second: int = Field(alias="2")
    third: int = Field(default=3, validation_alias=AliasChoices("third", "3"))


class Stripped(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)
    name: str
    other: str


class Lower(BaseModel):
    name: Annotated[str, StringConstraints(to_lower=True)]
    rest: str


class Early(BaseModel):
    name: Annotated[str, BeforeValidator(str.strip)]
    numbers: Annotated[list[int], AfterValidator(sorted)]
    rest: str


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date
    id: UUID
    price: Decimal


class Colour(Enum):
    RED = "red"
    REDDISH = "reddish"


class Choices(BaseModel):
    kind: Literal["a", "ab", "abc"]
    colour: Colour
    number: Literal[1, 12, 123]


class Bounded(BaseModel):
    name: Annotated[str, MinLen(2), MaxLen(9)]
    score: Annotated[int, Ge(0), Lt(1000)]
    tags: Annotated[list[str], MinLen(2)]


class Mixed(BaseModel):
    value: int | str | float | None
    values: list[int | str]
    more: dict[str, int | list[str]]


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")
    a: str
    b: tuple[int, str]
    c: set[int]


class Record(TypedDict):
    title: str
    score: int
    lines: list[str]


class Loose(TypedDict, total=False):
    title: str | None
    items: list[Item]
    raw: object


class Part(TypedDict):
    name: str
    note: NotRequired[str]


@dataclass
class Point:
    x: int
    y: int = 5
    labels: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Slotted:
    name: str
    where: Point


class Pair(NamedTuple):
    left: int
    right: str


point = record(x=whole, y=whole, labels=listed(text))
item = some(record(line=whole), note=text)


def day(rng: random.Random) -> str:
    return str(date(2026, 1, 1) + timedelta(rng.randint(0, 999)))


def one_of(*values: Any) -> Make:
    return lambda rng: rng.choice(values)


def tree(rng: random.Random) -> Any:
    return {"name": text(rng), "children": [tree(rng) for _ in range(rng.choice((0, 0, 1, 2)))]}


def anything(rng: random.Random) -> Any:
    return rng.choice((text, whole, real, listed(whole), record(a=text), one_of(None)))(rng)


TYPES: list[tuple[Any, Make]] = [
    (str, text),
    (Plain, record(title=text, score=whole, good=one_of(True, False), share=real)),
    (Defaults, some(record(), a=text, b=whole, c=listed(text), d=item)),
    (Nested, record(head=item, items=listed(item), tail=text)),
    (Aliased, record(**{"First Name": text, "2": whole, "third": whole})),
    (Stripped, record(name=text, other=text)),
    (Lower, record(name=text, rest=text)),
    (Early, record(name=text, numbers=listed(whole), rest=text)),
    (Strict, record(day=day, id=lambda rng: str(UUID(int=rng.getrandbits(128))), price=one_of("1.25", "7"))),
    (
        Choices,
        record(kind=one_of("a", "ab", "abc"), colour=one_of("red", "reddish"), number=one_of(1, 12, 123)),
    ),
    (Bounded, record(name=lambda rng: word(rng) + "x", score=one_of(1, 12, 123), tags=listed(text, 2))),
    (Mixed, record(value=whole, values=listed(whole), more=record(a=whole, b=listed(text)))),
    (Tree, tree),
    (Frozen, record(a=text, b=lambda rng: [whole(rng), text(rng)], c=listed(whole), d=text)),
    (Record, record(title=text, score=whole, lines=listed(text))),
    (Loose, some(record(), title=text, items=listed(item), raw=anything)),
    (Part, some(record(name=text), note=text)),
    (Point, point),
    (Slotted, record(name=text, where=point)),
    (list[str], listed(text)),
    (list[int], listed(whole)),
    (list[Item], listed(item)),
    (list[Part], listed(some(record(name=text), note=text))),
    (list[list[float]], listed(listed(real))),
    (list[int | str], listed(lambda rng: rng.choice((text, whole))(rng))),
    (Annotated[list[Tree], MinLen(1)], listed(tree, 1)),
    (TypeAdapter(list[date]), listed(day)),
    (dict[str, int], record(a=whole, ab=whole)),
    (tuple[int, str], lambda rng: [whole(rng), text(rng)]),
    (Pair, lambda rng: [whole(rng), text(rng)]),
    (float, real),
]


def is_part(draft: Draft[Any], result: Any) -> bool:
    """Return whether a draft is a part of the result as its last draft has it."""
    if type(draft.value) in (str, list):
        return begins(draft.value, result)
    fields: dict[str, Any] = draft.value
    return draft.whole <= fields.keys() and all(
        value == result[name] if name in draft.whole else begins(value, result[name])
        for name, value in fields.items()
    )


def begins(part: str | list[Any], whole: Any) -> bool:
    return bool(whole[: len(part)] == part)


async def check(type_: Any, value: Any) -> int:
    """Feed a value byte by byte, and return how many drafts there were."""

    async def write(turn: ScriptedTurn) -> None:
        if type_ is str:
            for character in value:
                turn.update(s.AgentMessageChunk(content=s.TextContent(text=character)))
                await anyio.sleep(1)
            return
        (tool,) = turn.tools
        wrapped = [*tool.schema.get("properties", {})] == ["result"]
        arguments = {"result": value} if wrapped else value
        data = json.dumps(arguments, ensure_ascii=bool(len(str(value)) % 2)).encode()
        for end in range(1, len(data) + 1):
            shown = from_json(data[:end], allow_partial="trailing-strings")
            title = "mcp__thinkwell0123456789ab__return_result"
            turn.update(s.ToolCallProgress(tool_call_id="c", title=title, raw_input=shown))
            await anyio.sleep(1)
        outcome = await turn.call("return_result", arguments)
        assert not outcome.is_error, outcome.text

    async with ScriptedAgent(script.does(write)).open() as agent:
        stream = agent.think(type_).text("Go").stream()
        *drafts, last = [draft async for draft in stream.drafts()]
    assert last.final
    for draft in drafts:
        assert is_part(draft, last.value), (draft, last.value)
        assert draft.attempt == 1
    return len(drafts)


@pytest.mark.parametrize("each", range(len(TYPES)), ids=[str(each)[:40] for each, _ in TYPES])
@pytest.mark.parametrize(
    "values", [1, pytest.param(-(-VALUES // 30), marks=pytest.mark.long)], ids=["few", "many"]
)
async def test_each_draft_is_a_part_of_the_result(each: int, values: int) -> None:
    type_, make = TYPES[each]
    rng = random.Random(each)
    drafts = [await check(type_, make(rng)) for _ in range(values)]
    ends_only = type_ in (dict[str, int], tuple[int, str], Pair, float)
    if values > 2:
        assert ends_only is not any(drafts)
