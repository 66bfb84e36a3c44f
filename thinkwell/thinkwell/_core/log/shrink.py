"""Shorten a log by changing only text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from thinkwell import events as ev

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from typing_extensions import TypeIs

_Text: TypeAlias = ev.Thought | ev.Message

_TEXTS: Final = (ev.Message, ev.Thought)

MERGED_LENGTH: Final = 65536
"""Characters from which on a merged text is not extended: copying ever longer texts would take quadratic
time."""


def _is_text(event: ev.ThoughtEvent) -> TypeIs[_Text]:
    return isinstance(event, _TEXTS) and isinstance(event.content, ev.TextContent)


def _is_plain(event: ev.ThoughtEvent) -> TypeIs[_Text]:
    """Return whether the text can be joined with its neighbour's without loss."""
    return _is_text(event) and event.content.annotations is None


def _joined(parts: Sequence[_Text]) -> _Text:
    last = parts[-1]
    if len(parts) == 1:
        return last
    text = "".join([part.text for part in parts])
    return type(last)(seq=last.seq, at=last.at, text=text, message_id=last.message_id)


def merge_text(
    events: Sequence[ev.ThoughtEvent], places: Collection[int], most: int
) -> list[ev.ThoughtEvent]:
    """Return the events with text of the same message joined.

    Neighbours are joined. If too many are left, because messages with ids are interleaved, so are texts
    further apart, within a stretch of only such messages. Each message still begins at its place.

    Text is never joined across the place of a reader: the reader would see the text before its place again,
    or miss the text after it. A joined event has the number and the time of its last part.

    Args:
        events: The events.
        places: Numbers of the events that readers have taken last.
        most: The number of events that is not too many.
    """
    merged = _merge_neighbours(events, places)
    return merged if len(merged) <= most else _merge_interleaved(merged, places)


def _merge_neighbours(events: Sequence[ev.ThoughtEvent], places: Collection[int]) -> list[ev.ThoughtEvent]:
    merged: list[ev.ThoughtEvent] = []
    parts: list[_Text] = []
    length = 0
    for event in events:
        if not _is_plain(event):
            if parts:
                merged.append(_joined(parts))
                parts = []
            merged.append(event)
            continue
        if parts:
            last = parts[-1]
            if (
                last.message_id == event.message_id
                and type(last) is type(event)
                and length < MERGED_LENGTH
                and last.seq not in places
            ):
                parts.append(event)
                length += len(event.text)
                continue
            merged.append(_joined(parts))
        parts = [event]
        length = len(event.text)
    if parts:
        merged.append(_joined(parts))
    return merged


def _merge_interleaved(events: Sequence[ev.ThoughtEvent], places: Collection[int]) -> list[ev.ThoughtEvent]:
    merged: list[ev.ThoughtEvent] = []
    stretch: list[_Text] = []
    for event in events:
        # The text before it decides the message of a text without an id: it has to stay in its place.
        if _is_plain(event) and event.message_id is not None:
            stretch.append(event)
            if event.seq in places:
                merged += _gathered(stretch)
                stretch = []
        else:
            merged += _gathered(stretch)
            stretch = []
            merged.append(event)
    merged += _gathered(stretch)
    return merged


def _gathered(stretch: Sequence[_Text]) -> list[_Text]:
    """Return text with ids, without other events between them, joined by message.

    The first text of each stays separate; otherwise the order of the messages' beginnings would change.
    """
    done: list[_Text] = []
    waiting: dict[tuple[str, str | None], list[_Text]] = {}
    lengths: dict[tuple[str, str | None], int] = {}
    for event in stretch:
        key = event.type, event.message_id
        parts = waiting.get(key)
        if parts is None:
            done.append(event)
            waiting[key] = []
            lengths[key] = 0
            continue
        if lengths[key] >= MERGED_LENGTH:
            done.append(_joined(parts))
            parts.clear()
            lengths[key] = 0
        parts.append(event)
        lengths[key] += len(event.text)
    done += [_joined(parts) for parts in waiting.values() if parts]
    done.sort(key=lambda event: event.seq)
    return done


def drop_text(
    events: Sequence[ev.ThoughtEvent], surplus: int, places: Collection[int]
) -> tuple[list[ev.ThoughtEvent], int]:
    """Return the events without the oldest text, and the number dropped.

    Each gap has a `Dropped` with the count. A reader in the middle of a gap finds two of them.

    Args:
        events: What there is.
        surplus: The number of texts to drop.
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
