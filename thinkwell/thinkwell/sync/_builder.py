"""`ThinkBuilder`: what an agent is to think about, for callers who block."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from thinkwell._core.exit import PromptBuilder, check_handlers
from thinkwell._core.schema.misuse import refuse_prompt
from thinkwell.sync._listening import hear
from thinkwell.sync._stream import ThoughtStream

if TYPE_CHECKING:
    from typing import Never

    from thinkwell import Budget, Buffer, Explanation
    from thinkwell import events as ev
    from thinkwell._core.exit import Options, Spec
    from thinkwell._core.exit import Starter as AsyncStarter
    from thinkwell.listen import Handlers
    from thinkwell.sync._loop import LoopThread

T = TypeVar("T")


class Starter:
    """Starts runs in the loop's thread.

    Args:
        loop: The thread.
        starter: Who starts them there.
        owner: The agent or session, which stays open as long as it may be used.
    """

    def __init__(self, loop: LoopThread, starter: AsyncStarter, owner: object) -> None:
        self._loop = loop
        self._starter = starter
        self._owner = owner
        self.check = starter.check
        """Checks that the agent takes a part of a prompt."""

    def start(self, spec: Spec[T], options: Options) -> ThoughtStream[T]:
        """Start a run."""
        stream = self._loop.ask(lambda: self._starter.start(spec, options))
        return ThoughtStream(self._loop, stream, self._owner)

    def hear(self, spec: Spec[T], options: Options, handlers: Handlers) -> T:
        """Run it, and have handlers hear and answer what the agent says."""
        check_handlers(handlers)
        listening = self._loop.ask(handlers.begin)
        stream = self.start(spec, replace(options, listener=listening))
        return hear(stream, lambda: listening.hear(stream._stream, options.timeout))

    def explain(self, spec: Spec[T]) -> Explanation:
        """Return what a run would send."""
        return self._loop.ask(lambda: self._starter.explain(spec))


class ThinkBuilder(PromptBuilder[T, Starter]):
    """A task for an agent. Every method returns a new builder, so that one can be kept and used again.

    Made by `Agent.think` and `Session.think`; `run` returns the result, and `stream` a handle to watch.
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
        budget: Budget | None = None,
    ) -> ThoughtStream[T]:
        """Start the run and return its handle at once. It goes on in the background.

        Args:
            prompt: Nothing: give the prompt before, by `text` and the like.
            include: Kinds of events to keep: ``"default"``, ``"all"``, or a set of tags. What is left out
                is not kept; `ThoughtStream.view` counts it all the same.
            buffer: A bound for the events that are kept; none by default.
            timeout: Seconds after which the run is cancelled and the result raises `ThoughtTimeout`.
            idle_timeout: Seconds without a sign of life from the agent after which the same happens. The
                clock stands still while a tool runs or a question waits. A `Stalled` event comes at half of
                it.
            retries: How often the agent may try again after an invalid result.
            reminders: How often an agent that ends its turn without a result is asked for it.
            budget: What the run may use, alone or together with others; see `Budget`.

        Raises:
            TypeError: An argument is of another type.
            ValueError: The prompt is empty, or an argument is out of range.
            AgentClosed: The agent was closed.
        """
        refuse_prompt(prompt, "stream")
        options = self._options(
            include,
            buffer=buffer,
            timeout=timeout,
            idle_timeout=idle_timeout,
            retries=retries,
            reminders=reminders,
            budget=budget,
        )
        return self._starter.start(self._spec, options)

    def run(
        self,
        *prompt: Never,
        buffer: Buffer | None = None,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        retries: int = 3,
        reminders: int = 1,
        budget: Budget | None = None,
    ) -> T:
        """Run it and return the result as soon as it is there. Ctrl-C cancels the run; twice kills the agent.

        Raises:
            ThinkwellError: The run has failed.
        """
        refuse_prompt(prompt, "run")
        stream = self.stream(
            buffer=buffer,
            timeout=timeout,
            idle_timeout=idle_timeout,
            retries=retries,
            reminders=reminders,
            budget=budget,
        )
        try:
            return stream.result()
        except BaseException:
            if not stream.done():  # what was raised is not the run's: Ctrl-C, or a signal handler's
                stream._end()
            raise

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
        budget: Budget | None = None,
    ) -> T:
        """Run it, have handlers hear and answer what the agent says meanwhile, and return the result.

        Handlers that are not ``async`` may block. Ctrl-C cancels the run; twice kills the agent.

        Args:
            handlers: They receive what the agent says, and answer what it asks: see `thinkwell.listen`.
            include: Kinds of events that the run keeps. The handlers hear of all.
            buffer: A bound for the events that are kept; none by default.
            timeout: Seconds that all of it may take, the handlers included. Then `ThoughtTimeout` is raised.
            idle_timeout: See `stream`.
            retries: How often the agent may try again after an invalid result.
            reminders: How often an agent that ends its turn without a result is asked for it.
            budget: What the run may use, alone or together with others; see `Budget`.

        Raises:
            AgentReported: The agent has ended the run by an error.
            AgentExited: It has ended without a result.
            MessageInvalid: It has said something that does not fit a handler's annotation.
            QuestionsStopped: It asks the same over and over, or a handler has ended the run.
            ThinkwellError: The run has failed in another way.
            Exception: What a handler raises, as it is.
            TypeError: The handlers are none, or another argument is of another type.
            ValueError: Approvals are to be decided by a handler, and ``permissions="deny"`` was said.
        """
        options = self._options(
            include,
            buffer=buffer,
            timeout=timeout,
            idle_timeout=idle_timeout,
            retries=retries,
            reminders=reminders,
            budget=budget,
        )
        return self._starter.hear(self._spec, options, handlers)
