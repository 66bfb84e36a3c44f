"""Computes a value that fits a JSON Schema from facts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from thinkwell.builtin._constraints import as_object, bounds, clamped, formatted, merge, nests, sized, type_of
from thinkwell.builtin._enums import choose
from thinkwell.builtin._pick import Picker
from thinkwell.builtin._repair import DROP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from thinkwell.builtin._findings import Findings
    from thinkwell.builtin._subjects import Subject
    from thinkwell_acp.schema import JsonObject, JsonValue

MAX_DEPTH: Final = 8
"""Depth of nested values if the schema sets none."""

MAX_REQUIRED_DEPTH: Final = 32
"""Greatest depth of nested values that a schema can require."""

MAX_ITEMS: Final = 10
"""Items of a list if the schema sets no number."""

MAX_VALUES: Final = 10_000
"""Most values that are made for one schema, and most items that it may require in one place."""

MAX_LENGTH: Final = 100_000
"""Most characters that a text may have to have."""

_TEN: Final = 10.0
"""Upper end of a score without a maximum."""


class UnfillableError(Exception):
    """No value was found for a place in a schema. `path` says where, `wanted` what."""

    def __init__(self, path: str, wanted: str) -> None:
        super().__init__(f"{path or 'the value'}: I have no fact that fits {wanted}")


class _Place(Struct, frozen=True, kw_only=True):
    """A place in the value, and its subject."""

    name: str
    path: str
    depth: int
    subject: Subject
    item: bool = False

    def child(self, name: str, subject: Subject, *, label: str | None = None, item: bool = False) -> _Place:
        path = f"{self.path}.{name}" if self.path else name
        return _Place(name=label or name, path=path, depth=self.depth + 1, subject=subject, item=item)


class Filler:
    """Computes values from the findings.

    Args:
        findings: What was found.
        arguments: Whether it is for arguments of a tool: then a text without a telling name is the path of a
            file and not a sentence, and what is optional is left to the tool.
    """

    def __init__(self, findings: Findings, *, arguments: bool = False) -> None:
        self._findings = findings
        self._picker = Picker(findings)
        self._corrections: dict[str, JsonObject] = {}
        self._arguments = arguments
        self._root: JsonObject = {}
        self._reasons: list[str] = []
        self._made = 0

    def correct(self, corrections: Mapping[str, JsonObject]) -> bool:
        """Add constraints to those of the schema, by the path of their place, such as ``issues.0.line``.

        Returns:
            Whether one of them is new, so that another attempt makes sense.
        """
        before = {path: dict(constraints) for path, constraints in self._corrections.items()}
        for path, constraints in corrections.items():
            self._corrections.setdefault(path, {}).update(constraints)
        return before != self._corrections

    def take_reasons(self) -> list[str]:
        """Return, once, the reasons for choices that are not obvious, as sentences."""
        reasons, self._reasons = self._reasons, []
        return reasons

    def fill(self, schema: JsonObject) -> JsonValue:
        """Return a value that fits the schema.

        Raises:
            UnfillableError: A place requires a value that is not known.
        """
        self._root = schema
        self._made = 0
        return self._value(schema, _Place(name="", path="", depth=0, subject=self._findings.project))

    def _value(self, given: JsonValue, place: _Place) -> JsonValue:
        self._made += 1
        if place.depth > MAX_REQUIRED_DEPTH or self._made > MAX_VALUES:
            raise UnfillableError(place.path, "a value that has no end")
        schema = self._resolve(as_object(given))
        correction = self._corrections.get(place.path)
        if correction is not None:
            schema = {**schema, **correction}
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._enum(schema["enum"], schema, place)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self._branch(schema, key, place)
        fill = _FILLERS.get(type_of(schema))
        return self._untyped(schema, place) if fill is None else fill(self, schema, place)

    def _resolve(self, schema: JsonObject) -> JsonObject:
        """Follow references, and merge schemas that must all hold."""
        for _ in range(MAX_DEPTH):
            reference = schema.get("$ref")
            parts: list[JsonValue] = list(schema.get("allOf", ()))
            if isinstance(reference, str):
                parts.append(self._target(reference))
            if not parts:
                return schema
            merged: JsonObject = {}
            parts.append({key: value for key, value in schema.items() if key not in ("$ref", "allOf")})
            for part in parts:
                merged = merge(merged, as_object(part))
            schema = merged
        return schema

    def _target(self, reference: str) -> JsonValue:
        node: JsonValue = self._root
        for part in reference.removeprefix("#").strip("/").split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            node = as_object(node).get(key, {}) if part else node
        return node

    def _branch(self, schema: JsonObject, key: str, place: _Place) -> JsonValue:
        """Use the first alternative that can be filled; none at all only deep inside."""
        rest = {name: value for name, value in schema.items() if name != key}
        branches: list[JsonObject] = [merge(rest, self._resolve(branch)) for branch in schema[key]]
        nulls = [branch for branch in branches if branch.get("type") == "null"]
        if nulls and place.depth >= MAX_DEPTH:
            return None
        failure = UnfillableError(place.path, key)
        for branch in sorted(
            branches, key=lambda branch: (branch in nulls, place.depth >= MAX_DEPTH and nests(branch))
        ):
            try:
                return self._value(branch, place)
            except UnfillableError as exc:
                failure = exc
        raise failure

    def _enum(self, options: list[JsonValue], schema: JsonObject, place: _Place) -> JsonValue:
        option, reason = choose(options, place.name, place.subject, self._findings)
        if len(options) > 1 and not place.item:
            self._reasons.append(f"For {place.name or 'the answer'} I choose {option!r}: {reason}.")
        return option

    def _object(self, schema: JsonObject, place: _Place) -> JsonValue:
        properties: JsonObject = schema.get("properties", {})
        required: list[str] = schema.get("required", [])
        subject = place.subject if place.item else self._picker.subject(place.name, place.subject)
        filled: JsonObject = {}
        for name in [*properties, *(key for key in required if key not in properties)]:
            child = place.child(name, subject)
            optional = name not in required
            if optional and (
                self._arguments or place.depth >= MAX_DEPTH or DROP in self._corrections.get(child.path, ())
            ):
                continue
            try:
                filled[name] = self._value(properties.get(name, True), child)
            except UnfillableError:
                if not optional:
                    raise
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict) and not properties:
            for item in self._chosen(schema, place, "minProperties", "maxProperties"):
                key = self._picker.label(("path",) if item.kind == "file" else (), item)
                filled[key] = self._value(extra, place.child(key, item, label=place.name, item=True))
        return filled

    def _array(self, schema: JsonObject, place: _Place) -> JsonValue:
        prefix: list[JsonValue] = schema.get("prefixItems", [])
        filled = [
            self._value(part, place.child(str(index), place.subject)) for index, part in enumerate(prefix)
        ]
        items = schema.get("items", not prefix)
        if items is False:
            return filled
        minimum = int(schema.get("minItems", 0))
        for subject in self._chosen(schema, place, "minItems", "maxItems")[len(filled) :]:
            child = place.child(str(len(filled)), subject, label=place.name, item=True)
            value = self._value(items, child)
            if not (schema.get("uniqueItems") and value in filled):
                filled.append(value)
        if len(filled) < minimum:
            raise UnfillableError(place.path, f"{minimum} items")
        return filled

    def _chosen(self, schema: JsonObject, place: _Place, least: str, most: str) -> Sequence[Subject]:
        """Return as many items as the schema accepts; if too few were found, others are added."""
        subjects = self._picker.items(self._hints(schema, place), place.subject)
        minimum = int(schema.get(least, 0))
        if minimum > MAX_VALUES:
            raise UnfillableError(place.path, f"{minimum} values")
        maximum = max(minimum, min(int(schema.get(most, MAX_ITEMS)), MAX_ITEMS))
        if place.depth >= MAX_DEPTH:
            maximum = minimum
        chosen = list(subjects[:maximum])
        reserve = [*self._findings.all("function", place.subject), *self._findings.all("file", place.subject)]
        chosen += [subject for subject in reserve if subject not in chosen][: max(0, minimum - len(chosen))]
        while len(chosen) < minimum:
            chosen.append(place.subject)
        return chosen

    def _string(self, schema: JsonObject, place: _Place) -> str:
        if "format" in schema:
            return formatted(schema["format"], place.subject)
        answer = self._picker.answer(place.name)
        hints = self._hints(schema, place)
        if answer is not None and not place.item:
            text = str(answer)
        elif place.item:
            text = self._picker.label(hints, place.subject)
        else:
            text = self._picker.string(hints, place.subject)
            if self._arguments and text == place.subject.text:
                text = place.subject.path
        pattern = schema.get("pattern")
        if pattern is not None:
            text = self._matching(pattern, text, place)
        shortest = int(schema.get("minLength", 0))
        if shortest > MAX_LENGTH:
            raise UnfillableError(place.path, f"{shortest} characters")
        return sized(text, shortest, schema.get("maxLength"))

    def _matching(self, pattern: str, text: str, place: _Place) -> str:
        """Return the first of the facts that matches."""
        subject = place.subject
        numbers = [str(count) for count in subject.counts.values()]
        texts = (
            text,
            subject.name,
            subject.path,
            subject.language,
            subject.severity,
            *numbers,
            *text.split(),
        )
        variants = (
            form for text in texts for form in (text, text.lower(), text.upper(), re.sub(r"\W+", "-", text))
        )
        try:
            found = next(filter(re.compile(pattern).search, variants), None)
        except re.error:
            found = None
        if found is None:
            raise UnfillableError(place.path, f"the pattern {pattern}")
        return found

    def _number(self, schema: JsonObject, place: _Place) -> float:
        hints = self._hints(schema, place)
        whole = type_of(schema) == "integer"
        low, high = bounds(schema, whole=whole)
        answer = self._picker.answer(place.name)
        count = self._picker.count(hints, place.subject)
        if isinstance(answer, int | float) and not isinstance(answer, bool):
            value = float(answer)
        elif self._picker.scored(hints) or (count is None and low is not None and high is not None):
            value = self._score(place, low, high, share=self._picker.share(hints))
        else:
            value = float(place.subject.counts.get("line", place.subject.line) if count is None else count)
        return clamped(value, low, high, schema.get("multipleOf"), whole=whole)

    def _score(self, place: _Place, low: float | None, high: float | None, *, share: bool) -> float:
        bottom = 0.0 if low is None else low
        top = high if high is not None else bottom + (1.0 if share else _TEN)
        quality = place.subject.quality
        if not place.item:
            self._reasons.append(
                f"For {place.name or 'the answer'} I scale {quality:.2f} to {bottom:g}..{top:g}: "
                "documented and short functions count for it, TODOs against it."
            )
        return round(bottom + quality * (top - bottom), 2)

    def _boolean(self, schema: JsonObject, place: _Place) -> bool:
        answer = self._picker.answer(place.name)
        if isinstance(answer, bool):
            return answer
        return self._picker.truth(self._hints(schema, place), place.subject)

    def _untyped(self, schema: JsonObject, place: _Place) -> JsonValue:
        answer = self._picker.answer(place.name)
        return place.subject.text if answer is None else answer

    def _hints(self, schema: JsonObject, place: _Place) -> tuple[str, ...]:
        texts = [text for text in (schema.get("title"), schema.get("description")) if isinstance(text, str)]
        return self._picker.hints(place.name, texts)


_FILLERS: Final[dict[str | None, Callable[[Filler, JsonObject, _Place], JsonValue]]] = {
    "object": Filler._object,
    "array": Filler._array,
    "string": Filler._string,
    "integer": Filler._number,
    "number": Filler._number,
    "boolean": Filler._boolean,
    "null": lambda _filler, _schema, _place: None,
}
