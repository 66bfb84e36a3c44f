"""Plays one turn of a script."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, cast

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from thinkwell._core.schema.output import RESULT_TOOL
from thinkwell.testing import _steps as st
from thinkwell.testing._journal import Begun, Failure, Returned
from thinkwell.testing._sent import SentResult, SentTool
from thinkwell_acp import AcpError, ConnectionClosed, DecodeError, RpcError
from thinkwell_acp import schema as s
from thinkwell_acp.errors import INTERNAL_ERROR, METHOD_NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from thinkwell.testing._client_tools import ClientTools
    from thinkwell.testing._journal import Journal
    from thinkwell.testing._telling import Teller
    from thinkwell_acp import AgentSide

OPTION_NAMES = {
    "allow_once": "Allow",
    "allow_always": "Always allow",
    "reject_once": "Reject",
    "reject_always": "Always reject",
}
"""The names of the options of a permission question."""


WHOSE_FAULT = "it is played by thinkwell.testing: look at the script and at what was sent"
"""A hint for a reader who sees the error of a failed script as the agent's error."""


NEEDED: Final[dict[type[st.Step], str]] = {
    st.AsksForm: " (it takes forms where it has an on_question=)",
    st.Reads: " (it has files where it has a workspace=)",
    st.Writes: " (it has files to write where it has a workspace= that may be written)",
    st.Runs: " (it has terminals where it has a workspace= with terminal=True)",
}
"""What a client that refuses a request has to support."""


class Unexpected(Exception):  # noqa: N818 - says what happened
    """The client did something that the script does not allow."""


def client_is_gone(error: Exception) -> bool:
    """Return whether a step failed because the client has disconnected."""
    return isinstance(error, AcpError) and not isinstance(error, RpcError)


def what_went_wrong(step: st.Step, error: Exception) -> str:
    """Return the message about a failed step."""
    match error:
        case RpcError():
            return f"the client refuses: {error.message}{NEEDED.get(type(step), '')}"
        case Unexpected() | DecodeError():
            return str(error)
        case _:
            return f"{type(error).__name__}: {error}"


def script_failed(message: str) -> RpcError:
    """Return the answer to a prompt whose script has failed."""
    return RpcError(INTERNAL_ERROR, message, WHOSE_FAULT)


class ScriptedTurn:
    """The turn in which a function given to `Script.does` runs.

    Args:
        request: The prompt.
        client: The connection to the client.
        tools: The client's tool servers.
        find: Returns the server of a tool, and its schema.
    """

    def __init__(
        self,
        request: s.PromptRequest,
        client: AgentSide,
        tools: Sequence[ClientTools],
        find: Callable[[str], tuple[ClientTools, s.JsonObject]],
    ) -> None:
        self.request = request
        """The prompt, as received."""
        self.client = client
        """The connection to the client, for everything else."""
        self._tools = tools
        self._find = find

    @property
    def session_id(self) -> str:
        """The session."""
        return self.request.session_id

    @property
    def text(self) -> str:
        """The text of the prompt: that of its text blocks, joined."""
        return prompt_text(self.request.prompt)

    @property
    def mcp_connections(self) -> tuple[str, ...]:
        """The ids of the connections to the client's tools, for ``client.message_mcp`` and its like."""
        return tuple(server.connection_id for server in self._tools)

    @property
    def tools(self) -> tuple[SentTool, ...]:
        """The tools that the client offers in this session, as last listed."""
        return tuple(
            SentTool(name=tool.name, description=tool.description, schema=tool.schema)
            for server in self._tools
            for tool in server.tools
        )

    def update(self, update: s.SessionUpdate, *, session_id: str | None = None) -> None:
        """Send an update. Await ``client.drain()`` now and then when you send many.

        Args:
            update: What to send.
            session_id: Another session than that of the turn.
        """
        self.client.update(session_id or self.session_id, update)

    async def call(self, tool: str, arguments: Mapping[str, s.JsonValue] | None = None) -> SentResult:
        """Call a tool that the client offers, and return its result, even if it is an error.

        Raises:
            RpcError: The client does not run the tool.
            Exception: The tool is not offered. If you do not catch this, the script fails.
        """
        given = dict(arguments or {})
        server, _ = self._find(tool)
        outcome = await server.call(tool, given)
        return SentResult(
            tool=tool,
            arguments=given,
            text=outcome.text,
            is_error=outcome.failed,
            structured=outcome.structured,
        )


def prompt_text(prompt: Sequence[s.ContentBlock]) -> str:
    """Return the text of a prompt."""
    return "".join(block.text for block in prompt if isinstance(block, s.TextContent))


