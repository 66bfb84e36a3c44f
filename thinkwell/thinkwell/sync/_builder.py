"""`ThinkBuilder`: a task for an agent, for callers who block."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from thinkwell import events as ev
from thinkwell._core.exit import Options, PromptBuilder, check_handlers
from thinkwell._core.schema.misuse import refuse_prompt
from thinkwell.sync._listening import hear
from thinkwell.sync._stream import ThoughtStream

if TYPE_CHECKING:
    import os
    from typing import Never

    from thinkwell import Budget, Buffer, Explanation, Retry
    from thinkwell._core.exit import Spec
    from thinkwell._core.exit import Starter as AsyncStarter
    from thinkwell.listen import Handlers
    from thinkwell.sync._loop import LoopThread

T = TypeVar("T")


class Starter:
    """Starts runs in the loop's thread.

    Args:
        loop: The thread.
        starter: Starts the runs there.
        owner: The agent or session, which stays open as long as this may be used.
    """

    def __init__(self, loop: LoopThread, starter: AsyncStarter, owner: object) -> None:
        self._loop = loop
        self._starter = starter
        self._owner = owner
        self.check = starter.check
        """Checks that the agent takes a part of a prompt."""
        self.check_system = starter.check_system
        """Checks that it takes a system prompt."""
        self.check_fallback = starter.check_fallback
        """Checks the agents that are to take over."""

    def start(self, spec: Spec[T], options: Options) -> ThoughtStream[T]:
        """Start a run."""
        stream = self._loop.ask(lambda: self._starter.start(spec, options))
        return ThoughtStream(self._loop, stream, self._owner)

    def hear(self, spec: Spec[T], options: Options, handlers: Handlers) -> T:
        """Run it with handlers, which get the agent's messages and answer its questions."""
        check_handlers(handlers)
        listening = self._loop.ask(handlers.begin)
        stream = self.start(spec, replace(options, listener=listening))
        return hear(stream, lambda: listening.hear(stream._stream, options.timeout))

    def explain(self, spec: Spec[T]) -> Explanation:
        """Return what a run would send."""
        return self._loop.ask(lambda: self._starter.explain(spec))


class ThinkBuilder(PromptBuilder[T, Starter]):
    """A task for an agent. Every method returns a new builder, so you can keep one and use it again.

    Created by `Agent.think` and `Session.think`; `run` returns the result, `stream` a stream to watch.
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
        """Start the run and return its stream at once. The run continues in the background.

        Args:
            prompt: Nothing: give the prompt before, by `text` and the like.
            include: Kinds of events to keep: ``"default"``, ``"all"``, or a set of tags. Other events
                are not kept, but still count for `ThoughtStream.view`.
            buffer: Limits the events kept; by default, all are kept.
            timeout: Seconds after which the run is cancelled and the result raises `ThoughtTimeout`.
            idle_timeout: Seconds of silence of the agent after which the same happens. The
                clock stops while a tool runs or a question waits. A `Stalled` event is sent after half of
                it.
            retries: How often the agent may try again after an invalid result.
            reminders: How often to remind an agent that ends its turn without a result.
            background_wait: How many seconds the run stays open after the agent's answer, for steering
                and for commands that the agent has moved to the background; 0 turns this off.
            budget: The budget of the run, alone or shared with others; see `Budget`.
            retry: Try the task again after some errors, as long as nothing was changed; see `Retry`.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: The prompt is empty, or an argument is out of range.
            AgentClosed: The agent was closed.
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

    def run(
        self,
        *prompt: Never,
        buffer: Buffer | None = None,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        retries: int = 3,
        reminders: int = 1,
        background_wait: float = 30.0,
        budget: Budget | None = None,
        retry: Retry | None = None,
        key: str | None = None,
        store: str | os.PathLike[str] | None = None,
    ) -> T:
        """Run the task and return the result as soon as it arrives.

        Ctrl-C cancels the run; a second one kills the agent.

        Its arguments are those of `stream`, without `include`. With `key`, a name of the task, and `store`,
        the path of an SQLite file, the result is kept: if there is one under that key, it is returned, and
        nothing runs. Of several runs at once, the first result counts.

        Raises:
            ResultStoreError: The file cannot be used, or the result in it is not of this type.
            ThinkwellError: The run failed.
        """
        refuse_prompt(prompt, "run")
        kept = self._kept(key, store)
        if kept is not None and (found := kept.find()):
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
            result = stream.result()
        except BaseException:
            if not stream.done():  # the exception is not the run's: Ctrl-C, or a signal handler's
                stream._end()
            raise
        return result if kept is None else kept.keep(stream._stream.result._outcome)

    def listen(
        self,
        handlers: Handlers,
        /,
        *,
        include: ev.Include = "default",
        buffer: Buffer | None = None,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        retries: int = 3,
        reminders: int = 1,
        background_wait: float = 30.0,
        budget: Budget | None = None,
    ) -> T:
        """Run the task with a listener: handlers get the agent's messages and answer its questions.

        Returns the result. Handlers that are not ``async`` may block. Ctrl-C cancels the run; a second one
        kills the agent.

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
            QuestionsStopped: It keeps asking the same, or a handler ended the run.
            ThinkwellError: The run failed in another way.
            Exception: What a handler raises, unchanged.
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
        return self._starter.hear(spec, options, handlers)
