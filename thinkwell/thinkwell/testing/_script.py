"""Scripts: the steps of an agent, in order."""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast, get_args

import msgspec
from msgspec import Struct

from thinkwell.testing import _steps as st

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from thinkwell.events import JsonValue
    from thinkwell.testing._turn import ScriptedTurn


class Script(Struct, frozen=True):
    """What an agent does, turn by turn. Begin with `script`: each method returns a longer script.

    A prompt begins a turn. `stops`, `refuses`, `fails`, `hangs_up` and `crashes` end one, so the next
    steps belong to the next prompt, in any session. If none of them ends the last turn, it
    stops with ``end_turn``.

    Arguments are checked at once: a method raises `TypeError` for a wrong type, and `ValueError` for
    a value that is out of range, unknown, or cannot be written as JSON.
    """

    steps: tuple[st.Step, ...] = ()
    """The steps, in order."""

    @property
    def turns(self) -> tuple[tuple[st.Step, ...], ...]:
        """The steps of each turn."""
        turns: list[tuple[st.Step, ...]] = []
        begun: list[st.Step] = []
        for step in self.steps:
            begun.append(step)
            if isinstance(step, get_args(st.Ending)):
                turns.append(tuple(begun))
                begun = []
        return (*turns, tuple(begun)) if begun else tuple(turns)

    def __add__(self, other: Script) -> Script:
        if not isinstance(cast("object", other), Script):
            return NotImplemented
        return Script(self.steps + other.steps)

    def _and(self, step: st.Step) -> Script:
        st.check(step, str(step.__struct_config__.tag))
        return Script((*self.steps, step))

    # Updates

    def thinks(self, text: str, *, message_id: str | None = None) -> Script:
        """Send a piece of thought (``agent_thought_chunk``)."""
        return self._and(st.Thinks(text=text, message_id=message_id))

    def says(self, text: str, *, message_id: str | None = None) -> Script:
        """Send a piece of a message (``agent_message_chunk``)."""
        return self._and(st.Says(text=text, message_id=message_id))

    def plans(self, *entries: str, done: int = 0) -> Script:
        """Send a plan, which replaces the one before. The first `done` of its entries are completed."""
        longer = self._and(st.Plans(entries=entries, done=done))
        if done > len(entries):
            raise ValueError(f"plans(done={done}): there are no more than {len(entries)} entries")
        return longer

    def uses(
        self,
        title: str,
        *,
        kind: st.UsedKind = "other",
        input: JsonValue = None,  # noqa: A002 - the event's field
        output: JsonValue = None,
        text: str | None = None,
        path: str | os.PathLike[str] | None = None,
        new_text: str | None = None,
        old_text: str | None = None,
        status: st.UsedStatus = "completed",
        id: str | None = None,  # noqa: A002 - the event's field
        name: str | None = None,
    ) -> Script:
        """Report a call of one of the agent's own tools: its beginning and its outcome.

        Args:
            title: The title to show.
            kind: The kind of tool.
            input: Its arguments, as JSON.
            output: Its output, as JSON.
            text: Its output, as text.
            path: The absolute path of the file that it works on.
            new_text: The new content of that file, shown as a diff.
            old_text: The old content; ``None`` for a new file.
            status: The final status. An unfinished call can be continued by its `id`.
            id: Its id; by default a new one.
            name: The tool's own name, which few agents report.

        Raises:
            ValueError: `new_text` or `old_text` is given without what belongs to it.
        """
        diff, path = None, None if path is None else _path(path)
        if new_text is not None and path is not None:
            diff = st.FileDiff(path=path, new_text=new_text, old_text=old_text)
            st.check(diff, "uses")
        elif new_text is not None or old_text is not None:
            raise ValueError("uses(new_text=…): a diff needs path= and new_text=, and may have old_text=")
        return self._and(
            st.Uses(
                title=title,
                kind=kind,
                input=as_json(input),
                output=as_json(output),
                text=text,
                diff=diff,
                path=path,
                status=status,
                id=id,
                name=name,
            )
        )

    def updates(self, update: Mapping[str, JsonValue], *, session_id: str | None = None) -> Script:
        """Send any update: the ``update`` of a ``session/update``, known to the protocol or not.

        Args:
            update: The update as on the wire.
            session_id: Another session than that of the turn, such as an unknown one.
        """
        plain = _object("updates(update", update)
        return self._and(st.Updates(update=plain, session_id=session_id))

    def sends(self, data: bytes | str) -> Script:
        """Send raw bytes: noise, broken JSON, half a line. A text is sent as a line."""
        return self._and(st.Sends(data=f"{data}\n".encode() if isinstance(data, str) else data))

    def floods_stderr(self, size: int) -> Script:
        """Write so many bytes to standard error, waiting for its reader. In memory there is none."""
        return self._and(st.FloodsStderr(size=size))

    def pauses(self, seconds: float) -> Script:
        """Let time pass, on the clock of the event loop."""
        return self._and(st.Pauses(seconds=seconds))

    # Requests

    def calls(
        self,
        tool: str,
        arguments: Mapping[str, JsonValue] | None = None,
        *,
        expect_error: bool | str | None = False,
    ) -> Script:
        """Call a tool that the client offers, and wait for its result.

        If the client does not offer it, the script fails.

        Args:
            tool: Its name.
            arguments: Its arguments.
            expect_error: Whether the tool has to succeed (``False``), to fail (``True``), or to fail with an
                error that contains a text. With ``None`` either is fine.
        """
        plain = {} if arguments is None else _object("calls(arguments", arguments)
        return self._and(st.Calls(tool=tool, arguments=plain, expect_error=expect_error))

    def returns(
        self, value: JsonValue, *, expect_error: bool | str | None = False, streamed: bool = False
    ) -> Script:
        """Return a result: call ``return_result``, in the envelope that its schema requires.

        Args:
            value: The result: JSON, or a dataclass, msgspec or pydantic value, which is converted to JSON.
            expect_error: As for `calls`: whether the client has to accept or reject it.
            streamed: Show the call, and its arguments byte by byte as they are written: the client has
                `ThoughtStream.drafts` of it.
        """
        step = st.Returns(value=as_json(value), expect_error=expect_error, streamed=streamed)
        return self._and(step)

    def asks(
        self,
        title: str,
        *,
        options: Sequence[st.OptionKind | str] = ("allow_once", "reject_once"),
        expect: st.OptionKind | str | None = None,
        kind: st.UsedKind = "other",
        input: JsonValue = None,  # noqa: A002 - the event's field
        path: str | os.PathLike[str] | None = None,
        id: str | None = None,  # noqa: A002 - the event's field
    ) -> Script:
        """Ask for permission (``session/request_permission``), and wait for the answer.

        If the question is cancelled, so is the turn: it stops there.

        Args:
            title: The agent's title for the action.
            options: The kinds of the options that it offers, including unknown ones if you like.
            expect: The kind that has to be chosen, or ``cancelled``. By default any is fine.
            kind: The kind of the tool call.
            input: The arguments of the tool call, as JSON, such as ``{"command": "ls"}``.
            path: The absolute path of the file that it works on.
            id: The id of the tool call; by default a new one.

        Raises:
            ValueError: The expected kind is not offered.
        """
        if isinstance(options, str) or not isinstance(cast("object", options), Sequence):
            raise TypeError(f"asks(options={options!r:.100}): give a list of kinds")
        longer = self._and(
            st.Asks(
                title=title,
                options=tuple(options),
                expect=expect,
                kind=kind,
                input=as_json(input),
                path=None if path is None else _path(path),
                id=id,
            )
        )
        if expect not in (None, "cancelled", *options):
            choices = ", ".join((*options, "cancelled"))
            raise ValueError(f"asks(expect={expect!r}): the choices are {choices}; options= names others")
        return longer

    def asks_form(
        self,
        message: str,
        schema: Mapping[str, JsonValue],
        *,
        expect: str | Mapping[str, JsonValue] | None = None,
    ) -> Script:
        """Ask for a form to be filled in (``elicitation/create``), and wait for the answer.

        Args:
            message: The agent's text for the form.
            schema: The form, as JSON Schema: ``{"type": "object", "properties": …}``.
            expect: The required answer: ``accept``, ``decline``, ``cancel``, or the values.
        """
        if isinstance(expect, str) and expect not in ("accept", "decline", "cancel"):
            raise ValueError(f"asks_form(expect={expect!r:.100}): give accept, decline, cancel, or a dict")
        expected = expect if isinstance(expect, str | None) else _object("asks_form(expect", expect)
        plain = _object("asks_form(schema", schema)
        return self._and(st.AsksForm(message=message, schema=plain, expect=expected))

    def reads(
        self,
        path: str | os.PathLike[str],
        *,
        expect: str | None = None,
        expect_error: bool | str | None = False,
    ) -> Script:
        """Read a file through the client (``fs/read_text_file``); `expect` is the required content."""
        return self._and(st.Reads(path=_path(path), expect=expect, expect_error=expect_error))

    def writes(
        self, path: str | os.PathLike[str], text: str, *, expect_error: bool | str | None = False
    ) -> Script:
        """Write a file through the client (``fs/write_text_file``)."""
        return self._and(st.Writes(path=_path(path), text=text, expect_error=expect_error))

    def runs(
        self,
        command: str,
        *arguments: str,
        expect: str | None = None,
        expect_error: bool | str | None = False,
    ) -> Script:
        """Run a command in a terminal of the client, to its end; `expect` is the required output."""
        return self._and(
            st.Runs(command=command, arguments=arguments, expect=expect, expect_error=expect_error)
        )

    def expects(self, text: str) -> Script:
        """Check that the prompt of this turn contains a text."""
        longer = self._and(st.Expects(text=text))
        if not text:
            raise ValueError("expects(text=''): every prompt contains that; give some of its text")
        return longer

    def hears(self, text: str = "") -> Script:
        """Wait until the client steers the turn; fail unless what it says contains this.

        The agent has to be a ``ScriptedAgent(…, steering=True)``.
        """
        return self._and(st.Hears(text=text))

    def does(self, function: Callable[[ScriptedTurn], Awaitable[str | None]]) -> Script:
        """Await your function. Such a script only plays in memory.

        If the function returns a stop reason, that ends the turn. An `RpcError` that it raises is the
        answer to the prompt. Any other exception fails the script. When the client cancels the turn, the
        function is cancelled, unless it shields itself.

        Args:
            function: An async function of the turn.

        Raises:
            TypeError: It cannot be called.
        """
        if not callable(cast("object", function)):
            raise TypeError(f"does({function!r:.100}): give an async function of a ScriptedTurn")
        return Script((*self.steps, st.Does(function=function)))

    # Endings

    def stops(self, reason: st.StopReason = "end_turn", *, late: Script | None = None) -> Script:
        """End the turn.

        Args:
            reason: The stop reason.
            late: Steps sent after the answer, as some agents do. They may only tell.

        Raises:
            ValueError: `late` asks something, or ends a turn.
        """
        steps = () if late is None else telling(late, "stops(late=…)")
        return self._and(st.Stops(reason=reason, late=steps))

    def refuses(self) -> Script:
        """End the turn with a refusal."""
        return self.stops("refusal")

    def fails(self, code: int = -32603, message: str = "Internal error", *, data: JsonValue = None) -> Script:
        """Answer the prompt with a JSON-RPC error.

        Args:
            code: Its code. -32000 is ACP's for an agent that wants a login: a run ends in `LoginRequired`.
            message: The agent's message.
            data: Further data, as JSON.
        """
        return self._and(st.Fails(code=code, message=message, data=as_json(data)))

    def hangs(self, *, deaf: bool = False) -> Script:
        """Do nothing until the client cancels the turn; then continue with the next steps.

        If no step ends the turn, it stops with ``cancelled``.

        Args:
            deaf: Ignore the cancellation too: hang until the connection ends.
        """
        return self._and(st.Hangs(deaf=deaf))

    def hangs_up(self) -> Script:
        """End the connection in the middle of the turn. A process then ends normally."""
        return self._and(st.HangsUp())

    def crashes(self, exit_code: int = 1) -> Script:
        """End the process in the middle of the turn; in memory, the connection."""
        return self._and(st.Crashes(exit_code=exit_code))

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the script to a file, as JSON.

        Raises:
            ValueError: A step of it is a function.
        """
        refuse_functions(self, "save()")
        Path(path).write_bytes(msgspec.json.format(msgspec.json.encode(self)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Script:
        """Read a script from a file.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file is not a script.
        """
        return msgspec.json.decode(Path(path).read_bytes().removeprefix(BOM_UTF8), type=cls)


def refuse_functions(script: Script, where: str) -> None:
    """Check that a script can be written to a file.

    Raises:
        ValueError: A step of it is a function.
    """
    for step in script.steps:
        if isinstance(step, st.Does):
            raise ValueError(
                f"{where}: {step} is a function of this program, which no file can hold; play it in memory"
            )


script: Final = Script()
"""The empty script, with which every other one begins."""


def telling(told: Script, where: str) -> tuple[st.Telling, ...]:
    """Return the steps of a script that only sends updates.

    Raises:
        TypeError: It is not a script.
        ValueError: It has other steps.
    """
    if not isinstance(cast("object", told), Script):
        raise TypeError(f"{where}: {told!r:.100} is not a script; begin with thinkwell.testing.script")
    for step in told.steps:
        if not isinstance(step, get_args(st.Telling)):
            raise ValueError(f"{where}: {step} needs a turn; what stands here can only tell")
    return cast("tuple[st.Telling, ...]", told.steps)


def as_json(value: JsonValue) -> JsonValue:
    """Return a value as JSON in Python builtins.

    Raises:
        TypeError: It cannot be written as JSON.
    """
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_dumped)


def _object(where: str, value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    if not isinstance(cast("object", value), Mapping):
        raise TypeError(f"{where}={value!r:.100}): give a dict, not {type(value).__name__}")
    return cast("dict[str, JsonValue]", as_json(dict(value)))


def _path(path: str | os.PathLike[str]) -> str:
    return os.fspath(path) if isinstance(path, os.PathLike) else path


def _dumped(value: object) -> JsonValue:
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"a script holds JSON, and {value!r:.100} has no form in it")
    return dump(mode="json")
