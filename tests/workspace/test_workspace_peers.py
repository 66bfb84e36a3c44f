"""A workspace given to `open_agent`, as an agent of this project and one of the official SDK see it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from scripted import Played, Turn, scripted
from trio.testing import MockClock

from thinkwell import PermissionPolicy, Rule, ThoughtTimeout, Workspace, events, open_agent
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

PROGRAMS = Path(__file__).parent / "programs"
INVALID_PARAMS = -32602


async def test_an_agent_of_the_official_sdk_works_through_it(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "in.txt").write_text("one\ntwo\nthree\n", "utf-8")
    (tmp_path / "secret.txt").write_text("secret", "utf-8")
    command = [sys.executable, str(PROGRAMS / "official_worker.py")]
    with anyio.fail_after(30):
        async with open_agent(
            command=command, cwd=root, workspace=Workspace(root, write=True, terminal=True)
        ) as agent:
            told = json.loads(await agent.think().text("Go").run())
    assert told == {
        "read": "two\n",
        "outside": [-32602, -32602, -32002],
        "printed": "TWO\n",
        "exit": 0,
        "fs": [True, True],
        "terminal": True,
    }
    assert (root / "made" / "out.txt").read_text("utf-8") == "TWO\n"


async def codes_of(turn: Turn, folder: Path) -> list[int | None]:
    """Try everything, and return the errors' codes."""
    session_id, client = turn.session_id, turn.client
    path = str(folder / "in.txt")
    codes: list[int | None] = []
    calls: list[Any] = [
        lambda: client.read_text_file(s.ReadTextFileRequest(session_id=session_id, path=path)),
        lambda: client.write_text_file(
            s.WriteTextFileRequest(session_id=session_id, path=path, content="new")
        ),
        lambda: client.create_terminal(s.CreateTerminalRequest(session_id=session_id, command="true")),
    ]
    for call in calls:
        try:
            await call()
        except RpcError as exc:
            codes.append(exc.code)
        else:
            codes.append(None)
    return codes


async def test_commands_end_with_their_session(tmp_path: Path) -> None:
    ids: list[str] = []
    late: list[int] = []

    async def script(turn: Turn) -> None:
        request = s.CreateTerminalRequest(session_id=turn.session_id, command="sleep", args=("60",))
        ids.append((await turn.client.create_terminal(request)).terminal_id)
        turn.say("Done")

    handler = Played([script])
    with anyio.fail_after(30):
        async with scripted(
            agent=handler, workspace=Workspace(tmp_path, terminal=True), cwd=tmp_path
        ) as agent:
            await agent.think().text("Go").stream().wait()
            with pytest.raises(RpcError) as caught:
                await handler.client.terminal_output(
                    s.TerminalOutputRequest(session_id="session-1", terminal_id=ids[0])
                )
            late.append(caught.value.code)
    assert late == [-32002]


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])
async def test_the_clock_for_silence_stands_still_while_a_command_runs(tmp_path: Path) -> None:
    async def script(turn: Turn) -> None:
        request = s.CreateTerminalRequest(session_id=turn.session_id, command="sleep", args=("0.3",))
        terminal = (await turn.client.create_terminal(request)).terminal_id
        await turn.client.wait_for_terminal_exit(
            s.WaitForTerminalExitRequest(session_id=turn.session_id, terminal_id=terminal)
        )
        await anyio.sleep_forever()

    async with scripted(script, workspace=Workspace(tmp_path, terminal=True), cwd=tmp_path) as agent:
        stream = agent.think().text("Go").stream(idle_timeout=5, include={"stalled"})
        with pytest.raises(ThoughtTimeout, match="Nothing was heard"):
            await stream.result
        assert [type(event) for event in stream.late] == []
        stalls = [event async for event in stream]
    assert [type(event) for event in stalls] == [events.Stalled]


async def test_rules_that_deny_hold_for_what_goes_through_us_too(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("old", "utf-8")
    seen: list[list[int | None]] = []
    told: list[str] = []

    async def script(turn: Turn) -> None:
        seen.append(await codes_of(turn, tmp_path))
        line = s.CreateTerminalRequest(session_id=turn.session_id, command="true && rm x")
        with pytest.raises(RpcError) as caught:
            await turn.client.create_terminal(line)
        told.append(str(caught.value))
        turn.say("Done")

    def policy(*rules: Rule) -> PermissionPolicy:
        return PermissionPolicy(rules=rules, otherwise="deny")

    deny_command = Rule(verdict="deny", command=("true", "rm *"), why="no commands")
    cases: list[tuple[PermissionPolicy, list[int | None]]] = [
        (policy(deny_command), [None, None, INVALID_PARAMS]),
        (policy(deny_command, Rule(verdict="deny", kind="edit")), [None, INVALID_PARAMS, INVALID_PARAMS]),
        (policy(deny_command, Rule(verdict="deny", path="*.txt")), [INVALID_PARAMS] * 3),
    ]
    for permissions, codes in cases:
        workspace = Workspace(tmp_path, write=True, terminal=True, shell_lines=True)
        with anyio.fail_after(30):
            async with scripted(script, workspace=workspace, cwd=tmp_path, permissions=permissions) as agent:
                await agent.think().text("Go").run()
        assert seen.pop() == codes
        assert "no commands" in told.pop()
