"""A run as one HTML file: the page with the run in it, for a browser without a server."""

from __future__ import annotations

import math
import re
from functools import cache, partial
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from thinkwell import replay
from thinkwell._display.text import clean
from thinkwell.errors import ThoughtCancelled
from thinkwell.web._page_files import ENTRY, FOLDER, SCRIPTS, STYLE, hash_of, page_html
from thinkwell.web._records import RunEnded, ShownError, in_thread
from thinkwell.web._refusals import RunNotFound
from thinkwell.web.items._log import RunItems
from thinkwell.web.items._whole import made_items

if TYPE_CHECKING:
    import os

    from thinkwell.web._watching import Watcher

_POLICY: Final = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; script-src {script}; '
    "style-src {style}; img-src data:; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'\">\n"
)
"""The permissions of the file: run its script, and show pictures from an agent's messages."""

_IMPORT: Final = re.compile(r'^import [^;]*? from "\./(.+)";\n', re.MULTILINE)
_EXPORT: Final = re.compile("^export ", re.MULTILINE)
_SERVER: Final = re.compile(" Without it, the server's.*?(?=</p>)")


async def recording_html(path: str | os.PathLike[str], *, run: str | None = None) -> str:
    """Return a recorded run as one HTML file: the page with its replay.

    A browser shows it without a server; it loads nothing and sends nothing.

    Args:
        path: A file written by ``open_agent(record=…)``.
        run: The run, if the file has several, such as ``run-1``.

    Raises:
        RecordingError: The file is not a recording, or does not have that run.
        OSError: The file cannot be read.
    """
    stream = replay(path, run=run, speed=0, include="all")
    events = [event async for event in stream]
    error = stream.result.exception()
    end = RunEnded(
        seq=len(events) + 1,
        at=stream.elapsed,
        status="cancelled" if isinstance(error, ThoughtCancelled) else "failed" if error else "completed",
        stop_reason=stream.view.stop_reason,
        result=None if error else await stream.result,
        error=None if error is None else ShownError(name=type(error).__name__, message=clean(str(error))),
    )
    items = RunItems(stream.view.agent, alone=True)
    title = f"{Path(path).name}, {stream.id}"

    def made() -> str:
        items.take_all([*events, end])
        while not items.is_drawn:
            items.draw()
        return _html(items, end, stream.id, title)

    return await in_thread(made)


async def run_html(watcher: Watcher) -> str:
    """Return a run that has ended as one HTML file.

    Args:
        watcher: Reads it from its beginning.

    Raises:
        RunNotFound: It was deleted meanwhile.
    """
    record = watcher.record
    items = await made_items(watcher, record.last_seq)
    if items.end is None:
        raise RunNotFound
    return await in_thread(partial(_html, items, items.end, record.id, record.title))


def _html(items: RunItems, end: RunEnded, id_: str, title: str) -> str:
    """Return the file.

    Args:
        items: The items of the run.
        end: Its end.
        id_: Its id.
        title: Its title.
    """
    run = {"id": id_, "title": title, "status": end.status}
    saved = msgspec.json.encode({"run": run, "seq": end.seq, "items": items.store.after(0, math.inf)[1]})
    text = saved.decode().replace("<", r"\u003c")
    before, behind = _page()
    return f'{before}<script type="application/json" id="saved">{text}</script>\n{behind}'


@cache
def _page() -> tuple[str, str]:
    """Return the page as one file: the parts before and after a saved run."""
    head, _, body = page_html().partition(ENTRY)
    script, (style,) = _script(), STYLE.findall(head)
    policy = _POLICY.format(script=hash_of(script), style=hash_of(style))
    head = head.replace("<meta ", f"{policy}<meta ", 1)
    begin, _, end = _SERVER.sub("", body).partition("</body>")
    return f'{head}<script type="module">{script}</script>\n{begin}', f"</body>{end}"


def _script() -> str:
    """Return the modules of the page as one, each after those that it imports: all their names differ."""
    texts = {name: FOLDER.joinpath(name).read_text("utf-8") for name in SCRIPTS}
    order = TopologicalSorter({name: _IMPORT.findall(text) for name, text in texts.items()}).static_order()
    return "".join(_EXPORT.sub("", _IMPORT.sub("", texts[name])) for name in order)
