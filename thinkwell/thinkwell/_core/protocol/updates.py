"""Translate session updates of the protocol into events of a run. No other module knows both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, assert_never

from thinkwell import events as ev
from thinkwell._core.protocol.steering import HUMAN, cycle_origin, why_it_retries
from thinkwell._core.protocol.subagents import known_parent
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from thinkwell._core.log.run_log import RunLog
    from thinkwell._core.protocol.tool_calls import ToolCall, ToolCalls

E = TypeVar("E", bound=ev.ThoughtEvent)

PLACEHOLDER_TITLE: Final = "tool call"
"""Title of a call that the agent neither announced nor named (gemini-cli sends only the end of some)."""


RETRIES: Final = "The model service has failed; the agent tries again"

NoteCall: TypeAlias = "Callable[[s.ToolCallStart | s.ToolCallProgress], object]"
NoteState: TypeAlias = "Callable[[s.SessionUpdate], None]"
ReadReport: TypeAlias = "Callable[[s.UnknownUpdate], dict[str, ev.JsonValue] | None]"

_STATE: Final = (
    s.UsageUpdate,
    s.AvailableCommandsUpdate,
    s.ConfigOptionUpdate,
    s.CurrentModeUpdate,
    s.SessionInfoUpdate,
)


class Mapper:
    """Appends the updates of a session to the log of one run.

    Args:
        log: The log to append to.
        calls: The tool calls of the session.
        note_call: Called with each update of a tool call before it is appended.
        note_state: Called with each update of the session's state before it is appended.
        report: Reads an agent's own message in an unknown update.
    """

    def __init__(
        self,
        log: RunLog,
        calls: ToolCalls,
        note_call: NoteCall,
        note_state: NoteState,
        *,
        report: ReadReport,
    ) -> None:
        self.log = log
        self._report = report
        self._note_call = note_call
        self._note_state = note_state
        self._calls = calls
        self._awaiting = False
        self._message_ids: dict[str, str] = {}
        """Each id once: a separate string in every event would take a quarter of the memory."""
        self._at = 0.0  # the time of a whole batch: its updates were read at once

    def await_response(self) -> None:
        """Add a phase when the agent first thinks, speaks, calls a tool or plans after a prompt."""
        self._awaiting = True
        self._calls.rest()

    @property
    def awaiting_response(self) -> bool:
        """Whether the agent has not begun to answer the prompt."""
        return self._awaiting

    def extend(self, batch: Sequence[s.SessionNotification]) -> None:
        """Append a batch of updates and wake the readers once."""
        log = self.log
        self._at = at = log.now()
        known_id = self._message_ids.setdefault
        for notification in batch:
            update = notification.update
            text: type[ev.Message | ev.Thought]
            # Most updates are chunks of text, so their path is short.
            if isinstance(update, s.AgentMessageChunk):
                text = ev.Message
            elif isinstance(update, s.AgentThoughtChunk):
                text = ev.Thought
            else:
                self._other(update)
                continue
            if self._awaiting:
                self._respond()
            if update.meta is not None and (agent := self._parent(update.meta)) is not None:
                self._hear(agent, update)
                continue
            content, id_ = update.content, update.message_id
            if id_ is not None:
                id_ = known_id(id_, id_)
            seq = log.seq + 1
            if isinstance(content, s.TextContent) and content.annotations is None:
                event = text(seq=seq, at=at, text=content.text, message_id=id_)
            else:
                event = text(seq=seq, at=at, content=content_block(content), message_id=id_)
            if log.plain is None:
                log.append(event)
            else:
                log.seq = seq
                log.plain.append(event)
        log.publish()

    def _parent(self, meta: Mapping[str, ev.JsonValue], of: str | None = None) -> str | None:
        return known_parent(meta, self._calls, self.log, of)

    def _hear(self, agent: str, update: s.AgentMessageChunk | s.AgentThoughtChunk) -> None:
        """Append what a sub-agent says."""
        content, thinks = content_block(update.content), isinstance(update, s.AgentThoughtChunk)
        self._add(ev.SubagentText, agent=agent, content=content, message_id=update.message_id, thinks=thinks)

    def _add(self, kind: Callable[..., E], /, **fields: object) -> None:
        self.log.append(kind(seq=self.log.seq + 1, at=self._at, **fields))

    def _respond(self) -> None:
        if self._awaiting:
            self._awaiting = False
            self._add(ev.PhaseChanged, phase="responding")

    def last_update(self) -> float:
        """Seconds from the start of the run to the agent's last update."""
        return self._at

    def _other(self, update: s.SessionUpdate) -> None:
        if isinstance(update, s.ToolCallProgress):
            self._note_call(update)
            self._update_tool(update)
        elif isinstance(update, s.ToolCallStart):
            self._note_call(update)
            self._start_tool(update)
        elif isinstance(update, s.AgentPlanUpdate):
            self._respond()
            self._add(ev.PlanUpdate, entries=_entries(update.entries))
        else:
            if isinstance(update, _STATE):
                self._note_state(update)
            self._rare(update)

    def _rare(self, update: s.SessionUpdate) -> None:
        add = self._add
        match update:
            case s.UsageUpdate():
                cost = update.cost and ev.Cost(amount=update.cost.amount, currency=update.cost.currency)
                add(ev.UsageUpdate, used=update.used, size=update.size, cost=cost)
                if (origin := cycle_origin(update)) not in (None, HUMAN):
                    add(ev.AgentCycle, origin=origin)
            case s.PlanUpdate():
                self._respond()
                self._plan(update.plan)
            case s.PlanRemoved():
                add(ev.PlanUpdate, id=update.plan_id, removed=True)
            case s.UserMessageChunk():
                add(ev.UserMessage, content=content_block(update.content), message_id=update.message_id)
            case s.UnknownUpdate() if (message := self._report(update)) is not None:
                self._respond()
                kind = message.pop("type")
                add(ev.Report, kind=str(kind), body=message, message_id=message.get("id"))
            case s.UnknownUpdate():
                add(ev.UnknownUpdate, kind=str(update.raw.get("sessionUpdate")), raw=update.raw)
            case s.InvalidUpdate():
                add(ev.UnknownUpdate, kind=update.kind, raw=update.raw, error=update.error)
            case _:
                self._state(update)

    def _state(self, update: s.SessionUpdate) -> None:
        """Append updates that are not part of the conversation."""
        add = self._add
        match update:
            case s.CurrentModeUpdate():
                add(ev.ModeUpdate, mode_id=update.current_mode_id)
            case s.AvailableCommandsUpdate():
                add(ev.CommandsUpdate, commands=tuple(map(as_command, update.available_commands)))
            case s.ConfigOptionUpdate():
                add(ev.ConfigUpdate, raw=tuple(s.to_builtins(update.config_options)))
            case s.SessionInfoUpdate():
                changes = ev.SessionChanges(
                    title=update.title, updated_at=update.updated_at, meta=update.meta
                )
                add(ev.SessionInfoUpdate, changes=changes)
                if (why := why_it_retries(update)) is not None:
                    add(ev.Notice, severity="warning", title=RETRIES, description=why)
            case s.NoticeUpdate():
                add(ev.Notice, severity=update.severity, title=update.title, description=update.description)
            case s.CompactionUpdate() | s.CompactionSummaryChunk():
                raw: dict[str, ev.JsonValue] = s.to_builtins(update)
                del raw["sessionUpdate"]
                add(ev.Compaction, id=update.compaction_id, raw=raw)
            case _:  # pragma: no cover - every other kind is taken before
                raise AssertionError(update)

    def _plan(self, plan: s.PlanUpdateContent) -> None:
        match plan:
            case s.PlanItems():
                self._add(ev.PlanUpdate, id=plan.plan_id, entries=_entries(plan.entries))
            case s.PlanMarkdown():
                self._add(ev.PlanUpdate, id=plan.plan_id, markdown=plan.content)
            case s.PlanFile():
                self._add(ev.PlanUpdate, id=plan.plan_id, uri=plan.uri)
            case _:
                assert_never(plan)

    # Tool calls

    def update_tool(self, patch: s.ToolCallPatch) -> None:
        """Append a change of a call that did not come as an update."""
        self._at = self.log.now()
        self._update_tool(patch)

    def cancel_tools(self) -> None:
        """End the calls that a cancelled turn left open; the protocol has no status for it."""
        self._at = self.log.now()
        for id_, call in self._calls.open_in(self.log):
            self._end(id_, call, "cancelled")
        self.log.publish()

    def _start_tool(self, start: s.ToolCallFields) -> None:
        """Append the start of a call; an open one is replaced. An id may be reused."""
        self._respond()
        id_ = start.tool_call_id
        call = self._calls.meet(id_)
        if call.started_in is self.log and not call.done:
            self._patch(id_, call, start)
            return
        content, locations = tool_contents(start.content), tool_locations(start.locations)
        call.begin(
            start.title,
            start.kind,
            name=start.name,
            input=start.raw_input,
            output=start.raw_output,
            content=content,
            locations=locations,
        )
        call.parent = None if start.meta is None else self._parent(start.meta, id_)
        call.started_in, call.done, call.runs = self.log, False, True
        ended = start.status in ("completed", "failed")
        self.log.append(
            ev.ToolStart(
                seq=self.log.seq + 1,
                at=self._at,
                id=id_,
                title=start.title,
                kind=start.kind,
                input=start.raw_input,
                locations=locations,
                content=content,
                status="in_progress" if ended else start.status,
                name=start.name,
                parent=call.parent,
            )
        )
        if ended:
            self._end(id_, call, "completed" if start.status == "completed" else "failed")

    def _update_tool(self, patch: s.ToolCallPatch) -> None:
        """Append a change of a call. A call that was never announced is announced now."""
        self._respond()
        call = self._calls.get(patch.tool_call_id)
        if call is not None and call.started_in is self.log:
            self._patch(patch.tool_call_id, call, patch)
            return
        self._start_tool(
            s.ToolCall(
                tool_call_id=patch.tool_call_id,
                title=patch.title or patch.name or PLACEHOLDER_TITLE,
                name=patch.name,
                kind=patch.kind or "other",
                status=patch.status or "pending",
                content=patch.content or (),
                locations=patch.locations or (),
                raw_input=patch.raw_input,
                raw_output=patch.raw_output,
                meta=patch.meta,
            )
        )

    def _patch(self, id_: str, call: ToolCall, patch: s.ToolCallPatch | s.ToolCallFields) -> None:
        content = None if patch.content is None else tool_contents(patch.content)
        locations = None if patch.locations is None else tool_locations(patch.locations)
        if patch.meta is not None and call.parent is None:
            call.parent = self._parent(patch.meta, id_)
        if patch.title is not None:
            call.title = patch.title
        if not call.done:
            _merge(call, patch, content, locations)
            if patch.status in ("completed", "failed"):
                self._end(id_, call, patch.status)
                return
            call.runs = True
        self.log.append(
            ev.ToolUpdate(
                seq=self.log.seq + 1,
                at=self._at,
                id=id_,
                status=patch.status,
                title=patch.title,
                content=content,
                kind=patch.kind,
                input=patch.raw_input,
                output=patch.raw_output,
                locations=locations,
                name=patch.name,
                parent=call.parent,
            )
        )

    def _end(self, id_: str, call: ToolCall, status: ev.FinalStatus) -> None:
        self.log.append(
            ev.ToolDone(
                seq=self.log.seq + 1,
                at=self._at,
                id=id_,
                status=status,
                content=call.content,
                output=call.output,
                title=call.title,
            )
        )
        call.end()


