"""Requests for runs, and the operator's choices for callers."""

# ruff: noqa: TC001 - the types of fields are read at run time

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct, field

from thinkwell import Agent, Budget, Retry, open_agent
from thinkwell._core.exit import QUESTION_TIMEOUT, existing_folder, image_type
from thinkwell._core.schema.output import ForeignSchema, JsonSchema, output_of
from thinkwell._display.text import line
from thinkwell.agents import choose
from thinkwell.events import JsonValue
from thinkwell.permissions import PermissionMode, PermissionPolicy
from thinkwell.questions import wait_for_answer
from thinkwell.web._refusals import RequestInvalid, TooManyRuns
from thinkwell.web._wording import no_such, schema_words

if TYPE_CHECKING:
    import os
    from collections import Counter
    from collections.abc import Collection

    from thinkwell.agents import AgentName, AgentProfile

Opener: TypeAlias = Callable[[PermissionMode | PermissionPolicy], AbstractAsyncContextManager[Agent]]
"""Opens an agent with certain permissions: ``lambda permissions: open_agent("claude",
permissions=permissions)``."""

MOST_SCHEMA: Final = 50_000
"""Bytes of a result's schema. Checking one of this size takes about half a second."""

MOST_META: Final = 65_536
"""Bytes of a caller's data for a run, as sent over HTTP: every list of runs contains it."""

TITLE: Final = 120
"""Characters of a run's title."""


def _ask() -> Mapping[str, PermissionMode | PermissionPolicy]:
    return {"ask": "ask"}


class ServedAgent(Struct, frozen=True, kw_only=True):
    """An agent that callers may use, and the choices that they have."""

    open: Opener
    """Opens it, when it is first needed and after it has died. One process serves all runs with the same
    permissions."""
    title: str = ""
    """The title to show."""
    folders: Mapping[str, Path] = {}
    """The folders in which it may work, by the names that callers use. The first one is the default. Without
    any, it works where it was opened."""
    permissions: Mapping[str, PermissionMode | PermissionPolicy] = field(default_factory=_ask)
    """Its possible permissions, by the names that callers use. The first one is the default. ``ask`` leaves
    each question to the caller."""
    timeout: float | None = 3600.0
    """Maximum seconds for a run. Callers may request less, but not more."""
    idle_timeout: float | None = 600.0
    """Seconds that an agent may be silent; see `ThinkBuilder.stream`."""
    budget: Callable[[], Budget] | None = None
    """Creates the budget of a run."""
    retry: Retry | None = None
    """Tries a turn again after some errors, as long as nothing was changed."""
    show_stderr: bool = False
    """Whether callers may read the end of its program's standard error if a run fails because the program has
    ended. It may contain paths of the server; secrets are removed."""
    models: Sequence[str] = ()
    """The models that callers may choose, by id or name. The first one is the default. Without any, the agent
    chooses."""


