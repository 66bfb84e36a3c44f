"""Takes keys, tokens and secrets out of messages and text, before these get to a disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, TypeGuard

from thinkwell._recording import _names as names
from thinkwell._recording._big import BIG, scan_big
from thinkwell._recording._known import Known
from thinkwell._recording._replacing import Span, merged, replaced
from thinkwell._recording._secrets import MARK, Region, announces, begun, in_doubt, scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from thinkwell._content import JsonValue

REDACTED: Final = f"{MARK}]"
"""What stands in place of a secret. One from a variable is named: ``[redacted:NAME]``."""

DEPTH: Final = 100
"""Levels of lists and objects that are looked into; what is deeper is replaced as a whole."""

LEARNED: Final = 64
"""Secrets found under their names that are looked for everywhere else; the oldest is given up first."""

_MEMO: Final = 4096
_MEMO_TEXT: Final = 100
_INNOCENT_TEXT: Final = 2048
_LARGE: Final = 16 * 1024
_PIN: Final = 4
_SHORT: Final = 8
_SHORTEST: Final = 3
_UNDER_NAME: Final = frozenset({"key", "value", "secret", "token", "data"})
_ENTRIES: Final = frozenset({"headers", "env", "environment", "httpheaders", "requestheaders", "envvars"})
_SCHEMA_TYPES: Final = ("object", "array", "string")


_Mode: TypeAlias = Literal["plain", "secret", "entries", "entry"]
# How a value is looked at: as it is; as one under a secret's name; as headers or variables; as one of these.


class Scan(NamedTuple):
    """What is known of a text."""

    spans: list[Span]
    """What is replaced in it, in order and apart from each other."""
    regions: list[Region]
    """What was judged together, with names and quotes; no cut may go through one."""
    opened: int
    """From where on more text could change this."""


class Redactor:
    """Replaces secrets in messages and text. It learns: a secret seen under its name is known from then on.

    Known secrets are the values of variables whose names look secret (`ANTHROPIC_API_KEY`, `DB_PASSWORD`;
    not `SSH_AUTH_SOCK`, `TOKEN_URL` or `GPG_KEY`), the passwords in URLs, and all that the caller has given
    by itself but trivial values: fewer than six characters, settings' words (`true`, `none`), numbers,
    absolute paths, URLs without userinfo and query, one word of letters only (up to twelve), and variables
    such as `PATH` and `LANG`. They are replaced wherever they occur: in strings and keys, also as JSON,
    URL-quoted, in base64 or hex, line by line; and in part (six characters or more) where a text begins or
    ends with that. Besides, values are replaced that stand under a secret's name (of numbers
    only passwords), headers and variables of servers, and what looks like a key (see `_shapes`).
    In texts of more than 256 KiB fewer names count (see `_big`).

    Args:
        environment: What the agent's process gets.
        explicit: What of it the caller has given itself.
    """

    def __init__(self, environment: Mapping[str, str], explicit: Mapping[str, str]) -> None:
        self._known = {
            value: f"{MARK}:{name}]" for value, name in names.known_secrets(environment, explicit).items()
        }
        self._loose = {value.strip() for name, value in explicit.items() if names.name_kind(name) == "plain"}
        self._learned: dict[str, str] = {}
        self._memo: dict[str, str] = {}
        self._keys: dict[str, tuple[str, _Mode]] = {}
        self._innocent: set[str] = set()
        self._last: tuple[str, Scan] | None = None
        self._renew()

    def redact(self, value: JsonValue) -> JsonValue:
        """Return a JSON value without its secrets, keys included; what is no JSON is replaced."""
        return self._value(value, 0, "plain")

    def text(self, text: str) -> str:
        """Return a text without its secrets."""
        if len(text) > _MEMO_TEXT:
            return replaced(text, self.scan(text).spans)
        clean = self._memo.get(text)
        if clean is None:
            if len(self._memo) >= _MEMO:
                self._memo.clear()
            clean = self._memo[text] = replaced(text, self.scan(text).spans)
        return clean

    def answers(self, content: JsonValue, schema: JsonValue) -> JsonValue:
        """Return what a person filled in a form without any text of it; what is secret in it is learnt.

        Args:
            content: The answer, by the names of the properties.
            schema: What was asked for (`requestedSchema`).
        """
        properties = schema.get("properties") if _is_object(schema) else None
        if not _is_object(content) or not _is_object(properties):
            return self._blank(content, 0)
        for name, value in content.items():
            field = properties.get(name)
            if isinstance(value, str) and isinstance(name, str) and _is_object(field):
                titles = (name, field.get("title"))
                telling = any(isinstance(each, str) and _mode(each) == "secret" for each in titles)
                if telling or field.get("format") == "password":
                    self.learn(value)
        return self._blank(content, 0)

    def _blank(self, value: JsonValue, depth: int) -> JsonValue:
        if depth < DEPTH and _is_object(value):
            return {self._key(key)[0]: self._blank(item, depth + 1) for key, item in value.items()}
        if depth < DEPTH and _is_list(value):
            return [self._blank(item, depth + 1) for item in value]
        return value if value is None or isinstance(value, (bool, int, float)) else REDACTED

    def raw(self, line: bytes) -> str:
        """Return a line that is no message as text, without its secrets."""
        return self.text(line.decode(errors="backslashreplace"))

    def scan(self, text: str) -> Scan:
        """Find the secrets in a text, and from where on more text could add to them."""
        if self._is_innocent(text):
            return Scan([], [], len(text))
        if self._last and self._last[0] == text:
            return self._last[1]
        regions, opened = scan_big(text) if len(text) > BIG else scan(text)
        spans = [Span(region.begin, region.end, REDACTED) for region in regions if region.secret]
        for span in self._index.find(text):
            spans.append(span)
            regions.append(Region(span.start, span.start, span.end, True))
        spans.extend(self._index.edges(text))
        known = self._index.opened(text)
        found = Scan(merged(spans), regions, min(opened, known))
        if len(text) > _LARGE:
            self._last = text, found
        return found

    def in_doubt(self, text: str, found: Scan) -> list[Span]:
        """What at the text's end may be a part of a secret without being one that `scan` has found."""
        size = len(text)
        starts = (begun(text), self._index.begun(text, _SHORT), *in_doubt(text, found.regions))
        return [Span(start, size, REDACTED) for start in starts if start < size]

    def may_begin(self, text: str) -> bool:
        """Whether the text's end may be the beginning of a known secret, be it short."""
        return self._index.begun(text, _SHORTEST) < len(text)

    def _is_innocent(self, text: str) -> bool:
        """Whether a short text consists of words that neither are secrets nor announce any."""
        if self._index.spaced or len(text) > _INNOCENT_TEXT:
            return False
        words = text.split()
        if self._innocent.issuperset(words):
            return True
        if len(self._innocent) > _MEMO:
            self._innocent.clear()
        for word in words:
            if word not in self._innocent:
                if announces(word) or len(word) > _MEMO_TEXT or self._index.touches(word):
                    return False
                self._innocent.add(word)
        return True

    def learn(self, value: str) -> None:
        """Look for this value everywhere from now on, if it is long enough and nothing usual."""
        for secret in names.parts(value):
            if names.is_learnable(secret) and secret not in self._known and secret not in self._learned:
                if len(self._learned) >= LEARNED:
                    del self._learned[next(iter(self._learned))]
                self._learned[secret] = REDACTED
                self._renew()

    def _renew(self) -> None:
        self._index = Known({**self._learned, **self._known}, self._loose)
        self._last = None
        for memo in (self._memo, self._keys, self._innocent):
            memo.clear()

    def _value(self, value: JsonValue, depth: int, mode: _Mode) -> JsonValue:
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, (bool, int, float)):
            return self._index.numbers.get(value, value) if value else value
        if depth < DEPTH and _is_object(value):
            return self._object(value, depth + 1, mode)
        if depth < DEPTH and _is_list(value):
            return self._list(value, depth + 1, mode)
        return REDACTED

    def _object(self, value: dict[JsonValue, JsonValue], depth: int, mode: _Mode) -> JsonValue:
        name = value.get("name")
        if value.get("type") in _SCHEMA_TYPES:
            mode = "plain"
        simple = mode == "plain" and not isinstance(name, str)
        out: dict[JsonValue, JsonValue] = {}
        for key, item in value.items():
            clean, inner = self._keys.get(key) or self._key(key)
            if not isinstance(item, str):
                pin = inner == "secret" and _is_pin(str(key), item)
                out[clean] = REDACTED if pin else self._value(item, depth, inner)
            elif simple and inner != "secret":
                out[clean] = self._memo.get(item) or self.text(item)
            else:
                out[clean] = self._string(str(key), item, name, mode)
        return out

    def _key(self, key: JsonValue) -> tuple[JsonValue, _Mode]:
        """A key without secrets, and how to look at what is under it."""
        if not isinstance(key, str):
            return (key if key is None or isinstance(key, (bool, int, float)) else REDACTED), "plain"
        known = self.text(key), _mode(key)
        if len(self._keys) < _MEMO and len(key) <= _MEMO_TEXT:
            self._keys[key] = known
        return known

    def _string(self, key: str, item: str, name: JsonValue, mode: _Mode) -> str:
        """A string in an object, with the object's `name`."""
        if mode == "entries":
            return self._entry(key, item)
        if key == "value" and isinstance(name, str):
            if mode == "entry":
                return self._entry(name, item)
            secret = names.name_kind(name) != "plain" and names.is_learnable(item)
        else:
            secret = names.name_kind(key) != "plain" or (mode == "secret" and key in _UNDER_NAME)
        return self._secret(item) if secret else self.text(item)

    def _list(self, value: Iterable[JsonValue], depth: int, mode: _Mode) -> JsonValue:
        """A list; in a command line what follows `--token` is one."""
        inner: _Mode = "entry" if mode == "entries" else "plain"
        out: list[JsonValue] = []
        flag = False
        for item in value:
            if not isinstance(item, str):
                out.append(self._value(item, depth, inner))
            elif mode == "secret" or (flag and item[:1] != "-"):
                out.append(self._secret(item))
            elif mode == "entries" and "=" in item:
                name, _, rest = item.partition("=")
                out.append(f"{self.text(name)}={self._entry(name, rest)}")
            else:
                out.append(self.text(item))
            flag = isinstance(item, str) and item[:2] == "--" and "=" not in item and _mode(item) == "secret"
        return out

    def _entry(self, name: str, value: str) -> str:
        """The value of a header or variable."""
        if names.name_kind(name) == "plain" and (names.is_harmless(name) or names.is_plain(value)):
            return self.text(value)
        rest = names.credential(value)
        return value[: len(value) - len(rest)] + self._secret(rest)

    def _secret(self, value: str) -> str:
        if not value or value.startswith(MARK) or names.is_word(value):
            return value
        self.learn(value)
        return REDACTED


def _is_object(value: JsonValue) -> TypeGuard[dict[JsonValue, JsonValue]]:
    return isinstance(value, dict)


def _is_list(value: JsonValue) -> TypeGuard[Sequence[JsonValue]]:
    return isinstance(value, (list, tuple))


def _is_pin(name: str, value: JsonValue) -> bool:
    """Whether this is a number under a password's name."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and names.name_kind(name) == "password" and sum(map(str.isdigit, repr(value))) >= _PIN


def _mode(key: str) -> _Mode:
    if names.name_kind(key) != "plain":
        return "secret"
    return "entries" if key.lower().replace("_", "").replace("-", "") in _ENTRIES else "plain"
