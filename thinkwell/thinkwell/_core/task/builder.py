"""`ThinkBuilder`: builds the prompt, tools and options of a task step by step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeVar

import anyio
import msgspec
from anyio import to_thread

from thinkwell import events as ev
from thinkwell._core.log.budget import Budget
from thinkwell._core.log.listener import RunListener
from thinkwell._core.log.run_log import Buffer
from thinkwell._core.schema.arguments import check_count, check_seconds, checked
from thinkwell._core.schema.misuse import hints, refuse_prompt
from thinkwell._core.schema.output import RESULT_TOOL
from thinkwell._core.task import prompt
from thinkwell._core.task.kept_result import kept_result
from thinkwell._core.task.retry import Retry
from thinkwell._core.task.system_prompt import SystemPrompt, as_system_prompt
from thinkwell._core.tools.signature import label
from thinkwell._core.tools.skill import Skill, load_skill
from thinkwell._core.tools.skill_tools import offered
from thinkwell._core.tools.tool import Tool, ToolFunction
from thinkwell._core.tools.tool import tool as make_tool
from thinkwell._display.fences import fenced, quoted
from thinkwell._values.folders import existing_folder

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from typing import Never, Self

    from thinkwell._core.log.stream import ThoughtStream
    from thinkwell._core.schema.output import Output
    from thinkwell._core.task.kept_result import KeptResult
    from thinkwell.agents import AgentProfile
    from thinkwell.agents._names import AgentName

T = TypeVar("T")
A = TypeVar("A", bound="Addressee")


class Listening(RunListener, Protocol):
    """Receives the messages of a run, and answers its agent's questions."""

    async def hear(self, stream: ThoughtStream[T], timeout: float | None) -> T:  # noqa: ASYNC109
        """Handle everything, and return the run's result when all is done."""
        ...


class Handlers(Protocol):
    """Creates listeners to runs: `thinkwell.listen.Handlers`."""

    def begin(self) -> Listening:
        """Return a listener to one run."""
        ...


class OpensAgent(Protocol):
    """What `open_agent` returns."""

    name: str

    async def start(self) -> object:
        """Open the agent."""
        ...