class Turn:
    """Plays the steps of one prompt.

    Args:
        number: The number of the turn, from 1.
        steps: The steps.
        request: The prompt.
        teller: Sends the client updates.
        tools: The client's tool servers.
        journal: Where to write the steps down.
        crash: Ends the process.
    """

    def __init__(
        self,
        number: int,
        steps: Sequence[st.Step],
        *,
        request: s.PromptRequest,
        teller: Teller,
        tools: Sequence[ClientTools],
        journal: Journal,
        crash: Callable[[int], None],
    ) -> None:
        self._number = number
        self._steps = steps
        self._prompt = prompt_text(request.prompt)
        self._request = request
        self._teller = teller
        self._client = teller.client
        self._tools = tools
        self._journal = journal
        self._crash = crash
        self._scope = anyio.CancelScope()
        self._cancelled = anyio.Event()
        self._patient = False
        self._told: deque[str] = deque()
        self._news = anyio.Event()

    def steer(self, text: str) -> None:
        """Note a message that the client sends in the turn."""
        self._told.append(text)
        self._news.set()

    def cancel(self) -> None:
        """Note that the client has cancelled the turn."""
        self._cancelled.set()
        if not self._patient:
            self._scope.cancel()

    async def play(self) -> st.Stops:
        """Play all steps and return how the turn stops.

        Raises:
            RpcError: It ends with an error: one of the script, or because the script has failed.
        """
        with self._scope:
            for index, step in enumerate(self._steps, 1):
                await checkpoint_if_cancelled()
                self._journal.append(Begun(self._number, index))
                try:
                    stop = await self._do(step)
                except Exception as exc:
                    answered = isinstance(step, st.Fails) or (
                        isinstance(step, st.Does) and isinstance(exc, RpcError)
                    )
                    if answered or client_is_gone(exc):
                        raise
                    reason = f"turn {self._number}, step {index}, {step}: {what_went_wrong(step, exc)}"
                    self._journal.append(Failure(reason))
                    raise script_failed(f"The script failed at {reason}") from exc
                if stop is not None:
                    return stop
        return st.Stops(reason="cancelled" if self._cancelled.is_set() else "end_turn")

    async def _do(self, step: st.Step) -> st.Stops | None:
        match step:
            case st.Stops():
                return step
            case st.Fails():
                raise RpcError(step.code, step.message, step.data)
            case st.Hangs():
                with self._waiting():
                    await (anyio.sleep_forever() if step.deaf else self._cancelled.wait())
            case st.HangsUp() | st.Crashes():
                connection = self._client.connection
                await connection.flush()
                if isinstance(step, st.Crashes):
                    self._crash(step.exit_code)
                connection.end(ConnectionClosed())  # which cancels this turn
                await anyio.sleep_forever()
            case st.Calls() | st.Returns() | st.Asks() | st.AsksForm() | st.Expects():
                await self._ask(step)
            case st.Hears():
                await self._hear(step.text)
            case st.Reads() | st.Writes() | st.Runs():
                await self._work(step)
            case st.Does():
                turn = ScriptedTurn(self._request, self._client, self._tools, self._find)
                reason = await step.function(turn)
                return None if reason is None else st.Stops(reason=reason)
            case _:
                await self._teller.tell(step)
        return None

    async def _hear(self, text: str) -> None:
        while not self._told:
            self._news = anyio.Event()
            await self._news.wait()
        told = self._told.popleft()
        if text not in told:
            raise Unexpected(f"the client says something else: {told!r:.2000}")

    async def _ask(self, step: st.Calls | st.Returns | st.Asks | st.AsksForm | st.Expects) -> None:
        match step:
            case st.Calls():
                await self._call(step.tool, step.arguments, step.expect_error)
            case st.Returns():
                await self._return(step)
            case st.Asks():
                await self._ask_permission(step)
            case st.AsksForm():
                await self._ask_form(step)
            case st.Expects():  # pragma: no branch - the last of the union
                if step.text not in self._prompt:
                    raise Unexpected(f"the prompt does not contain it: {self._prompt!r:.2000}")

    @contextmanager
    def _waiting(self) -> Generator[None]:
        """Continue in spite of ``session/cancel``: the answer comes because of it."""
        self._patient = True
        try:
            yield
        finally:
            self._patient = False

    # The client's tools

    async def _call(self, name: str, arguments: s.JsonValue, expected: bool | str | None) -> None:
        server, _ = self._find(name)
        outcome = await server.call(name, arguments)
        _check_error(outcome.text if outcome.failed else None, expected)

    async def _return(self, step: st.Returns) -> None:
        server, schema = self._find(RESULT_TOOL)
        arguments, call_id = _enveloped(step.value, schema), None
        if step.streamed:
            call_id = await self._teller.write_call(f"mcp__{server.server}__{RESULT_TOOL}", arguments)
        taken = True
        try:
            with self._answered():  # a client that has its result may leave before it answers
                outcome = await server.call(RESULT_TOOL, arguments)
            taken = not outcome.failed
            if call_id is not None:
                self._teller.end_call(call_id, "completed" if taken else "failed")
        finally:
            if taken:
                self._journal.append(Returned(self._number))
        _check_error(outcome.text if outcome.failed else None, step.expect_error)

    def _find(self, name: str) -> tuple[ClientTools, s.JsonObject]:
        for server in self._tools:
            for tool in server.tools:
                if tool.name == name:
                    return server, tool.schema
        offered = ", ".join(tool.name for server in self._tools for tool in server.tools)
        if name == RESULT_TOOL:
            raise Unexpected("the client asks for no result, as think(…) with a type would")
        raise Unexpected(f"the client offers no tool {name!r}, but {offered or 'none at all'}")

    # Questions

    async def _ask_permission(self, step: st.Asks) -> None:
        options = tuple(
            s.PermissionOption(option_id=f"option-{number}", name=OPTION_NAMES.get(kind, kind), kind=kind)
            for number, kind in enumerate(step.options, 1)
        )
        call = s.ToolCallUpdate(
            tool_call_id=step.id or self._teller.new_call_id(),
            title=step.title,
            kind=step.kind,
            status="pending",
            raw_input=step.input,
            locations=None if step.path is None else (s.ToolCallLocation(path=step.path),),
        )
        request = s.RequestPermissionRequest(
            session_id=self._teller.session_id, tool_call=call, options=options
        )
        with self._answered():
            outcome = (await self._client.request_permission(request)).outcome
        kinds = {option.option_id: option.kind for option in options}
        if isinstance(outcome, s.CancelledPermissionOutcome):
            chosen = "cancelled"
        elif outcome.option_id in kinds:
            chosen = kinds[outcome.option_id]
        else:
            raise Unexpected(f"the client chose {outcome.option_id!r}, which is not one of the options")
        if step.expect not in (None, chosen):
            raise Unexpected(f"the client answered {chosen}")
        if chosen == "cancelled":
            self.cancel()  # this answer means that (ACP, Prompt Turn), though `session/cancel` may come later

    async def _ask_form(self, step: st.AsksForm) -> None:
        request = {
            "sessionId": self._teller.session_id,
            "mode": "form",
            "message": step.message,
            "requestedSchema": step.schema,
        }
        with self._answered():
            answer = s.decode(
                s.CreateElicitationResponse,
                await self._client.connection.request("elicitation/create", request),
            )
        given = answer.action if isinstance(step.expect, str) else s.to_builtins(answer.content)
        if step.expect not in (None, given):
            raise Unexpected(f"the client answered {answer.action} {s.to_builtins(answer.content)}")

    @contextmanager
    def _answered(self) -> Generator[None]:
        """Ask. A turn cancelled meanwhile stops after the answer, which the client still has to send."""
        with self._waiting():
            yield
        if self._cancelled.is_set():
            self._scope.cancel()

    # Files and terminals

    async def _work(self, step: st.Reads | st.Writes | st.Runs) -> None:
        session_id, found, failed = self._teller.session_id, "", None
        try:
            match step:
                case st.Reads():
                    read = s.ReadTextFileRequest(session_id=session_id, path=step.path)
                    found = (await self._client.read_text_file(read)).content
                case st.Writes():
                    write = s.WriteTextFileRequest(session_id=session_id, path=step.path, content=step.text)
                    await self._client.write_text_file(write)
                case st.Runs():  # pragma: no branch - the last of the union
                    found = await self._run(step)
        except RpcError as exc:
            failed = exc.message + (NEEDED[type(step)] if exc.code == METHOD_NOT_FOUND else "")
        _check_error(failed, step.expect_error)
        expected = None if isinstance(step, st.Writes) else step.expect
        if expected is not None and expected not in found:
            raise Unexpected(f"the client answered {failed or found!r:.2000}")

    async def _run(self, step: st.Runs) -> str:
        session_id = self._teller.session_id
        create = s.CreateTerminalRequest(session_id=session_id, command=step.command, args=step.arguments)
        terminal_id = (await self._client.create_terminal(create)).terminal_id
        await self._client.wait_for_terminal_exit(
            s.WaitForTerminalExitRequest(session_id=session_id, terminal_id=terminal_id)
        )
        output = await self._client.terminal_output(
            s.TerminalOutputRequest(session_id=session_id, terminal_id=terminal_id)
        )
        await self._client.release_terminal(
            s.ReleaseTerminalRequest(session_id=session_id, terminal_id=terminal_id)
        )
        return output.output


def _enveloped(value: s.JsonValue, schema: s.JsonObject) -> s.JsonValue:
    """Return the arguments for a result, in the envelope that the tool's schema requires."""
    given = cast("s.JsonObject", value)
    enveloped = set(schema.get("properties") or ()) == {"result"}
    if isinstance(value, dict) and (set(given) == {"result"} or not enveloped):
        return given
    return {"result": given}


def _check_error(error: str | None, expected: bool | str | None) -> None:
    if expected is None:
        return
    if error is None:
        if expected is not False:
            raise Unexpected("it did not fail")
    elif expected is False:
        raise Unexpected(f"it failed, and no expect_error= allows that: {error}")
    elif isinstance(expected, str) and expected not in error:
        raise Unexpected(f"it failed otherwise: {error}")
