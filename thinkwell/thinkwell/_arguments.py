"""Arguments of `open_agent` that are of another type, refused where they are given."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from thinkwell.agents._profile import AgentProfile
from thinkwell.workspace import Workspace


def check_types(
    *,
    agent: object,
    command: object,
    env: object,
    on_question: object,
    workspace: object,
    record: object,
    on_phase: object,
) -> None:
    """Refuse what would fail later and elsewhere. No value of the environment is shown.

    Raises:
        TypeError: One is of another type.
    """
    if agent is not None and not isinstance(agent, str | AgentProfile):
        raise TypeError(f"open_agent({agent!r:.100}): give the name of an agent, or an AgentProfile")
    if command is not None and not isinstance(command, str) and not _is_list_of(str, command):
        raise _wrong("command", command, "a line, or a list of words")
    if env is not None:
        _check_env(env)
    if on_question is not None and not callable(on_question) and not isinstance(on_question, Iterable):
        raise _wrong("on_question", on_question, "a function, or a list of them")
    if workspace is not None and not isinstance(workspace, Workspace):
        raise _wrong("workspace", workspace, "a Workspace")
    if record is not None and not isinstance(record, str | os.PathLike):
        raise _wrong("record", record, "a path")
    if on_phase is not None and (not callable(on_phase) or inspect.iscoroutinefunction(on_phase)):
        raise _wrong("on_phase", on_phase, "a plain function: it is called while the agent starts")


def _check_env(env: object) -> None:
    if not isinstance(env, Mapping):
        raise TypeError(f"open_agent(env=…): it is a {type(env).__name__}; give texts by their names")
    for name, value in cast("Mapping[object, object]", env).items():
        if not isinstance(name, str) or not isinstance(value, str):
            what = f"{name!r:.100} has a {type(value).__name__}"
            raise TypeError(f"open_agent(env=…): {what}; give texts by their names")


def _is_list_of(kind: object, values: object) -> bool:
    if not isinstance(values, Sequence):
        return False
    return all(isinstance(value, cast("type", kind)) for value in cast("Iterable[object]", values))


def _wrong(name: str, value: object, wanted: str) -> TypeError:
    return TypeError(f"open_agent({name}={value!r:.100}): give {wanted}")
