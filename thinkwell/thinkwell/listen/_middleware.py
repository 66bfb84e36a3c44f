"""The reverse of an NDJSON agent: an NDJSON host drives any agent.

The host writes prompts and answers, one a line, and reads messages: progress, questions, results. Every
prompt is a turn of one session. Prompts wait for each other, so each has one ``result`` or ``error``, in
order; every message before it belongs to that prompt.

Nothing waits for the host to read (see `Outbox`) except its own next prompt, which begins when the host has
read the end of the one before.
"""

from __future__ import annotations

import json
import logging
import re
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import anyio
from msgspec import Struct
from msgspec.structs import replace

from thinkwell._core.exit import background_tasks, existing_folder
from thinkwell._core.schema.arguments import check_seconds
from thinkwell._core.schema.json_schema import is_array, is_object
from thinkwell._core.schema.output import JsonSchema, output_type
from thinkwell._lines.words import Init, Prompt, Response, error_fields, read_host_line
from thinkwell.errors import (
    AgentClosed,
    AgentExited,
    AnswerInvalid,
    SessionUnusable,
    ThinkwellError,
)
from thinkwell.listen._host_questions import Astray, HostQuestions
from thinkwell.listen._outbox import Outbox
from thinkwell.listen._relay import Relay
from thinkwell.listen._values import to_json
from thinkwell_acp._framing import LineSplitter
from thinkwell_acp.errors import ConnectionBroken, FrameTooLong

if TYPE_CHECKING:
    import os

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from thinkwell import Agent, Session, ThinkBuilder
    from thinkwell.events import JsonValue
    from thinkwell_acp import Transport

logger = logging.getLogger("thinkwell")

PROMPTS_WAITING: Final = 1000
"""Prompts that are read ahead. With more, the host's lines are not read until one has ended."""

FATAL: Final = (AgentExited, AgentClosed, SessionUnusable)
"""Errors after which no prompt can follow."""

GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError)
"""Errors that mean that the host is gone."""

HAS_VALUE: Final = re.compile(rb'"value"\s*:')
"""Found in an answer with a value, even ``null``. Within a text, quotes are escaped."""

PARAMETERS: Final = ("cwd", "schema", "timeout")
"""The parameters of an ``init``."""

PARAMETERS_NAMED: Final = 10
"""Most unknown parameters that are reported one by one."""

Ordered: TypeAlias = Init | Prompt


class InitRefused(ValueError):  # noqa: N818 - the name says what happened
    """A host's ``init`` is invalid; nothing was started."""


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of a host's prompts."""

    output: object
    cwd: str | os.PathLike[str] | None
    timeout: float | None


async def serve_lines(
    agent: Agent,
    transport: Transport,
    *,
    output: object = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout: float | None = None,  # noqa: ASYNC109 - of each prompt
) -> Exception | None:
    """Let an NDJSON host drive an agent, until the host ends its output.

    Prompts are turns of one session. The host gets the messages that `Handlers` would, as lines, and answers
    questions and approvals with ``response`` lines; it does not need thinkwell. When it ends its output, the
    prompts read so far are completed, and their further questions are declined.

    Every error of a prompt, or of the agent, is sent to the host as an ``error``, and returned
    if no prompt follows. Open the agent with ``permissions="ask"`` and an `on_question` handler that
    declines, so that it may also ask between prompts.

    Args:
        agent: The agent.
        transport: The connection to the host, such as `thinkwell_acp.own_stdio`. It is not closed.
        output: The result type of each prompt, as for `Agent.think`; by default the text of the last message.
            A ``schema`` in the host's ``init`` overrides it.
        cwd: The folder to work in, as for `Agent.session`; the host's ``cwd`` overrides it.
        timeout: Seconds that each prompt may take; the host's ``timeout`` overrides it.

    Returns:
        Why the last prompt failed, or why no other could follow; ``None`` on success.

    Raises:
        anyio.BrokenResourceError: The host stopped reading. The running prompt was cancelled.
        anyio.ClosedResourceError: The same, because you closed the transport.
        NotADirectoryError: The folder does not exist.
        TypeError: The output type cannot be used, or the timeout is not a number.
        ValueError: The timeout is not positive.
    """
    if output is not None and output_type(output, "serve_lines(output={})").schema is None:
        output = None  # another name for text
    if cwd is not None:
        existing_folder(cwd, "serve_lines(cwd=…)")
    if timeout is not None:
        check_seconds("timeout", timeout)
    return await _Middleware(agent, transport, Settings(output=output, cwd=cwd, timeout=timeout)).serve()


