"""A recording of version 0.1.0 reads as before: its tables of the protocol become values of ours.

`stored/session_values.ndjson` was written by commit c96be80.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import UNSET

from thinkwell import OptionChoice, SessionOption, ThoughtEvent, ThoughtStream, open_agent, replay
from thinkwell import events as ev
from thinkwell.testing import RecordedAgent
from thinkwell.view import TokenCounts

STORED: Final = Path(__file__).parent / "stored" / "session_values.ndjson"

MODEL: Final = SessionOption(
    id="model",
    name="Model",
    category="model",
    value="big",
    choices=(
        OptionChoice(value="small", name="Small 1", description="Quick", group="Own models"),
        OptionChoice(value="big", name="Big 2", group="Own models"),
    ),
)
FAST: Final = SessionOption(id="fast", name="Fast", description="Less thought", type="boolean", value=False)

E = TypeVar("E", bound=ThoughtEvent)


def written(path: Path) -> list[dict[str, Any]]:
    """The events of a recording, as they stand in the file."""
    records = map(json.loads, path.read_text("utf-8").splitlines())
    return [record["event"] for record in records if record["type"] in ("event", "between")]


async def replayed() -> ThoughtStream[Any]:
    stream = replay(STORED, speed=0, include="all")
    await stream.wait()
    return stream


async def each(kind: type[E]) -> list[E]:
    return [event async for event in await replayed() if isinstance(event, kind)]


async def test_options_are_those_of_a_session() -> None:
    (event,) = await each(ev.ConfigUpdate)
    assert event.options == (MODEL, FAST)
    assert event.raw[0]["_meta"] == {"vendor": {"tier": 1}}
    assert (await replayed()).view.model == "Big 2"


async def test_usage_is_token_counts() -> None:
    (event,) = await each(ev.TurnEnded)
    assert event.usage == ev.TokenUsage(total=12, input=7, output=3, thought=2, cached_read=0, meta={"k": 1})
    assert (await replayed()).view.tokens == TokenCounts(
        total=12, input=7, output=3, thought=2, cached_read=0
    )


async def test_session_info_tells_what_was_left_alone_from_what_was_cleared() -> None:
    changes = [event.changes for event in await each(ev.SessionInfoUpdate)]
    assert changes == [
        ev.SessionChanges(title="Work", updated_at=None),
        ev.SessionChanges(title=None, meta={"k": [1]}),
        ev.SessionChanges(updated_at="2026-01-01T00:00:00Z", meta=None),
    ]
    assert changes[1].updated_at is UNSET


async def test_a_compaction_has_its_summary_as_content() -> None:
    events = await each(ev.Compaction)
    assert [event.id for event in events] == ["c1", "c1", "c1", "c2"]
    assert [event.changes for event in events] == [
        ev.CompactionChanges(status="in_progress"),
        ev.CompactionChanges(content=ev.TextContent(text="So far")),
        ev.CompactionChanges(
            status="completed",
            summary=(
                ev.TextContent(text="So far: "),
                ev.ImageContent(data="AA==", mime_type="image/png"),
                ev.AudioContent(data="AA==", mime_type="audio/wav"),
                ev.ResourceLink(uri="file:///a", name="a", mime_type="text/plain", size=3),
                ev.EmbeddedResource(
                    uri="file:///b", text="b", mime_type="text/plain", annotations={"priority": 0.5}
                ),
            ),
            error=None,
        ),
        ev.CompactionChanges(status="failed", summary=None, error="too long"),
    ]
    assert events[1].raw["_meta"] == {"k": 1}


def test_what_is_read_is_written_as_it_was() -> None:
    for fields in written(STORED):
        line = json.dumps(fields, separators=(",", ":"))
        assert ev.event_to_json(ev.event_from_json(line)).decode() == line


async def test_an_agent_that_says_it_again_is_recorded_the_same(tmp_path: Path) -> None:
    path = tmp_path / "again.ndjson"
    async with (
        RecordedAgent(STORED, speed=0).connect() as transport,
        open_agent("scripted", transport=transport, record=path) as agent,
        agent.session() as session,
    ):
        await session.set_option("model", "small")
        assert session.options[0].value == "small"
        await session.think().text("Go").stream().wait()
    assert lines(path) == lines(STORED)


def lines(path: Path) -> list[str]:
    """The events of the session in a recording, without numbers and times."""
    kinds = ("config", "session_info", "compaction", "turn_end")
    chosen = [fields for fields in written(path) if fields["type"] in kinds]
    for fields in chosen:
        del fields["seq"], fields["at"]
    return list(map(json.dumps, chosen))
