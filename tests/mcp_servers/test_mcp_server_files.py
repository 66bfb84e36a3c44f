"""Files such as `.mcp.json`."""

from __future__ import annotations

import json
import logging
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from thinkwell import McpHttp, McpServerError, McpSse, McpStdio, load_mcp_servers

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "s3cr3t-value"


def written(folder: Path, servers: object) -> Path:
    path = folder / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return path


def test_the_kinds_of_servers(tmp_path: Path) -> None:
    servers = {
        "files": {"command": "npx", "args": ["-y", "files"], "env": {"ROOT": "/notes"}},
        "plain": {"type": "stdio", "command": "server"},
        "web": {"type": "http", "url": "https://h.example/mcp", "headers": {"A": "b"}},
        "web2": {"type": "streamable-http", "url": "https://h.example/mcp"},
        "web3": {"url": "https://h.example/mcp"},
        "old": {"type": "sse", "url": "https://h.example/sse"},
    }
    assert load_mcp_servers(str(written(tmp_path, servers))) == (
        McpStdio("files", ["npx", "-y", "files"], env={"ROOT": "/notes"}),
        McpStdio("plain", ["server"]),
        McpHttp("web", "https://h.example/mcp", headers={"A": "b"}),
        McpHttp("web2", "https://h.example/mcp"),
        McpHttp("web3", "https://h.example/mcp"),
        McpSse("old", "https://h.example/sse"),
    )
    assert load_mcp_servers(written(tmp_path, {})) == ()


def test_variables_are_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE", "1")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("MISSING", raising=False)
    servers = {
        "files": {
            "command": "${ONE}",
            "args": [
                "a${ONE}b${env:ONE}",
                "$ONE",
                "${MISSING:-a:-b}",
                "${EMPTY:-x}",
                "${ONE:-x}",
                "${EMPTY}",
            ],
            "env": {"${ONE}": "${MISSING:-}"},
        },
        "web": {"url": "${MISSING:-https://h.example}/mcp", "headers": {"Authorization": "Bearer ${ONE}"}},
    }
    files, web = load_mcp_servers(written(tmp_path, servers))
    assert files == McpStdio("files", ["1", "a1b1", "$ONE", "a:-b", "x", "1", ""], env={"${ONE}": ""})
    assert web == McpHttp("web", "https://h.example/mcp", headers={"Authorization": "Bearer 1"})
    path = written(tmp_path, {"n": {"command": "${ONE}"}})
    assert load_mcp_servers(path, env={"ONE": "2"}) == (McpStdio("n", ["2"]),)


def test_what_is_filled_in_is_not_filled_in_again(tmp_path: Path) -> None:
    path = written(tmp_path, {"n": {"command": "${A}"}})
    assert load_mcp_servers(path, env={"A": "${B}", "B": "x"}) == (McpStdio("n", ["${B}"]),)


def test_a_byte_order_mark_is_no_part_of_it(tmp_path: Path) -> None:
    path = written(tmp_path, {"n": {"command": "x"}})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_mcp_servers(path) == (McpStdio("n", ["x"]),)


def test_disabled_servers_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "thinkwell")
    servers: dict[str, dict[str, object]] = {
        "off": {"command": "${MISSING}", "disabled": True},
        "on": {"command": "x", "disabled": False, "autoApprove": [], "timeout": 60},
    }
    assert load_mcp_servers(written(tmp_path, servers)) == (McpStdio("on", ["x"]),)
    assert caplog.messages == [
        "The MCP server 'off' is left out: it is disabled",
        "MCP server 'on': 'autoApprove' is passed over; it is no matter of the protocol's",
        "MCP server 'on': 'timeout' is passed over; it is no matter of the protocol's",
    ]


HTTP = {"url": "https://h.example"}


