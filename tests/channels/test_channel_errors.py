"""Errors on the way to people carry what they know, through pickles too, and hold no secret."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from thinkwell import channels
from thinkwell.channels import (
    ConversationBusy,
    Delivery,
    DeliveryError,
    DeliveryFailed,
    DeliveryMetrics,
    RouterClosed,
    telegram,
)
from thinkwell.errors import ThinkwellError

DELIVERY = Delivery(
    user_id="ada",
    text="All of it.",
    run_text="All of it.",
    status="completed",
    metrics=DeliveryMetrics(attempts=4, retries=3),
)

EXAMPLES: tuple[ThinkwellError, ...] = (
    DeliveryError("something"),
    DeliveryFailed("ada", "All of it.", DELIVERY, "no network"),
    ConversationBusy("ada", 8),
    RouterClosed(),
    telegram.TelegramError("sendMessage", 404, "Not Found"),
    telegram.TelegramNetworkError("sendMessage", 0, "no connection"),
    telegram.TelegramAnswerInvalid("sendMessage", 200, "no JSON"),
    telegram.TelegramServerError("sendMessage", 502, "Bad Gateway"),
    telegram.TelegramThrottled("sendMessage", 429, "Too Many Requests", 7),
    telegram.TelegramUnauthorized("getMe", 401, "Unauthorized"),
    telegram.TelegramConflict("getUpdates", 409, "Conflict"),
    telegram.TelegramForbidden("sendMessage", 403, "Forbidden: bot was blocked by the user"),
    telegram.TelegramRefused("sendMessage", 400, "Bad Request: chat not found"),
)


def defined() -> set[type]:
    """Every error that the packages show."""
    shown = [getattr(module, name) for module in (channels, telegram) for name in module.__all__]
    return {thing for thing in shown if inspect.isclass(thing) and issubclass(thing, ThinkwellError)}


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_on_the_way_survives_a_pickle(error: ThinkwellError) -> None:
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(copied) is type(error)
        assert vars(copied) == vars(error)
        assert str(copied) == str(error)


def test_every_error_on_the_way_has_an_example_and_documents_its_attributes() -> None:
    assert defined() == {type(error) for error in EXAMPLES}
    for error in EXAMPLES:
        doc = "".join(cls.__doc__ or "" for cls in type(error).__mro__[:-3])  # without those of Python
        for name in vars(error):
            assert f"{name}:" in doc, (type(error), name)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            EXAMPLES[1],
            "the answer could not be delivered to 'ada' in 4 attempts: no network; its text is in .text",
        ),
        (ConversationBusy("ada", 8), "the conversation with 'ada' is busy, and 8 messages wait; try again"),
        (ConversationBusy("a" * 200, 0), f"with '{'a' * 99} is busy"),
        (RouterClosed(), "use it inside its block: async with MessageRouter(…)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_an_error_on_the_way_says(error: ThinkwellError, said: str) -> None:
    assert said in str(error)


TEMPORARY = {
    "TelegramError": True,
    "TelegramNetworkError": True,
    "TelegramAnswerInvalid": True,
    "TelegramServerError": True,
    "TelegramThrottled": True,
    "TelegramUnauthorized": False,
    "TelegramConflict": True,
    "TelegramForbidden": False,
    "TelegramRefused": False,
}


def test_every_error_of_the_bot_api_says_whether_it_is_temporary() -> None:
    errors = [error for error in EXAMPLES if isinstance(error, telegram.TelegramError)]
    assert {type(error).__name__: error.temporary for error in errors} == TEMPORARY
    webhook = telegram.TelegramConflict("getUpdates", 409, "Conflict")
    webhook.webhook = True
    assert not webhook.temporary, "it stays until it is removed"
    moved = telegram.TelegramRefused("sendMessage", 400, "Bad Request: group chat was upgraded")
    moved.migrated_to = -100
    assert moved.temporary, "the next request goes to the other chat"
