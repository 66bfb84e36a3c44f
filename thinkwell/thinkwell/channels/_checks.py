"""What is checked of what users give, before anything is done with it."""

from __future__ import annotations

from thinkwell.channels._protocols import Channel, DeliverySettings

__all__ = (
    "check_channel",
    "check_function",
    "check_settings",
    "check_text",
    "check_user_id",
)


def check_channel(where: str, channel: object) -> None:
    """Check a channel.

    Args:
        where: The function that it was given to.
        channel: What was given.

    Raises:
        TypeError: It is none.
    """
    if isinstance(channel, type):
        name = channel.__name__
        raise TypeError(f"{where}(channel={name}): that is a class; give an instance of it: {name}(…)")
    if not isinstance(channel, Channel):
        raise TypeError(
            f"{where}(channel={channel!r:.100}): a channel has a method: async def send(self, user_id, text)"
        )


def check_user_id(where: str, user_id: object) -> None:
    """Check the name of a user.

    Raises:
        TypeError: It is no text.
        ValueError: It is empty.
    """
    check_text(where, "user_id", user_id)
    if not user_id:
        raise ValueError(f'{where}(user_id=""): it is empty; name the user as the channel does')


def check_text(where: str, name: str, value: object) -> None:
    """Check a text.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(value, str):
        raise TypeError(f"{where}({name}={value!r:.100}): it must be a str, not a {type(value).__name__}")


def check_settings(where: str, settings: object) -> None:
    """Check settings that may be left out.

    Raises:
        TypeError: They are something else.
    """
    if settings is not None and not isinstance(settings, DeliverySettings):
        raise TypeError(
            f"{where}(settings={settings!r:.100}): it must be DeliverySettings(…), not a "
            f"{type(settings).__name__}"
        )


def check_function(where: str, name: str, value: object, example: str) -> None:
    """Check a function that may be left out.

    Raises:
        TypeError: It cannot be called.
    """
    if value is not None and not callable(value):
        raise TypeError(f"{where}({name}={value!r:.100}): it must be a function, such as {example}")
