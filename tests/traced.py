"""A scripted agent that plays what was on the wire between a client and a real agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s
from thinkwell_acp.schema.methods import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

TRACES = Path(__file__).parent / "traces"


class TracedAgent(ScriptedAgent):
    """Answers each method as the agent of a trace did, with the updates that came before the answer."""

    def __init__(self, trace: str) -> None:
        self.asked: dict[str, dict[str, Any]] = {}
        """What the client of the trace asked, by method."""
        self._told: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        self._outcomes: dict[str, dict[str, Any]] = {}
        method, asked = "", dict[int, str]()
        for line in (TRACES / f"{trace}.ndjson").read_text("utf-8").splitlines():
            message = json.loads(line)["msg"]
            if "method" not in message:
                self._outcomes[asked[message["id"]]] = message
            elif "id" in message:
                method = asked[message["id"]] = message["method"]
                self.asked[method] = message["params"]
            elif method not in self._outcomes:
                self._told.setdefault(method, []).append((message["method"], message["params"]))
        answers = {method: self._answering(method) for method in asked.values() if method in REQUESTS}
        super().__init__(script, answers=answers, complete=False)

    def _answering(self, method: str) -> Callable[[Any, Callable[[Any], Awaitable[Any]]], Awaitable[Any]]:
        async def answer(request: Any, proceed: Callable[[Any], Awaitable[Any]]) -> Any:
            for told, params in self._told.get(method, ()):
                body = {**params, "sessionId": request.session_id} if "sessionId" in params else params
                self.client.connection.notify(told, body)
            outcome = self._outcomes[method]
            if "error" in outcome:
                raise RpcError(**outcome["error"])
            given = outcome["result"]
            if method == "session/new":
                given = {**given, "sessionId": (await proceed(request)).session_id}
            return s.convert(REQUESTS[method].result or object, given)

        return answer
