"""Modes and config options: the settings of a session."""

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from thinkwell_acp.schema._base import Choice, Extensible, JsonObject, Lenient, Model, OfSession

__all__ = (
    "ModelInfo",
    "SessionConfigBoolean",
    "SessionConfigId",
    "SessionConfigOption",
    "SessionConfigOptionCategory",
    "SessionConfigSelect",
    "SessionConfigSelectGroup",
    "SessionConfigSelectOption",
    "SessionConfigSelectOptions",
    "SessionConfigValueId",
    "SessionMode",
    "SessionModeId",
    "SessionModeState",
    "SessionModelState",
    "SetSessionConfigOptionRequest",
    "SetSessionConfigOptionResponse",
    "SetSessionModeRequest",
    "SetSessionModeResponse",
    "SetSessionModelRequest",
    "SetSessionModelResponse",
)

SessionModeId: TypeAlias = str
"""The id of a mode."""

SessionConfigId: TypeAlias = str
"""The id of a config option."""

SessionConfigValueId: TypeAlias = str
"""The id of a value of a select."""

SessionConfigOptionCategory: TypeAlias = Literal["mode", "model", "model_config", "thought_level"] | str
"""The category of an option; vendors add their own."""


class SessionMode(Extensible, frozen=True, kw_only=True):
    """A way of working that the agent offers."""

    id: SessionModeId
    name: str
    description: str | None = None


class SessionModeState(Extensible, frozen=True, kw_only=True):
    """The modes of a session and the current one."""

    current_mode_id: SessionModeId
    available_modes: Lenient[tuple[SessionMode, ...]]


class ModelInfo(Extensible, frozen=True, kw_only=True):
    """A model that the agent offers."""

    model_id: str
    name: str
    description: str | None = None


class SessionModelState(Extensible, frozen=True, kw_only=True):
    """The models of a session and the current one.

    Config options have replaced it; agents older than these still send it.
    """

    current_model_id: str
    available_models: Lenient[tuple[ModelInfo, ...]]


class _SelectEntry(Choice):
    __slots__ = ()

    @classmethod
    def choose(cls, raw: JsonObject) -> type[Model]:
        return SessionConfigSelectOption if "value" in raw else SessionConfigSelectGroup


class SessionConfigSelectOption(Extensible, _SelectEntry, frozen=True, kw_only=True):
    """A value of a select."""

    value: SessionConfigValueId
    name: str
    description: str | None = None


class SessionConfigSelectGroup(Extensible, _SelectEntry, frozen=True, kw_only=True):
    """Values of a select under a common heading."""

    group: str
    name: str
    options: Lenient[tuple[SessionConfigSelectOption, ...]]


if TYPE_CHECKING:
    SessionConfigSelectOptions: TypeAlias = (
        tuple[SessionConfigSelectOption, ...] | tuple[SessionConfigSelectGroup, ...]
    )
else:
    SessionConfigSelectOptions = tuple[_SelectEntry, ...]


class _ConfigOption(Extensible, frozen=True, kw_only=True):
    id: SessionConfigId
    name: str
    description: str | None = None
    category: SessionConfigOptionCategory | None = None


class SessionConfigSelect(_ConfigOption, frozen=True, kw_only=True, tag_field="type", tag="select"):
    """An option with a list of values, flat or in groups."""

    current_value: SessionConfigValueId
    options: SessionConfigSelectOptions


class SessionConfigBoolean(_ConfigOption, frozen=True, kw_only=True, tag_field="type", tag="boolean"):
    """An option that is on or off. Agents send it if `session.configOptions.boolean` is advertised."""

    current_value: bool


SessionConfigOption: TypeAlias = SessionConfigSelect | SessionConfigBoolean
"""A config option, distinguished by `type`; unknown types are left out of their list."""


class SetSessionModeRequest(OfSession, frozen=True, kw_only=True):
    """Parameters of `session/set_mode`."""

    mode_id: SessionModeId


class SetSessionModeResponse(Extensible, frozen=True, kw_only=True):
    """Result of `session/set_mode`. It does not repeat the mode: the caller keeps it."""


class SetSessionConfigOptionRequest(OfSession, frozen=True, kw_only=True):
    """Parameters of `session/set_config_option`.

    Attributes:
        type: follows from the value: `boolean` for a bool, and left out for the id of a value.
    """

    config_id: SessionConfigId
    value: SessionConfigValueId | bool
    type: Literal["boolean"] | None = None

    def __post_init__(self) -> None:
        expected = "boolean" if isinstance(self.value, bool) else None
        if self.type != expected:
            msgspec.structs.force_setattr(self, "type", expected)


class SetSessionConfigOptionResponse(Extensible, frozen=True, kw_only=True):
    """Result of `session/set_config_option`: all options with their current values."""

    config_options: Lenient[tuple[SessionConfigOption, ...]]


class SetSessionModelRequest(OfSession, frozen=True, kw_only=True):
    """Parameters of `session/set_model`, for agents that send a `SessionModelState`."""

    model_id: str


class SetSessionModelResponse(Extensible, frozen=True, kw_only=True):
    """Result of `session/set_model`. It does not repeat the model: the caller keeps it."""
