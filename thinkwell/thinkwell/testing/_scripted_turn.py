"""The argument of a script's function: its turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell.testing._sent import SentResult, SentTool
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from thinkwell.events import JsonValue
    from thinkwell.testing._client_tools import ClientTools
    from thinkwell_acp import AgentSide


class ScriptedTurn:
    """The turn in which a function given to `Script.does` runs.

    Args:
        request: The prompt.
        client: The connection to the client.
        tools: The client's tool servers.
        find: Returns the server of a tool.
    """

    def __init__(
        self,
        request: s.PromptRequest,
        client: AgentSide,
        tools: Sequence[ClientTools],
        find: Callable[[str], ClientTools],
    ) -> None:
        self.request = request
        """The prompt, as received."""
        self.client = client
        """The connection to the client, for everything else."""
        self._tools = tools
        self._find = find

    @property
    def session_id(self) -> str:
        """The session."""
        return self.request.session_id

    @property
    def text(self) -> str:
        """The text of the prompt: that of its text blocks, joined."""
        return prompt_text(self.request.prompt)

    @property
    def mcp_connections(self) -> tuple[str, ...]:
        """The ids of the connections to the client's tools, for ``client.message_mcp`` and its like."""
        return tuple(server.connection_id for server in self._tools)

    @property
    def tools(self) -> tuple[SentTool, ...]:
        """The tools that the client offers in this session, as last listed."""
        return tuple(
            SentTool(name=tool.name, description=tool.description, schema=tool.schema)
            for server in self._tools
            for tool in server.tools
        )

    def update(self, update: s.SessionUpdate, *, session_id: str | None = None) -> None:
        """Send an update. Await ``client.drain()`` now and then when you send many.

        Args:
            update: What to send.
            session_id: Another session than that of the turn.
        """
        self.client.update(session_id or self.session_id, update)

    async def call(self, tool: str, arguments: Mapping[str, JsonValue] | None = None) -> SentResult:
        """Call a tool that the client offers, and return its result, even if it is an error.

        Raises:
            RpcError: The client does not run the tool.
            Exception: The tool is not offered. If you do not catch this, the script fails.
        """
        given = dict(arguments or {})
        outcome = await self._find(tool).call(tool, given)
        return SentResult(
            tool=tool,
            arguments=given,
            text=outcome.text,
            is_error=outcome.failed,
            structured=outcome.structured,
        )


def prompt_text(prompt: Sequence[s.ContentBlock]) -> str:
    """Return the text of a prompt."""
    return "".join(block.text for block in prompt if isinstance(block, s.TextContent))
