"""The state of a session besides its conversation: modes, options, title, commands, usage.

The agent reports it when the session is opened, in updates at any time, and in answers to changes. All of
them are applied in the order of the wire, so that the last one counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET, Struct
from msgspec.structs import replace

from thinkwell import events as ev
from thinkwell._core.protocol.updates import as_command
from thinkwell._values.session_options import chosen_model, model_option, read_options
from thinkwell.errors import CapabilityMissing, ModelNotOffered
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Iterable

    from thinkwell._values.session_options import OptionChoice, SessionOption

MODE_CATEGORY: Final = "mode"
"""Category of the option that is the session's mode (ACP, Session Config Options)."""


MODEL: Final = "model"
"""Category of the option that is the session's model, and the id of the one that represents `models`."""


class SessionMode(Struct, frozen=True, kw_only=True):
    """A mode that the agent offers."""

    id: str
    name: str
    description: str | None = None


class SessionUsage(Struct, frozen=True, kw_only=True):
    """Tokens in the context window and the cost so far, as the agent reports them."""

    used: int
    size: int
    cost: ev.Cost | None = None


class SessionInfo(Struct, frozen=True, kw_only=True):
    """A session that the agent knows, from `Agent.list_sessions`."""

    id: str
    cwd: str
    title: str | None = None
    updated_at: str | None = None
    """ISO 8601."""
    additional_directories: tuple[str, ...] = ()


