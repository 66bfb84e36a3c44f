"""Which calls are of our own tools: only those in exactly the forms in which agents show them."""

from __future__ import annotations

import os
import string
import subprocess
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from asking import permission
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from scripted import Played, Turn, scripted
from stream.counting import calls_made
from suite.tiers import few

from thinkwell import ResultMissing
from thinkwell.tools import Tool
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

SERVER = "thinkwell0a1b2c3d4e5f"
"""Stands for the name of the server, which no two sessions share."""


async def never(**arguments: object) -> None:
    raise NotImplementedError


def tool(name: str, **properties: dict[str, Any]) -> Tool[..., object]:
    schema: dict[str, Any] = {"type": "object", **({"properties": properties} if properties else {})}
    return Tool(name=name, description="Does it.", input_schema=schema, function=never, validate=dict)


TOOLS = (
    tool("add", x={"type": "integer"}),
    tool("any"),
    tool("proxy", server={"type": "string"}, tool={"type": "string"}, arguments={}),
)
"""The last one has the arguments that codex shows for every tool."""


@cache
def renderings(tool: str) -> tuple[str, ...]:
    """Return the titles under which agents show a tool of ours."""
    prefixes = ("", "mcp__", "mcp_", "mcp.", "mcp:", "mcp-", "mcp/", "MCP: ", "Tool: ")
    joints = ("_", "__", ".", "-", ":", "/", ": ")
    joined = tuple(f"{prefix}{SERVER}{joint}{tool}" for prefix in prefixes for joint in joints)
    return (*joined, f"{tool} ({SERVER} MCP Server)", f"{tool} ({SERVER})")


CODEX: dict[str, Any] = {"server": SERVER, "tool": "add", "arguments": {"x": 1}}
MCP_NAME = f"mcp__{SERVER}__add"
CLAUDE: dict[str, Any] = {
    "claudeCode": {"toolName": MCP_NAME, "mcpServer": {"name": SERVER, "source": "dynamic"}}
}
TEXT = s.Content(content=s.TextContent(text='{"x": 1}'))


def call(title: str | None = None, **fields: Any) -> s.ToolCallUpdate:
    return s.ToolCallUpdate(tool_call_id="t1", title=title, **fields)


def are_own(
    calls: Sequence[s.ToolCallUpdate] | Callable[[str], Sequence[s.ToolCallUpdate]],
) -> list[bool]:
    """Return which of these calls are taken for ours: those are allowed where all others are denied."""
    outcomes: list[bool] = []

    async def asks(turn: Turn) -> None:
        server = turn.server
        for number, call in enumerate(calls(server) if callable(calls) else calls):
            written = s.encode(call).replace(SERVER.encode(), server.encode())
            own = replace(s.decode(s.ToolCallUpdate, written), tool_call_id=f"t{number}")
            answer = await turn.client.request_permission(permission(turn.session_id, own))
            outcomes.append(getattr(answer.outcome, "option_id", None) in ("a", "y"))

    agent = Played([asks])

    async def run() -> None:
        async with scripted(agent=agent, permissions="deny") as opened:
            task = opened.think(int).text("Go")
            for tool in TOOLS:
                task = task.tool(tool)
            with pytest.raises(ResultMissing):
                await task.run(reminders=0)

    anyio.run(run)
    return outcomes


def is_own(call: s.ToolCallUpdate) -> bool:
    return are_own([call]) == [True]


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
    "another joint": call(f"mcp___{SERVER}___add"),
    "arguments in the title": call(f'{SERVER}_add: {{"x": 1}}'),
    "arguments in the title that were cut": call(f'{SERVER}_add: {{"x": 100000000...000}}'),
    "the result alone": call("return_result"),
    "the result alone with its arguments": call('return_result: {"result": 1}'),
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
    "an open tool at our path with a command": call(f"{SERVER}/any", raw_input={"command": f"{SERVER}/any"}),
    "arguments in the title that the tool does not have": call(f'{SERVER}_add: {{"y": 1}}'),
    "braces in the title": call(f"{SERVER}_add: {{x}}"),
    "a list in the title": call(f"{SERVER}_add: [1]"),
    "a command in the title's arguments": call(f'{SERVER}_add: {{"x": "$(rm -rf /)"}}'),
    "a command in arguments that were cut": call(f'{SERVER}_add: {{"x": "a"; rm -rf / ...}}'),
    "a line after the arguments": call(f'{SERVER}_add: {{"x": 1}}\nrm -rf /'),
    "the result and a command": call('return_result: {"command": "rm -rf /"}'),
    "the result by the agent's own name": call(
        "x", raw_input={"command": "rm"}, meta={"toolName": "return_result"}
    ),
    "a bracket that nothing opens": call(f"{SERVER}_add)"),
}