ANOTHER: Final = ".tool(fn, name=…)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec(Generic[T]):
    """The contents of a builder."""

    output: Output[T]
    parts: tuple[prompt.Part, ...] = ()
    tools: tuple[Tool, ...] = ()
    """Including those for the skills, if there are any."""
    skills: tuple[Skill, ...] = ()
    cwd: str | None = None
    system: SystemPrompt | None = None
    meta: Mapping[str, ev.JsonValue] | None = None
    fallback: tuple[tuple[object, ...], bool] | None = None
    """The agents that take over where it fails, and whether they do if it may have changed something."""
    has_content: bool = False
    """Whether the parts contain more than blanks, tags and fences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a run; `ThinkBuilder.stream` describes them.

    Raises:
        TypeError: One has the wrong type.
        ValueError: One is out of range.
    """

    include: frozenset[str] = ev.DEFAULT_TYPES
    buffer: Buffer | None = None
    timeout: float | None = None
    idle_timeout: float | None = None
    retries: int = 3
    reminders: int = 1
    background_wait: float = 30.0
    budget: Budget | None = None
    retry: Retry | None = None
    listener: RunListener | None = None
    """The listener; it is asked first."""
    run_id: str | None = None
    """What to call the run; by default it gets a number."""
    attempt: int = 1
    """Which try of the run it is."""
    model: str | None = None
    """The model to set before the first prompt; by default it stays unchanged."""

    def __post_init__(self) -> None:
        check_count("retries", self.retries)
        check_count("reminders", self.reminders)
        limits = (
            ("timeout", self.timeout),
            ("idle_timeout", self.idle_timeout),
            ("background_wait", self.background_wait or None),
        )
        for name, seconds in limits:
            if seconds is not None:
                check_seconds(name, seconds)
        _check_type("buffer", self.buffer, Buffer, "Buffer(max_events=…)")
        _check_type("budget", self.budget, Budget, "Budget(max_tokens=…)")
        _check_type("retry", self.retry, Retry, "Retry(attempts=3)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Exactly what a run would send. Nothing was sent."""

    prompt: tuple[dict[str, Any], ...]
    """The prompt's content blocks, in the protocol's form."""
    tools: tuple[dict[str, Any], ...]
    """Name, description and input schema of every tool, including `return_result`."""
    system: dict[str, Any] | None = None
    """The system prompt, in the protocol's form, unless it goes before the prompt."""

    def __str__(self) -> str:
        blocks = "\n".join(block.get("text", f"[{block['type']}]") for block in self.prompt)
        tools = "\n".join(f"{tool['name']}: {tool['inputSchema']}" for tool in self.tools)
        system = "" if self.system is None else _shown(self.system)
        return f"{system}{blocks}\n--- tools ---\n{tools or '(none)'}"


class Addressee(Protocol):
    """The receiver of a prompt: an agent, or a session."""

    def explain(self, spec: Spec[T]) -> Explanation:
        """Return exactly what a run would send."""
        ...

    def check(self, part: prompt.Part) -> None:
        """Check that the agent supports such a part of a prompt.

        Raises:
            CapabilityMissing: The agent does not support it.
        """
        ...

    def check_system(self, system: SystemPrompt, /) -> None:
        """Check that the agent supports a system prompt.

        Raises:
            CapabilityMissing: The agent does not support it, and there is no fallback.
            ValueError: It cannot be set here.
        """
        ...

    def check_fallback(self, agents: tuple[object, ...], after_effects: bool, /) -> None:
        """Check the agents that are to take over where this one fails.

        Raises:
            AgentNotFound: One is unknown.
            ValueError: There are none, one is named twice or is this one, or there is no place for them.
        """
        ...


class Starter(Addressee, Protocol):
    """Starts runs."""

    def start(self, spec: Spec[T], options: Options) -> ThoughtStream[T]:
        """Start a run and return its handle."""
        ...


class PromptBuilder(Generic[T, A]):
    """Builds a prompt step by step. Subclasses decide how it is run."""

    __slots__ = ("_spec", "_starter")

    def __init__(self, starter: A, spec: Spec[T]) -> None:
        self._starter = starter
        self._spec = spec

    def __repr__(self) -> str:
        spec = self._spec
        parts, tools = _counted(spec.parts, "part"), _counted(spec.tools, "tool")
        return f"<{type(self).__name__} for {spec.output.name}, {parts}, {tools}>"

    def _with(self, **changes: Any) -> Self:
        return type(self)(self._starter, replace(self._spec, **changes))

    def _add(self, part: prompt.Part, content: str = "content") -> Self:
        self._starter.check(part)
        return self._with(
            parts=prompt.joined((*self._spec.parts, part)),
            has_content=self._spec.has_content or not (content == "" or content.isspace()),
        )

    def _add_block(self, text: str, content: str) -> Self:
        """Add text that must begin on its own line."""
        last = self._spec.parts[-1] if self._spec.parts else None
        glue = "" if not isinstance(last, prompt.TextPart) or last.text.endswith("\n") else "\n"
        return self._add(prompt.TextPart(glue + text), content)

    def text(self, content: str) -> Self:
        """Add text unchanged.

        Raises:
            TypeError: The content is not a string.
            ValueError: The content has lone surrogates, which cannot be sent.
        """
        return self._add(prompt.TextPart(checked(content, "text()")), content)

    def line(self, content: str = "") -> Self:
        """Add text and a line end. Raises as `text` does."""
        return self._add(prompt.TextPart(checked(content, "line()") + "\n"), content)

    def quote(self, content: str, *, tag: str = "quote") -> Self:
        """Add text between tags that it cannot close, so the agent knows where it begins and ends.

        Raises:
            TypeError: The content is not a string.
            ValueError: The content has lone surrogates, or the tag is not a valid name.
        """
        name = checked(tag, "quote(tag=…)")
        return self._add_block(quoted(checked(content, "quote()"), name), content)

    def code(self, content: str, *, language: str = "") -> Self:
        """Add text between code fences. Raises as `text` does."""
        name = checked(language, "code(language=…)")
        return self._add_block(fenced(checked(content, "code()"), name), content)

    def image(self, data_or_path: bytes | str | os.PathLike[str]) -> Self:
        """Add a PNG, JPEG, GIF or WebP image: its bytes, or the path of a file.

        Raises:
            CapabilityMissing: The agent does not support images (``promptCapabilities.image``).
            OSError: The file cannot be read.
            ValueError: The data has none of these formats.
        """
        return self._add(prompt.image_part(data_or_path))

    def resource(self, path_or_uri: str | os.PathLike[str]) -> Self:
        """Add a file or a URI. A file is sent whole if the agent supports that, else as a link.

        Raises:
            FileNotFoundError: The file does not exist.
        """
        return self._add(prompt.resource_part(path_or_uri))

    def system(
        self,
        content: str,
        *,
        mode: Literal["append", "replace"] = "append",
        fallback: Literal["prompt"] | None = None,
    ) -> Self:
        """Give the agent instructions for the task's session (ACP's system prompt); the last ones count.

        Args:
            content: The instructions.
            mode: ``append`` adds them to the agent's own; ``replace`` uses them instead of its own.
            fallback: ``prompt`` puts them before the prompt if the agent does not support this mode.
                Without it, that is an error.

        Raises:
            CapabilityMissing: The agent does not support them so (``sessionCapabilities.systemPrompt``).
            TypeError: They are not a str.
            ValueError: They are empty or have lone surrogates, or there is no such mode or fallback, or this
                is a turn of a session, which keeps those that it was opened with.
        """
        system = as_system_prompt(content, mode, fallback, "system()")
        self._starter.check_system(system)
        return self._with(system=system)

    def tool(
        self,
        function: Tool | ToolFunction,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        mention: bool = True,
        readonly: bool = False,
    ) -> Self:
        """Offer a tool: a typed function, sync or async. See `thinkwell.tool` for the arguments.

        Raises:
            TypeError: The function cannot be a tool; the message names the line to fix.
            ValueError: Another tool already has that name.
        """
        new = make_tool(function, name=name, description=description, mention=mention, readonly=readonly)
        if new.name == RESULT_TOOL:
            raise ValueError(
                f"{label(new.function)}: {new.name} is the tool for the result; use another name: {ANOTHER}"
            )
        same = next((known for known in self._spec.tools if known.name == new.name), None)
        if same is not None:
            raise ValueError(
                f"{label(new.function)}: another tool is already called {new.name!r}, "
                f"{label(same.function)}; give this one another name: {ANOTHER}"
            )
        return self._with(tools=(*self._spec.tools, new))

    def skill(self, path_or_skill: str | os.PathLike[str] | Skill) -> Self:
        """Offer a skill: its folder, the SKILL.md in it, or a `Skill`.

        The prompt has its name and description. The agent gets the rest with the tools ``activate_skill``,
        ``call_skill_tool`` and ``read_skill_file``.

        Raises:
            SkillError: The skill cannot be used; the message names file and line.
            ValueError: Another skill already has that name, or a tool has the name of one of those three.
        """
        new = path_or_skill if isinstance(path_or_skill, Skill) else load_skill(path_or_skill)
        same = next((known for known in self._spec.skills if known.name == new.name), None)
        if same is not None:
            raise ValueError(f"there are two skills called {new.name!r}: {same!r} and {new!r}; leave one out")
        skills = (*self._spec.skills, new)
        return self._with(skills=skills, tools=offered(self._spec.tools, skills))

    def fallback(
        self, *agents: AgentName | str | AgentProfile | OpensAgent, after_effects: bool = False
    ) -> Self:
        """Name the agents that take over, in this order, where the agent fails; instead of its block's.

        That is when its quota is used up, it is overloaded, wants a login, does not start or exits. The next
        agent gets the task, with what was done and said so far. It is opened when it is needed, with the
        options of `open_agent`'s block, and closed with that.

        Args:
            agents: Names of known agents, profiles, or an ``open_agent(…)`` with options of its own.
            after_effects: Whether they take over even if the agent may have changed something: it may then
                be done twice.

        Raises:
            AgentNotFound: An agent is unknown.
            TypeError: An agent is none of these.
            ValueError: There are none, one is named twice or is the agent itself, or this is a turn of a
                session, which belongs to one agent.
        """
        self._starter.check_fallback(agents, after_effects)
        return self._with(fallback=(agents, after_effects))

    def cwd(self, path: str | os.PathLike[str]) -> Self:
        """Let the agent work in another folder than that of `open_agent`.

        Raises:
            NotADirectoryError: The folder does not exist.
        """
        return self._with(cwd=existing_folder(path, "cwd()"))

    def meta(self, mapping: Mapping[str, ev.JsonValue]) -> Self:
        """Add to the prompt's ``_meta``, which the protocol reserves for extensions and trace context.

        Raises:
            TypeError: The mapping cannot be written as JSON.
        """
        try:
            msgspec.json.encode(mapping)
        except (TypeError, ValueError) as exc:
            raise TypeError(f"meta({mapping!r:.200}): this cannot be written as JSON: {exc}") from exc
        return self._with(meta={**(self._spec.meta or {}), **mapping})

    def explain(self) -> Explanation:
        """Return the exact prompt and the tools' schemas. Nothing is sent.

        If the agent has other sessions open, a prompt names the MCP server of its session; before the session
        is open, that name is shown as ``thinkwell…``.
        """
        return self._starter.explain(self._spec)

    def _kept(self, key: str | None, store: str | os.PathLike[str] | None) -> KeptResult[T] | None:
        """Return where the result is kept, if anywhere."""
        return kept_result(key, store, self._spec.output)

    @property
    def _complete_spec(self) -> Spec[T]:
        """The task, which has a prompt."""
        if not self._spec.has_content:
            raise ValueError(
                'the prompt is empty; give one: agent.think(…).text("…").run(), or .stream(). '
                "text() and the like return a new task: chain them, or keep what they return"
            )
        return self._spec


_LOOP: Final = "a task has no events before it runs: write `async for event in task.stream()`"


@hints(
    __await__="a task cannot be awaited: write `await task.run()`, or `task.stream()` to see its events",
    __aiter__=_LOOP,
    __iter__=_LOOP,
)
class ThinkBuilder(PromptBuilder[T, Starter]):
    """A task for an agent. Every method returns a new builder, so you can keep one and use it again.

    Created by `Agent.think` and `Session.think`; `stream` starts the run.
    """

    __slots__ = ()

    def stream(
        self,
        *prompt: Never,
        include: ev.Include = "default",
        buffer: Buffer | None = None,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        retries: int = 3,
        reminders: int = 1,
        background_wait: float = 30.0,
        budget: Budget | None = None,
        retry: Retry | None = None,
    ) -> ThoughtStream[T]:
        """Start the run and return its stream at once, without ``await``. It runs in the agent's task group.

        Args:
            prompt: Not allowed: give the prompt before, with `text` and the like.
            include: Kinds of events to keep: ``"default"``, ``"all"``, or a set of tags. Other events
                are not kept, but still count for `ThoughtStream.view`.
            buffer: Limits the events kept; by default, all are kept.
            timeout: Seconds after which the run is cancelled and the result raises `ThoughtTimeout`.
            idle_timeout: Seconds of silence of the agent after which the same happens. The
                clock stops while a tool runs or a question waits. A `Stalled` event is sent after half of
                it.
            retries: How often the agent may try again after an invalid result.
            reminders: How often to remind an agent that ends its turn without a result.
            background_wait: Seconds that the run stays open, once the agent has answered, for what it was
                steered to and for commands that it has moved to the background; 0 for not at all.
            budget: The budget of the run, alone or shared with others; see `Budget`.
            retry: Try the task again after some errors, as long as nothing was changed; see `Retry`.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: The prompt is empty, or an argument is out of range.
            AgentClosed: You have left the agent's block.
        """
        refuse_prompt(prompt, "stream")
        spec = self._complete_spec
        options = Options(
            include=ev.included(include),
            buffer=buffer,
            timeout=timeout,
            idle_timeout=idle_timeout,
            retries=retries,
            reminders=reminders,
            background_wait=background_wait,
            budget=budget,
            retry=retry,
        )
        return self._starter.start(spec, options)

    async def run(
        self,
        *prompt: Never,
        buffer: Buffer | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - cancelling a run takes more than a scope
        idle_timeout: float | None = None,
        retries: int = 3,
        reminders: int = 1,
        background_wait: float = 30.0,
        budget: Budget | None = None,
        retry: Retry | None = None,
        key: str | None = None,
        store: str | os.PathLike[str] | None = None,
    ) -> T:
        """Run the task and return the result as soon as it arrives. Cancelling this call cancels the run.

        Its arguments are those of `stream`, without `include`. With `key`, a name of the task, and `store`,
        the path of an SQLite file, the result is kept: if there is one under that key, it is returned, and
        nothing runs. Of several runs at once, the first result counts.

        Raises:
            ResultStoreError: The file cannot be used, or the result in it is not of this type.
            ThinkwellError: The run failed.
        """
        refuse_prompt(prompt, "run")
        kept = self._kept(key, store)
        if kept is not None and (found := await to_thread.run_sync(kept.find)):
            return found[0]
        stream = self.stream(
            buffer=buffer,
            timeout=timeout,
            idle_timeout=idle_timeout,
            retries=retries,
            reminders=reminders,
            background_wait=background_wait,
            budget=budget,
            retry=retry,
        )
        try:
            result = await stream.result
        except anyio.get_cancelled_exc_class():
            await stream._end()
            raise
        if kept is not None:
            with anyio.CancelScope(shield=True):  # the work is done: it must not be lost
                result = await to_thread.run_sync(kept.keep, stream.result._outcome)
        return result

    async def listen(
        self,
        handlers: Handlers,
        /,
        *,
        include: ev.Include = "default",
        buffer: Buffer | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - cancelling a run takes more than a scope
        idle_timeout: float | None = None,
        retries: int = 3,
        reminders: int = 1,
        background_wait: float = 30.0,
        budget: Budget | None = None,
    ) -> T:
        """Run the task with a listener: handlers get the agent's messages and answer its questions.

        Returns the result. Cancelling this call cancels the run, and so does a handler that raises.

        Args:
            handlers: They receive the agent's messages, and answer its questions: see `thinkwell.listen`.
            include: Kinds of events that the run keeps. The handlers get all.
            buffer: Limits the events kept; by default, all are kept.
            timeout: Seconds for the whole run, including the handlers. Then it raises `ThoughtTimeout`.
            idle_timeout: See `stream`.
            retries: How often the agent may try again after an invalid result.
            reminders: How often to remind an agent that ends its turn without a result.
            background_wait: See `stream`.
            budget: The budget of the run, alone or shared with others; see `Budget`.

        Raises:
            AgentReported: The agent ended the run with an error.
            AgentExited: It exited without a result.
            MessageInvalid: A message does not fit a handler's annotation.
            QuestionsStopped: The agent keeps asking the same, or a handler ended the run.
            ThinkwellError: The run failed in another way.
            Exception: An exception of a handler, unchanged.
            TypeError: `handlers`, or another argument, has the wrong type.
            ValueError: A handler decides approvals, but ``permissions="deny"`` forbids that.
        """
        spec = self._complete_spec
        options = Options(
            include=ev.included(include),
            buffer=buffer,
            timeout=timeout,
            idle_timeout=idle_timeout,
            retries=retries,
            reminders=reminders,
            background_wait=background_wait,
            budget=budget,
        )
        check_handlers(handlers)
        listening = handlers.begin()
        stream = self._starter.start(spec, replace(options, listener=listening))
        return await listening.hear(stream, timeout)


def _shown(system: dict[str, Any]) -> str:
    text = "".join(block["text"] for block in system["content"])
    return f"--- system ({system['mode']}) ---\n{text}\n--- prompt ---\n"


def check_handlers(handlers: object) -> None:
    """Check that handlers can listen.

    Raises:
        TypeError: They are not handlers.
    """
    if not hasattr(handlers, "begin"):
        raise TypeError(f"listen({handlers!r:.100}): give a Handlers(), from thinkwell.listen")


def _check_type(name: str, value: object, expected: type, example: str) -> None:
    if value is not None and not isinstance(value, expected):
        raise TypeError(f"{name}={value!r:.100} must be a {expected.__name__}: {example}")


def _counted(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}" if len(things) == 1 else f"{len(things)} {name}s"
