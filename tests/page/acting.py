"""What agents do in the tests of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from scripted import Turn

__all__ = ("OUTPUT", "edits", "plans", "reads", "runs", "uses", "uses_up")

OUTPUT = "\x1b[32m3 passed\x1b[0m in 0.1s\n"


def uses(
    turn: Turn,
    id_: str,
    title: str,
    *,
    kind: Any = "other",
    status: Any = "completed",
    shows: tuple[s.ToolCallContent, ...] = (),
    output: Any = None,
    **about: Any,
) -> None:
    """Begin a tool call and end it, unless its status is one of a call that goes on."""
    turn.update(s.ToolCallStart(tool_call_id=id_, title=title, kind=kind, status="in_progress", **about))
    turn.update(s.ToolCallProgress(tool_call_id=id_, status=status, content=shows, raw_output=output))


def reads(turn: Turn, *paths: str) -> None:
    for path in paths:
        uses(turn, path, f"Read {path}", kind="read", locations=(s.ToolCallLocation(path=path),))


def edits(turn: Turn, path: str, new: str, old: str | None = None, **about: Any) -> None:
    change = s.Diff(path=path, new_text=new, old_text=old)
    uses(turn, f"edit {path}", f"Edit {path}", kind="edit", shows=(change,), **about)


def runs(turn: Turn, command: str, text: str = OUTPUT, code: int = 0, **about: Any) -> None:
    shown = s.Content(content=s.TextContent(text=text))
    about.setdefault("status", "failed" if code else "completed")
    uses(
        turn,
        f"run {command}",
        command,
        kind="execute",
        raw_input={"command": command},
        shows=(shown,),
        output={"exit_code": code},
        **about,
    )


def plans(turn: Turn, *steps: str, done: int = 0) -> None:
    statuses: list[Any] = ["completed"] * done + ["in_progress"] + ["pending"] * len(steps)
    entries = tuple(
        s.PlanEntry(content=step, priority="medium", status=status)
        for step, status in zip(steps, statuses, strict=False)
    )
    turn.update(s.AgentPlanUpdate(entries=entries))


def uses_up(turn: Turn, used: int, size: int, cost: float) -> None:
    turn.update(s.UsageUpdate(used=used, size=size, cost=s.Cost(amount=cost, currency="USD")))
