"""`MessageRouter`: takes messages of many users, and delivers an agent's answers."""

from __future__ import annotations

import inspect
import logging
import os
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast, get_args, overload

from anyio import AsyncContextManagerMixin
from anyio.lowlevel import checkpoint

from thinkwell import events as ev
from thinkwell._conversations.agent_keeper import AgentKeeper
from thinkwell._conversations.checks import close_coroutine
from thinkwell._conversations.conversations import Conversations
from thinkwell._conversations.errors import ConversationBusy, RouterClosed
from thinkwell._core.schema.arguments import check_count, check_seconds
from thinkwell.channels._calls import begun
from thinkwell.channels._checks import check_function, check_settings, check_text
from thinkwell.channels._delivery import deliver
from thinkwell.channels._following import USING, Following, said
from thinkwell.channels._notices import ANEW, STEERED, UNCLEAR, explain, notify, refuse, typing_shown
from thinkwell.channels._outcome import Delivery, DeliveryFailed
from thinkwell.channels._recipient import Recipient
from thinkwell.channels._router_events import AgentResponded, RouterListeners, UserMessageReceived
from thinkwell.errors import ThoughtCancelled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from typing import Self

    from thinkwell import Agent, Session, ThoughtStream
    from thinkwell._conversations.agent_keeper import AgentFactory
    from thinkwell._conversations.conversation import SessionFactory, Taken, Turn
    from thinkwell.channels._protocols import Channel, DeliverySettings
    from thinkwell.view import RunView

    StrPath: TypeAlias = str | os.PathLike[str]

Busy: TypeAlias = Literal["queue", "steer", "refuse"]
"""What to do with a message while another one is answered."""

Middleware: TypeAlias = "Callable[[str, str], str | Awaitable[str]]"
"""Makes a prompt from a message and the user's id."""

KEPT: Final[frozenset[ev.EventType]] = frozenset(
    {"thought", "message", "tool_start", "tool_update", "tool_done", "plan", "turn_start"}
)
"""The events that a run keeps: the default ones, and the one that confirms the prompt."""

logger = logging.getLogger("thinkwell")


