"""``thinkwell run``: one task, its result on standard output."""

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, BinaryIO, Final, cast

import anyio
import typer
from msgspec import Struct

from thinkwell import (
    Agent,
    Budget,
    McpServer,
    McpServerError,
    ThinkBuilder,
    load_mcp_servers,
    open_agent,
)
from thinkwell._core.exit import image_type
from thinkwell.cli._errors import told
from thinkwell.cli._launch import (
    asking,
    check_fallback,
    chosen_agent,
    launched,
    retrying,
)
from thinkwell.cli._options import (
    AgentOption,
    CommandOption,
    CwdOption,
    EventsOption,
    How,
    McpOption,
    ModelOption,
    PermissionsOption,
    ProtocolOption,
    QuietOption,
    RecordOption,
    RetryOption,
    SchemaOption,
    Spoken,
    Style,
    StyleOption,
    SystemOption,
    VerboseOption,
    as_text,
    fallback_option,
    limit_option,
)
from thinkwell.cli._output import read_output
from thinkwell.cli._process import log_held

MAGIC: Final = 16
"""Bytes that distinguish an image from other files."""

STDIN: Final = "-"
"""The argument that means standard input."""


def run(
    prompt: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROMPT",
            show_default=False,
            help="What to do. Without it, standard input is the prompt; with it, `-` appends standard input "
            "to the prompt.",
        ),
    ] = None,
    agent: AgentOption = None,
    command: CommandOption = None,
    model: ModelOption = None,
    protocol: ProtocolOption = Spoken.ACP,
    schema: SchemaOption = None,
    type_: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="MODULE:NAME",
            help="Return JSON of this Python type: a pydantic model, a dataclass, builtins:int, …",
        ),
    ] = None,
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="Attach a file or an image. Repeatable.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    system: SystemOption = None,
    cwd: CwdOption = None,
    permissions: PermissionsOption = None,
    mcp: McpOption = None,
    record: RecordOption = None,
    timeout: Annotated[float | None, limit_option("--timeout", "Maximum seconds for the run.")] = None,
    idle_timeout: Annotated[
        float | None, limit_option("--idle-timeout", "Maximum seconds of silence of the agent.")
    ] = None,
    max_cost: Annotated[
        float | None,
        limit_option("--max-cost", "Maximum cost in dollars, if the agent reports it.", metavar="USD"),
    ] = None,
    max_tokens: Annotated[
        int | None,
        limit_option("--max-tokens", "Maximum number of tokens, if the agent reports them.", metavar="N"),
    ] = None,
    retry: RetryOption = 0,
    fallback: Annotated[
        list[str] | None, fallback_option("The agent that takes over if the first one cannot work.")
    ] = None,
    as_json: EventsOption = False,
    style: StyleOption = Style.AUTO,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Let an agent do one task. The result goes to standard output, progress to standard error.

    Without --schema or --type, the result is the text of the agent's last message. With one of them, it is
    validated JSON: if it does not fit, the agent gets the reasons and tries again.

    \b
    Examples:
      thinkwell run "What does this project do?"
      thinkwell run -a claude -p allow "Fix the failing test"
      git diff | thinkwell run "Review this change" - > review.txt
      thinkwell run --file report.py "Say in three lines what it does"
      thinkwell run --type models:Review "Review src" | jq .score
      thinkwell run --schema todo.json --quiet < prompt.txt

    Ctrl-C cancels the run, a second one kills the agent. Nothing is left running.

    \b
    Exit codes:
      0    the result is on standard output
      1    the run ended without a valid result: none, invalid, refused
      2    wrong usage; nothing was started
      3    the agent was not found, did not start, died or reported an error
      4    the agent wants a login: thinkwell login
      5    a limit was reached: time, silence, cost, tokens
      130  Ctrl-C
      141  the reader of the output stopped reading
    """
    with told():
        how = How(as_json=as_json, quiet=quiet, verbose=verbose, style=style)
        for file in files or ():
            if not file.is_file():  # a pipe would block, or never end
                raise typer.BadParameter(f"{file} is not a regular file", param_hint="--file")
        _check_protocol(protocol, command, mcp=mcp, model=model)
        profile = chosen_agent(agent, command)
        asked = asking(permissions, how)
        output = read_output(schema, type_)
        opening = partial(
            open_agent,
            profile,
            cwd=cwd,
            **asked,
            mcp_servers=_mcp_servers(mcp),
            record=record,
            model=model,
            protocol=protocol.value,
            fallback=fallback or None,
        )
        if fallback:
            check_fallback(opening)
        task = _read_prompt(prompt or ())  # last, when all else can be used
        from thinkwell.cli._progress import finish

        async def work() -> int:
            with log_held(how.verbose):
                async with launched(profile.name, how, opening) as running:
                    stream = _builder(running, output, task, files or (), system).stream(
                        include="all" if how.as_json else "default",
                        timeout=timeout,
                        idle_timeout=idle_timeout,
                        budget=_budget(max_cost, max_tokens),
                        retry=retrying(retry),
                    )
                    return await finish(stream, how, output)

        raise typer.Exit(anyio.run(work))


def _check_protocol(protocol: Spoken, command: str | None, **others: object) -> None:
    if protocol is Spoken.NDJSON:
        wrong = [f"not with --{name}" for name, given in others.items() if given is not None]
        for what in ["give --command too"] if command is None else wrong[:1]:
            raise typer.BadParameter(f"ndjson: {what}", param_hint="--protocol")


def _mcp_servers(path: Path | None) -> Sequence[McpServer]:
    try:
        return () if path is None else load_mcp_servers(path)
    except McpServerError as exc:
        raise typer.BadParameter(str(exc), param_hint="--mcp") from None


def _budget(max_cost: float | None, max_tokens: int | None) -> Budget | None:
    return None if max_cost is max_tokens is None else Budget(max_cost=max_cost, max_tokens=max_tokens)


def _builder(
    agent: Agent, output: object, prompt: Prompt, files: Sequence[Path], system: str | None
) -> ThinkBuilder[object]:
    builder: ThinkBuilder[object] = agent.think(cast("type[object]", output))
    if system:
        builder = builder.system(system, fallback="prompt")
    builder = builder.text(prompt.text)
    if prompt.material is not None:
        builder = builder.line().line().quote(prompt.material, tag="stdin")
    for file in files:
        is_image = agent.capabilities.prompt_capabilities.image and _looks_like_an_image(file)
        builder = builder.image(file) if is_image else builder.resource(file)
    return builder


def _looks_like_an_image(file: Path) -> bool:
    with file.open("rb") as opened:
        return image_type(opened.read(MAGIC)) is not None


class Prompt(Struct, frozen=True):
    """The prompt: words of the command line, and standard input."""

    text: str
    material: str | None = None
    """Standard input beside the words, which are about it."""


def _read_prompt(words: Sequence[str]) -> Prompt:
    """Return the prompt; read standard input only if it is part of it.

    Without words, standard input is the prompt. With words, it is read only if one of them is ``-``: it may
    never end, as in a job of cron or a container's.

    Raises:
        typer.BadParameter: There is no prompt, or it is not text.
    """
    plain = " ".join(as_text(word) for word in words if word != STDIN).strip()
    if plain and STDIN not in words:
        return Prompt(plain)
    came = _standard_input(asked=STDIN in words)
    if not came.strip():
        raise typer.BadParameter("standard input is empty; give a prompt", param_hint="PROMPT")
    return Prompt(plain, came) if plain else Prompt(came)


def _standard_input(*, asked: bool) -> str:
    """Return all of standard input."""
    if sys.stdin.isatty():
        if not asked:
            raise typer.BadParameter(
                'there is none; say what to do: thinkwell run "Explain this project"', param_hint="PROMPT"
            )
        sys.stderr.write("Type the prompt, and end it with Ctrl-D on a line of its own.\n")
    return _decoded(sys.stdin.buffer)


def _decoded(stream: BinaryIO) -> str:
    data = stream.read().removeprefix(BOM_UTF8)
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        raise typer.BadParameter(
            f"standard input is not UTF-8 (byte {exc.start}); files go by --file", param_hint="PROMPT"
        ) from None
    return text.replace("\r\n", "\n")
