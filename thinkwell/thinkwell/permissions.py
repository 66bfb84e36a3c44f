"""What an agent may do when it asks: nothing but call our own tools, unless the program says otherwise."""

from thinkwell._core.policy.permissions import (
    Decision,
    PermissionMode,
    PermissionPolicy,
    choose,
)
from thinkwell._core.policy.remember import Remembered
from thinkwell._core.policy.rules import Rule, RuleVerdict

__all__ = (
    "Decision",
    "PermissionMode",
    "PermissionPolicy",
    "Remembered",
    "Rule",
    "RuleVerdict",
    "choose",
)
