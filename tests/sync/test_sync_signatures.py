"""The blocking API takes what the async one takes, and says the same of it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, get_overloads

import thinkwell
from thinkwell import listen, progress, sync, trials
from thinkwell.sync import progress as sync_progress

if TYPE_CHECKING:
    from collections.abc import Iterator

CLASSES: Final = (
    (thinkwell.Agent, sync.Agent),
    (thinkwell.Session, sync.Session),
    (thinkwell.Outcomes, sync.Outcomes),
    (thinkwell.ThinkBuilder, sync.ThinkBuilder),
    (thinkwell.ThoughtStream, sync.ThoughtStream),
)
FUNCTIONS: Final = (
    (thinkwell.open_agent, sync.open_agent),
    (thinkwell.login, sync.login),
    (thinkwell.replay, sync.replay),
    (thinkwell.supervise, sync.supervise),
    (listen.listen, sync.listen),
    (progress.show, sync_progress.show),
    (progress.Live, sync_progress.Live),
    (trials.trials, sync.trials),
)

ASYNC_ONLY: Final = {"ThoughtStream.recording"}
SAID_OTHERWISE: Final = {
    *("Live", "open_agent", "replay", "listen", "show", "trials"),
    *(
        "Agent.close",
        "Agent.kill",
        "Agent.map",
        "Agent.session",
        "Outcomes.results",
        "Session.close",
        "Session.events",
    ),
    *("ThinkBuilder.listen", "ThinkBuilder.run", "ThinkBuilder.stream"),
    *("ThoughtStream.answer", "ThoughtStream.cancel", "ThoughtStream.events", "ThoughtStream.wait"),
}
"""What ends by Ctrl-C instead of a cancellation, by `close` instead of a block, or is opened by ``start``."""
BLOCKING: Final = {
    "Opening[Agent]": "Opener[Agent]",
    "Opening[Session]": "Opener[Session]",
    "AsyncIterator[ev.ThoughtEvent]": "Iterator[ev.ThoughtEvent]",
    "AsyncIterator[Draft[Mapping[str, object]]]": "Iterator[Draft[Mapping[str, object]]]",
    "AsyncIterator[Draft[T_co]]": "Iterator[Draft[T_co]]",
    "AsyncIterator[Draft[Any]]": "Iterator[Draft[Any]]",
}


def pairs() -> Iterator[tuple[str, Any, Any]]:
    for function, blocking in FUNCTIONS:
        yield function.__name__, function, blocking
    for kind, blocking_kind in CLASSES:
        for name, member in inspect.getmembers(kind):
            if not name.startswith("_") and f"{kind.__name__}.{name}" not in ASYNC_ONLY:
                yield f"{kind.__name__}.{name}", member, getattr(blocking_kind, name)


def forms(member: Any) -> list[tuple[dict[str, inspect.Parameter], str]]:
    """Return the parameters, and what is returned, of each overload."""
    function: Any = member.fget if isinstance(member, property) else member
    signatures = [inspect.signature(each) for each in (*get_overloads(function), function)]
    return [(dict(each.parameters), str(each.return_annotation)) for each in signatures]


def test_the_blocking_api_is_like_the_async_one() -> None:
    for name, member, blocking in pairs():
        assert (inspect.getdoc(member) == inspect.getdoc(blocking)) is (name not in SAID_OTHERWISE), name
        expected = [(given, BLOCKING.get(returned, returned)) for given, returned in forms(member)]
        took = forms(blocking)
        if name == "ThoughtStream.wait":
            del took[0][0]["timeout"]  # instead of `anyio.fail_after`
        if name == "Agent.map":
            del took[0][0]["task"], expected[0][0]["task"]  # which takes tasks of both, too
        if name == "trials":
            del took[0][0]["on_change"], expected[0][0]["on_change"]  # each has a default of its own
        assert took == expected, name