class _Middleware:
    """Serves one host.

    Args:
        agent: The agent.
        transport: The transport to the host.
        settings: The settings of its prompts, unless it sets others.
    """

    def __init__(self, agent: Agent, transport: Transport, settings: Settings) -> None:
        self._agent = agent
        self._transport = transport
        self._settings = settings
        self._outbox = Outbox(transport)
        self._questions = HostQuestions()
        self._broken: Exception | None = None
        """Why nothing can be sent any more."""
        self._begun = False
        """Whether the host has sent anything."""
        self._cut_off: Exception | None = None
        """Why reading stopped, if the host has not ended its output."""

    async def serve(self) -> Exception | None:
        """Serve it to its end; see `serve_lines`."""
        ordered, orders = anyio.create_memory_object_stream[Ordered](PROMPTS_WAITING)
        with anyio.CancelScope() as scope:
            async with orders, background_tasks() as tasks:
                tasks.start_soon(self._write, scope)
                tasks.start_soon(self._read, ordered)
                failure = await self._hold(orders)
                await self._outbox.wait_empty()
                return failure
        assert self._broken is not None
        raise self._broken

    # The host's lines

    async def _write(self, scope: anyio.CancelScope) -> None:
        try:
            await self._outbox.send_all()
        except GONE as exc:
            self._broken = exc
            scope.cancel()

    async def _read(self, ordered: MemoryObjectSendStream[Ordered]) -> None:
        """Read the host's lines to their end."""
        splitter = LineSplitter()
        async with ordered:
            try:
                while data := await self._receive():
                    for line in splitter.feed(data):
                        await self._take(line, ordered)
                await self._take(splitter.finish(), ordered)
            except FrameTooLong as exc:
                self._cut_off = exc
        self._questions.close()

    async def _receive(self) -> bytes:
        """Return the next bytes; empty at the end, for any reason."""
        try:
            return await self._transport.receive()
        except (*GONE, anyio.EndOfStream, ConnectionBroken):
            return b""

    async def _take(self, line: bytes, ordered: MemoryObjectSendStream[Ordered]) -> None:
        """Handle a line: an answer at once, everything else in turn."""
        said = read_host_line(line)
        match said:
            case None:
                return
            case Response():
                self._answer(said, line)
            case Prompt() if said.flaw and self._questions.waiting:
                # More likely a broken answer than a text: no agent should work on it.
                self._complain(f"a line was ignored that is neither an answer nor a prompt: {said.flaw}")
            case Init() if self._begun:
                self._complain("an `init` was ignored; it has to be the first line")
            case _:
                if isinstance(said, Prompt) and said.flaw:
                    logger.warning("A line of the host that begins with { is taken as text: %s", said.flaw)
                await ordered.send(said)
        self._begun = True

    def _answer(self, response: Response, line: bytes) -> None:
        # ``null`` means no. An answer without a value has probably mistaken the name, and is reported.
        empty = response.value is None and HAS_VALUE.search(line) is None
        try:
            self._questions.answer(response, empty=empty)
        except Astray as exc:
            logger.warning("A response of the host is ignored: %s", exc)
        except AnswerInvalid as exc:
            self._complain(f"{exc}. It is still open", id=exc.question_id)

    def _complain(self, what: str, **fields: JsonValue) -> None:
        """Tell the host about a problem with its line."""
        self._outbox.tell("log", {"message": what, "level": "error", **fields})

    # Prompts, one after the other

    async def _hold(self, orders: MemoryObjectReceiveStream[Ordered]) -> Exception | None:
        """Run the prompts of the host, and return why the last one failed."""
        failure: Exception | None = None
        try:
            first = await anext(orders, None)
            if first is not None:
                failure = await self._converse(first, orders)
        except (InitRefused, ThinkwellError) as exc:
            failure = exc
            self._fail(failure)
        if self._cut_off is not None:
            failure = self._cut_off
            self._fail(failure)
        return failure

    async def _converse(self, first: Ordered, orders: MemoryObjectReceiveStream[Ordered]) -> Exception | None:
        """Open the session and run prompts in it, until there are no more or none can follow."""
        settings = self._settings
        if isinstance(first, Init):
            settings = _with_params(settings, first.params)
        failure: Exception | None = None
        order: Ordered | None = first
        async with self._agent.session(cwd=settings.cwd, output=settings.output) as session:
            while order is not None:
                if isinstance(order, Init):
                    self._outbox.put("init_ack", self._introduction())
                    self._warn_of_params(order.params)
                else:
                    failure = await self._run(session, order, settings)
                if isinstance(failure, FATAL) or not session._wire.life.usable:
                    break
                # So that at most one prompt's messages wait for a host that does not read.
                await self._outbox.wait_empty()
                order = await anext(orders, None)
        return failure

    def _warn_of_params(self, params: JsonValue) -> None:
        """Warn of unknown parameters: they may be misspelt."""
        unknown = [name for name in params if name not in PARAMETERS] if is_object(params) else []
        for name in unknown[:PARAMETERS_NAMED]:
            what = f"init: {name!r:.100} means nothing here; there are {', '.join(PARAMETERS)}"
            logger.warning("The host's %s", what)
            self._outbox.tell("log", {"message": what, "level": "warning"})

    def _introduction(self) -> dict[str, JsonValue]:
        info = self._agent.info
        return {"name": self._agent.name, "version": "" if info is None else info.version}

    async def _run(self, session: Session, prompt: Prompt, settings: Settings) -> Exception | None:
        """Run a prompt, and send the host its end; return why it failed."""
        try:
            context, output, images = _read_context(prompt.context, settings.output)
            builder: ThinkBuilder[object] = session.think(cast("type[object]", output)).text(prompt.text)
            if context:
                text = json.dumps(context, ensure_ascii=False, indent=2)
                builder = builder.line().line().quote(text, tag="context")
            for image in images:
                builder = builder.image(image)
            stream = builder.stream(include=(), timeout=settings.timeout)
        except (TypeError, ValueError, ThinkwellError) as exc:
            self._fail(exc)
            return exc
        relay = Relay(self._outbox, self._questions)
        stream._run.attach(relay)
        async with stream:
            await stream.wait()
        self._questions.forget()
        failure = stream.result.exception()
        if failure is None:
            fields = relay.result_fields or _result_fields(output, await stream.result)
            self._outbox.put("result", fields)
        else:
            self._fail(failure)
        return failure

    def _fail(self, error: Exception) -> None:
        self._outbox.put("error", error_fields(error))


