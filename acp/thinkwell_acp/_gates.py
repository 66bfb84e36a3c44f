"""Checks that the capability a call needs is advertised, before anything is written (ACP, Initialization)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from thinkwell_acp import schema as s
from thinkwell_acp.errors import CapabilityMissing

if TYPE_CHECKING:
    from collections.abc import Sequence


def need(advertised: bool, capability: str, wanted_by: str) -> None:
    """Raise `CapabilityMissing` unless it is advertised."""
    if not advertised:
        raise CapabilityMissing(capability, wanted_by)


def check_call(flags: s.AgentCapabilities, method: str, params: s.Model) -> None:
    """Check that the agent serves a method, and accepts everything in the parameters."""
    gate = s.REQUESTS[method].gate
    if gate is not None:
        on_wire = re.sub("_(.)", lambda found: found[1].upper(), ".".join(gate.paths[0]))
        need(gate.is_open(flags), on_wire, method)
    match params:
        case s.PromptRequest():
            _check_prompt(flags.prompt_capabilities, params.prompt)
        case (
            s.NewSessionRequest() | s.LoadSessionRequest() | s.ResumeSessionRequest() | s.ForkSessionRequest()
        ):
            _check_mcp_servers(flags.mcp_capabilities, params.mcp_servers, method)
            if params.additional_directories:
                accepted = flags.session_capabilities.additional_directories is not None
                need(accepted, "sessionCapabilities.additionalDirectories", f"{method} with more directories")
            if params.system_prompt is not None:
                _check_system_prompt(flags.session_capabilities.system_prompt, params.system_prompt, method)
        case _:
            pass


def _check_prompt(flags: s.PromptCapabilities, prompt: Sequence[s.ContentBlock]) -> None:
    """Check that the agent accepts every block of a prompt. Text and links are always accepted."""
    for block in prompt:
        match block:
            case s.ImageContent():
                need(flags.image, "promptCapabilities.image", "an image in a prompt")
            case s.AudioContent():
                need(flags.audio, "promptCapabilities.audio", "audio in a prompt")
            case s.EmbeddedResource():
                need(
                    flags.embedded_context,
                    "promptCapabilities.embeddedContext",
                    "an embedded resource in a prompt",
                )
            case _:
                pass


def _check_mcp_servers(flags: s.McpCapabilities, servers: Sequence[s.McpServer], method: str) -> None:
    """Check that the agent can reach every MCP server. Those over stdio it always can."""
    for server in servers:
        kind = server.__struct_config__.tag
        if kind is not None:
            need(
                getattr(flags, str(kind)),
                f"mcpCapabilities.{kind}",
                f"{method} with the MCP server {server.name!r}",
            )


def _check_system_prompt(
    taken: s.SessionSystemPromptCapabilities | None, given: s.SystemPrompt, method: str
) -> None:
    """Check that the agent accepts a system prompt, and its mode."""
    path = "sessionCapabilities.systemPrompt"
    need(taken is not None, path, f"{method} with a system prompt")
    if taken is not None and given.mode == "override":
        replaces = taken.mode is not None and taken.mode.override is not None
        need(replaces, f"{path}.mode.override", f"{method} with a system prompt instead of its own")