@pytest.mark.parametrize(
    ("entry", "where", "problem"),
    [
        (3, "", 'write an object, with a "command" or a "url"'),
        ({}, "", 'neither a "command" nor a "url"'),
        ({"command": "x", "url": "y"}, "", 'both a "command" and a "url"; say which counts by "type"'),
        ({"type": "ws", "url": "y"}, ".type", "it is none of stdio, http and sse"),
        ({"type": ["http"], "url": "y"}, ".type", "it is none of stdio, http and sse"),
        ({"type": "stdio"}, "", 'there is no "command"'),
        ({"type": "sse"}, "", 'there is no "url", which a server of the type sse has'),
        ({"type": "http", "url": "y", "command": "x"}, ".command", "a server of the type http has no such"),
        ({"command": "x", "headers": {}}, ".headers", "a server of the type stdio has no such thing"),
        ({"command": 3}, ".command", "it is no text; write it in quotes"),
        ({"command": ""}, ".command", "the command is empty"),
        ({"command": "x", "args": SECRET}, ".args", "write a list of texts"),
        ({"command": "x", "args": ["a", 3]}, ".args[1]", "it is no text"),
        ({"command": "x", "env": [SECRET]}, ".env", "write texts by their names"),
        ({"command": "x", "env": {"PORT": 80}}, ".env.PORT", "it is no text"),
        ({"command": "x", "env": {"A B=C": SECRET}}, ".env", "'A B=C' is no name"),
        ({"command": "x", "env": {"a b": 3}}, '.env["a b"]', "it is no text"),
        ({"url": f"ftp://{SECRET}"}, ".url", "the url must begin with https:// or http://"),
        ({**HTTP, "headers": {"A": f"{SECRET}\n"}}, ".headers", "a line end"),
        (
            {**HTTP, "headers": {"A": "Bearer ${MISSING}"}},
            ".headers.A",
            "variable MISSING is not set; set it,",
        ),
        ({"command": "${MISSING}"}, ".command", "or write ${MISSING:-default}"),
        ({"command": "x", "args": ["${MISSING"]}, ".args[0]", "there is a ${ with something else"),
        ({"command": "x", "args": ["${input:key}"]}, ".args[0]", "there is a ${ with something else"),
        ({"command": "x", "args": ["${A:-${B}}"]}, ".args[0]", "there is a ${ with something else"),
        ({"command": "x", "args": ["${}"]}, ".args[0]", "there is a ${ with something else"),
        ({"command": "x", "cwd": "/w"}, ".cwd", "the protocol has no place for the folder"),
        ({"command": "x", "envFile": ".env"}, ".envFile", "such files are not read"),
        ({**HTTP, "headersHelper": "x"}, ".headersHelper", "such programs are not run"),
        ({**HTTP, "header": {}}, ".header", "there is no such key; do you mean 'headers'?"),
    ],
)
def test_errors_say_which_server_and_which_key(
    tmp_path: Path, entry: object, where: str, problem: str
) -> None:
    path = written(tmp_path, {"fine": {"command": "x"}, "my server": entry})
    with pytest.raises(McpServerError) as caught:
        load_mcp_servers(path, env={})
    error = caught.value
    assert (error.server, error.source) == ("my server", str(path))
    assert error.where == f'mcpServers["my server"]{where}'
    assert problem in error.problem
    assert str(error) == f"{path}: {error.where}: {error.problem}"
    assert SECRET not in str(error)
    assert error.__cause__ is None
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.server) == (str(error), "my server")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"{", "this is no JSON: Expecting property name enclosed in double quotes, line 1, column 2"),
        (b"[]", 'write the servers by their names into an object: {"mcpServers": {…}}'),
        (b'{"servers": {}}', "write the servers by their names"),
        (b'{"mcpServers": []}', "write the servers by their names"),
        (b'"\xff"', "it is not UTF-8: invalid start byte"),
        (b'{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "the key 'a' is there twice"),
        (b"[" * 200_000, "it goes too deep"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, data: bytes, problem: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_bytes(data)
    with pytest.raises(McpServerError) as caught:
        load_mcp_servers(path)
    assert problem in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert (caught.value.server, caught.value.where) == (None, "")


def test_a_blank_name(tmp_path: Path) -> None:
    with pytest.raises(McpServerError, match=r'mcpServers\[""\]: the name is empty') as caught:
        load_mcp_servers(written(tmp_path, {"": {"command": "x"}}))
    assert caught.value.server == ""


def test_a_file_that_is_not_there_or_is_none(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    with pytest.raises(McpServerError) as caught:
        load_mcp_servers(path)
    assert str(caught.value) == f"{path}: it cannot be read: No such file or directory"
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    with pytest.raises(McpServerError, match="it cannot be read: Is a directory"):
        load_mcp_servers(tmp_path)


def test_only_texts_of_the_file_are_shown(tmp_path: Path) -> None:
    entry: dict[str, Any] = {"command": "x", "args": ["${SECRET}\0"]}
    with pytest.raises(McpServerError) as caught:
        load_mcp_servers(written(tmp_path, {"n": entry}), env={"SECRET": SECRET})
    assert SECRET not in str(caught.value)
