"""The native API: start, watch, read, answer, stop and delete runs."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET, Struct
from starlette.responses import Response
from starlette.routing import Route

from thinkwell import events as ev
from thinkwell._version import VERSION
from thinkwell.web._http import (
    Resource,
    caller_of,
    check_depth,
    decode_body,
    json_answer,
    read_body,
    read_json,
    read_query,
)
from thinkwell.web._records import is_end
from thinkwell.web._refusals import RequestInvalid, RunStillRunning
from thinkwell.web._requests import MOST_META, MOST_SCHEMA, StartRun
from thinkwell.web._sse import EventStream, retry_field
from thinkwell.web._watching import Batch
from thinkwell.web._wording import no_such
from thinkwell.web.front_ends._formats import FORMATS, format_events
from thinkwell.web.items import ItemFeeds, item_stream, run_html
from thinkwell.web.native._types import (
    KEY,
    LARGEST,
    About,
    AnswerQuestion,
    EventsQuery,
    Health,
    ListQuery,
    RunList,
    ShownAgent,
    ShownLimits,
    ShownRun,
    Started,
    State,
    SteerRun,
    shown_run,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from thinkwell.journal import RunRecord
    from thinkwell.web._serving import RunServer
    from thinkwell.web._watching import Watcher

# The routes


def routes(server: RunServer) -> list[Route]:
    """Return the native API of a server, without its description."""
    api = _Api(server)
    return [
        Route("/api", Resource(GET=api.about)),
        Route("/api/runs", Resource(GET=api.list, POST=api.start)),
        Route("/api/runs/{run}", Resource(GET=api.state, DELETE=api.delete)),
        Route("/api/runs/{run}/events", Resource(GET=api.events)),
        Route("/api/runs/{run}/items", Resource(GET=api.items)),
        Route("/api/runs/{run}/html", Resource(GET=api.html)),
        Route("/api/runs/{run}/answer", Resource(POST=api.answer)),
        Route("/api/runs/{run}/steer", Resource(POST=api.steer)),
        Route("/api/runs/{run}/cancel", Resource(POST=api.cancel)),
        Route("/healthz", Resource(GET=_health)),
    ]


async def _health(request: Request) -> ASGIApp:
    return json_answer(Health())


class _Api:
    """The handlers of the requests."""

    def __init__(self, server: RunServer) -> None:
        self._server = server
        self._feeds = ItemFeeds()

    async def about(self, request: Request) -> ASGIApp:
        agents = [
            ShownAgent(
                name=name,
                title=agent.title,
                folders=list(agent.folders),
                permissions=list(agent.permissions),
                models=list(agent.models),
                timeout=agent.timeout,
            )
            for name, agent in self._server.agents.items()
        ]
        limits = ShownLimits(**msgspec.structs.asdict(self._server.limits))
        return json_answer(
            About(version=VERSION, caller=caller_of(request.scope), agents=agents, limits=limits)
        )

    async def start(self, request: Request) -> ASGIApp:
        body = await read_body(request, self._server.limits.max_request)
        _check_sizes(body)
        wanted = decode_body(body, StartRun)
        check_depth(meta=wanted.meta, output=wanted.output)
        key = request.headers.get("idempotency-key")
        if key is not None and not KEY.fullmatch(key):
            raise RequestInvalid(
                "Idempotency-Key: it is not valid; give 1 to 200 visible characters of ASCII"
            )
        now = time.time()
        record = await self._server.start(wanted, caller=caller_of(request.scope), key=key)
        known = key is not None and record.created < now
        path = f"{request.scope.get('root_path', '')}/api/runs/{record.id}"
        waiting = await self._server.waiting([record]) if known else ()  # a new run has no questions
        started = Started(run=shown_run(record, waiting))
        return json_answer(started, 200 if known else 201, {"Location": path})

    async def list(self, request: Request) -> ASGIApp:
        query = read_query(request, ListQuery)
        records = await self._server.runs(
            caller=caller_of(request.scope),
            thread=None if query.thread is UNSET else query.thread,
            status=None if query.status is UNSET else query.status,
            before=None if query.before is UNSET else query.before,
            limit=query.limit + 1,  # to learn whether there are more
        )
        runs = [*await self._shown(*records[: query.limit])]
        return json_answer(RunList(runs=runs, next=runs[-1].id if len(records) > query.limit else None))

    async def state(self, request: Request) -> ASGIApp:
        state = await self._server.state(request.path_params["run"], caller=caller_of(request.scope))
        error = None if state.end is None else state.end.error
        view = state.view.to_json() | {"error": msgspec.to_builtins(error)}
        (run,) = await self._shown(state.record)
        return json_answer(State(run=run, seq=state.seq, view=view, end=state.end))

    async def delete(self, request: Request) -> ASGIApp:
        await self._server.delete(request.path_params["run"], caller=caller_of(request.scope))
        return nothing()

    async def events(self, request: Request) -> ASGIApp:
        query = read_query(request, EventsQuery)
        run_id, caller, format_ = request.path_params["run"], caller_of(request.scope), query.format
        after = _last_seen(request.headers.get("last-event-id")) or query.after
        kinds = _kinds(request.query_params.getlist("include"))
        # What other formats say depends on all that was before.
        begin = after if format_ == "native" else 0

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            async with self._server.watch(run_id, caller=caller, after=begin) as watcher:
                record, first = watcher.record, retry_field() + b"\n"
                if record.ended is not None and after >= record.last_seq:
                    stream = nothing()  # tells a browser not to come back (HTML, Server-sent events)
                elif format_ == "native":
                    stream = EventStream(_wanted(watcher, kinds), first=first)
                else:
                    source = format_events(watcher, format_, after=after)
                    stream = EventStream(source, first=first, headers=FORMATS[format_].headers)
                await stream(scope, receive, send)

        return answer

    async def items(self, request: Request) -> ASGIApp:
        after = request.headers.get("last-event-id") or request.query_params.get("after") or ""
        run_id = request.path_params["run"]
        shown, caller = partial(shown_run, waiting=()), caller_of(request.scope)
        return item_stream(self._server, self._feeds, run_id, shown, caller=caller, after=after)

    async def html(self, request: Request) -> ASGIApp:
        run_id = request.path_params["run"]
        async with self._server.watch(run_id, caller=caller_of(request.scope)) as watcher:
            if watcher.record.ended is None:
                raise RunStillRunning
            html = await run_html(watcher)
        headers = {
            "Cache-Control": "no-store",
            "Content-Disposition": f'attachment; filename="{run_id}.html"',
            "X-Content-Type-Options": "nosniff",
        }
        return Response(html, headers=headers, media_type="text/html")

    async def answer(self, request: Request) -> ASGIApp:
        said = await read_json(request, AnswerQuestion, self._server.limits.max_request)
        caller = caller_of(request.scope)
        await self._server.answer(
            request.path_params["run"], said.question, said.value, caller=caller, by=caller or "human"
        )
        return nothing()

    async def steer(self, request: Request) -> ASGIApp:
        told = await read_json(request, SteerRun, self._server.limits.max_request)
        await self._server.steer(request.path_params["run"], told.text, caller=caller_of(request.scope))
        return nothing()

    async def cancel(self, request: Request) -> ASGIApp:
        await self._server.cancel(request.path_params["run"], caller=caller_of(request.scope))
        return nothing(202)

    async def _shown(self, *records: RunRecord) -> Sequence[ShownRun]:
        waiting = await self._server.waiting(records)
        return [shown_run(record, waiting) for record in records]


class _Parts(Struct):
    """The parts of a request that are stored or slow to read, as received."""

    meta: msgspec.Raw = msgspec.Raw()
    output: msgspec.Raw = msgspec.Raw()


def _check_sizes(body: bytes) -> None:
    """Check the sizes of the parts before reading them: a long body would block other callers."""
    try:
        parts = msgspec.json.decode(body, type=_Parts)
    except (ValueError, RecursionError):
        return  # reading it raises the error
    for name, part, most in (("meta", parts.meta, MOST_META), ("output", parts.output, MOST_SCHEMA)):
        if len(memoryview(part)) > most:
            raise RequestInvalid(f"{name}: it is too long; give at most {most:,} bytes")


def nothing(status: int = 204) -> Response:
    """Return an answer without content."""
    return Response(status_code=status, headers={"Cache-Control": "no-store"})


# Events


async def _wanted(watcher: Watcher, kinds: frozenset[str] | None) -> AsyncGenerator[Batch]:
    """Yield the events for a client.

    Args:
        watcher: Reads the run.
        kinds: Types of events, besides the end; ``None``: all.
    """
    while (batch := await watcher.next()) is not None:
        if kinds is None:
            yield batch
        elif wanted := [
            each for each in batch.entries if is_end(each) or _type.decode(each.data).type in kinds
        ]:
            yield Batch(tuple(wanted))
            del wanted
        del batch  # otherwise it stays in memory until the next one


class _Tagged(Struct):
    type: str


_type: Final = msgspec.json.Decoder(_Tagged)


def _last_seen(text: str | None) -> int:
    """Return the last event that a browser has seen; 0: none, or one that we have never sent.

    An unknown one is not refused: it may come from another stream at the same path, and a refused browser
    never reconnects.
    """
    if text is not None and len(text) < 17 and text.isascii() and text.isdigit():
        return int(text) if int(text) <= LARGEST else 0
    return 0


def _kinds(include: list[str]) -> frozenset[str] | None:
    """Return the requested types of events; ``None``: all.

    Raises:
        RequestInvalid: One is unknown.
    """
    names = {name for text in include for name in text.split(",")} or {"all"}
    if "all" in names:
        return None
    kinds = ev.DEFAULT_TYPES if "default" in names else frozenset[str]()
    wanted = names - {"default"}
    if unknown := wanted - ev.ALL_TYPES:
        raise RequestInvalid(f"include: {no_such(min(unknown), sorted({*ev.ALL_TYPES, 'all', 'default'}))}")
    return kinds | wanted
