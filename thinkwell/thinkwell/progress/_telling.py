"""Runs as lines of JSON: events, not the current state."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from thinkwell.progress._drawing import Drawing
from thinkwell.progress._renderer import Renderer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from thinkwell import Outcomes, ThoughtStream
    from thinkwell._core.exit import EventReader
    from thinkwell._display.json_lines import JsonLines
    from thinkwell.progress._renderer import Shown


class Telling(Drawing):
    """Writes the events of runs as they come, and the result of each."""

    def __init__(
        self,
        streams: Sequence[ThoughtStream[object]],
        labels: Sequence[str],
        lines: JsonLines,
        *,
        maps: Sequence[Outcomes[object, object]] = (),
    ) -> None:
        self._lines = lines
        alone = len(streams) == 1 and not maps
        self._open = [
            (stream, _reader(stream), None if alone else label)
            for stream, label in zip(streams, labels, strict=True)
        ]
        """The runs whose end was not written yet."""
        super().__init__(streams, labels, _Nothing, maps=maps)

    def add(self, stream: ThoughtStream[object], label: str) -> None:
        """Write another run."""
        self._open.append((stream, _reader(stream), label))
        super().add(stream, label)

    def _frame(self, *, end: bool) -> Callable[[], None]:
        work: list[Callable[[], None]] = []
        for each in tuple(self._open):
            stream, reader, name = each
            if events := reader.batch_nowait():
                work.append(partial(self._lines.events, events, name))
            if stream._log.ended:
                self._open.remove(each)
                work.append(partial(self._end, stream, name))
        return lambda: [each() for each in work].clear()

    def _end(self, stream: ThoughtStream[object], name: str | None) -> None:
        error = stream.result.exception()
        if error is not None:
            self._lines.error(error, name)
        else:
            self._lines.result(stream.result._outcome.value[0], name)


def _reader(stream: ThoughtStream[object]) -> EventReader:
    return cast("EventReader", stream.events())


class _Nothing(Renderer):
    def draw(self, runs: Sequence[Shown], /, *, end: bool = False) -> None:
        """Draw nothing."""
