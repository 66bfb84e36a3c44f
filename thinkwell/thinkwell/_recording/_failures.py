"""Errors in a recording, and from one."""

from __future__ import annotations

import inspect

import msgspec

from thinkwell import errors
from thinkwell._recording._records import Failure


def failure_of(error: Exception) -> Failure:
    """Return an error as JSON data."""
    fields: dict[str, object] = {}
    for name, value in vars(error).items():
        if not name.startswith("_"):
            try:
                fields[name] = msgspec.to_builtins(value)
            except (TypeError, ValueError, OverflowError, RecursionError):
                fields[name] = repr(value)
    notes: tuple[str, ...] = tuple(getattr(error, "__notes__", ()))
    return Failure(name=type(error).__name__, message=str(error), fields=fields, notes=notes)


def error_of(failure: Failure) -> Exception:
    """Return the recorded error: of the same class if it is one of thinkwell's."""
    error = _error_of(failure)
    for note in failure.notes:
        error.add_note(note)
    return error


def _error_of(failure: Failure) -> Exception:
    kind = getattr(errors, failure.name, None)
    if isinstance(kind, type) and issubclass(kind, errors.ThinkwellError):
        wanted = inspect.signature(kind.__init__).parameters
        fields = {name: value for name, value in failure.fields.items() if name in wanted}
        try:
            if "methods" in fields:
                fields["methods"] = msgspec.convert(fields["methods"], tuple[errors.AuthMethod, ...])
            error = kind(**fields)
            str(error)  # a malformed error raises here
        except (TypeError, ValueError, AttributeError):
            pass
        else:
            return error
    return errors.RecordedFailure(failure.name, failure.message)