class SessionState:
    """The state of one session, as last reported by the agent."""

    def __init__(self) -> None:
        self.title: str | None = None
        self.updated_at: str | None = None
        self.commands: tuple[ev.Command, ...] = ()
        self.usage: SessionUsage | None = None
        self._modes: tuple[SessionMode, ...] = ()
        self._mode: str | None = None
        self.options: tuple[SessionOption, ...] = ()
        self.raw_options: tuple[ev.JsonValue, ...] = ()
        """The options in the protocol's form."""
        self._tables: tuple[ev.JsonValue, ...] = ()
        """Those that the agent sent as options."""
        self._models: s.SessionConfigSelect | None = None
        """The option that represents the models of an agent without such an option."""

    # Reports of the agent

    def opened(
        self,
        response: s.NewSessionResponse
        | s.LoadSessionResponse
        | s.ResumeSessionResponse
        | s.ForkSessionResponse,
    ) -> None:
        """Apply the answer to an opening. Fields that it leaves out stay unchanged."""
        if response.modes is not None:
            self._modes = tuple(
                SessionMode(id=mode.id, name=mode.name, description=mode.description)
                for mode in response.modes.available_modes
            )
            self._mode = response.modes.current_mode_id
        if response.models is not None:
            self._models = _as_option(response.models)
        if response.config_options is not None or response.models is not None:
            self._options_are(s.to_builtins(response.config_options or ()))

    def note(self, update: s.SessionUpdate) -> None:
        """Apply an update of the state."""
        match update:
            case s.CurrentModeUpdate():
                self.mode_is(update.current_mode_id)
            case s.ConfigOptionUpdate():
                self._options_are(s.to_builtins(update.config_options))
            case s.AvailableCommandsUpdate():
                self.commands = tuple(map(as_command, update.available_commands))
            case s.SessionInfoUpdate():
                self.title = self.title if update.title is UNSET else update.title
                self.updated_at = self.updated_at if update.updated_at is UNSET else update.updated_at
            case s.UsageUpdate():
                known = None if self.usage is None else self.usage.cost
                cost = update.cost and ev.Cost(amount=update.cost.amount, currency=update.cost.currency)
                self.usage = SessionUsage(used=update.used, size=update.size, cost=cost or known)
            case _:  # pragma: no cover - no other is of the state
                pass

    def mode_is(self, mode_id: str) -> None:
        """Apply a new mode. An option that is the mode gets its value, if it is one of its choices."""
        self._mode = mode_id
        option = self.mode_option
        if option is not None and mode_id in _values(option):
            self.option_is(option.id, mode_id, ())

    def option_is(
        self, option_id: str, value: str | bool, reported: tuple[s.SessionConfigOption, ...]
    ) -> None:
        """Apply the answer to a new value. Some agents report no options: then only that one has changed."""
        if self._models is not None and self.sets_model(option_id):
            self._models = replace(self._models, current_value=str(value))
        self._options_are(
            s.to_builtins(reported)
            or [
                {**table, "currentValue": value} if table["id"] == option_id else table
                for table in self._tables
            ]
        )

    def _options_are(self, tables: Iterable[ev.JsonValue]) -> None:
        self.raw_options = self._tables = tuple(tables)
        if self._models is not None and self.sets_model(self._models.id):
            self.raw_options += (s.to_builtins(self._models),)
        self.options = tuple(read_options(self.raw_options))

    # The public form

    def differs(self, option: SessionOption) -> bool:
        """Return whether an option with that id exists with another value."""
        known = next((known for known in self.options if known.id == option.id), option)
        return known.value != option.value

    @property
    def mode_option(self) -> SessionOption | None:
        """The option that is the mode: if there is one, it counts and `modes` do not (ACP)."""
        for option in self.options:
            if option.type == "select" and option.category == MODE_CATEGORY:
                return option
        return None

    @property
    def modes(self) -> tuple[SessionMode, ...]:
        """The modes that the agent offers."""
        option = self.mode_option
        if option is None:
            return self._modes
        return tuple(
            SessionMode(id=choice.value, name=choice.name, description=choice.description)
            for choice in option.choices
        )

    @property
    def mode(self) -> str | None:
        """The id of the current mode."""
        option = self.mode_option
        return self._mode if option is None else str(option.value)

    @property
    def model(self) -> str | None:
        """The name of the chosen model, if the agent reports it."""
        return chosen_model(self.options)

    @property
    def model_id(self) -> str | None:
        """Its id."""
        option = model_option(self.options)
        return None if option is None else str(option.value)

    @property
    def models(self) -> tuple[OptionChoice, ...]:
        """The models that the agent offers."""
        option = model_option(self.options)
        return () if option is None else option.choices

    def sets_model(self, option_id: str) -> bool:
        """Return whether an option represents models that are set by a separate request."""
        if self._models is None or option_id != self._models.id:
            return False
        return all(table["id"] != option_id and table.get("category") != MODEL for table in self._tables)

    def find_model(self, model: str) -> tuple[str, str]:
        """Return the option that is the model, and its value for a model given by id or name.

        Raises:
            ModelNotOffered: The agent does not offer that model, or offers two with that name.
        """
        option = model_option(self.options)
        if option is None:
            raise ModelNotOffered(model)
        found = [choice.value for choice in option.choices if choice.name == model]
        if model in _values(option):
            found = [model]
        if len(found) != 1:
            raise ModelNotOffered(model, _values(option))
        return option.id, found[0]

    def check_mode(self, mode_id: str) -> None:
        """Check that a mode can be set.

        Raises:
            CapabilityMissing: The session has no modes.
            ValueError: It has no such mode.
        """
        known = [mode.id for mode in self.modes]
        if not known:
            raise CapabilityMissing("modes", "set_mode()")
        if mode_id not in known:
            raise ValueError(f"set_mode({mode_id!r}): the modes of this session are {_listed(known)}")

    def check_option(self, option_id: str, value: str | bool) -> None:
        """Check that an option can be set to a value.

        Raises:
            CapabilityMissing: The session has no options.
            TypeError: The option takes a value of another type.
            ValueError: The option or the value is unknown.
        """
        call = f"set_option({option_id!r}, {value!r})"
        if not self.options:
            raise CapabilityMissing("configOptions", "set_option()")
        option = next((option for option in self.options if option.id == option_id), None)
        if option is None:
            raise ValueError(f"{call}: the options are {_listed(option.id for option in self.options)}")
        if option.type == "boolean":
            if not isinstance(value, bool):
                raise TypeError(f"{call}: this option takes True or False")
            return
        values = _values(option)
        if not isinstance(value, str):
            raise TypeError(f"{call}: this option takes one of {_listed(values)}")
        if value not in values:
            raise ValueError(f"{call}: the values of this option are {_listed(values)}")


def as_info(info: s.SessionInfo) -> SessionInfo:
    """Return an entry of the agent's list in its public form."""
    return SessionInfo(
        id=info.session_id,
        cwd=info.cwd,
        title=info.title,
        updated_at=info.updated_at,
        additional_directories=info.additional_directories,
    )


def _as_option(models: s.SessionModelState) -> s.SessionConfigSelect:
    """Return the option that represents models as agents reported them before there were options."""
    return s.SessionConfigSelect(
        id=MODEL,
        name="Model",
        category=MODEL,
        current_value=models.current_model_id,
        options=tuple(
            s.SessionConfigSelectOption(value=model.model_id, name=model.name, description=model.description)
            for model in models.available_models
        ),
    )


def _values(option: SessionOption) -> list[str]:
    return [choice.value for choice in option.choices]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
