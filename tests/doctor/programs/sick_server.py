"""An MCP server that does what its first argument says. It knows nothing of thinkwell."""

import json
import os
import sys
from typing import Any

MODE = sys.argv[1]
NUMBER = {"two": 2, "one": 1}.get(MODE, 0)

if MODE == "crashes":
    sys.stderr.write(f"Traceback\n\x1b[2JKeyError: 'TOKEN' is not {os.environ['TOKEN']}\n")
    sys.exit(1)
for line in sys.stdin.buffer:
    if MODE == "hangs":
        continue
    request = json.loads(line)
    if "id" in request:
        tools = [{"name": f"tool{number}", "inputSchema": {"type": "object"}} for number in range(NUMBER)]
        hello: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        result: dict[str, Any] = hello if request["method"] == "initialize" else {"tools": tools}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
        sys.stdout.flush()