def test_forms_in_which_agents_show_our_tools() -> None:
    assert dict(zip(OWN, are_own(list(OWN.values())), strict=True)) == dict.fromkeys(OWN, True)


def test_every_title_of_ours_is_ours_alone() -> None:
    titles = [title for title in renderings("add") if "/" not in title and title != f"mcp.{SERVER}.add"]
    assert are_own([call(title) for title in titles]) == [True] * len(titles)


def test_what_only_looks_like_it() -> None:
    assert dict(zip(FOREIGN, are_own(list(FOREIGN.values())), strict=True)) == dict.fromkeys(FOREIGN, False)


DISGUISES = (
    *("{} ", " {}", "{}\n", "\u200b{}", "{}\u200b", "{}\0", "`{}`", "Run {}", "{}; rm -rf /"),
    *("rm -rf / # {}", "Approve {}", "{0}{0}"),
)


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)])
def test_a_title_that_holds_ours_is_not_ours(every: int) -> None:
    calls: list[s.ToolCallUpdate] = []
    for disguise, rendering in product(DISGUISES, renderings("add")[::every]):
        title = disguise.format(rendering)
        calls += (
            call(title),
            call(title, raw_input={"x": 1}),
            call(title, kind="execute", raw_input=CODEX),
            call("rm", raw_input={"command": title, "x": title}),
            call(title, meta={"claudeCode": {"toolName": title}}),
        )
    assert [call for call, own in zip(calls, are_own(calls), strict=True) if own] == []


LOOK_ALIKES = [("a", "а"), ("e", "ｅ"), ("w", "W"), ("i", "і"), ("0", "O"), (" ", "\xa0")]


def test_letters_that_look_like_ours_are_not_ours() -> None:
    def disguised(server: str) -> list[s.ToolCallUpdate]:
        calls: list[s.ToolCallUpdate] = []
        for rendering in (rendering.replace(SERVER, server) for rendering in renderings("add")):
            titles = {rendering.replace(ours, theirs) for ours, theirs in LOOK_ALIKES}
            calls += (call(title, raw_input={"x": 1}) for title in sorted(titles - {rendering}))
            calls.append(call(rendering.upper()))
        return calls

    assert are_own(disguised).count(True) == 0


# Any joint, and no forgery