def _merge(
    call: ToolCall,
    patch: s.ToolCallPatch | s.ToolCallFields,
    content: tuple[ev.ToolContent, ...] | None,
    locations: tuple[ev.Location, ...] | None,
) -> None:
    """Merge an update into a call; fields that it leaves out stay unchanged."""
    call.kind = patch.kind or call.kind
    call.name = patch.name or call.name
    if patch.raw_input is not None:
        call.input = patch.raw_input
    if patch.raw_output is not None:
        call.output = patch.raw_output
    if content is not None:
        call.content = content
    if locations is not None:
        call.locations = locations


def content_block(block: s.ContentBlock) -> ev.ContentBlock:
    """Return a content block of the protocol in the form of events."""
    match block:
        case s.TextContent():
            return ev.TextContent(text=block.text, annotations=_json(block.annotations))
        case s.EmbeddedResource(resource=resource):
            return ev.EmbeddedResource(
                uri=resource.uri,
                text=resource.text if isinstance(resource, s.TextResourceContents) else None,
                blob=resource.blob if isinstance(resource, s.BlobResourceContents) else None,
                mime_type=resource.mime_type,
                annotations=_json(block.annotations),
            )
        case s.ResourceLink():
            return ev.ResourceLink(
                uri=block.uri,
                name=block.name,
                title=block.title,
                description=block.description,
                mime_type=block.mime_type,
                size=block.size,
                annotations=_json(block.annotations),
            )
        case s.ImageContent():
            return ev.ImageContent(
                data=block.data,
                mime_type=block.mime_type,
                uri=block.uri,
                annotations=_json(block.annotations),
            )
        case s.AudioContent():
            return ev.AudioContent(
                data=block.data, mime_type=block.mime_type, annotations=_json(block.annotations)
            )
        case _:
            assert_never(block)


