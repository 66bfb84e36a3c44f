"""The built-in agent without a process of its own, and programs that run in the process of their test."""

from __future__ import annotations

import io
import logging
import os
import sys
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import anyio

import thinkwell
from thinkwell import open_agent
from thinkwell.builtin import BuiltinAgent
from thinkwell_acp import memory_transport_pair, serve_agent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Mapping

    import pytest

    from thinkwell import Agent, Opening
    from thinkwell.testing import ScriptedAgent
    from thinkwell_acp import Transport

CHOOSING = ("THINKWELL_AGENT", "THINKWELL_AGENT_CMD")
"""The variables that choose an agent."""


@asynccontextmanager
async def _connected() -> AsyncGenerator[Transport]:
    ours, theirs = memory_transport_pair()
    async with BuiltinAgent() as handler, serve_agent(theirs, handler):
        yield ours


def open_builtin(**options: Any) -> Opening[Agent]:
    """Open the built-in agent, connected in memory."""
    return open_agent("builtin", transport=_connected(), **options)


def builtin_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let programs that open the built-in agent find it in memory, speaking without pauses."""

    def opened(agent: Any = None, /, **options: Any) -> Opening[Agent]:
        given = {name for name in ("command", "transport") if options.get(name) is not None}
        if agent == "builtin" or (agent is None and not given and not any(map(os.environ.get, CHOOSING))):
            options.pop("transport", None)  # thinkwell.sync passes it always
            return open_builtin(**options)
        return open_agent(agent, **options)

    monkeypatch.setattr(thinkwell, "open_agent", opened)
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")


def run_here(
    script: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *arguments: str,
    backend: str | None = None,
    spoken: str = "",
    env: Mapping[str, str] | None = None,
    agent: ScriptedAgent | None = None,
) -> None:
    """Run a program as `python script arguments` would, in this process, its built-in agent in memory.

    Args:
        script: Where it lies; modules beside it are found.
        folder: The folder to run it in.
        monkeypatch: Takes back what the program was given.
        arguments: Those of its command line.
        backend: The event loop, for a program whose `main` is to be run on another one than its own.
        spoken: Its standard input.
        env: Its own variables; those of thinkwell are not handed down.
        agent: Who is opened in the place of the built-in agent.
    """
    with monkeypatch.context() as patch, _what_programs_leave(script.parent):
        for name in [name for name in os.environ if name.startswith("THINKWELL_")]:
            patch.delenv(name)
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        if agent is None:
            builtin_in_memory(patch)
        else:
            patch.setattr(thinkwell, "open_agent", agent.open)
        patch.chdir(folder)
        patch.setattr(sys, "argv", [str(script), *arguments])
        patch.setattr(sys, "path", [str(script.parent), *sys.path])
        patch.setattr(sys, "stdin", io.StringIO(spoken))
        name = "__main__" if backend is None else script.stem
        module = ModuleType(name)
        module.__file__ = str(script)
        patch.setitem(sys.modules, name, module)
        try:
            exec(compile(script.read_bytes(), script, "exec", dont_inherit=True), vars(module))
            if backend is not None:
                anyio.run(module.main, backend=backend)
        except SystemExit as exc:
            if exc.code or agent:
                raise


@contextmanager
def _what_programs_leave(folder: Path) -> Generator[None]:
    """Forget the modules of a folder that were imported in the block, and how loggers were set."""
    modules = set(sys.modules)
    loggers = [logging.getLogger(), logging.getLogger("thinkwell")]
    kept = [(logger, logger.level, logger.handlers[:]) for logger in loggers]
    try:
        yield
    finally:
        for name in set(sys.modules) - modules:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(file).is_relative_to(folder):
                del sys.modules[name]
        for logger, level, handlers in kept:
            logger.setLevel(level)
            logger.handlers[:] = handlers
