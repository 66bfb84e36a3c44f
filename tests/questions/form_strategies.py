"""Makes forms as agents send them, with values that fit and values that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import strategies as st

from thinkwell import FormQuestion
from thinkwell.testing import ScriptedAgent, ScriptedTurn, script

if TYPE_CHECKING:
    from thinkwell import Answer, FormField, Question

EXAMPLES = 150

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-100, 100) | st.floats(-100, 100).filter(lambda number: number % 1 != 0)

PATTERNS = [
    ("^[a-z]+$", "abc", "ABC"),
    ("^[0-9]{4}-[0-9]{2}$", "2026-01", "2026-1"),
    ("b", "abc", "ac"),
    ("^(red|green)?$", "", "blue"),
    (r"^\S+@\S+\.\S+$", "a@b.c", "a@b"),
]
"""A pattern, what matches it and what does not."""

FORMATS = [
    ("email", "name@example.com", "name"),
    ("uri", "https://example.com/a?b#c", "example.com"),
    ("date", "2026-01-31", "2026-02-30"),
    ("date-time", "2026-01-31T08:30:00+01:00", "2026-01-31 08:30"),
]
"""A format, what is of it and what is not."""


class Sample(NamedTuple):
    """A property of a form."""

    schema: dict[str, Any]
    fits: Any
    misfits: list[Any]
    """One for each constraint, that of the type included."""


class Form(NamedTuple):
    """A form and what to fill in."""

    properties: dict[str, Sample]
    required: list[str]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema, which an agent sends without the last line."""
        return {
            "type": "object",
            "properties": {name: sample.schema for name, sample in self.properties.items()},
            "required": self.required,
            "additionalProperties": False,
        }

    @property
    def values(self) -> dict[str, Any]:
        return {name: sample.fits for name, sample in self.properties.items()}


async def asked(*requests: dict[str, Any]) -> list[Question]:
    """Return the questions that an agent's requests become."""
    questions: list[Question] = []

    async def note(question: Question) -> Answer:
        questions.append(question)
        return "decline"

    async def ask(turn: ScriptedTurn) -> None:
        for request in requests:
            await turn.client.connection.request(
                "elicitation/create", {"sessionId": turn.session_id, "message": "Where?", **request}
            )

    async with ScriptedAgent(script.does(ask)).open(on_question=note) as agent:
        await agent.think().text("Ask.").run()
    return questions


async def fields_of(*schemas: dict[str, Any]) -> list[tuple[FormField, ...]]:
    """Return the fields of forms."""
    questions = await asked(*({"mode": "form", "requestedSchema": schema} for schema in schemas))
    return [question.fields for question in questions if isinstance(question, FormQuestion)]


async def field_of(property_: dict[str, Any], *, required: bool = False) -> FormField:
    """Return the field of a form with one property."""
    schema = {"type": "object", "properties": {"f": property_}, "required": ["f"] if required else []}
    ((field,),) = await fields_of(schema)
    return field


@st.composite
def _sized_texts(draw: st.DrawFn) -> Sample:
    least = draw(st.integers(0, 4))
    most = draw(st.integers(least, 8))
    characters = st.characters(exclude_categories=["Cs"])
    return Sample(
        {"type": "string", "minLength": least, "maxLength": most},
        draw(st.text(characters, min_size=least, max_size=most)),
        [17, draw(st.text(characters, min_size=most + 1)), *(["😀" * (least - 1)] if least else [])],
    )


@st.composite
def _chosen_texts(draw: st.DrawFn) -> Sample:
    choices = draw(st.lists(TEXTS, min_size=1, max_size=4, unique=True))
    key, members = ("enum", choices) if draw(st.booleans()) else ("oneOf", _titled(choices))
    return Sample(
        {"type": "string", key: members}, draw(st.sampled_from(choices)), [False, "".join(choices) + "-"]
    )


@st.composite
def _numbers(draw: st.DrawFn) -> Sample:
    whole = draw(st.booleans())
    least, most = sorted(draw(st.tuples(*[st.integers(-100, 100) if whole else NUMBERS] * 2)))
    fits = st.integers(least, most) if whole else st.floats(least, most)
    return Sample(
        {"type": "integer" if whole else "number", "minimum": least, "maximum": most},
        draw(fits),
        [True, str(least), least - 1, most + 1, *([least + 0.5] if whole else [])],
    )


@st.composite
def _several_choices(draw: st.DrawFn) -> Sample:
    choices = draw(st.lists(TEXTS, min_size=1, max_size=5, unique=True))
    least = draw(st.integers(0, len(choices)))
    most = draw(st.integers(least, len(choices)))
    items = {"type": "string", "enum": choices} if draw(st.booleans()) else {"anyOf": _titled(choices)}
    misfits: list[Any] = [choices[0], ["".join(choices) + "-"], [1]]
    if most < len(choices):
        misfits.append(choices[: most + 1])
    if least:
        misfits.append(choices[: least - 1])
    fits = st.lists(st.sampled_from(choices), min_size=least, max_size=most, unique=True)
    return Sample({"type": "array", "items": items, "minItems": least, "maxItems": most}, draw(fits), misfits)


def _titled(choices: list[str]) -> list[dict[str, str]]:
    return [{"const": choice, "title": f"The {choice}"} for choice in choices]


PLAIN: st.SearchStrategy[Sample] = st.one_of(
    _sized_texts(),
    _chosen_texts(),
    st.sampled_from(PATTERNS).map(lambda p: Sample({"type": "string", "pattern": p[0]}, p[1], [3.5, p[2]])),
    _numbers(),
    st.booleans().map(lambda value: Sample({"type": "boolean"}, value, [0, 1, "true", []])),
    _several_choices(),
)
"""Properties that JSON Schema judges as we do."""

FORMATTED: st.SearchStrategy[Sample] = st.sampled_from(FORMATS).map(
    lambda f: Sample({"type": "string", "format": f[0]}, f[1], [0, f[2]])
)


@st.composite
def forms(draw: st.DrawFn, kinds: st.SearchStrategy[Sample] = PLAIN | FORMATTED) -> Form:
    """Return forms of these kinds of property."""
    properties = draw(st.dictionaries(TEXTS, kinds, min_size=1, max_size=4))
    return Form(properties, draw(st.lists(st.sampled_from(sorted(properties)), unique=True)))
