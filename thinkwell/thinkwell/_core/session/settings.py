"""Modes and options: setting them, and restoring them when the agent reopens the session."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Protocol

import anyio

from thinkwell import events as ev
from thinkwell._core.session.session_life import SessionLife
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell._core.protocol.updates import Mapper
    from thinkwell._core.session.state import SessionState
    from thinkwell_acp import Client


class SettableSession(Protocol):
    """A session whose settings can be changed."""

    id: str | None
    state: SessionState
    life: SessionLife

    @property
    def mapper(self) -> Mapper:
        """Reports the changes."""
        ...


class SessionSettings:
    """Sets the modes and options of one session, one after the other."""

    def __init__(self, session: SettableSession, client: Client) -> None:
        self._session = session
        self._client = client
        self.lock: anyio.Lock = anyio.Lock(fast_acquire=True)
        """Held while a setting is changed, and while the session is reopened."""
        self._wanted: SessionState | None = None

    @property
    def outstanding(self) -> bool:
        """Whether a setting must be restored before the next prompt: a mode can be what keeps it safe."""
        return self._wanted is not None

    def keep(self) -> None:
        """Remember the session's settings for `restore`."""
        self._wanted = self._wanted or copy(self._session.state)

    async def restore(self) -> None:
        """Restore the session's settings, as far as it has such options. One that fails stays outstanding.

        Raises:
            CapabilityMissing, ValueError: A setting is no longer available.
            AcpError, DecodeError: The agent did not change it.
        """
        wanted = self._wanted
        assert wanted is not None
        for option in wanted.options:
            if self._session.state.differs(option):
                await self._set_option(option.id, option.value)
        if wanted.mode is not None and wanted.mode != self._session.state.mode:
            await self._set_mode(wanted.mode)
        self._wanted = None

    async def set_mode(self, mode_id: str) -> None:
        """Change the mode, by an option if one is the mode.

        Raises:
            CapabilityMissing, ValueError: The mode is not available.
            AcpError, DecodeError: The agent did not change it.
        """
        async with self.lock:
            await self._set_mode(mode_id)
            if self._wanted is not None:
                self._wanted.mode_is(mode_id)

    async def set_option(self, option_id: str, value: str | bool) -> None:
        """Change an option.

        Raises:
            CapabilityMissing, TypeError, ValueError: The option or the value is not available.
            AcpError, DecodeError: The agent did not change it.
        """
        async with self.lock:
            await self._set_option(option_id, value)

    async def set_model(self, model: str) -> None:
        """Change the model, unless it is already set.

        Raises:
            ModelNotOffered: The agent does not offer it.
            AcpError, DecodeError: The agent did not change it.
        """
        async with self.lock:
            option_id, value = self._session.state.find_model(model)
            if value != self._session.state.model_id:
                await self._set_option(option_id, value)

    async def _set_mode(self, mode_id: str) -> None:
        session = self._session
        session.state.check_mode(mode_id)
        option = session.state.mode_option
        if option is not None:
            await self._set_option(option.id, mode_id)
        elif session.life is SessionLife.REOPENING:  # it cannot be sent before the session is reopened
            self._changed(lambda state: state.mode_is(mode_id))
        else:
            assert session.id is not None
            request = s.SetSessionModeRequest(session_id=session.id, mode_id=mode_id)
            await self._client.set_session_mode(
                request, lambda _: self._changed(lambda state: state.mode_is(mode_id))
            )

    async def _set_option(self, option_id: str, value: str | bool) -> None:
        session = self._session

        def changed(reported: tuple[s.SessionConfigOption, ...] = ()) -> None:
            self._changed(lambda state: state.option_is(option_id, value, reported))

        session.state.check_option(option_id, value)
        if session.life is SessionLife.REOPENING:
            changed()
        elif session.state.sets_model(option_id):
            assert session.id is not None
            model = s.SetSessionModelRequest(session_id=session.id, model_id=str(value))
            await self._client.set_session_model(model, lambda _: changed())
        else:
            assert session.id is not None
            request = s.SetSessionConfigOptionRequest(session_id=session.id, config_id=option_id, value=value)
            await self._client.set_session_config_option(
                request, lambda response: changed(response.config_options)
            )
        if self._wanted is not None:
            self._wanted.option_is(option_id, value, ())

    def _changed(self, change: Callable[[SessionState], None]) -> None:
        """Apply an answer, in order among the updates, and report the change."""
        state, log = self._session.state, self._session.mapper.log
        mode, options = state.mode, state.raw_options
        change(state)
        if state.raw_options != options:
            log.add(ev.ConfigUpdate, raw=state.raw_options)
        if state.mode is not None and state.mode != mode:
            log.add(ev.ModeUpdate, mode_id=state.mode)
        log.publish()
