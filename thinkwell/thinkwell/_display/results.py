"""Results as people read them."""

from __future__ import annotations


def result_text(value: object) -> str:
    """Return a result as people read it: a text as it is, everything else as indented JSON."""
    if isinstance(value, str):
        return value
    from pydantic_core import to_json  # pydantic is loaded where something is validated, not before

    try:
        return to_json(value, indent=2, bytes_mode="base64", inf_nan_mode="constants", fallback=repr).decode()
    except Exception as exc:  # the user's own type may do anything
        return f"a {type(value).__name__} that cannot be shown: {type(exc).__name__}"