def _with_params(settings: Settings, params: JsonValue) -> Settings:
    """Return the settings that a host asks for.

    Raises:
        InitRefused: A parameter is invalid.
    """
    if params is None:
        return settings
    if not is_object(params):
        raise InitRefused(f"init: params: it is {params!r:.100}; give an object")
    for name, value in params.items():
        try:
            match name:
                case "cwd":
                    settings = replace(settings, cwd=_folder(value))
                case "schema":
                    if not is_object(value):
                        raise TypeError(f"it is {value!r:.100}; a JSON Schema is an object")
                    settings = replace(settings, output=_schema(value))
                case "timeout":
                    check_seconds("timeout", value)
                    settings = replace(settings, timeout=cast("float", value))
                case _:
                    pass  # it is reported once the rest is valid
        except (TypeError, ValueError, OSError) as exc:
            raise InitRefused(f"init: {name}: {str(exc).strip()}") from None
    return settings


def _folder(value: JsonValue) -> str:
    if not isinstance(value, str):
        raise TypeError(f"it is {value!r:.100}; give the path of a folder")
    folder = Path(value).absolute()
    if not folder.is_dir():
        raise NotADirectoryError(f"there is no folder {folder}")
    return str(folder)


def _schema(value: dict[str, JsonValue]) -> JsonSchema:
    schema = JsonSchema(value)
    try:
        output_type(schema, "schema={}")
    except TypeError as exc:
        raise TypeError(str(exc.__cause__ or exc)) from None  # without details of Python
    return schema


def _read_context(context: JsonValue, output: object) -> tuple[JsonValue, object, list[bytes]]:
    """Return the context of a prompt: the part for the agent, the output type, and images.

    Raises:
        TypeError: Its schema is invalid.
        ValueError: An image in it is invalid.
    """
    if not is_object(context):
        return context, output, []
    rest = dict(context)
    if is_object(schema := rest.get("schema")):
        try:
            output = _schema(schema)
        except TypeError as exc:
            raise TypeError(f"context: schema: {exc}") from None
        del rest["schema"]
    images: list[bytes] = []
    if is_array(given := rest.get("images")):
        data = [image.get("data") for image in given if is_object(image)]
        images = [b64decode(text, validate=True) for text in data if isinstance(text, str)]
        if len(images) != len(given):
            raise ValueError("context: images: each needs its `data` in base64")
        del rest["images"]
    return rest, output, images


def _result_fields(output: object, result: object) -> dict[str, JsonValue]:
    """Return the fields of a result, under ``result`` if it has none, or one named ``type``."""
    if output is None:
        return {"text": cast("str", result)}
    plain = to_json(result, "the agent")
    return plain if is_object(plain) and "type" not in plain else {"result": plain}