def served_agent(
    agent: AgentName | str | AgentProfile | None = None,
    /,
    *,
    command: str | Sequence[str] | None = None,
    title: str = "",
    folders: Mapping[str, os.PathLike[str] | str] | None = None,
    permissions: Mapping[str, PermissionMode | PermissionPolicy] | None = None,
    question_timeout: float = QUESTION_TIMEOUT,
    timeout: float | None = 3600.0,
    idle_timeout: float | None = 600.0,
    budget: Callable[[], Budget] | None = None,
    models: Sequence[str] = (),
    retry: Retry | None = None,
    fallback: Sequence[AgentName | str | AgentProfile] | None = None,
    show_stderr: bool = False,
) -> ServedAgent:
    """Return an agent for callers, who answer its questions: ``served_agent("claude")``.

    Args:
        agent: Its name; see `open_agent`.
        command: The command that starts it, instead of a name.
        title: The title to show; by default that of its profile. See `ServedAgent` for the other arguments.
        folders: By default the folder of this process, called ``default``.
        permissions: By default only ``ask``.
        question_timeout: Seconds after which an unanswered question is denied.
        timeout: Maximum seconds for a run.
        idle_timeout: Maximum seconds of silence of the agent.
        budget: Creates the budget of a run.
        show_stderr: Whether callers may read the end of its standard error when it has died.
        models: The models that callers may choose; by default the agent chooses.
        retry: Tries a turn again after some errors, as long as nothing was changed.
        fallback: The agents that are opened instead, in this order, if it does not start.

    Raises:
        AgentNotFound: The agent, or one of the fallback, is unknown.
        ProfileError: An agent's profile cannot be read.
        ValueError: `folders` or `permissions` is empty, `fallback` is empty or has the agent itself, or you
            passed both an agent and a command.
        NotADirectoryError: A folder does not exist.
    """
    profile = choose(agent, command)
    chosen = {"default": "."} if folders is None else folders
    known = {name: Path(existing_folder(at, "served_agent(folders=…)")) for name, at in chosen.items()}
    policies = _ask() if permissions is None else dict(permissions)
    if not (known and policies):
        raise ValueError("served_agent(folders={…}, permissions={…}): give at least one of each")

    def opened(policy: PermissionMode | PermissionPolicy) -> AbstractAsyncContextManager[Agent]:
        # Rules for "deny" leave questions other than permissions to the caller.
        rules = PermissionPolicy(otherwise="deny") if policy == "deny" else policy
        return open_agent(
            profile,
            cwd=next(iter(known.values())),
            permissions=rules,
            on_question=wait_for_answer,
            question_timeout=question_timeout,
            fallback=fallback,
        )

    opened("deny")  # which starts nothing, and checks the arguments
    return ServedAgent(
        open=opened,
        title=title or profile.title or profile.name,
        folders={name: folder.resolve() for name, folder in known.items()},
        permissions=policies,
        timeout=timeout,
        idle_timeout=idle_timeout,
        budget=budget,
        models=tuple(models),
        retry=retry,
        show_stderr=show_stderr,
    )


class Limits(Struct, frozen=True, kw_only=True):
    """Limits of what callers may use of a server."""

    max_runs: int = 64
    """Running and waiting runs, of all callers."""
    max_runs_per_caller: int = 16
    max_waiting: int = 8
    """Runs of a conversation that wait for their turn."""
    max_conversations: int = 64
    """Unused conversations whose sessions an agent keeps open. Beyond that, the session that was idle for
    longest is closed; it is reopened if the agent supports that."""
    max_request: int = 10_000_000
    """Bytes of a request's body."""
    max_watchers: int = 4096
    """Open event streams, of all callers."""
    max_watchers_per_caller: int = 1024


class TextPart(Struct, frozen=True, kw_only=True, tag="text", forbid_unknown_fields=True):
    """Text of a prompt."""

    text: str


class ImagePart(Struct, frozen=True, kw_only=True, tag="image", forbid_unknown_fields=True):
    """An image of a prompt: PNG, JPEG, GIF or WebP."""

    data: bytes
    """In JSON as base64."""


_Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]


class StartRun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run to start."""

    prompt: str | Annotated[tuple[TextPart | ImagePart, ...], Meta(min_length=1, max_length=100)]
    """The task."""
    agent: _Name | None = None
    """The agent; by default the server's first."""
    output: dict[str, JsonValue] | None = None
    """A JSON Schema for the result; without one, the result is the text of the last message. The schema has
    at most 50,000 bytes, patterns without look-around and back-references, and no ``patternProperties``."""
    folder: _Name | None = None
    """One of the agent's folders; by default its first."""
    permissions: _Name | None = None
    """One of the agent's permissions; by default its first."""
    model: _Name | None = None
    """One of the agent's models; by default its first."""
    thread: _Name | None = None
    """The conversation that it is a turn of: any name. Its turns share one session, one after another."""
    title: Annotated[str, Meta(max_length=200)] | None = None
    """The title in lists; by default the beginning of the prompt."""
    timeout: Annotated[float, Meta(gt=0)] | None = None
    """Maximum seconds for it, up to the agent's maximum, which is the default."""
    meta: dict[str, JsonValue] = {}
    """Any data that the caller wants in the run's record. Over HTTP it has at most 65,536 bytes."""

    @property
    def text(self) -> str:
        """The prompt without images."""
        if isinstance(self.prompt, str):
            return self.prompt
        return "".join(part.text for part in self.prompt if isinstance(part, TextPart))


