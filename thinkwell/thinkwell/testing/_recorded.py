"""The recorded actions of an agent, by request."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from thinkwell._core.schema.json_schema import is_object
from thinkwell._recording import _records as rec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell._recording._reading import Recording
    from thinkwell.events import JsonValue

Message: TypeAlias = dict[str, Any]

OPENINGS: Final = ("session/new", "session/load", "session/resume", "session/fork")
"""Requests that open a session."""

_NEW: Final = ("session/new", "session/fork")
"""Requests whose answer names the session."""


class Tells(Struct, frozen=True, kw_only=True):
    """The agent sends a notification."""

    at: float
    method: str
    params: JsonValue


class Asks(Struct, frozen=True, kw_only=True):
    """The agent sends a request. A call of a tool of the client is an ``mcp/message``."""

    at: float
    key: object
    method: str
    params: JsonValue


class IsAnswered(Struct, frozen=True, kw_only=True):
    """The agent's request was answered: the agent continued after that."""

    at: float
    key: object
    result: JsonValue = None
    """The client's answer."""


class Answers(Struct, frozen=True, kw_only=True):
    """The agent answers the request."""

    at: float
    result: JsonValue = None
    error: Mapping[str, JsonValue] | None = None


Act: TypeAlias = Tells | Asks | IsAnswered


class Exchange(Struct, kw_only=True):
    """A request of the client, and the agent's actions for it."""

    at: float
    method: str
    session: str | None
    acts: list[Act] = []
    """The actions before the answer."""
    answer: Answers | None = None
    late: list[Act] = []
    """The actions after it, before the next request in that session."""


class Plan:
    """The actions for each request, in the order of the recording."""

    def __init__(self, recording: Recording) -> None:
        self.path = recording.path
        self.cut = recording.cut
        self.exit_code: int | None = None
        """How the agent's process ended while it was needed; ``None`` if it did not."""
        self._waiting: dict[tuple[str, str | None], deque[Exchange]] = defaultdict(deque)
        self._asked: dict[object, Exchange] = {}
        """By the ids of the client's requests."""
        self._latest: dict[str, Exchange] = {}
        """The exchange to which a session's messages belong."""
        self._early: dict[str, list[Act]] = defaultdict(list)
        self._owners: dict[object, Exchange] = {}
        """By the keys of the agent's requests."""
        for record in recording.records:
            self._read(record)

    def next(self, method: str, session: str | None) -> Exchange | None:
        """Take the next exchange for a request; ``None``: the recording has no more of its kind."""
        waiting = self._waiting.get((method, session))
        return waiting.popleft() if waiting else None

    def _read(self, record: rec.Record) -> None:
        match record:
            case rec.Sent(message=message) if is_object(message):
                self._sent(record.at, message)
            case rec.Received(message=message) if is_object(message):
                self._received(record.at, message)
            case rec.ToolCalled(session=str() as session):
                call = {"name": record.name, "arguments": record.arguments}
                message = {"method": "tools/call", "params": call}
                key = ("call", record.call)
                self._add(session, Asks(at=record.at, key=key, method="mcp/message", params=message))
            case rec.ToolAnswered():
                self._answered(record.at, ("call", record.call))
            case rec.Gone(exit_code=code):
                self.exit_code = 1 if code is None else code
            case _:
                pass

    def _sent(self, at: float, message: Message) -> None:
        method, params = message.get("method"), message.get("params")
        if not isinstance(method, str):
            self._answered(at, ("asked", message.get("id")), message.get("result"))
        elif _has_id(message):
            session = session_of(params)
            exchange = Exchange(at=at, method=method, session=None if method in _NEW else session)
            self._waiting[method, session].append(exchange)
            self._asked[message["id"]] = exchange
            if exchange.session is not None and not self._is_prompted(exchange.session):
                self._latest[exchange.session] = exchange

    def _is_prompted(self, session: str) -> bool:
        """Whether a turn is running, to which all messages in the session belong."""
        latest = self._latest.get(session)
        return latest is not None and latest.method == "session/prompt" and latest.answer is None

    def _received(self, at: float, message: Message) -> None:
        method, params = message.get("method"), message.get("params")
        if not isinstance(method, str):
            self._agent_answered(at, message)
        elif method.startswith("mcp/"):
            pass  # its outcome is recorded as tool calls
        elif method == "$/cancel_request":
            key = ("asked", params.get("requestId") if is_object(params) else None)
            owner = self._owners.get(key)
            if owner is not None:
                _append(owner, Tells(at=at, method=method, params={"requestId": key}))
        else:
            session = session_of(params)
            if _has_id(message):
                key = ("asked", message["id"])
                self._add(session, Asks(at=at, key=key, method=method, params=params))
            else:
                self._add(session, Tells(at=at, method=method, params=params))

    def _add(self, session: str | None, act: Act) -> None:
        if session is None:
            return
        exchange = self._latest.get(session)
        if exchange is None:
            self._early[session].append(act)
            return
        _append(exchange, act)
        if isinstance(act, Asks):
            self._owners[act.key] = exchange

    def _answered(self, at: float, key: tuple[str, JsonValue], result: JsonValue = None) -> None:
        owner = self._owners.get(key) if isinstance(key[1], int | str) else None
        if owner is not None:
            _append(owner, IsAnswered(at=at, key=key, result=result))

    def _agent_answered(self, at: float, message: Message) -> None:
        exchange = self._asked.pop(message["id"], None) if _has_id(message) else None
        if exchange is None:
            return
        result = message.get("result")
        if exchange.session is None:
            session = session_of(result)
            if session is not None:
                self._latest[session] = exchange
                exchange.acts += self._early.pop(session, [])
        exchange.answer = Answers(at=at, result=result, error=message.get("error"))


def _append(exchange: Exchange, act: Act) -> None:
    (exchange.acts if exchange.answer is None else exchange.late).append(act)


def _has_id(message: Message) -> bool:
    return isinstance(message.get("id"), int | str)


def session_of(params: JsonValue) -> str | None:
    """Return the session of a message, if it names one."""
    session = params.get("sessionId") if is_object(params) else None
    return session if isinstance(session, str) else None
