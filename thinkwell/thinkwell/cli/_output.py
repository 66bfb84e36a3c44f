"""The result of a run: its type from ``--schema`` or ``--type``, and its text on standard output."""

from __future__ import annotations

import importlib
import json
import sys
from operator import attrgetter
from pathlib import Path
from typing import cast

import typer

from thinkwell._core.schema.json_schema import is_object
from thinkwell._core.schema.output import JsonSchema, output_type
from thinkwell._display.text import clean, in_json
from thinkwell._terminal.output import direct


def read_output(schema: Path | None, type_: str | None) -> object:
    """Return the output type: a `JsonSchema`, a type, or ``None`` for text.

    Raises:
        typer.BadParameter: It cannot be read, or is not a type for a result.
    """
    if schema is not None and type_ is not None:
        raise typer.BadParameter("give --schema or --type, not both", param_hint="--type")
    if schema is not None:
        return _checked(_read_schema(schema), "--schema")
    if type_ is not None:
        return _checked(_import_type(type_), "--type")
    return None


def _checked(output: object, option: str) -> object:
    try:
        output_type(output, "think({})")
    except TypeError as exc:
        raise typer.BadParameter(str(exc).strip(), param_hint=option) from None
    return output


def _read_schema(path: Path) -> JsonSchema:
    hint = "--schema"
    try:
        found: object = json.loads(path.read_text("utf-8-sig"))
    except OSError as exc:
        raise typer.BadParameter(f"{path}: {exc.strerror}", param_hint=hint) from None
    except (ValueError, RecursionError) as exc:  # invalid JSON and invalid UTF-8 are ValueErrors
        raise typer.BadParameter(f"{path} is no JSON: {exc}", param_hint=hint) from None
    if not is_object(found):
        kind = type(found).__name__
        raise typer.BadParameter(f"{path} holds a {kind}; a JSON Schema is an object", param_hint=hint)
    return JsonSchema(found)


def _import_type(name: str) -> object:
    """Import ``package.module:Name``, with the current folder in the path."""
    module_name, colon, path = name.partition(":")
    if not (colon and module_name and path):
        raise typer.BadParameter(
            f"{name!r} names no type; give MODULE:NAME, such as models:Review or builtins:int",
            param_hint="--type",
        )
    if sys.path[0] != (here := str(Path.cwd())):
        sys.path.insert(0, here)  # for an installed program, its own folder is there instead
    try:
        thing: object = importlib.import_module(module_name)
    except (Exception, SystemExit) as exc:  # whatever the module raises; a script may end itself
        why = f"{type(exc).__name__}: {exc}"
        raise typer.BadParameter(f"{module_name!r} cannot be imported: {why}", param_hint="--type") from None
    try:
        return attrgetter(path)(thing)
    except Exception as exc:  # AttributeError, or whatever computes it raises
        raise typer.BadParameter(f"{module_name!r} has no {path!r}: {exc}", param_hint="--type") from None


def result_text(value: object, output: object = None) -> str:
    """Return a result as text for standard output: text unchanged, everything else as JSON.

    Args:
        value: The result.
        output: Its type; ``None`` if it is text, or JSON already.
    """
    if isinstance(value, str) and output is None:
        return value if value.endswith("\n") else value + "\n"
    if output is None or isinstance(output, JsonSchema):
        return in_json(json.dumps(value, indent=2, ensure_ascii=False)) + "\n"
    from pydantic import TypeAdapter  # loaded with the type

    kind = cast("type[object]", output)
    adapter = cast("TypeAdapter[object]", output) if isinstance(output, TypeAdapter) else TypeAdapter(kind)
    return in_json(adapter.dump_json(value, indent=2, by_alias=True).decode()) + "\n"


def write_result(value: object, output: object = None) -> None:
    """Write a result to standard output. Control characters are removed for a terminal."""
    text = result_text(value, output)
    direct(sys.stdout).write(clean(text) if sys.stdout.isatty() else text)