class MessageRouter(AsyncContextManagerMixin):
    """Takes messages of any number of users, and delivers an agent's answers.

    Each user has a conversation: a session of the agent with one turn at a time. Conversations are
    independent and run at the same time. Users are distinguished by their ids alone: make those of different
    channels differ, or give each channel its own router.

    Use it as ``async with MessageRouter(…) as router:``. Leaving the block stops running turns, refuses
    waiting messages (`RouterClosed`), and closes all sessions and, if the router has opened it, the agent.
    Deliveries in progress still deliver the text so far.

    Args:
        agent: An open agent, or a function that opens one, such as ``lambda: open_agent("claude")``. It is
            called for the first message, and again for the first message after the agent has died. A user
            who had a conversation is notified that it started over.
        cwd: The folder of the sessions, or a function from a user's id to a folder; by default the agent's
            folder.
        session: Opens the session for a user's id, to set more than the folder; instead of `cwd`.
        idle_after: Seconds without a message after which a session is closed. The next message opens a new
            one. ``None``: none is closed.
        busy: How to treat a message while another one of the same user is answered. ``queue``: it waits
            for its turn. ``steer``: the agent reads it while it works, where it can be steered, and its
            sender is told so; else it waits. ``refuse``: its sender is told to wait.
        max_waiting: How many messages of a user may wait; further ones are refused.
        middleware: Makes the prompt of a message when its turn has come, as `Middleware` says.
        settings: How answers are delivered; by default as their channel says.
        timeout: Seconds that a run may take; see `ThinkBuilder.stream`.
        idle_timeout: Seconds that a run may be silent; see `ThinkBuilder.stream`.

    Raises:
        TypeError: An argument is of another type.
        ValueError: An argument is out of range, or contradicts another.
    """

    def __init__(
        self,
        agent: Agent | AgentFactory,
        *,
        cwd: StrPath | Callable[[str], StrPath] | None = None,
        session: SessionFactory | None = None,
        idle_after: float | None = 3600.0,
        busy: Busy = "queue",
        max_waiting: int = 8,
        middleware: Middleware | None = None,
        settings: DeliverySettings | None = None,
        timeout: float | None = None,
        idle_timeout: float | None = None,
    ) -> None:
        for name, seconds in (
            ("idle_after", idle_after),
            ("timeout", timeout),
            ("idle_timeout", idle_timeout),
        ):
            if seconds is not None:
                check_seconds(name, seconds)
        check_count("max_waiting", max_waiting)
        if busy not in get_args(Busy):
            raise ValueError(f'MessageRouter(busy={busy!r:.100}): choose "queue", "steer" or "refuse"')
        if cwd is not None and session is not None:
            raise ValueError("MessageRouter(cwd=…, session=…): give only one; session= can set the folder")
        check_settings("MessageRouter", settings)
        check_function("MessageRouter", "middleware", middleware, "lambda text, user_id: text")
        check_function("MessageRouter", "session", session, "lambda agent, user_id: agent.session(cwd=…)")
        if not (cwd is None or callable(cwd)):
            _check_folder(cwd)
        self._conversations = Conversations(
            AgentKeeper(agent),
            session or partial(_session_in, cwd),
            idle_after=idle_after,
            max_waiting=0 if busy == "refuse" else max_waiting,
        )
        self._steers = busy == "steer"
        self._middleware = middleware
        self._settings = settings
        self._timeout = timeout
        self._idle_timeout = idle_timeout
        self._listeners = RouterListeners()

    def __repr__(self) -> str:
        conversations = self._conversations
        state = f"{len(conversations.user_ids)} conversations" if conversations.is_open else "closed"
        return f"<MessageRouter {state}>"

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        async with self._conversations.open():
            yield self

    # Messages in

    async def handle_user_message(
        self, text: str, user_id: str, channel: Channel, *, channel_id: str | None = None
    ) -> Delivery | None:
        """Answer a message, and return the outcome when the answer is delivered: see `deliver`.

        It gets its place in the queue at once, so messages are answered in the order of the calls. Errors of
        the agent are delivered as text, and `Delivery.error` has them. Cancelling this call cancels the run.

        Args:
            text: The message.
            user_id: Its author, as `channel` names them.
            channel: The channel to deliver the answer to.
            channel_id: The channel's name in events; by default the name of its class.

        Returns:
            ``None`` where the message was refused, because the conversation is busy, or where the agent reads
            it in the turn that runs, whose answer is delivered. Its sender was told.

        Raises:
            DeliveryFailed: The answer could not be sent. The exception has the text.
            RouterClosed: The router's block was left before the message's turn, or not entered.
            TypeError: An argument is of another type.
            ValueError: The text is blank, or `user_id` is empty.
        """
        check_text("handle_user_message", "text", text)
        to = Recipient("handle_user_message", channel, user_id, self._settings)
        # Text from outside may have lone surrogates, which cannot be sent.
        text = text.encode("utf-8", "replace").decode()
        if not text.strip():
            raise ValueError("handle_user_message(text): the message is blank; there is nothing to answer")
        channel_id = type(channel).__name__ if channel_id is None else channel_id
        try:
            turn = self._conversations.ask(user_id)
        except ConversationBusy as exc:
            await refuse(to, exc)
            return None
        failure: DeliveryFailed | None = None
        try:
            message = UserMessageReceived(text=text, user_id=user_id, channel_id=channel_id)
            await self._listeners.tell(message)
            try:
                delivery = await self._answer(turn, text, to)
            except DeliveryFailed as exc:
                failure, delivery = exc, exc.delivery
        finally:
            await turn.end()
        if not isinstance(delivery, Delivery):
            notice = STEERED if delivery == "taken" else UNCLEAR
            await notify(to, notice, "the agent reads a message")
            return None
        response = AgentResponded(
            text=delivery.run_text,
            user_id=user_id,
            channel_id=channel_id,
            session_id=None if turn.stream is None else turn.stream.session_id,
            agent_id=turn.agent_id,
            status=delivery.status,
        )
        await self._listeners.tell(response)  # after the turn: a handler may start another one
        if failure is not None:
            raise failure
        return delivery

    async def invoke(self, prompt: str, *, user_id: str = "") -> str:
        """Run a turn without a channel, and return all text of the agent. See `streaming`.

        Args:
            prompt: The prompt.
            user_id: The user whose conversation it is.

        Raises:
            ConversationBusy: The conversation is busy.
            RouterClosed: The router's block was left, or not entered.
            ThoughtCancelled: The run was stopped.
            Exception: The agent or session could not be opened, or the run failed.
        """
        async with self.streaming(prompt, user_id=user_id) as stream:
            await stream.result
            return said(stream.view.messages)

    async def invoke_streamed(
        self,
        prompt: str,
        on_chunk: Callable[[str], Awaitable[None]],
        on_tool_call: Callable[[str], Awaitable[None]] | None = None,
        *,
        user_id: str = "",
    ) -> str:
        """Run a turn without a channel, and report its text and tool calls meanwhile. See `streaming`.

        A callback that raises ends the run, and its exception is raised here.

        Args:
            prompt: The prompt.
            on_chunk: Called with each piece of text. They add up to the result.
            on_tool_call: Called when a tool call begins, with a clean line such as ``read parser.py``.
            user_id: The user whose conversation it is.

        Raises:
            ConversationBusy: The conversation is busy.
            RouterClosed: The router's block was left, or not entered.
            ThoughtCancelled: The run was stopped.
            Exception: The agent or session could not be opened, or the run or a callback failed.
        """
        for name, callback in (("on_chunk", on_chunk), ("on_tool_call", on_tool_call)):
            check_function("invoke_streamed", name, callback, f"async def {name}(text)")
        following, told = Following(), list[str]()

        async def tell_news(view: RunView) -> int:
            for piece in following.look(view, stream.elapsed):
                if piece.kind == "text":
                    told.append(piece.text)
                    await begun("on_chunk", on_chunk, piece.text)
                elif piece.kind == "status" and on_tool_call is not None:
                    await begun("on_tool_call", on_tool_call, piece.text.removeprefix(USING))
            return sum(map(len, view.messages))

        async with self.streaming(prompt, user_id=user_id) as stream:
            heard = seen = 0
            async for event in stream.events(include={"message", "tool_start"}):
                if isinstance(event, ev.Message):
                    heard += len(event.text)
                    if heard <= seen:
                        continue  # it was reported together with those before it
                seen = await tell_news(stream.view)
            await tell_news(stream.view)  # calls that were allowed last, and began
            await stream.result
        return "".join(told)

    @asynccontextmanager
    async def streaming(self, prompt: str, *, user_id: str = "") -> AsyncGenerator[ThoughtStream[str]]:
        """Run a turn without a channel, as a block that yields the stream.

        Leaving the block before the run has ended cancels it. Other turns of this conversation wait until
        then. The run's events include `TurnStarted`. Handlers of `on` are not called.

        Args:
            prompt: The prompt.
            user_id: The user whose conversation it is.

        Raises:
            ConversationBusy: The conversation is busy.
            RouterClosed: The router's block was left, or not entered. Also raised from the block if leaving
                the router stops its run.
            ThoughtCancelled: The run was stopped.
            Exception: The agent or session could not be opened.
        """
        check_text("MessageRouter", "prompt", prompt)
        check_text("MessageRouter", "user_id", user_id)
        turn = self._conversations.ask(user_id)
        try:
            stream = await self._begin(turn, prompt, user_id)
            try:
                yield stream
            except ThoughtCancelled as exc:
                if turn.closing:
                    raise RouterClosed from exc
                raise
        finally:
            await turn.end()

    # Events

    @overload
    def on(
        self, event: Literal["user_message"], handler: Callable[[UserMessageReceived], object], /
    ) -> Callable[[], None]: ...
    @overload
    def on(
        self, event: Literal["agent_response"], handler: Callable[[AgentResponded], object], /
    ) -> Callable[[], None]: ...

    def on(
        self,
        event: Literal["user_message", "agent_response"],
        handler: Callable[[UserMessageReceived], object] | Callable[[AgentResponded], object],
        /,
    ) -> Callable[[], None]:
        """Call a function for each message that `handle_user_message` takes, or for each answer.

        Every reported message is followed by its answer, unless the call was cancelled or the router left, or
        the agent reads the message in the turn of another one. Handlers are called one after the other; what
        an async one waits for is waited for. One that raises is logged, and harms nothing.

        Args:
            event: ``user_message``: a message was taken. ``agent_response``: an answer is complete and
                delivered.
            handler: Sync or async.

        Returns:
            A function that removes the handler.

        Raises:
            ValueError: The event is unknown.
        """
        return self._listeners.add(event, handler)

    # Conversations

    @property
    def conversations(self) -> tuple[str, ...]:
        """The ids of users with an open conversation. One that was idle for too long is closed."""
        return self._conversations.user_ids

    async def reset(self, user_id: str) -> None:
        """Start the conversation over with the next message. Earlier messages are still answered.

        Raises:
            RouterClosed: The router's block was left, or not entered.
        """
        self._conversations.reset(user_id)
        await checkpoint()

    def cancel(self, user_id: str) -> bool:
        """Cancel the current turn, or the one about to begin. The text so far is delivered.

        Returns:
            Whether there was a turn to cancel.
        """
        return self._conversations.stop(user_id)

    # Turns

    async def _begin(self, turn: Turn, text: str, user_id: str) -> ThoughtStream[str]:
        return await turn.begin(partial(self._prompt, text, user_id), self._start)

    async def _prompt(self, text: str, user_id: str) -> str:
        prompt: object = text
        if self._middleware is not None:
            prompt = cast("object", self._middleware(text, user_id))
            if inspect.isawaitable(prompt):
                prompt = cast("object", await prompt)
        if not isinstance(prompt, str):
            raise TypeError(
                f"MessageRouter(middleware=…) returned a {type(prompt).__name__}; it must "
                "return the prompt as a str"
            )
        if not prompt.strip():
            raise ValueError('the prompt is blank; give one, as in router.invoke("…")')
        return prompt

    def _start(self, session: Session, prompt: str) -> ThoughtStream[str]:
        task = session.think().text(prompt)
        return task.stream(include=KEPT, timeout=self._timeout, idle_timeout=self._idle_timeout)

    async def _answer(self, turn: Turn, text: str, to: Recipient) -> Delivery | Taken:
        try:
            if self._steers and (taken := await turn.steer(partial(self._prompt, text, to.user_id))):
                return taken
            async with typing_shown(to):
                stream = await self._begin(turn, text, to.user_id)
        except RouterClosed:
            raise
        except Exception as exc:
            return await explain(to, exc)
        if turn.anew:
            await notify(to, ANEW, "the conversation started over")
        return await deliver(stream, to.channel, to.user_id, settings=to.settings)


def _session_in(
    cwd: StrPath | Callable[[str], StrPath] | None, agent: Agent, user_id: str
) -> AbstractAsyncContextManager[Session]:
    if not callable(cwd):
        return agent.session(cwd=cwd)
    folder = cwd(user_id)
    _check_folder(folder)
    return agent.session(cwd=folder)


def _check_folder(folder: object) -> None:
    """Check a folder, or a function's result for one.

    Raises:
        TypeError: It is not a folder.
    """
    if not isinstance(folder, str | os.PathLike):
        close_coroutine(folder)
        raise TypeError(
            f"MessageRouter(cwd=…) is, or returned, a {type(folder).__name__}: give a folder, or a "
            'function that returns one: lambda user_id: f"/srv/{user_id}"'
        )
