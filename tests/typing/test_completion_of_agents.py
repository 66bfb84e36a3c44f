"""What an editor offers inside of the quotes of `open_agent`."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

ROOT = Path(__file__).parents[2]
SOURCE = 'from thinkwell import open_agent\n\nopen_agent("")\n'
AT = {"line": 2, "character": len('open_agent("')}


@contextmanager
def language_server(folder: Path) -> Generator[Callable[[str, dict[str, Any]], Any]]:
    """Start the server that editors use, and yield what asks it; a method with a slash at its end is told."""
    command = [sys.executable, "-c", "from basedpyright.langserver import main; main()", "--stdio"]
    numbers = itertools.count(1)
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        written, read = server.stdin, server.stdout

        def send(message: dict[str, Any]) -> None:
            body = json.dumps({"jsonrpc": "2.0", **message}).encode()
            written.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            written.flush()

        def ask(method: str, params: dict[str, Any]) -> Any:
            number = next(numbers)
            send({"id": number, "method": method, "params": params})
            while True:
                length = 0
                while line := read.readline().strip():
                    name, _, value = line.partition(b": ")
                    length = int(value) if name == b"Content-Length" else length
                message = json.loads(read.read(length))
                if message.get("id") == number and "method" not in message:
                    return message["result"]
                if "id" in message:  # it asks for settings, and can do without
                    items = message["params"].get("items") or []
                    send({"id": message["id"], "result": [None for _ in items]})

        place = {"uri": folder.as_uri(), "name": "project"}
        ask("initialize", {"processId": None, "capabilities": {}, "workspaceFolders": [place]})
        send({"method": "initialized", "params": {}})
        document = {"languageId": "python", "version": 1, "text": SOURCE}
        opened = {"textDocument": {"uri": (folder / "a.py").as_uri(), **document}}
        send({"method": "textDocument/didOpen", "params": opened})
        yield ask
        ask("shutdown", {})
        send({"method": "exit"})


@pytest.mark.long
def test_the_names_of_agents_are_offered(tmp_path: Path) -> None:
    (tmp_path / "thinkwell").symlink_to(ROOT / "thinkwell" / "thinkwell")
    (tmp_path / "thinkwell_acp").symlink_to(ROOT / "acp" / "thinkwell_acp")
    (tmp_path / "a.py").write_text(SOURCE, "utf-8")
    with language_server(tmp_path) as ask:
        found = ask(
            "textDocument/completion",
            {"textDocument": {"uri": (tmp_path / "a.py").as_uri()}, "position": AT},
        )
    offered = {item["label"].strip("'\"") for item in found["items"]}
    assert {"builtin", "claude", "codex", "gemini", "opencode"} <= offered
