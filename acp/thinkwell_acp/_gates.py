"""Checks that the capability a call needs is advertised, before anything is written (ACP, Initialization)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell_acp import schema as s
from thinkwell_acp.errors import CapabilityMissing

if TYPE_CHECKING:
    from collections.abc import Sequence


def need(advertised: bool, capability: str, wanted_by: str) -> None:
    """Raise `CapabilityMissing` unless it is advertised."""
    if not advertised:
        raise CapabilityMissing(capability, wanted_by)


def check_prompt(flags: s.PromptCapabilities, prompt: Sequence[s.ContentBlock]) -> None:
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


def check_mcp_servers(flags: s.McpCapabilities, servers: Sequence[s.McpServer], method: str) -> None:
    """Check that the agent can reach every MCP server. Those over stdio it always can."""
    for server in servers:
        match server:
            case s.McpServerHttp():
                need(flags.http, "mcpCapabilities.http", f"{method} with the MCP server {server.name!r}")
            case s.McpServerSse():
                need(flags.sse, "mcpCapabilities.sse", f"{method} with the MCP server {server.name!r}")
            case s.McpServerAcp():
                need(flags.acp, "mcpCapabilities.acp", f"{method} with the MCP server {server.name!r}")
            case _:
                pass


def check_system_prompt(flags: s.SessionCapabilities, given: s.SystemPrompt | None, method: str) -> None:
    """Check that the agent accepts the given system prompt, and its mode."""
    if given is not None:
        path, taken = "sessionCapabilities.systemPrompt", flags.system_prompt
        need(taken is not None, path, f"{method} with a system prompt")
        if taken is not None and given.mode == "override":
            replaces = taken.mode is not None and taken.mode.override is not None
            need(replaces, f"{path}.mode.override", f"{method} with a system prompt instead of its own")


def check_directories(flags: s.SessionCapabilities, directories: Sequence[str], method: str) -> None:
    """Check that the agent accepts folders besides the working directory, if any are given."""
    if directories:
        advertised = flags.additional_directories is not None
        need(advertised, "sessionCapabilities.additionalDirectories", f"{method} with more directories")
