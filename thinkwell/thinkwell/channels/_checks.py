"""Checks of users' arguments, before anything is done with them."""

from __future__ import annotations

from thinkwell.channels._protocols import Channel, DeliverySettings


def check_channel(where: str, channel: object) -> None:
    """Check a channel.

    Args:
        where: The function that was called.
        channel: The argument.

    Raises:
        TypeError: It is not a channel.
    """
    if isinstance(channel, type):
        name = channel.__name__
        raise TypeError(f"{where}(channel={name}): this is a class; give an instance: {name}(…)")
    if not isinstance(channel, Channel):
        raise TypeError(
            f"{where}(channel={channel!r:.100}): a channel has a method: async def send(self, user_id, text)"
        )


def check_user_id(where: str, user_id: object) -> None:
    """Check a user's id.

    Raises:
        TypeError: It is not a str.
        ValueError: It is empty.
    """
    check_text(where, "user_id", user_id)
    if not user_id:
        raise ValueError(f'{where}(user_id=""): it is empty; name the user as the channel does')


def check_text(where: str, name: str, value: object) -> None:
    """Check a text.

    Raises:
        TypeError: It is not a str.
    """
    if not isinstance(value, str):
        raise TypeError(f"{where}({name}={value!r:.100}): it must be a str, not a {type(value).__name__}")


def check_settings(where: str, settings: object) -> None:
    """Check optional settings.

    Raises:
        TypeError: They are not `DeliverySettings`.
    """
    if settings is not None and not isinstance(settings, DeliverySettings):
        raise TypeError(
            f"{where}(settings={settings!r:.100}): it must be DeliverySettings(…), not a "
            f"{type(settings).__name__}"
        )


def check_function(where: str, name: str, value: object, example: str) -> None:
    """Check an optional function.

    Raises:
        TypeError: It cannot be called.
    """
    if value is not None and not callable(value):
        raise TypeError(f"{where}({name}={value!r:.100}): it must be a function, such as {example}")
