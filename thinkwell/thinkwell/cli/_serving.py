"""What ``thinkwell middleware`` does: an agent, a host at standard input and output, and an end for both."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct

from thinkwell import PermissionPolicy, open_agent
from thinkwell._core.exit import background_tasks
from thinkwell._display.text import clean
from thinkwell._lines.words import error_fields, write_message
from thinkwell.cli._ending import Ending, log_to_stderr
from thinkwell.cli._errors import tell
from thinkwell.cli._exit import OK, WRONG_USAGE, exit_code
from thinkwell.cli._launching import launching_shown
from thinkwell.cli._output import read_output
from thinkwell.cli._task import asked_in_vain, check_limits, chosen_agent, read_permissions
from thinkwell.cli._terminal import How, Style
from thinkwell.errors import ThinkwellError
from thinkwell.listen import InitRefused, serve_lines
from thinkwell_acp import own_stdio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from thinkwell import Agent, PermissionMode
    from thinkwell.agents import AgentProfile
    from thinkwell_acp import Transport


class Serving(Struct, frozen=True, kw_only=True):
    """What is to be served, and how. Everything in it can be used."""

    profile: AgentProfile
    output: object
    cwd: Path | None
    permissions: PermissionMode | PermissionPolicy
    timeout: float | None
    record: Path | None


def read_serving(
    *,
    agent: str | None,
    command: str | None,
    schema: Path | None,
    cwd: Path | None,
    permissions: str | None,
    timeout: float | None,
    record: Path | None,
) -> Serving:
    """Return what was asked for.

    Raises:
        typer.BadParameter: Something cannot be used.
        AgentNotFound: There is no such agent; the host was told.
        ProfileError: What is known of it cannot be read; the host was told.
    """
    check_limits({"timeout": timeout})
    policy = read_permissions(permissions, can_ask=True)
    try:
        profile = chosen_agent(agent, command)
    except ThinkwellError as exc:
        sys.stdout.buffer.write(write_message("error", error_fields(exc)))
        sys.stdout.buffer.flush()
        raise
    return Serving(
        profile=profile,
        output=read_output(schema, None),
        cwd=cwd,
        # As rules: they leave questions of other kinds than permissions to the host.
        permissions=PermissionPolicy(otherwise="deny") if policy == "deny" else policy,
        timeout=timeout,
        record=record,
    )


def run_serving(serving: Serving) -> int:
    """Serve the host at standard input and output to its end, and return the exit code.

    Raises:
        ThinkwellError: The agent cannot be started; the host was told.
        OSError: The host reads no more.
    """
    log_to_stderr()
    return anyio.run(_run, serving)


async def _run(serving: Serving) -> int:
    host = own_stdio()
    ending = Ending()
    try:
        with ending.signals():
            return await _serve(serving, host, ending)
    except anyio.BrokenResourceError as exc:
        raise (exc.__cause__ if isinstance(exc.__cause__, OSError) else BrokenPipeError()) from None
    finally:
        await host.aclose()


async def _serve(serving: Serving, host: Transport, ending: Ending) -> int:
    failure: Exception | None = None
    async with background_tasks() as tasks:
        with ending.scope:
            try:
                async with _opened(serving) as agent:
                    tasks.start_soon(ending.hurry, agent.kill)
                    failure = await serve_lines(agent, host, output=serving.output, timeout=serving.timeout)
            except (ThinkwellError, OSError) as exc:
                with suppress(anyio.BrokenResourceError):
                    await host.send(write_message("error", error_fields(exc)))
                raise
    if ending.signal is not None:
        return 128 + ending.signal
    if failure is None:
        return OK
    if isinstance(failure, InitRefused):  # the command line is right, so nothing is said of that
        sys.stderr.write(clean(f"Error: {failure}\n"))
        return WRONG_USAGE
    tell(failure)
    return exit_code(failure)


@asynccontextmanager
async def _opened(serving: Serving) -> AsyncGenerator[Agent]:
    with launching_shown(serving.profile.name, How(style=Style.LINES)) as launching:
        opening = open_agent(
            serving.profile,
            cwd=serving.cwd,
            permissions=serving.permissions,
            on_question=asked_in_vain,  # of what comes up while no prompt runs
            record=serving.record,
            on_phase=launching,
        )
        async with opening as agent:
            launching.done()
            yield agent
