"""An MCP server over stdio with a fault: `odd_server.py FAULT`. It offers the tool `weigh`.

It writes its process id to the file that the variable PID names, and what it hears to the one of HEARD.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FAULT = sys.argv[1]

ANY = {"type": "object"}
TOOL: dict[str, Any] = {"name": "weigh", "description": "Weigh.", "inputSchema": ANY}
SCHEMAS: list[Any] = [
    {"type": "object", "properties": 5},
    {"type": "object", "properties": {"a": {"type": "string", "minLength": 10**12}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "array", "minItems": 10**9}}, "required": ["a"]},
    {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/many"}},
        "required": ["a"],
        "$defs": {"many": {"type": "array", "minItems": 9, "items": {"$ref": "#/$defs/many"}}},
    },
    {
        "type": "object",
        "properties": {"a\x1b[2J": {"type": "string", "pattern": "\x1b{9}"}},
        "required": ["a\x1b[2J"],
    },
]


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def tools() -> list[Any]:
    match FAULT:
        case "many":
            return [{**TOOL, "name": f"tool{number}"} for number in range(10_000)]
        case "clash":
            return [{**TOOL, "name": name} for name in ("double", "return_result", "double")]
        case "dies in a call":
            return [TOOL, {**TOOL, "name": "measure"}]
        case "names":
            names: list[Any] = ["", "a\x1b[31mb", "n" * 1000, 7, None, "weigh"]
            return [*({**TOOL, "name": name} for name in names), "no tool", [[[[]]]]]
        case "schemas":
            return [{"name": f"tool{i}", "inputSchema": schema} for i, schema in enumerate(SCHEMAS)]
        case _:
            return [TOOL]


def initialized() -> dict[str, Any]:
    revision = "2099-01-01\x1b" if FAULT == "future" else "2025-06-18"
    capabilities: dict[str, Any] = {} if FAULT == "no tools" else {"tools": {}}
    info = {"name": "odd", "version": "1"}
    return {"protocolVersion": revision, "capabilities": capabilities, "serverInfo": info}


def answer_call(params: dict[str, Any]) -> dict[str, Any]:
    token = params["_meta"]["progressToken"]
    match FAULT:
        case "dies in a call":
            sys.stderr.write("Traceback\nValueError: no \x1b[31mscales\n")
            sys.exit(4)
        case "hangs in a call":
            hang()
        case "refuses":
            return {"error": {"code": -32000, "message": "not \x1b[31mtoday"}}
        case "wrong result":
            return {"result": {"content": "heavy"}}
        case "long text":
            text = "\x1b[2J" + "x" * 300_000
            return {
                "result": {
                    "content": [{"type": "text", "text": text}],
                    "structuredContent": {"a": "y" * 2_000_000},
                }
            }
        case "long line":
            write("z" * (17 * 1024 * 1024))
            hang()
        case "is slow":
            for step in range(3):
                progress = {"progressToken": token, "progress": step}
                send({"method": "notifications/progress", "params": progress})
                send({"id": step, "method": "ping"})
                with Path(os.environ["HEARD"]).open("a") as heard:
                    heard.write(sys.stdin.readline())
                while not Path(f"{os.environ['GO']}{step}").exists():
                    time.sleep(0.01)
            send({"method": "notifications/progress", "params": {"progressToken": [token]}})
            send({"method": "notifications/progress", "params": {"progressToken": "other", "progress": 1}})
        case "changes":
            TOOL["name"] = "measure"
            for _ in range(100):
                send({"method": "notifications/tools/list_changed"})
        case _:
            pass
    return {"result": {"content": [{"type": "text", "text": "7 kilos"}, {"type": "image"}]}}


def hang() -> None:
    while True:
        time.sleep(3600)


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize" if FAULT == "hangs":
            hang()
        case "initialize" if FAULT == "wrong answer":
            return {"result": ["what?"]}
        case "initialize" if FAULT == "asks":
            send({"id": "p", "method": "ping"})
            send({"id": "r", "method": "roots/list"})
            send({"method": "notifications/message", "params": {"level": "info", "data": "hello"}})
        case "tools/list" if FAULT == "endless pages":
            number = int(params.get("cursor", 0))
            return {"result": {"tools": [{**TOOL, "name": f"tool{number}"}], "nextCursor": str(number + 1)}}
        case "tools/list" if FAULT == "no list":
            return {"error": {"code": -32000, "message": ""}}
        case "tools/call":
            return answer_call(params)
        case _:
            pass
    match method:
        case "initialize":
            return {"result": initialized()}
        case "tools/list" if FAULT != "no tools":
            return {"result": {"tools": tools()}}
        case _:
            return {"error": {"code": -32601, "message": f"Method not found: {method}"}}


def begin() -> None:
    """Do what is wrong before anything is asked."""
    Path(os.environ["PID"]).write_text(str(os.getpid()))
    match FAULT:
        case "dies at once":
            sys.stderr.write("no \x1b[31mlicense\n")
            sys.exit(3)
        case "hangs" | "hangs in a call":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "closes its output":
            os.close(1)
            hang()
        case "has a child":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
            Path(os.environ["PID"]).write_text(str(child.pid))
        case "floods stderr":
            sys.stderr.write("noise\n" * 500_000)
        case "prints":
            write("Welcome!\n\n{}\n[1]\n\xff\n" * 50)
        case "prints for ever":
            while True:
                write("no\x1b[31mthing\n" * 100)
        case "asks for ever":
            number = 0
            while True:
                number += 1
                send({"id": number, "method": "x" * 100_000})
        case _:
            pass


def main() -> None:
    begin()
    heard = Path(os.environ["HEARD"]).open("a") if "HEARD" in os.environ else None  # noqa: SIM115
    for line in sys.stdin:
        if heard is not None:
            heard.write(line)
            heard.flush()
        message = json.loads(line)
        if "id" in message and "method" in message:
            send({"id": message["id"], **answer(message["method"], message.get("params") or {})})


if __name__ == "__main__":
    main()
