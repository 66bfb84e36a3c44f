"""From bytes to models and back.

Decoding is strict first, by msgspec's own decoders. The lenient reader reads only what fails.
"""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import msgspec

from thinkwell_acp.schema._base import DecodeError, JsonValue, Model, Opaque
from thinkwell_acp.schema._lenient import Unreadable, is_choice, resolve_choice, salvage

__all__ = ("convert", "decode", "encode", "mend_surrogates", "parse_json", "strict_decoder", "to_builtins")

_T = TypeVar("_T")

_ESCAPE: Final = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)

_readers: Final[dict[object, Callable[[Any], Any]]] = {}
"""The strict decoder of a type, made on first use."""


def decode(type_: type[_T], raw: bytes | memoryview | msgspec.Raw | None) -> _T:
    """Decode JSON to a type.

    Args:
        type_: a model, or `object` for any JSON.
        raw: the JSON text; `None` if there is none, which is the same as `null`. Models without strict
            required fields read `null` as `{}`.

    Raises:
        DecodeError: the text is not JSON, or a strict value is wrong.
    """
    read = _readers.get(type_) or _reader(type_)
    try:
        value: _T = read(raw)
    except (ValueError, TypeError, RecursionError):
        return _salvage(type_, raw, lambda: None if raw is None else parse_json(raw))
    return value


def convert(type_: type[_T], value: JsonValue) -> _T:
    """Decode builtins, such as those from `parse_json`, to a type.

    Raises:
        DecodeError: a strict value is wrong.
    """
    try:
        if is_choice(type_):
            return cast("_T", resolve_choice(type_, value))
        return msgspec.convert(value, type_, dec_hook=resolve_choice)
    except (ValueError, TypeError, RecursionError):
        return _salvage(type_, value, lambda: value)


def strict_decoder(type_: type[_T]) -> msgspec.json.Decoder[_T]:
    """Return a new decoder without leniency, for structs that contain models of this package."""
    return msgspec.json.Decoder(type_, dec_hook=resolve_choice)


def parse_json(raw: bytes | memoryview | msgspec.Raw) -> JsonValue:
    """Parse JSON to builtins, lone surrogates included (see `mend_surrogates`).

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        return msgspec.json.decode(raw)
    except ValueError:
        return msgspec.json.decode(mend_surrogates(raw))


def mend_surrogates(raw: bytes | memoryview | msgspec.Raw) -> bytes:
    """Replace escaped halves of surrogate pairs by U+FFFD in a JSON text.

    Agents written in JavaScript produce them when they cut a text within a character, and no strict parser
    accepts them.
    """
    return _ESCAPE.sub(lambda match: rb"\ufffd" if match[1] else match[0], bytes(raw))


def encode(value: object) -> bytes:
    """Encode a model, or anything made of models and builtins, as compact JSON.

    NaN and infinities become `null`, because JSON lacks them.

    Raises:
        TypeError: a part of the value has no form in JSON.
        ValueError: a text has half of a surrogate pair.
        OverflowError: an integer has more than 64 bits.
    """
    return _encoder.encode(value)


def to_builtins(value: object) -> JsonValue:
    """Return what `encode` writes, as builtins. It raises the same errors."""
    return msgspec.json.decode(_encoder.encode(value))


def _reader(type_: type[_T]) -> Callable[[Any], _T]:
    """Make the strict reader of a type and keep it."""
    if is_choice(type_):

        def read(raw: Any, /) -> _T:
            return cast("_T", resolve_choice(type_, msgspec.json.decode(raw)))

    else:
        read = strict_decoder(type_).decode
    _readers[type_] = read
    return read


def _salvage(type_: type[_T], raw: object, parse: Callable[[], JsonValue]) -> _T:
    """Read leniently after the strict reader has failed."""
    name = getattr(type_, "__name__", str(type_))
    try:
        value = parse()
        if value is None and issubclass(type_, Model):
            value = {}
        return cast("_T", salvage(type_, value))
    except Unreadable as error:
        raise DecodeError(name, f"${error.path}", error.message, raw) from None
    except (ValueError, RecursionError) as error:
        raise DecodeError(name, "$", str(error), raw) from None


def _raw(value: object) -> JsonValue:
    if isinstance(value, Opaque):
        return value.raw
    raise TypeError(f"{type(value).__name__} has no form in JSON")


_encoder: Final = msgspec.json.Encoder(enc_hook=_raw)
