"""Permission policies as TOML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeGuard

from thinkwell._core.policy.rules import CRITERIA, KINDS, VERDICTS, Rule, RuleVerdict
from thinkwell._core.schema.json_schema import is_array, is_object
from thinkwell.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from thinkwell.events import JsonValue

_POLICY_KEYS: Final = ("otherwise", "rules")
_RULE_KEYS: Final = ("verdict", *CRITERIA, "why")


def read_policy(text: str, source: str | None) -> tuple[tuple[Rule, ...], RuleVerdict]:
    """Return the rules, and the policy's `otherwise`.

    Raises:
        PolicyError: The text is not a valid policy.
    """
    import tomllib  # only for policies in a file

    try:
        table: dict[str, JsonValue] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise PolicyError(f"it is not TOML: {exc}", source=source) from exc
    try:
        _check_keys(table, _POLICY_KEYS, "")
        otherwise = table.get("otherwise", "deny")
        if not _is_verdict(otherwise):
            raise PolicyError(_not_one_of(otherwise, VERDICTS), where="otherwise")
        rules: JsonValue = table.get("rules", [])
        if not is_array(rules):
            raise PolicyError("write each rule under a line [[rules]]", where="rules")
        return tuple([_rule(rule, f"rules[{number}]") for number, rule in enumerate(rules)]), otherwise
    except PolicyError as exc:
        exc.source = source
        raise


def _rule(rule: JsonValue, where: str) -> Rule:
    if not is_object(rule):
        raise PolicyError("write each rule under a line [[rules]]", where=where)
    _check_keys(rule, _RULE_KEYS, f"{where}.")
    if "verdict" not in rule:
        raise PolicyError(f"it is missing; give one of {', '.join(VERDICTS)}", where=f"{where}.verdict")
    for key, value in rule.items():
        if key in CRITERIA and is_array(value):
            for number, one in enumerate(value):
                _check_value(key, one, f"{where}.{key}[{number}]")
        else:
            _check_value(key, value, f"{where}.{key}")
    try:
        return Rule(**rule)
    except ValueError as exc:
        raise PolicyError(str(exc), where=where) from None


def _check_value(key: str, value: JsonValue, where: str) -> None:
    possible: Sequence[str] = {"verdict": VERDICTS, "kind": KINDS}.get(key, ())
    if possible and value not in possible:
        raise PolicyError(_not_one_of(value, possible), where=where)
    if not isinstance(value, str):
        expected = "a text or a list of texts" if key in CRITERIA else "a text"
        raise PolicyError(f"{value!r:.100} is not {expected}", where=where)


def _check_keys(table: Iterable[str], known: Sequence[str], prefix: str) -> None:
    for key in table:
        if key not in known:
            hint = _suggestion(key, known) or f"; there are {', '.join(known)}"
            raise PolicyError(f"there is no such key{hint}", where=f"{prefix}{key}")


def _is_verdict(value: JsonValue) -> TypeGuard[RuleVerdict]:
    return value in VERDICTS


def _not_one_of(value: JsonValue, possible: Sequence[str]) -> str:
    return f"{value!r:.100} is not one of {', '.join(possible)}{_suggestion(value, possible)}"


def _suggestion(value: JsonValue, possible: Sequence[str]) -> str:
    from difflib import get_close_matches  # only after a mistake

    close = get_close_matches(str(value), possible, n=1, cutoff=0.5)
    return f"; do you mean {close[0]!r}?" if close else ""


def write_policy(rules: Iterable[Rule], otherwise: RuleVerdict) -> str:
    """Return a policy as TOML."""
    lines = [f"otherwise = {_text(otherwise)}"]
    for rule in rules:
        lines += ["", "[[rules]]", f"verdict = {_text(rule.verdict)}"]
        lines += [f"{key} = {_texts(getattr(rule, key))}" for key in CRITERIA if getattr(rule, key)]
        lines += [f"why = {_text(rule.why)}"] if rule.why else []
    return "\n".join(lines) + "\n"


def _texts(values: Sequence[str]) -> str:
    return _text(values[0]) if len(values) == 1 else f"[{', '.join(map(_text, values))}]"


def _text(value: str) -> str:
    """Return a basic string of TOML."""
    return '"' + re.sub(r'[\x00-\x1f"\\\x7f]', lambda found: f"\\u{ord(found[0]):04x}", value) + '"'
