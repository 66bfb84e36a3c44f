"""Makes a log shorter without touching anything but text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from thinkwell import events as ev

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from typing_extensions import TypeIs

_Text: TypeAlias = ev.Thought | ev.Message

MERGED_LENGTH: Final = 65536
"""Characters beyond which a merged text takes no more: copying ever longer ones would cost the square."""


def _is_text(event: ev.ThoughtEvent) -> TypeIs[_Text]:
    return isinstance(event, _Text) and isinstance(event.content, ev.TextContent)


def _continues(one: _Text, two: _Text) -> bool:
    """Return whether nothing is lost when two neighbours become one."""
    return (
        type(one) is type(two)
        and one.message_id == two.message_id
        and one.content.annotations is None
        and two.content.annotations is None
    )


def merge_text(events: Sequence[ev.ThoughtEvent], places: Collection[int]) -> list[ev.ThoughtEvent]:
    """Return the events with neighbouring text of the same message joined.

    Never across the place of a reader: it would see the text in front of its place again, or miss what
    follows. A joined event has the number and the time of its last part.
    """
    merged: list[ev.ThoughtEvent] = []
    run: list[_Text] = []
    length = 0

    def close() -> None:
        if len(run) > 1:
            last = run[-1]
            text = "".join(event.text for event in run)
            merged.append(type(last)(seq=last.seq, at=last.at, text=text, message_id=last.message_id))
        else:
            merged.extend(run)
        run.clear()

    for event in events:
        if not _is_text(event):
            close()
            merged.append(event)
            continue
        if run and (length >= MERGED_LENGTH or run[-1].seq in places or not _continues(run[-1], event)):
            close()
        length = length + len(event.text) if run else len(event.text)
        run.append(event)
    close()
    return merged


def drop_text(
    events: Sequence[ev.ThoughtEvent], surplus: int, places: Collection[int]
) -> tuple[list[ev.ThoughtEvent], int]:
    """Return the events without the oldest text, and how much was dropped.

    A `Dropped` with the count stands in each gap. A reader that is in the middle of a gap finds two of them.

    Args:
        events: What there is.
        surplus: How many texts to drop.
        places: Numbers of the events that readers have taken last.
    """
    kept: list[ev.ThoughtEvent] = []
    dropped = 0
    for index, event in enumerate(events):
        if dropped == surplus:
            kept.extend(events[index:])
            break
        if isinstance(event, ev.Dropped):
            count = event.count
        elif _is_text(event):
            count = 1
            dropped += 1
        else:
            kept.append(event)
            continue
        last = kept[-1] if kept else None
        if isinstance(last, ev.Dropped) and last.seq not in places:
            kept[-1] = ev.Dropped(seq=event.seq, at=event.at, count=last.count + count)
        else:
            kept.append(ev.Dropped(seq=event.seq, at=event.at, count=count))
    return kept, dropped