WORDS = st.sampled_from(("mcp", "MCP", "tool", "Tool", "Server"))
JOINT_CHARACTERS = st.one_of(
    st.sampled_from(string.punctuation + " "), st.characters(categories=("Pc", "Pd", "Po", "Sm", "So"))
)
MANY_TITLES = settings(
    max_examples=few(20),
    phases=(Phase.explicit, Phase.generate),  # an agent is started for each example: to shrink takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
JOINTS = st.text(JOINT_CHARACTERS.filter(lambda character: character not in "()[]"), min_size=1, max_size=4)


@st.composite
def titles(draw: st.DrawFn, server: str = SERVER, joints: st.SearchStrategy[str] = JOINTS) -> str:
    """Titles that an agent may make of the tool `add`, whatever it puts between the names."""
    words = "".join(draw(WORDS) + draw(joints) for _ in range(draw(st.integers(0, 2))))
    form = draw(st.sampled_from(("{0}{1}{2}", "{0}{1}tool{3}{2}", "{2}{1}{0}", "{2} ({0} MCP Server)")))
    return words + form.format(server, draw(joints), "add", draw(joints))


@given(st.lists(titles(), min_size=10, max_size=20))
@MANY_TITLES
def test_any_joint_will_do_where_the_arguments_are_shown(titles: list[str]) -> None:
    calls = [call(title, kind="other", raw_input={"x": 1}) for title in titles]
    assert [title for title, own in zip(titles, are_own(calls), strict=True) if not own] == []


@pytest.mark.skipif(os.name == "nt", reason="it needs a shell of POSIX")
@given(data=st.data())
@settings(MANY_TITLES, max_examples=few(20))
def test_a_title_that_counts_without_arguments_is_no_command(tmp_path: Path, data: st.DataObject) -> None:
    # Some agents show a command as its title and nothing else. Here all words of a title but the server's are
    # programs, and so are the paths that can be made of the names.
    programs, folder = tmp_path / "programs", tmp_path / "folder"
    folder.joinpath(SERVER).mkdir(parents=True, exist_ok=True)
    programs.mkdir(exist_ok=True)
    for name in ("add", "mcp", "MCP", "tool", "Tool", "Server"):
        for path in (programs / name, folder / name, folder / SERVER / name):
            path.write_text(f"#!/bin/sh\necho ran >> {tmp_path}/ran\n", "utf-8")
            path.chmod(0o700)
    tail = st.one_of(
        st.just(""),
        st.text(JOINT_CHARACTERS, max_size=8).map(lambda text: f': {{"x": "{text}"}}'),
        st.text(JOINT_CHARACTERS, max_size=8).map(lambda text: f': {{"x": 1{text}add{text}...'),
    )
    shown = data.draw(st.lists(st.builds("{}{}".format, titles(), tail), min_size=60, max_size=60))
    own = [
        title
        for title, counts in zip(shown, are_own([call(title) for title in shown]), strict=True)
        if counts
    ]
    before = sorted(folder.rglob("*"))
    for title in own:
        run = ["/bin/sh", "-c", title]
        subprocess.run(
            run,
            cwd=folder,
            env={"PATH": str(programs)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert not (tmp_path / "ran").exists(), title
        assert sorted(folder.rglob("*")) == before, title


@st.composite
def forgeries(draw: st.DrawFn) -> str:
    """Titles of other tools that tell of ours, or are nearly one of them."""
    title = draw(titles())
    word = st.text(string.ascii_letters + string.digits, min_size=1, max_size=8).filter(
        lambda word: word.lower() not in ("mcp", "tool", "server")
    )
    match draw(st.integers(0, 5)):
        case 0:
            return draw(word) + draw(JOINTS) + title
        case 1:
            return title + draw(JOINTS.filter(lambda joint: "{" not in joint)) + draw(word)
        case 2:
            return title.replace(
                "add", draw(word.filter(lambda word: not word.endswith(("add", "any", "proxy"))))
            )
        case 3:  # one character of the mark
            index = draw(st.integers(9, len(SERVER) - 1))
            wrong = draw(st.sampled_from("0123456789abcdefg").filter(lambda digit: digit != SERVER[index]))
            return title.replace(SERVER, SERVER[:index] + wrong + SERVER[index + 1 :])
        case 4:
            return title.replace(SERVER, draw(st.sampled_from(("", "thinkwell", "THINKWELL0A1B2C3D4E5F"))))
        case _:  # a word as a joint
            return f"{SERVER}{draw(JOINTS)}{draw(word)}{draw(JOINTS)}add"


@given(st.lists(forgeries(), min_size=10, max_size=20))
@MANY_TITLES
def test_a_forged_title_is_never_ours(titles: list[str]) -> None:
    calls = [
        made for title in titles for made in (call(title), call(title, kind="other", raw_input={"x": 1}))
    ]
    assert [made.title for made, own in zip(calls, are_own(calls), strict=True) if own] == []


@given(st.text(), st.text(), st.sampled_from(renderings("add")))
@settings(max_examples=few(30))
def test_nothing_can_be_put_around_a_title(before: str, after: str, rendering: str) -> None:
    title = before + rendering + after
    forms = {form for tool in TOOLS for form in renderings(tool.name) if "/" not in form}
    assert is_own(call(title)) is (title in forms and not title.startswith(f"mcp.{SERVER}."))


def test_a_call_of_another_tool_costs_the_same_however_many_are_ours() -> None:
    def work(tools: int, calls: int) -> int:
        async def shows(turn: Turn) -> None:
            for number in range(calls):
                turn.update(s.ToolCallStart(tool_call_id=f"t{number}", title="Read a.py", kind="read"))

        async def run() -> None:
            async with scripted(shows) as agent:
                task = agent.think().text("Go")
                for number in range(tools):
                    task = task.tool(tool(f"add{number}"))
                await task.stream().wait()

        return calls_made(lambda: anyio.run(run))

    few, many = (work(tools, 300) - work(tools, 0) for tools in (1, 30))
    assert many < 1.5 * few
