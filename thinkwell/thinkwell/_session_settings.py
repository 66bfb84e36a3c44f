"""Modes and options as they are set, and set again where the agent opens the session anew."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING

import anyio

from thinkwell import events as ev
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell._link import Link
    from thinkwell._session_state import SessionState
    from thinkwell._wire_session import WireSession


class SessionSettings:
    """Sets the modes and options of one session, one after the other."""

    def __init__(self, link: Link, wire: WireSession) -> None:
        self._link = link
        self._wire = wire
        self.lock = anyio.Lock()
        """Held while something is set, and while the session is opened anew."""
        self._wanted: SessionState | None = None

    @property
    def outstanding(self) -> bool:
        """Whether something has to be set again before the next prompt: a mode can be what keeps it safe."""
        return self._wanted is not None

    def keep(self) -> None:
        """Remember how the session is set, for `restore`."""
        self._wanted = self._wanted or copy(self._wire.state)

    async def restore(self) -> None:
        """Set the session again as it was, as far as it has such options. One that fails stays outstanding.

        Raises:
            CapabilityMissing, ValueError: It cannot be that any more.
            AcpError, DecodeError: The agent did not change it.
        """
        wanted = self._wanted
        assert wanted is not None
        for option in wanted.options:
            if self._wire.state.differs(option):
                await self._set_option(option.id, option.current_value)
        if wanted.mode is not None and wanted.mode != self._wire.state.mode:
            await self._set_mode(wanted.mode)
        self._wanted = None

    async def set_mode(self, mode_id: str) -> None:
        """Change the mode; by an option, where one is the mode.

        Raises:
            CapabilityMissing, ValueError: It cannot be that.
            AcpError, DecodeError: The agent did not change it.
        """
        async with self.lock:
            await self._set_mode(mode_id)
            if self._wanted is not None:
                self._wanted.mode_is(mode_id)

    async def set_option(self, option_id: str, value: str | bool) -> None:
        """Change an option.

        Raises:
            CapabilityMissing, TypeError, ValueError: It cannot be that.
            AcpError, DecodeError: The agent did not change it.
        """
        async with self.lock:
            await self._set_option(option_id, value)
            if self._wanted is not None:
                self._wanted.option_is(option_id, value, ())

    async def _set_mode(self, mode_id: str) -> None:
        wire = self._wire
        wire.state.check_mode(mode_id)
        option_id = wire.state.mode_option_id
        if option_id is not None:
            await self._set_option(option_id, mode_id)
            return
        if wire.shut:  # there is nobody to tell before it is opened anew
            self._changed(partial(wire.state.mode_is, mode_id))
            return
        assert wire.id is not None
        request = s.SetSessionModeRequest(session_id=wire.id, mode_id=mode_id)
        await self._link.client.set_session_mode(
            request, lambda _: self._changed(partial(wire.state.mode_is, mode_id))
        )

    async def _set_option(self, option_id: str, value: str | bool) -> None:
        wire = self._wire
        wire.state.check_option(option_id, value)
        if wire.shut:
            self._changed(partial(wire.state.option_is, option_id, value, ()))
            return
        assert wire.id is not None
        request = s.SetSessionConfigOptionRequest(session_id=wire.id, config_id=option_id, value=value)
        await self._link.client.set_session_config_option(
            request,
            lambda response: self._changed(
                partial(wire.state.option_is, option_id, value, response.config_options)
            ),
        )

    def _changed(self, change: Callable[[], None]) -> None:
        """Apply an answer, at its place among the updates, and tell of what it changed."""
        state, log = self._wire.state, self._wire.mapper.log
        mode, options = state.mode, state.options
        change()
        if state.options != options:
            log.add(ev.ConfigUpdate, options=tuple(s.to_builtins(state.options)))
        if state.mode is not None and state.mode != mode:
            log.add(ev.ModeUpdate, mode_id=state.mode)
        log.publish()
