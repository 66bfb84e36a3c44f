"""Permission policies: what an agent may do when it asks. By default, it may only call your own tools."""

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
