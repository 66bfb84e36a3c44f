"""Reads the table of what looks like a secret, `secrets.toml`, which says what its fields are."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

NameKind: TypeAlias = Literal["plain", "secret", "password", "authorization", "cookie"]
"""What a name says of its value: nothing, or which sort of secret."""


class Row(msgspec.Struct, frozen=True):
    """A form of secrets."""

    then: str
    begins: tuple[str, ...] = ("",)
    sign: str = ""
    after: tuple[str, ...] = ()
    reach: int = 0
    judge: Literal["", "digit", "random", "filled"] = ""
    begun: str = ""

    @property
    def opens(self) -> tuple[str, ...]:
        """Words after which the secret may come; none where it is one word by itself."""
        return self.after or (self.begins if "(?P<" in self.then else ())


class _Name(msgspec.Struct, frozen=True):
    kind: NameKind
    pattern: str
    upper: bool = False


class _Table(msgspec.Struct, frozen=True):
    parts: dict[str, str]
    row: list[Row]
    name: list[_Name]
    words: dict[str, str]


def _load() -> _Table:
    table = msgspec.convert(
        tomllib.loads(Path(__file__).with_name("secrets.toml").read_text("utf-8")), _Table
    )
    for name, part in table.parts.items():
        table.row[:] = [replace(row, then=row.then.replace(f"<<{name}>>", part)) for row in table.row]
    return table


TABLE: Final = _load()
