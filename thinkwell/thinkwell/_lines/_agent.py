"""An NDJSON program as an agent of the protocol: the translation, as a state machine.

It takes the bytes of both sides and returns the bytes for both. It never waits, and no output of a program
makes it raise. Its rules:

- A program has one prompt at a time; the others wait, in the order in which they came.
- Every message of a program is passed on, complete, in order among the others. Its meaning in the protocol
  (a piece of text, a tool call, a question) follows it.
- Each question is answered at most once, and never after its turn.
- Answers to messages of one type without an id are sent in the order of the messages: a program has no other
  way to match them.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter, deque
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from thinkwell._lines import _forms as forms
from thinkwell._lines._names import MESSAGE_UPDATE, RESPOND_METHOD, RESULT_META
from thinkwell._lines._progress import Progress
from thinkwell._lines._turn import Asked, Questions, Turn, id_of
from thinkwell._lines.words import PIECE_FIELDS, read_message, text_of, write_init, write_response
from thinkwell_acp import _jsonrpc as rpc
from thinkwell_acp import schema as s
from thinkwell_acp._framing import MAX_LINE, LineSplitter
from thinkwell_acp._peer import Answer, Peer
from thinkwell_acp.client import PROTOCOL_VERSION
from thinkwell_acp.connection import CANCEL_REQUEST
from thinkwell_acp.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, FrameTooLong
from thinkwell_acp.schema import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from thinkwell._lines.words import Message, PromptFormat
    from thinkwell.events import JsonValue

logger = logging.getLogger("thinkwell")

WARNED: Final = 3
"""Lines of each kind that get a warning; some programs print them all the time."""

_UPDATE: Final = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,"update":%b}}\n'
_REPORT: Final = b'{"sessionUpdate":%b,"message":%%b}' % encode(MESSAGE_UPDATE)
_CHUNK: Final = b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%b},"messageId":%b}'

_SEVERITIES: Final = {"warn": "warning", "fatal": "error", "critical": "error"}
_DETAILS: Final = frozenset(("debug", "trace"))
"""Log levels that are not for users."""


class Outgoing(NamedTuple):
    """A line for the program."""

    data: bytes
    vital: bool
    """Whether the agent cannot continue without it: not true of answers, which a program need not wait
    for."""


class _Respond(Struct, frozen=True, gc=False):
    kind: str
    value: Raw
    session_id: str = field(name="sessionId")
    id: Raw | UnsetType = UNSET


class _Client:
    """Our side, which uses the protocol."""

    def __init__(self) -> None:
        self.peer: Peer[Asked] = Peer(max_line=sys.maxsize)
        self.lines: list[bytes] = []
        """The next bytes for it."""

    def take(self) -> bytes:
        """Return the bytes for it, once."""
        data = b"".join(self.lines)
        self.lines.clear()
        return data

    def answer(self, id_: rpc.RequestId, value: s.Model) -> None:
        """Answer a request."""
        self.lines.append(self.peer.answer(id_, encode(value)))

    def refuse(self, id_: rpc.RequestId, error: rpc.ErrorObject) -> None:
        """Answer a request with an error."""
        self.lines.append(self.peer.refuse(id_, error))

    def ask(self, method: str, params: bytes, asked: Asked) -> None:
        """Send a request."""
        asked.request_id, line = self.peer.request(method, params, asked)
        self.lines.append(line)

    def take_back(self, asked: Asked) -> None:
        """Cancel a request."""
        if self.peer.abandon(asked.request_id):
            given_up = encode(s.CancelRequestNotification(request_id=asked.request_id))
            self.lines.append(rpc.encode_notification(CANCEL_REQUEST, given_up))

    def report(self, session_id: str, message: Message) -> None:
        """Pass on a message as the program wrote it."""
        self.lines.append(_UPDATE % (encode(session_id), _REPORT % message.raw))

    def say(self, session_id: str, message_id: str, text: str) -> None:
        """Send a piece of text."""
        if text:
            self.lines.append(_UPDATE % (encode(session_id), _CHUNK % (encode(text), encode(message_id))))

    def update(self, session_id: str, updates: Iterable[s.SessionUpdate]) -> None:
        """Send updates."""
        self.lines += [_UPDATE % (encode(session_id), encode(update)) for update in updates]


class LineAgent:
    """The state of one program and its host.

    Args:
        name: The agent's name.
        init: Parameters that the program must acknowledge first; ``None``: none.
        prompt_format: The form of its prompts.
        max_line: The longest line from or for the program, in bytes. Those of the protocol have no limit:
            they may be many times as long as the lines that they translate.
    """

    def __init__(
        self,
        *,
        name: str,
        init: Mapping[str, object] | None,
        prompt_format: PromptFormat,
        max_line: int = MAX_LINE,
    ) -> None:
        self._name = name
        self._init = init
        self._format: PromptFormat = prompt_format
        self._max_line = max_line
        self._lines = LineSplitter(max_line)
        self._client = _Client()
        self._to_program: list[Outgoing] = []
        self._greeting: list[rpc.RequestId] = []
        """Requests to initialize that wait for the program's acknowledgement."""
        self._sessions = 0
        self._session_id: str | None = None
        """The session of messages that belong to no prompt."""
        self._turn: Turn | None = None
        self._waiting: deque[Turn] = deque()
        self._turns = 0
        self._approvals = 0
        self._progress = Progress()
        self._questions = Questions()
        self._doubts = Counter[str]()
        """The number of each kind of doubtful lines."""
        self._speaks = False
        """Whether it has ever sent a message on its own."""
        self._too_long: FrameTooLong | None = None
        self.ends = False
        """Whether the program must be ended: there is no other way to cancel its work."""

    # Bytes

    @property
    def failure(self) -> FrameTooLong | None:
        """Set once a line of the program, or for it, was beyond the limit: it cannot continue."""
        return self._lines.failure or self._too_long

    def from_client(self, data: bytes) -> None:
        """Take the next bytes of our side, in the protocol."""
        for message in self._client.peer.receive(data):
            match message:
                case rpc.Request():
                    self._serve(message)
                case rpc.Notification(method="session/cancel"):
                    self._cancel(decode(s.CancelNotification, message.params).session_id)
                case rpc.Notification(method=method) if method == RESPOND_METHOD:
                    self._respond(msgspec.json.decode(message.params, type=_Respond))
                case Answer():
                    self._answered(message.token, message.outcome)
                case _:
                    pass  # nothing else concerns a program

    def from_program(self, data: bytes) -> None:
        """Take the next bytes of the program. Check `failure` afterwards."""
        try:
            lines = self._lines.feed(data)
        except FrameTooLong:
            return
        for line in lines:
            self._hear(line)

    def program_ended(self) -> None:
        """Take the unterminated rest as the last line: some programs print their result and exit.

        A message that was cut off is not a result: the program has failed.
        """
        line = self._lines.finish()
        message = read_message(line)
        if message is not None and message.sort == "broken":
            self._doubt("ended in the middle of a message, which is left out", message.flaw, line)
        elif message is not None:
            self._take(message, line)

    def take_for_client(self) -> bytes:
        """Return the bytes for our side, once."""
        return self._client.take()

    def take_for_program(self) -> list[Outgoing]:
        """Return the lines for the program, once."""
        lines, self._to_program = self._to_program, []
        return lines

    @property
    def has_news(self) -> bool:
        """Whether there are bytes for our side."""
        return bool(self._client.lines) or self.failure is not None

    # Requests of our side

    def _serve(self, request: rpc.Request) -> None:
        match request.method:
            case "initialize":
                self._greeting.append(request.id)
                if self._init is None:
                    self._greeted({})
                else:
                    self._write(write_init(self._init), vital=True)
            case "session/new":
                self._sessions += 1
                self._session_id = f"lines-{self._sessions}"
                self._client.answer(request.id, s.NewSessionResponse(session_id=self._session_id))
            case "session/prompt":
                prompt = decode(s.PromptRequest, request.params)
                line = forms.prompt_line(prompt, self._format)
                self._waiting.append(Turn(request.id, prompt.session_id, line))
                self._begin()
            case method:
                why = f"A program that speaks lines has no word for {method}"
                self._client.refuse(request.id, rpc.ErrorObject(METHOD_NOT_FOUND, why))

    def _write(self, line: bytes, *, vital: bool) -> None:
        if len(line) > self._max_line + 1:
            self._too_long = FrameTooLong(self._max_line)
        elif self.failure is None:
            self._to_program.append(Outgoing(line, vital))

    def _begin(self) -> None:
        """Begin the next prompt if the program is free."""
        if self._turn is None and self._waiting and not self.ends:
            self._settle_strays()
            self._turn = turn = self._waiting.popleft()
            self._turns += 1
            self._session_id = turn.session_id
            self._write(turn.line, vital=True)

    def _cancel(self, session_id: str) -> None:
        turn = self._turn
        if turn is not None and turn.session_id == session_id:
            self.ends = True
            self._turn = None
            self._questions.drop(turn)
            self._client.answer(turn.id, s.PromptResponse(stop_reason="cancelled"))
        for waiting in [one for one in self._waiting if one.session_id == session_id]:
            self._waiting.remove(waiting)
            self._client.answer(waiting.id, s.PromptResponse(stop_reason="cancelled"))

    # Messages of the program

    def _hear(self, line: bytes) -> None:
        message = read_message(line)
        if message is not None:
            self._take(message, line)

    def _take(self, message: Message, line: bytes) -> None:
        if message.flaw:
            self._doubt("sent a line that begins like a message and counts as text", message.flaw, line)
        if self._greeting:
            self._take_greeting(message)
        elif message.kind == "init_ack":
            logger.debug("Agent %s acknowledged what it was not asked to", self._name)
        elif self._turn is None:
            self._take_stray(message)
        elif message.kind == "result":
            if message.sort == "text" and self._speaks:
                self._doubt("ended its turn with a line that is no message", "plain text", line)
            self._end(self._turn, message)
        elif message.kind == "error":
            self._fail(self._turn, message)
        else:
            self._client.report(self._turn.session_id, message)
            self._turn.note_id(message)
            self._translate(self._turn, message)
        self._speaks |= message.sort == "message" and message.kind != "init_ack"

    def _doubt(self, what: str, why: str, line: bytes) -> None:
        """Log a probable mistake."""
        self._doubts[what] += 1
        level = logging.WARNING if self._doubts[what] <= WARNED else logging.DEBUG
        logger.log(level, "Agent %s %s: %s, %d bytes", self._name, what, why, len(line))
        logger.debug("That line of agent %s: %.200r", self._name, bytes(line[:200]))

    def _take_greeting(self, message: Message) -> None:
        match message.kind:
            case "init_ack":
                self._greeted(message.body)
                return
            case "error":
                refusal = forms.error_of(message)
            case "result" if message.body.keys() == {"text"}:
                said = f"it sent {message.body['text']!r:.200} before `init_ack`"
                refusal = rpc.ErrorObject(INTERNAL_ERROR, said)
            case kind:
                refusal = rpc.ErrorObject(INTERNAL_ERROR, f"it sent {kind!r:.200} before `init_ack`")
        for id_ in self._greeting:
            self._client.refuse(id_, refusal)
        self._greeting.clear()

    def _greeted(self, body: Mapping[str, JsonValue]) -> None:
        capabilities = s.PromptCapabilities(embedded_context=True, image=self._format == "json")
        info = s.Implementation(
            name=text_of(body, "name") or self._name, version=text_of(body, "version") or ""
        )
        response = s.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=s.AgentCapabilities(prompt_capabilities=capabilities),
            agent_info=info,
        )
        for id_ in self._greeting:
            self._client.answer(id_, response)
        self._greeting.clear()

    def _take_stray(self, message: Message) -> None:
        """Handle a message that belongs to no prompt."""
        if self._session_id is None:
            logger.debug("Agent %s sent %.200r before there was a session", self._name, message.kind)
            if message.kind in forms.NOTHING:
                self._send_answer(message.kind, forms.NOTHING[message.kind], id_of(message))
            return
        if message.kind in ("result", "error"):
            self._doubt("sent what belongs to no prompt", message.kind, message.raw)
        self._client.report(self._session_id, message)
        if message.kind in forms.NOTHING:
            self._ask(None, self._session_id, message)

    def _translate(self, turn: Turn, message: Message) -> None:
        """Translate a message into the protocol, if it has a meaning there."""
        body = message.body
        match message.kind:
            case "partial":
                text = text_of(body, *PIECE_FIELDS)
                turn.partials.append(text)
                self._say(turn, "partial", text)
            case "progress":
                self._client.update(turn.session_id, self._progress.heard(body))
            case "log":
                level, title = text_of(body, "level").lower() or "info", text_of(body, "message", "text")
                if title and level not in _DETAILS:
                    severity = _SEVERITIES.get(level, level)
                    self._client.update(turn.session_id, [s.NoticeUpdate(severity=severity, title=title)])
            case kind if kind in forms.NOTHING:
                self._ask(turn, turn.session_id, message)
            case _:
                pass  # its report is enough

    def _end(self, turn: Turn, message: Message) -> None:
        """End the turn successfully."""
        self._over(turn, "completed")
        text = message.body.get("text")
        if not isinstance(text, str):
            text = encode(message.body).decode() if message.body else ""
        if text != "".join(turn.partials):
            self._say(turn, "result", text)
        self._client.answer(
            turn.id, s.PromptResponse(stop_reason="end_turn", meta={RESULT_META: message.body})
        )
        self._begin()

    def _fail(self, turn: Turn, message: Message) -> None:
        """End the turn with the error that the program reported."""
        self._over(turn, "failed")
        self._client.refuse(turn.id, forms.error_of(message))
        self._begin()

    def _over(self, turn: Turn, status: s.ToolCallStatus) -> None:
        """End the turn and everything open in it; its questions are no longer answered."""
        self._turn = None
        self._client.update(turn.session_id, self._progress.ended(status))
        for asked in self._questions.drop(turn):
            self._close_call(asked, "failed")

    def _say(self, turn: Turn, what: str, text: str) -> None:
        self._client.say(turn.session_id, f"{what}-{self._turns}", text)

    # Questions

    def _ask(self, turn: Turn | None, session_id: str, message: Message) -> None:
        call_id = None
        if message.kind == forms.QUESTION:
            method, params = "elicitation/create", forms.question_request(message, session_id)
        else:
            self._approvals += 1
            call_id = f"approval-{self._approvals}"
            method = "session/request_permission"
            params = forms.approval_request(message, session_id, call_id)
        asked = Asked(message, session_id, turn, call_id)
        self._questions.add(asked)
        self._client.ask(method, params, asked)

    def _answered(self, asked: Asked, outcome: rpc.Result | rpc.Failure) -> None:
        if not self._questions.has(asked):
            logger.debug("Agent %s is not told the answer to a %s: its turn is over", self._name, asked.kind)
            return
        if isinstance(outcome, rpc.Result):
            answer, allowed = forms.read_answer(asked.kind, outcome.value)
        else:
            logger.debug("Agent %s gets no answer to a %s: %s", self._name, asked.kind, outcome.error.message)
            answer, allowed = forms.NOTHING[asked.kind], False
        self._settle(asked, answer, "completed" if allowed else "failed")

    def _settle_strays(self) -> None:
        """Answer questions without an id before a prompt: other answers of that type would wait for them."""
        for asked in self._questions.strays():
            self._client.take_back(asked)
            self._settle(asked, forms.NOTHING[asked.kind], "failed")

    def _settle(self, asked: Asked, answer: bytes | None, status: s.ToolCallStatus) -> None:
        self._close_call(asked, status)
        for line in self._questions.settle(asked, answer):
            self._write(line, vital=False)

    def _close_call(self, asked: Asked, status: s.ToolCallStatus) -> None:
        """End the tool call that represents a request for approval: the program does not report its end."""
        if asked.call_id is not None:
            update = s.ToolCallProgress(tool_call_id=asked.call_id, status=status)
            self._client.update(asked.session_id, [update])

    def _respond(self, said: _Respond) -> None:
        """Pass on an answer to a message that is not a question."""
        turn = self._turn
        if turn is None or said.session_id != turn.session_id:
            logger.debug("Agent %s is not told the answer to %.200r: its turn is over", self._name, said.kind)
            return
        id_ = None if said.id is UNSET else bytes(said.id)
        if id_ is not None:
            id_ = turn.ids.get((said.kind, id_), id_)
        self._send_answer(said.kind, bytes(said.value), id_)

    def _send_answer(self, kind: str, value: bytes, id_: bytes | None) -> None:
        self._write(write_response(kind, value, id_), vital=False)
