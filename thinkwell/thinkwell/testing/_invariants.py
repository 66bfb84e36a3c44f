"""Invariants of the messages on the wire and the events of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from thinkwell import events as ev
from thinkwell.errors import AgentExited
from thinkwell.testing._chaos import Fault, read_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from thinkwell.testing._chaos import Message, Passed

Token: TypeAlias = tuple[str, str]
"""Identifies an update: its kind, and its content."""

_TEXTS: Final = {"agent_message_chunk": "message", "agent_thought_chunk": "thought"}

CALL_ANSWERED_WITHIN: Final = 1.1
"""Seconds that the answer to a cancelled call of a tool may be held back."""

GIVEN_UP_AFTER: Final = 9.0
"""Seconds after which the answer to a cancelled prompt may come too late for its run."""


@dataclass(kw_only=True)
class Prompt:
    """A prompt on the wire."""

    session: str
    text: str
    sent: int
    """Its position among all messages."""
    sent_at: float
    answered: int | None = None
    answered_at: float = 0.0
    cancelled_at: float | None = None


@dataclass
class Wire:
    """The messages of a connection, parsed."""

    passed: Sequence[Passed]
    updates: dict[str, list[tuple[int, Token]]] = field(default_factory=dict[str, list[tuple[int, Token]]])
    """By session: the position and the token of each delivered update."""
    prompts: list[Prompt] = field(default_factory=list[Prompt])
    questions: dict[Any, list[float]] = field(default_factory=dict[Any, list[float]])
    """By id: the latest time for the answer to each request of the agent, if all ends then."""
    answers: dict[Any, int] = field(default_factory=dict[Any, int])
    """By id: how often we have answered it."""
    asked_tools: set[str] = field(default_factory=set[str])
    """Tool calls with a question: the question reports them too, outside of the order of updates."""

    steered: set[str] = field(default_factory=set[str])
    """Sessions that were steered in a turn: their runs may stay open after the answer."""

    stuck: bool = False
    """Whether the agent stopped reading, so that the last prompts cannot be seen."""

    def __post_init__(self) -> None:
        open_prompts: dict[Any, Prompt] = {}
        for place, passed in enumerate(self.passed):
            self.stuck |= passed.fault is Fault.STUCK
            message = read_message(passed.line)
            if message is None:
                continue
            if passed.way == "out":
                self._sent(place, passed.at, message, open_prompts)
            elif message.method == "session/update":
                session, update = message.params["sessionId"], message.params["update"]
                token = told(update)
                if token is not None:
                    self.updates.setdefault(session, []).append((place, token))
            elif message.method:
                call: Any = message.params.get("toolCall", {}) if message.params else {}
                self.asked_tools.add(call.get("toolCallId", ""))
                if message.id is not msgspec.UNSET:
                    calls = message.method == "mcp/message"
                    due = passed.at + (CALL_ANSWERED_WITHIN if calls else 0)
                    self.questions.setdefault(message.id, []).append(due)
            elif message.id in open_prompts:
                prompt = open_prompts.pop(message.id)
                prompt.answered, prompt.answered_at = place, passed.at

    def _sent(self, place: int, at: float, message: Message, open_prompts: dict[Any, Prompt]) -> None:
        params = message.params
        if message.method == "session/prompt":
            text = "".join(block.get("text", "") for block in params["prompt"])
            prompt = Prompt(session=params["sessionId"], text=text, sent=place, sent_at=at)
            open_prompts[message.id] = prompt
            self.prompts.append(prompt)
        elif message.method == "_session/steering":
            self.steered.add(params["sessionId"])
        elif message.method == "session/cancel":
            for prompt in open_prompts.values():
                if prompt.session == params["sessionId"] and prompt.cancelled_at is None:
                    prompt.cancelled_at = at
        elif message.answers:
            self.answers[message.id] = self.answers.get(message.id, 0) + 1

    def comparable(self, tokens: Iterable[Token]) -> list[Token]:
        """Return the tokens without those of tool calls with a question."""
        return [
            token
            for token in tokens
            if token[0] != "tool" or token[1].partition("\n")[0] not in self.asked_tools
        ]

    def prompts_of(self, session: str, mark: str | None, others: Iterable[str]) -> list[Prompt]:
        """Return the prompts of one run: from its own to the next one of another run."""
        found: list[Prompt] = []
        for prompt in self.prompts:
            if prompt.session != session:
                continue
            if mark is None or mark in prompt.text or (found and not any(o in prompt.text for o in others)):
                found.append(prompt)
            elif found:
                break
        return found


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def told(update: Any) -> Token | None:
    """Return the token of an update; ``None`` if it is ignored."""
    match update:
        case {
            "sessionUpdate": "agent_message_chunk" | "agent_thought_chunk" as kind,
            "content": {"type": "text", "text": str(text)},
        }:
            return _TEXTS[kind], text
        case {"sessionUpdate": "plan", "entries": [*entries]}:
            return "plan", " ".join(entry["content"] for entry in entries)
        case {
            "sessionUpdate": "tool_call" | "tool_call_update",
            "toolCallId": str(id_),
            "title": str(title),
        } if title:
            return "tool", f"{id_}\n{title}"
        case {"token": _}:
            return "unknown", _text(update)
        case _:
            return None


def shown(events: Iterable[ev.ThoughtEvent]) -> list[Token]:
    """Return the tokens of the updates of events, in their order."""
    tokens: list[Token] = []
    tools: set[Token] = set()
    for event in events:
        match event:
            case ev.Message() | ev.Thought() if isinstance(event.content, ev.TextContent):
                tokens.append((event.type, event.text))
            case ev.PlanUpdate():
                tokens.append(("plan", " ".join(entry.content for entry in event.entries)))
            case ev.UnknownUpdate(raw={"token": _}):
                tokens.append(("unknown", _text(event.raw)))
            case ev.ToolStart() | ev.ToolUpdate() | ev.ToolDone() if event.title:
                token = ("tool", f"{event.id}\n{event.title}")
                if token not in tools:  # the end of a call repeats its title
                    tools.add(token)
                    tokens.append(token)
            case _:
                pass
    return tokens


def answers_missing(wire: Wire, *, until: float | None, grace: float = 0) -> list[str]:
    """Return the agent's requests that were not answered exactly once.

    Args:
        wire: The messages.
        until: When we ended the connection; ``None`` if it broke, so that some could not be answered.
        grace: Seconds that an answer may take.
    """
    wrong: list[str] = []
    for id_, due in wire.questions.items():
        answered = wire.answers.get(id_, 0)
        if answered > len(due) or (answered == 0 and until is not None and due[0] + grace < until):
            wrong.append(f"request {id_!r} came {len(due)} times and was answered {answered} times")
    return wrong


def order_broken(
    wire: Wire,
    prompts: Sequence[Prompt],
    tokens: Sequence[Token],
    *,
    alone: bool,
    error: Exception | None,
    ended_at: float,
) -> str | None:
    """Return the error in the order of a run's events; ``None``: there is none.

    Args:
        wire: The messages.
        prompts: The run's prompts.
        tokens: Those of its events.
        alone: Whether its session was its own, so that updates before its prompt are its own too.
        error: Its error.
        ended_at: When it ended.
    """
    if not prompts:
        return None
    updates = wire.updates.get(prompts[0].session, [])
    # Updates between the previous turn and this prompt may be late for the former or early for the latter.
    first = last = 0
    if not alone:
        last = _count(updates, prompts[0].sent)
        before = [prompt for prompt in wire.prompts if prompt.session == prompts[0].session]
        for prompt in before[: before.index(prompts[0])]:
            first = last if prompt.answered is None else min(last, _count(updates, prompt.answered))
    end = None if wire.stuck else _end(updates, prompts[-1], error, ended_at)
    wanted = [token for _, token in updates]
    begins = range(first, last + 1)
    exact = end is not None and prompts[0].session not in wire.steered
    ends = range(end or 0, (end or 0) + 1) if exact else range(len(wanted), (end or 0) - 1, -1)
    for stop in ends:
        for begin in begins:
            if _same(wanted[begin:stop], tokens):
                return None
    best = wanted[last : end if end is not None else len(wanted)]
    return f"the agent told {_brief(best)}, and the events are {_brief(tokens)}"


def _count(updates: Sequence[tuple[int, Token]], place: int) -> int:
    return sum(at < place for at, _ in updates)


def _end(
    updates: Sequence[tuple[int, Token]], last: Prompt, error: Exception | None, ended_at: float
) -> int | None:
    """Return the number of updates that the run must have at its end.

    ``None``: the run may have been abandoned earlier.
    """
    if last.answered is None:
        return len(updates) if isinstance(error, AgentExited) and last.cancelled_at is None else None
    given_up = last.cancelled_at is not None and last.answered_at - last.cancelled_at > GIVEN_UP_AFTER
    if given_up or last.answered_at > ended_at:
        return None
    return _count(updates, last.answered)


def _same(wanted: Sequence[Token], tokens: Sequence[Token]) -> bool:
    once = [token for index, token in enumerate(wanted) if token[0] != "tool" or token not in wanted[:index]]
    return once == list(tokens)


def _brief(tokens: Sequence[Token]) -> str:
    return "[" + ", ".join(f"{kind} {text[:24]!r}" for kind, text in tokens) + "]"
