"""`PermissionPolicy`: what an agent may do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from msgspec import Struct

from thinkwell._core.policy.files import read_policy, write_policy
from thinkwell._core.policy.matching import Asked
from thinkwell._core.policy.rules import VERDICTS, Rule, RuleVerdict
from thinkwell.errors import PolicyError

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Sequence

    from thinkwell.questions import PermissionQuestion, Verdict
    from thinkwell_acp import schema as s

PermissionMode: TypeAlias = Literal["deny", "ask", "allow"]
"""``deny``: refuse everything except our own tools. ``ask``: let `on_question` decide. ``allow``: allow
all."""


class Decision(Struct, frozen=True, kw_only=True):
    """The decision of a policy on a question."""

    verdict: RuleVerdict
    """``ask``: a handler or the user has to decide."""
    why: str
    rule: int | None = None
    """The index of the rule that decided; ``None`` if no rule matches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionPolicy:
    """Rules for what an agent may do.

    Their order does not matter: no rule allows what another one denies. A question that may concern a
    ``deny`` rule is denied. Otherwise it is allowed if it matches an ``allow`` rule, asked if it matches an
    ``ask`` rule, and else `otherwise` decides; but a question that may concern an ``ask`` rule is never
    allowed without asking. So adding a rule that denies or asks never allows more.

    Attributes:
        rules: The rules.
        otherwise: The decision on questions that match no rule.
    """

    rules: tuple[Rule, ...] = ()
    otherwise: RuleVerdict = "deny"

    def __post_init__(self) -> None:
        """Check the types.

        Raises:
            TypeError: An element of `rules` is not a rule.
            ValueError: `otherwise` has an unknown value.
        """
        rules = tuple(self.rules)
        for number, rule in enumerate(cast("tuple[object, ...]", rules)):
            if not isinstance(rule, Rule):
                raise TypeError(f"rules[{number}]: {rule!r:.100} is not a Rule")
        object.__setattr__(self, "rules", rules)
        if self.otherwise not in VERDICTS:
            raise ValueError(f"otherwise: {self.otherwise!r:.100} is not one of {', '.join(VERDICTS)}")

    def decide(self, question: PermissionQuestion, *, cwd: str) -> Decision:
        """Decide a question.

        Args:
            question: The agent's question.
            cwd: The session's folder, from which relative paths start.
        """
        asked = Asked(question, cwd)
        hit = self._first("deny", asked, surely=False)
        if hit is not None:
            return self._by_rule("deny", hit)
        asking = self._first("ask", asked, surely=False)
        fitting = self._first("allow", asked, surely=True)
        if fitting is not None:
            return self._by_rule("allow", fitting) if asking is None else self._by_rule("ask", asking)
        fitting = self._first("ask", asked, surely=True)
        if fitting is not None:
            return self._by_rule("ask", fitting)
        if asking is not None and self.otherwise == "allow":
            return self._by_rule("ask", asking)
        return Decision(verdict=self.otherwise, why=f"no rule matches; otherwise: {self.otherwise}")

    def _first(self, verdict: RuleVerdict, asked: Asked, *, surely: bool) -> int | None:
        for number, rule in enumerate(self.rules):
            if rule.verdict == verdict and (asked.fits(rule) if surely else asked.hits(rule)):
                return number
        return None

    def _by_rule(self, verdict: RuleVerdict, number: int) -> Decision:
        return Decision(verdict=verdict, why=f"rules[{number}]: {self.rules[number]}", rule=number)

    # As a file

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PermissionPolicy:
        """Read a policy from a TOML file.

        Raises:
            PolicyError: The file is not a valid policy.
            OSError: The file cannot be read.
        """
        try:
            text = Path(path).read_text("utf-8-sig")
        except UnicodeDecodeError as exc:
            raise PolicyError(f"it is not UTF-8: {exc.reason}", source=str(path)) from exc
        return cls._read(text, str(path))

    @classmethod
    def from_toml(cls, text: str) -> PermissionPolicy:
        """Read a policy from TOML.

        Raises:
            PolicyError: The text is not a valid policy.
        """
        return cls._read(text, None)

    @classmethod
    def _read(cls, text: str, source: str | None) -> PermissionPolicy:
        rules, otherwise = read_policy(text, source)
        return cls(rules=rules, otherwise=otherwise)

    def to_toml(self) -> str:
        """Return the policy as TOML for `from_toml`."""
        return write_policy(self.rules, self.otherwise)


# Options

_ALLOW: Final = ("allow_once",)
_DENY: Final = ("reject_once", "reject_always")

_KINDS: Final[dict[Verdict, Sequence[str]]] = {
    "allow": _ALLOW,
    "allow_session": _ALLOW,
    "allow_always": ("allow_always", "allow_once"),
    "accept": _ALLOW,
    "deny": _DENY,
    "deny_session": _DENY,
    "deny_always": ("reject_always", "reject_once"),
    "decline": _DENY,
}


def choose(
    options: Sequence[s.PermissionOption],
    verdict: Verdict,
    *,
    widen: bool = False,
    avoid: Collection[str] = (),
) -> s.PermissionOption | None:
    """Return the offered option for a verdict, by kind and never by position; ``None`` if there is none.

    Args:
        options: The options that the agent offers.
        verdict: The decision.
        widen: Whether an option that allows permanently may stand for "allow".
        avoid: Ids to use only if there is no other option of that kind. Some agents offer to switch
            the session's mode along with the permission, with an option named like the mode.
    """
    kinds = _KINDS[verdict]
    if widen and kinds is _ALLOW:
        kinds = (*kinds, "allow_always")
    for kind in kinds:
        of_kind = [option for option in options if option.kind == kind]
        for option in of_kind:
            if option.option_id not in avoid:
                return option
        if of_kind:
            return of_kind[0]
    return None
