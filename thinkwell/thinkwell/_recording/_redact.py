"""Removes keys, tokens and secrets from messages and text before they are written."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from thinkwell._core.schema.json_schema import is_object
from thinkwell._recording import _table as table
from thinkwell._recording._known import Known, credential, is_unguessable, known_secrets, learnable
from thinkwell._recording._names import find_assignments, is_in_doubt, name_kind
from thinkwell._recording._table import MARK, REDACTED, Find, looks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from thinkwell._values.content import JsonValue

DEPTH: Final = 100
"""Most levels of lists and objects; deeper ones are replaced completely."""

LEARNED: Final = 64
"""Most secrets found by their names that are searched everywhere; the oldest is dropped first."""

BIG: Final = 256 * 1024
"""Characters beyond which names are not searched: that takes a second for a few megabytes."""

_MEMO: Final = 4096
_MEMO_TEXT: Final = 100
_LARGE: Final = 2048
_PIN: Final = 4
_LEARNABLE: Final = 8
_SHORT: Final = 8
_SHORTEST: Final = 3
_UNDER_NAME: Final = frozenset({"key", "value", "secret", "token", "data"})
_ENTRIES: Final = frozenset({"headers", "env", "environment", "httpheaders", "requestheaders", "envvars"})
_SCHEMA_TYPES: Final = ("object", "array", "string")


class Scan(NamedTuple):
    """The result of a scan."""

    spans: list[Find]
    """The replaced parts, in order and without overlaps."""
    finds: list[Find]
    """The parts judged together, with names and quotes; no cut may go through one."""
    opened: int
    """The place from which on more text could change this."""


def replaced(text: str, spans: Iterable[Find], start: int = 0, end: int | None = None) -> str:
    """Return the text, or a part of it, without the spans: replaced where they begin."""
    parts: list[str] = []
    size = len(text) if end is None else end
    for span in spans:
        if span.end > start and span.begin < size:
            parts.append(text[start : span.begin])
            if span.begin >= start:
                parts.append(span.label or "")
            start = span.end
    parts.append(text[start:size])
    return "".join(parts)


def merged(finds: Iterable[Find]) -> list[Find]:
    """Join overlapping secrets. The name of a variable is kept."""
    out: list[Find] = []
    for _, begin, end, label in sorted([find for find in finds if find.label], key=lambda find: find[1:]):
        last = out[-1] if out else None
        if last is None or begin >= last.end:
            out.append(Find(begin, begin, end, label))
        else:
            label = max(last.label or "", label or "", key=len)
            out[-1] = Find(last.begin, last.begin, max(last.end, end), label)
    return out


class Redactor:
    """Replaces secrets in messages and text. It learns: a secret seen under its name is known from then on.

    Known secrets are the values of variables whose names look secret (`ANTHROPIC_API_KEY`, `DB_PASSWORD`;
    not `MODEL`, `SSH_AUTH_SOCK`, `TOKEN_URL` or `GPG_KEY`) and that cannot be guessed, and the passwords in
    URLs. They are replaced wherever they occur: in strings and keys, also as JSON, URL-quoted, in base64 or
    hex, line by line; and in part (six characters or more) where a text begins or ends with that. Besides,
    values are replaced that stand under a secret's name (of numbers only passwords), headers and variables
    of servers, and all that the table knows (`secrets.toml`).

    Args:
        environment: The environment of the agent's process.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        known = known_secrets(environment)
        self._known = {value: f"{MARK}:{name}]" for value, name in known.items()}
        self._learned: dict[str, str] = {}
        self._renew()

    def _renew(self) -> None:
        self._index = Known({**self._learned, **self._known})
        self._short_text = lru_cache(_MEMO)(self._clean)
        self._last_scan = lru_cache(1)(self._scan)
        self._is_innocent_word = lru_cache(_MEMO)(self._judge_word)

    def redact(self, value: JsonValue) -> JsonValue:
        """Return a JSON value without its secrets, even in keys; other values are replaced."""
        return self._value(value, 0)

    def text(self, text: str) -> str:
        """Return a text without its secrets."""
        return self._short_text(text) if len(text) <= _MEMO_TEXT else self._clean(text)

    def cut(self, text: str) -> str:
        """Return the beginning of a longer text without its secrets, even one cut at its end."""
        found = self.scan(text)
        return replaced(text, merged([*found.spans, *self.in_doubt(text, found, settles=False)]))

    def _clean(self, text: str) -> str:
        return replaced(text, self.scan(text).spans)

    def answers(self, content: JsonValue, schema: JsonValue) -> JsonValue:
        """Return a user's answers to a form without any text; secrets in them are learned.

        Args:
            content: The answer, by the names of the properties.
            schema: The form's schema (`requestedSchema`).
        """
        properties = schema.get("properties") if is_object(schema) else None
        for name, value in content.items() if is_object(content) else ():
            field = properties.get(name) if is_object(properties) else None
            if isinstance(value, str) and is_object(field):
                kinds = {name_kind(str(title)) for title in (name, field.get("title"))}
                if field.get("format") == "password" or kinds != {"plain"}:
                    self.learn(value)
        return self._blank(content, 0)

    def _blank(self, value: JsonValue, depth: int) -> JsonValue:
        if depth < DEPTH and is_object(value):
            return {self._key(key): self._blank(item, depth + 1) for key, item in value.items()}
        if depth < DEPTH and _is_list(value):
            return [self._blank(item, depth + 1) for item in value]
        return value if value is None or isinstance(value, (bool, int, float)) else REDACTED

    def scan(self, text: str) -> Scan:
        """Find the secrets in a text, and from where on more text could add to them."""
        # A large text comes several times, in a message and in its events, with short ones in between.
        return self._last_scan(text) if len(text) > _LARGE else self._scan(text)

    def _scan(self, text: str) -> Scan:
        size = len(text)
        if self._is_innocent(text):
            return Scan([], [], size)
        finds = [*table.find_forms(text), *self._index.find(text)]
        lower = text.lower() if size <= BIG else ""
        if any(hint in lower for hint in table.table().hints):
            finds.extend(find_assignments(text))
        opened = [find.start for find in finds if find.end == size]
        opened += table.opened(text), self._index.begun(text, 1, spaced=True)
        return Scan(merged(finds), finds, min(opened))

    def in_doubt(self, text: str, found: Scan, *, settles: bool) -> list[Find]:
        """Return parts at the text's end that may belong to a secret that `scan` has not found.

        Args:
            text: The text.
            found: Its scan.
            settles: Whether this is after a pause: shorter parts then do not count.
        """
        size = len(text)
        starts = [find.begin for find in found.finds if is_in_doubt(text, find)]
        starts += table.begun(text), self._index.begun(text, _SHORTEST if settles else _SHORT)
        return [Find(start, start, size, REDACTED) for start in starts if start < size]

    def _is_innocent(self, text: str) -> bool:
        """Whether a short text consists of words that neither are secrets nor announce any."""
        if self._index.spaced or len(text) > _LARGE:
            return False
        words = text.split()
        return max(map(len, words), default=0) <= _MEMO_TEXT and all(map(self._is_innocent_word, words))

    def _judge_word(self, word: str) -> bool:
        lower = word.lower()
        return not (
            any(hint in lower for hint in table.hints())
            or any(self._index.find(word))
            or (len(word) >= table.SHORTEST and any(table.find_forms(word)))
        )

    def learn(self, value: str) -> None:
        """Search this value everywhere from now on, if it is long enough and unusual."""
        for secret in learnable(value):
            plain = len(secret) < _LEARNABLE or looks("plain", secret)
            if not plain and secret not in self._known and secret not in self._learned:
                if len(self._learned) >= LEARNED:
                    del self._learned[next(iter(self._learned))]
                self._learned[secret] = REDACTED
                self._renew()

    # Messages

    def _value(self, value: JsonValue, depth: int, name: str = "", *, entry: bool = False) -> JsonValue:
        """Return a value without secrets.

        Args:
            value: The value.
            depth: Its nesting level.
            name: Its key.
            entry: Whether the key is the name of a header or variable.
        """
        if isinstance(value, str):
            return self._string(value, name, entry=entry)
        if value is None or isinstance(value, (bool, int, float)):
            pin = name_kind(name) == "password" and sum(map(str.isdigit, repr(value))) >= _PIN
            return REDACTED if pin else self._index.numbers.get(value or 0, value)
        if depth < DEPTH and is_object(value):
            return self._object(value, depth + 1, name)
        if depth < DEPTH and _is_list(value):
            return self._list(value, depth + 1, name)
        return REDACTED

    def _object(self, value: dict[JsonValue, JsonValue], depth: int, name: str) -> JsonValue:
        own, is_entry = value.get("name"), "value" in value and "name" in value
        entries = not is_entry and _holds_entries(name) and value.get("type") not in _SCHEMA_TYPES
        out: dict[JsonValue, JsonValue] = {}
        for key, item in value.items():
            inner, entry = str(key), entries
            text = isinstance(item, str)
            if text and key == "value" and isinstance(own, str):
                entry = _holds_entries(name)
                inner = own if entry or is_unguessable(str(item)) else inner
            elif text and key in _UNDER_NAME and name_kind(name) != "plain":
                inner = name
            out[self._key(key)] = self._value(item, depth, inner, entry=entry)
        return out

    def _list(self, value: Iterable[JsonValue], depth: int, name: str) -> JsonValue:
        """A list; in a command line the word after `--token` is a secret."""
        inner = name if name_kind(name) != "plain" or _holds_entries(name) else ""
        out: list[JsonValue] = []
        flag = ""
        for item in value:
            if isinstance(item, str) and _holds_entries(name) and "=" in item:
                variable, _, rest = item.partition("=")
                out.append(f"{self.text(variable)}={self._string(rest, variable, entry=True)}")
            else:
                flagged = isinstance(item, str) and item[:1] != "-"
                out.append(self._value(item, depth, flag if flagged and flag else inner))
            flag = item if isinstance(item, str) and item[:2] == "--" and "=" not in item else ""
        return out

    def _key(self, key: JsonValue) -> JsonValue:
        return self.text(key) if isinstance(key, str) else self._value(key, DEPTH)

    def _string(self, value: str, name: str, *, entry: bool) -> str:
        """A text under a name. A header or variable is hidden, and learned if its name indicates a secret."""
        secret = name_kind(name) != "plain"
        if not entry and not secret:
            return self.text(value)
        rest = credential(value) if entry else value
        before = value[: len(value) - len(rest)]
        if not rest or rest.startswith(MARK) or looks("usual", rest):
            return value
        if before or secret:
            self.learn(rest)
            return before + REDACTED
        return self.text(value) if looks("harmless", name) or looks("plain", value) else REDACTED


def _is_list(value: JsonValue) -> TypeGuard[Sequence[JsonValue]]:
    return isinstance(value, (list, tuple))


def _holds_entries(name: str) -> bool:
    """Whether this is a key of headers or variables."""
    return name.lower().replace("_", "").replace("-", "") in _ENTRIES
