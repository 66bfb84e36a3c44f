"""The names of the agents whose profiles come with thinkwell, for editors to complete."""

from __future__ import annotations

from typing import Literal, TypeAlias

AgentName: TypeAlias = Literal[
    "builtin",
    "agoragentic",
    "amp",
    "auggie",
    "autohand",
    "claude",
    "cline",
    "codebuddy",
    "codex",
    "copilot",
    "crow-cli",
    "cursor",
    "deepagents",
    "devin",
    "dimcode",
    "dirac",
    "droid",
    "fast-agent",
    "gemini",
    "glm",
    "goose",
    "grok",
    "hermes",
    "junie",
    "kilo",
    "kimi",
    "kiro",
    "minimax",
    "minion-code",
    "nova",
    "opencode",
    "openhands",
    "pi",
    "qoder",
    "qwen",
    "sigit",
    "stakpak",
    "vibe",
]
"""An agent that `open_agent` knows by name. The names of your own profiles are accepted too."""