class CheckedRun(Struct, frozen=True, kw_only=True):
    """A valid request."""

    request: StartRun
    agent: str
    folder: str | None
    permissions: str
    model: str | None
    output: JsonSchema | None
    title: str
    timeout: float | None


def check_request(request: StartRun, agents: Mapping[str, ServedAgent]) -> CheckedRun:
    """Check a request against the operator's choices.

    Raises:
        RequestInvalid: Something is not offered, or invalid.
    """
    agent = _chosen("agent", request.agent, agents)
    assert agent is not None
    served = agents[agent]
    permissions = _chosen("permissions", request.permissions, served.permissions)
    assert permissions is not None
    if not (_has_image(request) or request.text.strip()):
        raise RequestInvalid("prompt: it is blank; say what to think about")
    try:
        request.text.encode()
    except UnicodeEncodeError:
        raise RequestInvalid("prompt: it has lone surrogates, which cannot be sent; leave them out") from None
    if served.timeout is not None and request.timeout is not None and request.timeout > served.timeout:
        raise RequestInvalid(f"timeout: it is too long; give at most {served.timeout:g} seconds")
    return CheckedRun(
        request=request,
        agent=agent,
        folder=_chosen("folder", request.folder, served.folders),
        permissions=permissions,
        model=_chosen("model", request.model, served.models),
        output=None if request.output is None else _schema(request.output),
        title=_title(request),
        timeout=served.timeout if request.timeout is None else request.timeout,
    )


def _has_image(request: StartRun) -> bool:
    parts = () if isinstance(request.prompt, str) else request.prompt
    images = [(place, part) for place, part in enumerate(parts) if isinstance(part, ImagePart)]
    for place, part in images:
        if image_type(part.data) is None:
            raise RequestInvalid(
                f"prompt[{place}].data: it is not a PNG, JPEG, GIF or WebP; send one of these"
            )
    return bool(images)


def _chosen(what: str, name: str | None, known: Collection[str]) -> str | None:
    if name is None:
        return next(iter(known), None)
    if name not in known:
        raise RequestInvalid(f"{what}: {no_such(name, known)}")
    return name


def _schema(output: dict[str, JsonValue]) -> JsonSchema:
    schema = ForeignSchema(output)
    if len(msgspec.json.encode(output)) > MOST_SCHEMA:
        raise RequestInvalid(f"output: it is too long; give at most {MOST_SCHEMA:,} bytes")
    try:
        output_of(schema)
    except (TypeError, ValueError) as exc:
        raise RequestInvalid(schema_words(exc)) from None
    except RecursionError:
        raise RequestInvalid("output: it is nested too deep; give fewer levels") from None
    return schema


def _title(request: StartRun) -> str:
    return line(request.title or request.text.strip().partition("\n")[0] or "(an image)", TITLE)


def check_room(limits: Limits, running: Counter[str], caller: str) -> None:
    """Check that a caller may start another run.

    Args:
        limits: The maximum numbers.
        running: The number of running runs of each caller.
        caller: The caller.

    Raises:
        TooManyRuns: The maximum number is reached.
    """
    if running[caller] >= limits.max_runs_per_caller:
        raise TooManyRuns(f"{running[caller]} of your runs are running, and no more may; wait, or cancel one")
    if running.total() >= limits.max_runs:
        raise TooManyRuns("the server has as many runs as it may; try again later")
