"""An agent that remembers sessions in a file, and can do what its arguments name.

It answers with what it was told. ``die`` ends it, ``refuse`` makes it answer with an error.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripted import Played, Proceed, Turn

from thinkwell_acp import RpcError, own_stdio
from thinkwell_acp import schema as s

FILE = Path(os.environ["SESSIONS"])
MODES = (
    s.SessionMode(id="ask", name="Ask", description="asks first"),
    s.SessionMode(id="code", name="Code"),
)
OPTIONS = (
    s.SessionConfigSelect(
        id="model",
        name="Model",
        category="model",
        current_value="small",
        options=(
            s.SessionConfigSelectOption(value="small", name="Small", description="quick"),
            s.SessionConfigSelectOption(value="large", name="Large"),
        ),
    ),
    s.SessionConfigBoolean(id="brave", name="brave", current_value=False),
)
COMMANDS = (
    s.AvailableCommand(
        name="review",
        description="Review\x1b[2J the change",
        input=s.UnstructuredCommandInput(hint="what"),
    ),
    s.AvailableCommand(
        name="translate",
        description="Translate a text",
        input=s.UnstructuredCommandInput(hint="into which language"),
    ),
    s.AvailableCommand(name="help", description="Its own"),
    s.AvailableCommand(name="bad\x1bname", description="Not to be typed"),
)


async def answers(turn: Turn) -> None:
    match turn.text:
        case "die":
            sys.stderr.write("It was too much.\n")
            sys.stderr.flush()
            os._exit(3)
        case "refuse":
            raise RpcError(-32603, "no model")
        case "usage":
            turn.update(s.UsageUpdate(used=1200, size=200_000))
        case _:
            pass
    turn.say(f"You said: {turn.text!r}")


class Remembering(Played):
    def __init__(self, *can: str) -> None:
        able = s.AgentCapabilities(
            load_session="load" in can,
            mcp_capabilities=s.McpCapabilities(acp=True),
            session_capabilities=s.SessionCapabilities(
                list=s.SessionListCapabilities() if "list" in can else None,
                delete=s.SessionDeleteCapabilities() if "delete" in can else None,
                resume=s.SessionResumeCapabilities() if "resume" in can else None,
            ),
        )
        own = s.Implementation(name="remembering", version="1.0")
        super().__init__([answers], capabilities=able, info=own)
        self.known = msgspec.json.decode(FILE.read_bytes(), type=list[s.SessionInfo])
        if "modes" in can:
            self.modes = s.SessionModeState(current_mode_id="ask", available_modes=MODES)
        if "options" in can:
            self.options = list(OPTIONS)
        self.can = can
        self.replay = [
            s.UserMessageChunk(content=s.TextContent(text="Hello?")),
            s.AgentMessageChunk(content=s.TextContent(text="Hello yourself.")),
        ]

    async def open_session(self, request: Any, proceed: Proceed) -> Any:
        new = isinstance(request, s.NewSessionRequest)
        if not new and request.session_id not in {info.session_id for info in self.known}:
            raise RpcError(-32602, "no such session")
        opened = await super().open_session(request, proceed)
        if new and "commands" in self.can:
            news = s.AvailableCommandsUpdate(available_commands=COMMANDS)
            self.client.update(opened.session_id, news)
        return opened

    async def set_mode(self, request: s.SetSessionModeRequest, proceed: Proceed) -> s.SetSessionModeResponse:
        if "deaf" in self.can:
            await anyio.sleep_forever()
        if "stuck" in self.can:
            FILE.with_name("stuck").write_text("")  # a pipe: whoever reads it knows that it has come so far
            await anyio.sleep_forever()
        return await super().set_mode(request, proceed)

    async def delete_session(
        self, request: s.DeleteSessionRequest, proceed: Proceed
    ) -> s.DeleteSessionResponse:
        response = await super().delete_session(request, proceed)
        FILE.write_bytes(msgspec.json.encode(self.known))
        return response


async def main() -> None:
    await Remembering(*sys.argv[1:]).serve(own_stdio())


anyio.run(main)
