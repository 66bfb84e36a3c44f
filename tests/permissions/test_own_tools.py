"""Which calls are of our own tools: only those in exactly the forms in which agents show them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell._own_tools import OwnCalls, own_renderings
from thinkwell_acp import schema as s
from thinkwell_acp.mcp import CallContext, ToolOutput, ToolServer, ToolSpec

SERVER = "thinkwell0a1b2c3d4e5f"
ADD = ToolSpec(
    name="add",
    description="Adds.",
    input_schema={"type": "object", "properties": {"x": {"type": "integer"}}},
)
ANYTHING = ToolSpec(name="any", description="Takes all.", input_schema={"type": "object"})
PROXY = ToolSpec(
    name="proxy",
    description="Has the arguments that codex shows for every tool.",
    input_schema={
        "type": "object",
        "properties": {"server": {"type": "string"}, "tool": {"type": "string"}, "arguments": {}},
    },
)
TOOLS = (ADD, ANYTHING, PROXY)

CODEX: dict[str, Any] = {"server": SERVER, "tool": "add", "arguments": {"x": 1}}
MCP_NAME = f"mcp__{SERVER}__add"
CLAUDE: dict[str, Any] = {
    "claudeCode": {"toolName": MCP_NAME, "mcpServer": {"name": SERVER, "source": "dynamic"}}
}
TEXT = s.Content(content=s.TextContent(text='{"x": 1}'))


def call(title: str | None = None, **fields: Any) -> s.ToolCallUpdate:
    return s.ToolCallUpdate(tool_call_id="t1", title=title, **fields)


async def never(name: str, arguments: dict[str, Any], context: CallContext) -> ToolOutput:
    raise NotImplementedError


def is_own(call: s.ToolCallUpdate) -> bool:
    server = ToolServer(SERVER, never, version="1")
    server.set_tools(TOOLS)
    return OwnCalls(server).asks(call)


OWN = {
    "claude": call(MCP_NAME, name=MCP_NAME, kind="other", raw_input={"x": 1}, content=(), meta=CLAUDE),
    "claude with a title of its own": call("Add numbers", meta=CLAUDE),
    "gemini": call(f"add ({SERVER} MCP Server)", kind="other", content=(TEXT,), locations=()),
    "opencode": call(f"{SERVER}_add", kind="other", raw_input={}, locations=()),
    "codex": call(f"mcp.{SERVER}.add", kind="execute", raw_input=CODEX),
    "what an agent adds": call(f"{SERVER}_add", raw_input={"x": 1, "wait_for_previous": True}),
    "open arguments": call(f"{SERVER}_any", raw_input={"command": "x"}),
    "arguments like those of codex": call(f"{SERVER}_proxy", raw_input={**CODEX, "tool": "x"}),
    "copilot": call(f"{SERVER}-add", kind="other", raw_input={"x": 1}),
    "fast-agent": call(f"{SERVER}/add", kind="other", raw_input={"x": 1}),
    "mistral-vibe": call(
        f"mcp_{SERVER}.add", kind="other", raw_input={"x": 1}, meta={"tool_name": f"mcp_{SERVER}.add"}
    ),
    "qwen": call('{"x": 1}', kind="other", raw_input={"x": 1}, meta={"toolName": MCP_NAME}),
    "what the model makes up": call("x", raw_input={"command": "rm"}, meta={"toolName": MCP_NAME}),
    "what the model makes up, with claude": call("x", raw_input={"y": 1}, meta=CLAUDE),
    "another codex": call(f"Tool: {SERVER}/add", raw_input=CODEX),
    "a short name": call(f"add ({SERVER} MCP Server)", name="add"),
}
FOREIGN = {
    "nothing": call(),
    "another tool": call(f"{SERVER}_other"),
    "another server": call("mcp__thinkwell000000000000__add"),
    "a command with our title": call(f"{SERVER}_add", raw_input={"command": "rm -rf /"}),
    "a command with our title and arguments": call(f"{SERVER}_add", raw_input={"x": 1, "command": "rm"}),
    "a shell with our title": call(f"{SERVER}_add", kind="execute"),
    "a shell with our title and no command": call(f"{SERVER}_add", kind="execute", raw_input={"x": 1}),
    "a shell with the title of codex": call(f"mcp.{SERVER}.add", kind="execute", raw_input={"command": "x"}),
    "the title of codex alone": call(f"mcp.{SERVER}.add"),
    "the arguments of codex and more": call(
        f"mcp.{SERVER}.add", kind="execute", raw_input={**CODEX, "command": "rm"}
    ),
    "an edit with our title": call(MCP_NAME, kind="edit", raw_input={"x": 1}),
    "what may be the path of a program": call(f"{SERVER}/add", kind="other"),
    "a command at our path": call(f"{SERVER}/add", kind="other", raw_input={"command": f"{SERVER}/add"}),
    "qwen says another name": call(MCP_NAME, raw_input={"x": 1}, meta={"toolName": "bash"}),
    "qwen says two names": call(MCP_NAME, meta={"toolName": MCP_NAME, "tool_name": "bash"}),
    "the name of the tool alone": call("add", kind="other", raw_input={"x": 1}),
    "text as input": call(f"{SERVER}_add", raw_input="x"),
    "a list as input": call(f"mcp.{SERVER}.add", raw_input=[CODEX]),
    "claude says another name": call(MCP_NAME, meta={"claudeCode": {"toolName": "Bash"}}),
    "claude says no name": call(MCP_NAME, meta={"claudeCode": {"toolName": None}}),
    "claude says a list": call(MCP_NAME, meta={"claudeCode": {"toolName": [MCP_NAME]}}),
    "claude says a title of others": call(
        MCP_NAME, meta={"claudeCode": {"toolName": f"add ({SERVER} MCP Server)"}}
    ),
    "claude says a name of another server": call(
        MCP_NAME, meta={"claudeCode": {"toolName": f"mcp__evil__{MCP_NAME}"}}
    ),
    "our name in another field of claude": call("rm", meta={"claudeCode": {"mcpServer": {"name": SERVER}}}),
    "our name in another vendor's field": call("rm", meta={"other": {"toolName": MCP_NAME}}),
    "our title but another name": call(MCP_NAME, name="Bash", raw_input={"x": 1}),
    "claude and another name": call(MCP_NAME, name="Bash", meta=CLAUDE),
    "our name as a name alone": call("rm -rf /", name=MCP_NAME, kind="execute"),
    "our names as arguments": call("fetch", kind="fetch", raw_input=CODEX),
    "our names as arguments without a title": call(raw_input=CODEX),
    "codex and another server": call(
        f"mcp.{SERVER}.add", kind="execute", raw_input={**CODEX, "server": "other"}
    ),
    "codex and another tool": call(f"mcp.{SERVER}.add", kind="execute", raw_input={**CODEX, "tool": "rm"}),
    "codex and a list": call(f"mcp.{SERVER}.add", kind="execute", raw_input={**CODEX, "server": [SERVER]}),
    "our title over a change to a file": call(MCP_NAME, content=(s.Diff(path="/x", new_text=""),)),
    "our title over a terminal": call(MCP_NAME, content=(TEXT, s.Terminal(terminal_id="t"))),
    "our title over a file": call(MCP_NAME, locations=(s.ToolCallLocation(path="/x"),)),
}


@pytest.mark.parametrize("name", OWN)
def test_forms_in_which_agents_show_our_tools(name: str) -> None:
    assert is_own(OWN[name])


@pytest.mark.parametrize("name", FOREIGN)
def test_what_only_looks_like_it(name: str) -> None:
    assert not is_own(FOREIGN[name])


@pytest.mark.parametrize("rendering", own_renderings(SERVER, "add"))
@pytest.mark.parametrize(
    "disguise",
    [
        "{} ",
        " {}",
        "{}\n",
        "\u200b{}",
        "{}\u200b",
        "{}\0",
        "`{}`",
        "Run {}",
        "{}; rm -rf /",
        "rm -rf / # {}",
        "Approve {}",
        "{0}{0}",
    ],
)
def test_a_title_that_holds_ours_is_not_ours(rendering: str, disguise: str) -> None:
    title = disguise.format(rendering)
    assert not is_own(call(title))
    assert not is_own(call(title, raw_input={"x": 1}))
    assert not is_own(call(title, kind="execute", raw_input=CODEX))
    assert not is_own(call("rm", raw_input={"command": title, "x": title}))
    assert not is_own(call(title, meta={"claudeCode": {"toolName": title}}))


@pytest.mark.parametrize("rendering", own_renderings(SERVER, "add"))
def test_letters_that_look_like_ours_are_not_ours(rendering: str) -> None:
    for ours, theirs in (
        ("a", "а"),
        ("_", "＿"),
        ("e", "ｅ"),
        ("w", "W"),
        ("i", "і"),
        ("0", "O"),
        (" ", "\xa0"),
    ):
        title = rendering.replace(ours, theirs)
        assert title == rendering or not is_own(call(title, raw_input={"x": 1}))
    assert not is_own(call(rendering.upper()))


@given(st.text(), st.text(), st.sampled_from(own_renderings(SERVER, "add")))
def test_nothing_can_be_put_around_a_title(before: str, after: str, rendering: str) -> None:
    title = before + rendering + after
    forms = {form for tool in TOOLS for form in own_renderings(SERVER, tool.name) if "/" not in form}
    assert is_own(call(title)) is (title in forms and not title.startswith(f"mcp.{SERVER}."))
