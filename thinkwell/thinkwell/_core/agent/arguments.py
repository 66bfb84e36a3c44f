"""Checks of the arguments of `open_agent`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast, get_args

import msgspec

from thinkwell._core.policy.permissions import PermissionMode, PermissionPolicy
from thinkwell._lines.words import PromptFormat, Protocol
from thinkwell._workspace.workspace import Workspace
from thinkwell.agents._profile import AgentProfile, ToolTransport
from thinkwell_acp.interpreter import why_no_interpreter

if TYPE_CHECKING:
    from thinkwell.questions import QuestionHandler


def check_types(
    *,
    command: object,
    env: object,
    agent: object = None,
    workspace: object = None,
    record: object = None,
    on_phase: object = None,
) -> None:
    """Refuse arguments that would fail later and elsewhere. No value of the environment is shown.

    Raises:
        TypeError: An argument has another type.
    """
    if agent is not None and not isinstance(agent, str | AgentProfile):
        raise TypeError(f"open_agent({agent!r:.100}): give the name of an agent, or an AgentProfile")
    if command is not None and not isinstance(command, str) and not _are_words(command):
        raise _wrong("command", command, "a line, or a list of words")
    if env is not None:
        _check_env(env)
    if workspace is not None and not isinstance(workspace, Workspace):
        raise _wrong("workspace", workspace, "a Workspace")
    if record is not None and not isinstance(record, str | os.PathLike):
        raise _wrong("record", record, "a path")
    if on_phase is not None and (not callable(on_phase) or inspect.iscoroutinefunction(on_phase)):
        raise _wrong("on_phase", on_phase, "a plain function: it is called while the agent starts")


def check_protocol(
    protocol: object,
    *,
    init: object,
    prompt_format: object,
    agent: object,
    named: bool,
    others: Mapping[str, object],
) -> bool:
    """Check the arguments about the protocol, and return whether it is NDJSON.

    Args:
        protocol: The agent's protocol.
        init: Parameters for an NDJSON program.
        prompt_format: The form of its prompts.
        agent: The agent's name, if given.
        named: Whether a command or a connection was given.
        others: Arguments that NDJSON agents do not support.

    Raises:
        TypeError: An argument has another type.
        ValueError: An argument contradicts another.
    """
    if protocol not in get_args(Protocol):
        raise ValueError(f'open_agent(protocol={protocol!r:.100}): choose "acp" or "ndjson"')
    if prompt_format not in get_args(PromptFormat):
        raise ValueError(f'open_agent(prompt_format={prompt_format!r:.100}): choose "text" or "json"')
    if init is not None:
        if not isinstance(init, Mapping):
            raise _wrong("init", init, "a mapping of parameters")
        try:
            msgspec.json.encode(init)
        except (TypeError, ValueError, RecursionError) as exc:
            raise TypeError(f"open_agent(init=…): this cannot be written as JSON: {exc}") from exc
    if protocol == "acp":
        for name, given in (("init", init is not None), ("prompt_format", prompt_format != "text")):
            if given:
                raise ValueError(f'open_agent({name}=…): only protocol="ndjson" supports that')
        return False
    if not isinstance(agent, AgentProfile) and (agent is not None or not named):
        raise ValueError('open_agent(protocol="ndjson"): give the command=… of the program, or a transport=…')
    for name, value in others.items():
        if value:
            raise ValueError(f'open_agent({name}=…, protocol="ndjson"): such an agent does not support that')
    return True


def check_model(call: str, model: str | None) -> str | None:
    """Return the requested model.

    Args:
        call: The call, for errors.
        model: The argument.

    Raises:
        TypeError: It is not a str.
        ValueError: It is empty.
    """
    if model is not None and not isinstance(cast("object", model), str):
        raise TypeError(
            f"{call}(model={model!r:.100}): give the id or the name of a model, as in Session.models"
        )
    if model == "":
        raise ValueError(f'{call}(model=""): leave it out for the agent\'s own choice')
    return model


def check_way(way: str | None) -> None:
    """Refuse an unusable transport for our tools.

    Raises:
        ValueError: It is unknown, or no Python can run the program that the agent would start.
    """
    if way is not None and way not in get_args(ToolTransport):
        raise ValueError(f'open_agent(tools_via={way!r}): choose "acp", "http" or "stdio"')
    if way == "stdio" and (reason := why_no_interpreter()):
        raise ValueError(f'open_agent(tools_via="stdio"): {reason}. Leave it out, or give "acp" or "http"')


def question_handlers(
    policy: PermissionMode | PermissionPolicy | None,
    on_question: QuestionHandler | Sequence[QuestionHandler] | None,
) -> tuple[QuestionHandler, ...]:
    """Return who answers questions.

    Raises:
        TypeError: One of them is no function.
        ValueError: The policy is none, or would never let them be asked.
    """
    if not isinstance(policy, PermissionPolicy | None) and policy not in get_args(PermissionMode):
        given_by = f", such as PermissionPolicy.load({policy!r:.100})" if ".toml" in str(policy) else ""
        raise ValueError(
            f'open_agent(permissions={policy!r:.100}): choose "deny", "ask" or "allow", or give a '
            f"PermissionPolicy{given_by}"
        )
    given = cast("object", on_question)
    handlers: tuple[object, ...] = () if given is None else (given,)
    if not callable(given) and isinstance(given, Iterable) and not isinstance(given, str):
        handlers = tuple(cast("Iterable[object]", given))
    for handler in handlers:
        if not callable(handler):
            raise _wrong("on_question", handler, "a function, or a list of them")
    if policy == "deny" and handlers:
        raise ValueError(
            'open_agent(on_question=…, permissions="deny"): no one would be asked; give permissions="ask", '
            "or a PermissionPolicy that leaves something open"
        )
    return cast("tuple[QuestionHandler, ...]", handlers)


def _check_env(env: object) -> None:
    if not isinstance(env, Mapping):
        raise TypeError(f"open_agent(env=…): it is a {type(env).__name__}; give texts by their names")
    for name, value in cast("Mapping[object, object]", env).items():
        if not isinstance(name, str) or not isinstance(value, str):
            what = f"{name!r:.100} has a {type(value).__name__}"
            raise TypeError(f"open_agent(env=…): {what}; give texts by their names")


def _are_words(values: object) -> bool:
    if not isinstance(values, Sequence):
        return False
    return all(isinstance(value, str) for value in cast("Sequence[object]", values))


def _wrong(name: str, value: object, wanted: str) -> TypeError:
    return TypeError(f"open_agent({name}={value!r:.100}): give {wanted}")
