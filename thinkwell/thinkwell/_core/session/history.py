"""The conversation of a session as messages, in order: to show, to store, to pass on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thinkwell import events as ev
from thinkwell._core.log.reducer import ViewReducer
from thinkwell._core.protocol.updates import content_block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell._core.log.run_log import RunLog
    from thinkwell.view import RunView, TimelineItem, ToolView
    from thinkwell_acp import schema as s

Role: TypeAlias = Literal["user", "thought", "assistant", "tool"]


class HistoryTool(Struct, frozen=True, kw_only=True):
    """A tool call in a history."""

    id: str
    title: str = ""
    kind: ev.ToolKind = "other"
    status: ev.ToolStatus | ev.FinalStatus = "pending"
    input: ev.JsonValue = None
    output: ev.JsonValue = None


class HistoryMessage(Struct, frozen=True, kw_only=True):
    """A part of a conversation."""

    role: Role
    """``user``: a prompt. ``assistant`` and ``thought``: messages and thoughts of the agent."""
    turn: int
    """The number of the prompt it belongs to: 1, 2, 3 and so on; 0 before the first one."""
    text: str = ""
    """The text; for a tool call, its text output."""
    replayed: bool = False
    """Whether the agent repeated it from a loaded session."""
    tool: HistoryTool | None = None


def history_to_json(history: Sequence[HistoryMessage]) -> bytes:
    """Return a history as a JSON array."""
    return msgspec.json.encode(history)


class History:
    """Keeps the conversation of a session. Each event is read once, when its turn is over or requested."""

    def __init__(self, between: RunLog) -> None:
        self._between = between
        self._between_read = 0
        """The number of events of `between` in `_done`."""
        self._done: list[HistoryMessage] = []
        self._turns = 0
        self._log: RunLog | None = None
        """The log of the current run, or the last one."""
        self._prompts: list[str] = []
        """The prompts of that run."""

    @property
    def turns(self) -> int:
        """The number of turns, including the current one."""
        return self._turns + len(self._prompts)

    def take(self, log: RunLog, *, replayed: bool) -> None:
        """Begin the turns of another run; the one before is over.

        Args:
            log: The run's log.
            replayed: Whether the events since the last turn are a replay.
        """
        self._done += self._rest(replayed=replayed)
        self._turns = self.turns
        self._prompts = []
        self._between_read = len(self._between.events)
        self._log = log

    def prompted(self, blocks: Sequence[s.ContentBlock]) -> None:
        """Record a prompt."""
        self._prompts.append("\n".join(_block_text(content_block(block)) for block in blocks))

    def messages(self, *, replayed: bool) -> tuple[HistoryMessage, ...]:
        """Return all messages so far; `replayed` as in `take`."""
        return (*self._done, *self._rest(replayed=replayed))

    def _rest(self, *, replayed: bool) -> list[HistoryMessage]:
        """Return the messages not in `_done`: the turns of the last run, and later events."""
        rest: list[HistoryMessage] = []
        if self._log is not None:
            self._add(rest, self._log.view(), self._turns, replayed=False)
        news = self._between.events[self._between_read :]
        if news:
            reducer = ViewReducer()
            reducer.apply(news)
            self._add(rest, reducer.snapshot(None), self.turns, replayed=replayed)
        return rest

    def _add(self, messages: list[HistoryMessage], view: RunView, turn: int, *, replayed: bool) -> None:
        """Append a view's items, in order. Late updates of a tool call are merged into the call."""
        calls = {message.tool.id: i for i, message in enumerate(messages) if message.tool is not None}
        for item in view.timeline:
            if item.kind == "tool" and item.id in calls:
                place = calls[item.id]
                messages[place] = _corrected(messages[place], view.tools[item.id])
                continue
            if item.kind == "turn":
                turn = self._turns + item.index
                messages.append(HistoryMessage(role="user", turn=turn, text=self._prompts[item.index - 1]))
            elif (
                item.kind != "user" or item.steered or replayed
            ):  # else the agent echoes what we have prompted
                messages.append(_message(view, item, turn, replayed=replayed))


def _message(view: RunView, item: TimelineItem, turn: int, *, replayed: bool) -> HistoryMessage:
    if item.kind == "tool":
        assert item.id is not None
        tool = view.tools[item.id]
        return HistoryMessage(
            role="tool", turn=turn, text=tool_text(tool), replayed=replayed, tool=_tool(tool)
        )
    texts: dict[str, tuple[Role, tuple[str, ...]]] = {
        "user": ("user", view.user_messages),
        "thought": ("thought", view.thought_blocks),
        "message": ("assistant", view.messages),
    }
    role, blocks = texts[item.kind]
    return HistoryMessage(role=role, turn=turn, text=blocks[item.index], replayed=replayed)


def _tool(tool: ToolView) -> HistoryTool:
    return HistoryTool(
        id=tool.id,
        title=tool.title,
        kind=tool.kind,
        status=tool.status,
        input=tool.input,
        output=tool.output,
    )


def _corrected(message: HistoryMessage, news: ToolView) -> HistoryMessage:
    """Return a tool call with updates from after its turn. Its title and kind stay."""
    assert message.tool is not None
    output = message.tool.output if news.output is None else news.output
    tool = replace(message.tool, status=news.status, output=output)
    return replace(message, text=tool_text(news) or message.text, tool=tool)


def tool_text(tool: ToolView) -> str:
    """Return a tool call's content as text."""
    return "\n".join(text for text in map(_content_text, tool.content) if text)


def _content_text(content: ev.ToolContent) -> str:
    match content:
        case ev.DiffContent():
            return f"{'new file' if content.old_text is None else 'edited'}: {content.path}"
        case ev.TerminalContent():
            return f"terminal {content.terminal_id}"
        case ev.BlockContent(content=block):
            return _block_text(block)
        case _:
            assert_never(content)


def _block_text(block: ev.ContentBlock) -> str:
    match block:
        case ev.TextContent():
            return block.text
        case ev.EmbeddedResource() if block.text is not None:
            return block.text
        case ev.EmbeddedResource() | ev.ResourceLink():
            return block.uri
        case ev.ImageContent() | ev.AudioContent():
            return f"[{block.mime_type}]"
        case _:
            assert_never(block)