def _json(model: s.Model | None) -> ev.JsonValue:
    return None if model is None else s.to_builtins(model)


def tool_contents(contents: Sequence[s.ToolCallContent]) -> tuple[ev.ToolContent, ...]:
    """Return the content of a tool call in the form of events."""
    return tuple(map(_content, contents)) if contents else ()


def _content(content: s.ToolCallContent) -> ev.ToolContent:
    if isinstance(content, s.Content):
        block = content.content
        if isinstance(block, s.TextContent) and block.annotations is None:
            return ev.BlockContent(content=ev.TextContent(text=block.text))
        return ev.BlockContent(content=content_block(block))
    if isinstance(content, s.Diff):
        return ev.DiffContent(path=content.path, old_text=content.old_text, new_text=content.new_text)
    return ev.TerminalContent(terminal_id=content.terminal_id)


def tool_locations(locations: Sequence[s.ToolCallLocation]) -> tuple[ev.Location, ...]:
    """Return the files of a tool call in the form of events."""
    return tuple([ev.Location(path=place.path, line=place.line) for place in locations]) if locations else ()


def _entries(entries: Sequence[s.PlanEntry]) -> tuple[ev.PlanEntry, ...]:
    return tuple(
        [
            ev.PlanEntry(content=entry.content, priority=entry.priority, status=entry.status)
            for entry in entries
        ]
    )


def as_command(command: s.AvailableCommand) -> ev.Command:
    """Return a command of the protocol in the form of events."""
    return ev.Command(
        name=command.name, description=command.description, hint=command.input.hint if command.input else None
    )


def token_usage(usage: s.Usage) -> ev.TokenUsage:
    """Return the token counts of a turn in the form of events."""
    return ev.TokenUsage(
        total=usage.total_tokens,
        input=usage.input_tokens,
        output=usage.output_tokens,
        thought=usage.thought_tokens,
        cached_read=usage.cached_read_tokens,
        cached_write=usage.cached_write_tokens,
        meta=usage.meta,
    )
