"""``thinkwell middleware``: an agent for a host that speaks lines of JSON on standard input and output."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Annotated, TypeAlias

import anyio
import typer

from thinkwell import Agent, ThinkwellError, open_agent
from thinkwell._core.exit import background_tasks
from thinkwell._display.text import clean
from thinkwell._lines.words import error_fields, write_message
from thinkwell.cli._errors import WRONG_USAGE, exit_code, tell, told
from thinkwell.cli._launch import as_rules, asked_in_vain, chosen_agent, launched, read_permissions
from thinkwell.cli._options import (
    CommandOption,
    CwdOption,
    How,
    RecordOption,
    SchemaOption,
    Style,
    agent_argument,
    limit_option,
    permissions_option,
)
from thinkwell.cli._output import read_output
from thinkwell.cli._process import Ending, log_to_stderr
from thinkwell.listen import InitRefused, serve_lines
from thinkwell_acp import Transport, own_stdio

Serving: TypeAlias = Callable[[Agent, Transport], Awaitable[Exception | None]]
"""Serves a host to its end, and returns why the last prompt has no result."""


def middleware(
    agent: Annotated[
        str | None,
        agent_argument("Which agent; by default the one that the environment names, else the built-in one."),
    ] = None,
    command: CommandOption = None,
    schema: SchemaOption = None,
    cwd: CwdOption = None,
    permissions: Annotated[str | None, permissions_option("ask: the host decides")] = None,
    timeout: Annotated[float | None, limit_option("--timeout", "Maximum seconds for each prompt.")] = None,
    record: RecordOption = None,
) -> None:
    """Let a host program drive an agent with lines of JSON: one object per line, with a type.

    The host writes prompts to standard input, one per line, and reads messages from standard output:
    progress, partial, log, question, approval, and one result or error for each prompt. A question and an
    approval have an id, and wait for a line with their answer. Messages for people go to standard error.

    At the end of standard input, the prompts read so far are completed, and further questions are declined.

    \b
    What the host writes: optionally an init; then prompts, and answers
      {"type":"init","params":{"cwd":"src"}}
      Review parser.py\\nBe brief.
      {"prompt":"Review parser.py","context":{"branch":"main"}}
      {"type":"response","in_reply_to":"approval","value":true,"id":"q1"}

    \b
    Examples:
      thinkwell middleware claude --cwd ../api
      thinkwell middleware codex < prompts.txt > messages.ndjson

    \b
    Exit codes:
      0    standard input has ended, and the last prompt has its result
      1    it has ended, and the last prompt has none
      2    wrong usage, or an invalid init
      3    the agent was not found, did not start, died or reported an error
      4    the agent wants a login: thinkwell login
      5    the last prompt took too long
      130  Ctrl-C
      141  the host stopped reading
      143  SIGTERM
    """
    with told():
        policy = read_permissions(permissions, can_ask=True)
        try:
            profile = chosen_agent(agent, command)
        except ThinkwellError as exc:
            sys.stdout.buffer.write(write_message("error", error_fields(exc)))
            sys.stdout.buffer.flush()
            raise
        opening = partial(
            open_agent,
            profile,
            cwd=cwd,
            permissions=as_rules(policy),  # so the host gets all questions except permissions
            on_question=asked_in_vain,  # for questions while no prompt runs
            record=record,
        )
        serving = partial(serve_lines, output=read_output(schema, None), timeout=timeout)
        log_to_stderr()
        opened = launched(profile.name, How(style=Style.LINES), opening)
        raise typer.Exit(anyio.run(_run, opened, serving))


async def _run(opened: AbstractAsyncContextManager[Agent], serving: Serving) -> int:
    """Serve the host to its end, and return the exit code.

    Raises:
        ThinkwellError: The agent cannot be started; the host was told.
        OSError: The host stopped reading.
    """
    host = own_stdio()
    ending = Ending()
    try:
        with ending.signals():
            failure = await _serve(opened, serving, host, ending)
    except anyio.BrokenResourceError as exc:
        raise (exc.__cause__ if isinstance(exc.__cause__, OSError) else BrokenPipeError()) from None
    finally:
        await host.aclose()
    if ending.signal is not None or failure is None:
        return ending.exit_code
    if isinstance(failure, InitRefused):  # the command line is valid, so there is no hint about it
        sys.stderr.write(clean(f"Error: {failure}\n"))
        return WRONG_USAGE
    tell(failure)
    return exit_code(failure)


async def _serve(
    opened: AbstractAsyncContextManager[Agent], serving: Serving, host: Transport, ending: Ending
) -> Exception | None:
    failure: Exception | None = None
    async with background_tasks() as tasks:
        with ending.scope:
            try:
                async with opened as agent:
                    tasks.start_soon(ending.hurry, agent.kill)
                    failure = await serving(agent, host)
            except (ThinkwellError, OSError) as exc:
                with suppress(anyio.BrokenResourceError):
                    await host.send(write_message("error", error_fields(exc)))
                raise
    return failure
