"""A run's prompt and tools in the protocol's form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, assert_never

from thinkwell._core.schema.output import RESULT_KEY, RESULT_TOOL
from thinkwell._core.task import prompt
from thinkwell._display.fences import quoted
from thinkwell.errors import CapabilityMissing
from thinkwell_acp import schema as s
from thinkwell_acp.mcp import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell import events as ev
    from thinkwell._core.task.builder import Spec
    from thinkwell._core.task.system_prompt import SystemPrompt

ANY_RESULT: Final[dict[str, ev.JsonValue]] = {
    "type": "object",
    "properties": {RESULT_KEY: {"description": "The answer, in the form that the task asks for"}},
    "required": [RESULT_KEY],
}
"""Schema of ``return_result`` in a session whose turns differ: agents keep the first schema of a name."""


def tool_specs(spec: Spec[Any], result_schema: dict[str, ev.JsonValue] | None) -> list[ToolSpec]:
    """Return the tools that a run of this task offers, the one that returns the result last."""
    specs = [
        ToolSpec(name=tool.name, description=tool.description, input_schema=tool.input_schema)
        for tool in spec.tools
    ]
    if result_schema is not None:
        specs.append(result_tool(result_schema))
    return specs


def result_tool(schema: dict[str, ev.JsonValue]) -> ToolSpec:
    """Return the tool by which an agent returns its result."""
    return ToolSpec(
        name=RESULT_TOOL,
        description="Return the answer to the task. Call it once, when you have the whole answer.",
        input_schema=schema,
    )


def prompt_blocks(
    spec: Spec[Any],
    *,
    embeds: bool,
    plain: bool,
    result_schema: dict[str, ev.JsonValue] | None,
    server: str | None = None,
    system: str = "",
) -> Sequence[s.ContentBlock]:
    """Return the prompt in the protocol's form.

    Args:
        spec: The task.
        embeds: Whether the agent accepts the content of files.
        plain: Whether it gets the prompt without our additions.
        result_schema: Schema of ``return_result``; ``None``: there is no such tool.
        server: Name of our MCP server, if the model may see equally named tools of other servers.
        system: The system prompt, if the agent accepts none and did not get it before.

    Raises:
        OSError: A file cannot be read.
    """
    head = prompt.TextPart(quoted(system, "system") + "\n" if system else "")
    if plain:
        return [_wire_block(part, embeds=True) for part in prompt.joined((head, *spec.parts))]
    tail = prompt.tools_section(spec.tools) + prompt.skills_section(spec.skills)
    if spec.output.schema is not None:
        tail += prompt.result_section(json.dumps(spec.output.schema) if result_schema is ANY_RESULT else None)
    if tail and server is not None:
        tail += prompt.server_section(server)
    parts = prompt.joined((head, *spec.parts, prompt.TextPart(tail)))
    return [_wire_block(part, embeds=embeds) for part in parts]


def wire_system_prompt(
    system: SystemPrompt, flags: s.SessionCapabilities, *, kept: bool = False
) -> s.SystemPrompt | None:
    """Return a system prompt in the protocol's form; ``None``: it goes before the first prompt.

    Args:
        system: The system prompt.
        flags: What the agent advertises.
        kept: Whether the session keeps the one that it began with, whatever it is given.

    Raises:
        CapabilityMissing: The agent does not support it, and there is no fallback.
    """
    taken, path, wanted_by = flags.system_prompt, "sessionCapabilities.systemPrompt", "a system prompt"
    if kept:
        path = f"{path} for a session that has begun (it keeps the one that it began with, or none)"
    elif taken is not None:
        if system.mode == "append" or (taken.mode is not None and taken.mode.override is not None):
            mode: s.SystemPromptMode = "append" if system.mode == "append" else "override"
            return s.SystemPrompt(mode=mode, content=(s.TextContent(text=system.text),))
        path, wanted_by = f"{path}.mode.override", f'{wanted_by} of the mode "replace"'
    if system.fallback is None:
        raise CapabilityMissing(
            path, f'{wanted_by}; with the fallback "prompt" its text goes before the first prompt instead'
        )
    return None


def _wire_block(part: prompt.Part, *, embeds: bool) -> s.ContentBlock:
    match part:
        case prompt.TextPart(text=text):
            return s.TextContent(text=text)
        case prompt.ImagePart():
            return s.ImageContent(data=part.data, mime_type=part.mime_type)
        case prompt.LinkPart():
            return s.ResourceLink(uri=part.uri, name=part.name)
        case prompt.FilePart(path=path):
            file = Path(path)
            if embeds:
                try:
                    text = file.read_text("utf-8")
                except UnicodeDecodeError:
                    pass  # no text: the agent gets a link
                else:
                    return s.EmbeddedResource(resource=s.TextResourceContents(uri=file.as_uri(), text=text))
            return s.ResourceLink(uri=file.as_uri(), name=file.name)
        case _:
            assert_never(part)
