"""The server of the Bot API that the tests use, as aiogram and python-telegram-bot find it.

They run on asyncio only, and over real connections. What they look at is the server of the tests, so they run
with what takes long.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest
import telegram
import telegram.ext
from aiogram import Bot, Dispatcher, exceptions
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.filters import Command
from aiogram.methods import GetUpdates
from aiogram.types import (
    BotCommand,
    CallbackQuery,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    Message,
    ReplyParameters,
)
from bot_api.server import TOKEN, BotApi
from bot_api.serving import serving
from bot_api.values import Trouble

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

pytestmark = pytest.mark.long

GROUP = -1_000_000_000_123
SOON = 20.0
"""Seconds in which all of it happens, on a machine that is busy."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def api() -> BotApi:
    return BotApi()


@pytest.fixture
def address(api: BotApi) -> Generator[str]:
    with serving(api) as address:
        yield address


# aiogram


def aiogram_bot(address: str, token: str = TOKEN) -> Bot:
    return Bot(token, session=AiohttpSession(api=TelegramAPIServer.from_base(address)))


@pytest.fixture
async def bot(address: str) -> AsyncGenerator[Bot]:
    async with aiogram_bot(address) as bot:
        yield bot


async def test_aiogram_talks_with_a_person(api: BotApi, bot: Bot) -> None:
    ada = api.user(7, "Ada")
    dispatcher = Dispatcher()
    buttons = InlineKeyboardMarkup(inline_keyboard=[[InlineKeyboardButton(text="Yes", callback_data="y")]])

    @dispatcher.message(Command("start"))
    async def greet(message: Message) -> None:
        assert message.from_user is not None
        await message.answer(
            f"<b>Hello</b> {message.from_user.first_name}", parse_mode="HTML", reply_markup=buttons
        )

    @dispatcher.callback_query()
    async def confirm(query: CallbackQuery) -> None:
        assert isinstance(query.message, Message)
        await query.message.edit_text(f"You said {query.data}")
        await query.answer("Noted")

    with anyio.fail_after(SOON):
        async with anyio.create_task_group() as tasks:
            ada.says("/start")
            polling = partial(dispatcher.start_polling, handle_signals=False)  # pyright: ignore[reportUnknownMemberType]
            tasks.start_soon(polling, bot)
            await api.until(lambda: ada.chat.texts == ["Hello Ada"])
            (post,) = ada.chat.messages
            assert post.entities == ({"type": "bold", "offset": 0, "length": 5},)
            query = api.press(post, "Yes")
            await api.until(lambda: api.query_answer(query) is not None)
            await api.until(lambda: api.polled and api.pending == 0)
            await dispatcher.stop_polling()
            assert post.text == "You said y"
            assert post.markup is None
            assert api.query_answer(query) == {"callback_query_id": query, "text": "Noted"}
    assert api.calls[0].method == "getMe"
    assert api.refused == []


async def test_aiogram_understands_what_it_gets(api: BotApi, bot: Bot) -> None:
    ada, group = api.user(7), api.group(GROUP, forum=True)
    said = ada.says("hi", chat=group, thread=group.topic("Bugs"))
    api.trouble("sendMessage", Trouble.slow(0.01))
    with anyio.fail_after(SOON):
        (update,) = await bot.get_updates(timeout=1)
        assert update.message is not None
        assert (update.message.chat.is_forum, update.message.message_thread_id) == (True, said.thread)
        sent = await update.message.answer(
            "a \N{GRINNING FACE} <i>b</i> &amp; <pre>c</pre>", parse_mode="HTML"
        )
        assert sent.message_thread_id == said.thread
        assert sent.html_text == "a \N{GRINNING FACE} <i>b</i> &amp; <pre>c</pre>"
        replied = await bot.send_message(7, "b", reply_markup=ForceReply(input_field_placeholder="so"))
        answered = await bot.send_message(
            7, "c", reply_parameters=ReplyParameters(message_id=replied.message_id)
        )
        assert answered.reply_to_message is not None
        assert answered.reply_to_message.text == "b"
        assert await bot.send_chat_action(7, "typing")
        assert await bot.set_my_commands([BotCommand(command="stop", description="Stop")])
        assert (await bot.get_my_commands())[0].command == "stop"
        assert await bot.delete_message(7, answered.message_id)
        assert await bot.send_message_draft(chat_id=7, draft_id=1, text="so far")
        assert (await bot.get_webhook_info()).url == ""
        ada.blocks()
        (change,) = await bot.get_updates(offset=update.update_id + 1)
        assert change.my_chat_member is not None
        assert change.my_chat_member.new_chat_member.status == "kicked"
    assert ada.chat.texts == ["b"]


async def test_aiogram_tells_errors_apart(api: BotApi, bot: Bot, address: str) -> None:
    api.user(7)
    api.user(8).blocks()
    with anyio.fail_after(SOON):
        sent = await bot.send_message(7, "a")
        with pytest.raises(exceptions.TelegramBadRequest, match="message is not modified"):
            await bot.edit_message_text(" a", chat_id=7, message_id=sent.message_id)
        with pytest.raises(exceptions.TelegramBadRequest, match="message is too long"):
            await bot.send_message(7, "a" * 4097)
        with pytest.raises(exceptions.TelegramBadRequest, match="can't parse entities"):
            await bot.send_message(7, "<b>a", parse_mode="HTML")
        with pytest.raises(exceptions.TelegramBadRequest, match="chat not found"):
            await bot.send_message(9, "a")
        with pytest.raises(exceptions.TelegramForbiddenError, match="blocked by the user"):
            await bot.send_message(8, "a")
        with pytest.raises(exceptions.TelegramNotFound, match="method not found"):
            await bot.send_dice(7)
        async with aiogram_bot(address, "42:wrong") as other:
            with pytest.raises(exceptions.TelegramUnauthorizedError):
                await other.get_me()
        api.limits.shut(7, api.calls[-1].at + 1.5)
        with pytest.raises(exceptions.TelegramRetryAfter) as throttled:
            await bot.edit_message_text("b", chat_id=7, message_id=sent.message_id)
        assert throttled.value.retry_after == 2
        api.trouble("getMe", Trouble.throttled(33), Trouble.error(500), Trouble.lost(), Trouble.garbage())
        with pytest.raises(exceptions.TelegramRetryAfter) as throttled:
            await bot.get_me()
        assert throttled.value.retry_after == 33
        with pytest.raises(exceptions.TelegramServerError):
            await bot.get_me()
        with pytest.raises(exceptions.TelegramNetworkError):
            await bot.get_me()
        with pytest.raises(exceptions.ClientDecodeError):
            await bot.get_me()
    assert api.throttled == 2


async def test_aiogram_loses_its_poll_to_another_program(api: BotApi, bot: Bot, address: str) -> None:
    with anyio.fail_after(SOON):
        async with aiogram_bot(address) as other, anyio.create_task_group() as tasks:

            async def poll() -> None:
                with pytest.raises(exceptions.TelegramConflictError, match="terminated by other getUpdates"):
                    await bot(GetUpdates(timeout=30), request_timeout=40)
                api.user(7).says("a")

            tasks.start_soon(poll)
            await api.until(lambda: api.polled)
            assert len(await other.get_updates(timeout=30, request_timeout=40)) == 1


# python-telegram-bot


@asynccontextmanager
async def ptb_bot(address: str, token: str = TOKEN) -> AsyncGenerator[telegram.Bot]:
    async with telegram.Bot(token, base_url=f"{address}/bot") as bot:
        yield bot


async def test_ptb_talks_with_a_person(api: BotApi, address: str) -> None:
    ada = api.user(7, "Ada")
    api.webhook = "https://a.b/"
    api.trouble("getUpdates", None, Trouble.lost())
    errors: list[telegram.error.TelegramError] = []
    buttons = telegram.InlineKeyboardMarkup([[telegram.InlineKeyboardButton("Yes", callback_data="y")]])

    async def greet(update: telegram.Update, context: telegram.ext.ContextTypes.DEFAULT_TYPE) -> None:
        assert update.message is not None
        name = update.message.from_user.first_name if update.message.from_user else ""
        await update.message.reply_text(f"<b>Hello</b> {name}", parse_mode="HTML", reply_markup=buttons)

    async def confirm(update: telegram.Update, context: telegram.ext.ContextTypes.DEFAULT_TYPE) -> None:
        assert update.callback_query is not None
        await update.callback_query.edit_message_text(f"You said {update.callback_query.data}")
        await update.callback_query.answer("Noted")

    application = telegram.ext.Application.builder().token(TOKEN).base_url(f"{address}/bot").build()
    application.add_handler(telegram.ext.CommandHandler("start", greet))
    application.add_handler(telegram.ext.CallbackQueryHandler(confirm))
    with anyio.fail_after(SOON):
        async with application:
            assert application.updater is not None
            await application.start()
            await application.updater.start_polling(error_callback=errors.append)
            ada.says("/start")
            await api.until(lambda: ada.chat.texts == ["Hello Ada"])
            (post,) = ada.chat.messages
            query = api.press(post, "Yes")
            await api.until(lambda: api.query_answer(query) is not None)
            await application.updater.stop()
            await application.stop()
    assert post.text == "You said y"
    assert post.entities == ()
    assert api.webhook == ""
    assert [type(error) for error in errors] == [telegram.error.NetworkError]
    assert api.refused == []
    assert api.pending == 0


async def test_ptb_understands_what_it_gets(api: BotApi, address: str) -> None:
    ada = api.user(7)
    ada.says("hi")
    ada.sends_photo("look")
    with anyio.fail_after(SOON):
        async with ptb_bot(address) as bot:
            assert (bot.id, bot.username) == (42, "test_bot")
            said, photo = await bot.get_updates()
            assert said.message is not None
            assert said.message.text == "hi"
            assert photo.message is not None
            assert photo.message.caption == "look"
            sent = await said.message.reply_text(
                "a \N{GRINNING FACE} <i>b</i> <blockquote expandable>c</blockquote>",
                parse_mode="HTML",
                do_quote=True,
            )
            assert sent.text_html == "a \N{GRINNING FACE} <i>b</i> <blockquote expandable>c</blockquote>"
            assert sent.reply_to_message is not None
            assert sent.reply_to_message.text == "hi"
            edited = await sent.edit_text("b")
            assert isinstance(edited, telegram.Message)
            assert edited.edit_date is not None
            assert await bot.send_chat_action(7, "typing")
            assert await bot.set_my_commands([("stop", "Stop")])
            assert await sent.delete()
            assert await bot.send_message_draft(7, 1, "so far")
    assert ada.chat.texts == []


async def test_ptb_tells_errors_apart(api: BotApi, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "1")  # warns otherwise
    api.user(7)
    api.user(8).blocks()
    with anyio.fail_after(SOON):
        async with ptb_bot(address) as bot:
            sent = await bot.send_message(7, "a")
            with pytest.raises(telegram.error.BadRequest, match=r"[Mm]essage is not modified"):
                await sent.edit_text("a")
            with pytest.raises(telegram.error.BadRequest, match=r"[Mm]essage is too long"):
                await bot.send_message(7, "a" * 4097)
            with pytest.raises(telegram.error.BadRequest, match=r"[Mm]essage_too_long"):
                await sent.edit_text("a" * 4097)
            with pytest.raises(telegram.error.BadRequest, match=r"[Cc]hat not found"):
                await bot.send_message(9, "a")
            with pytest.raises(telegram.error.Forbidden, match="blocked by the user"):
                await bot.send_message(8, "a")
            api.limits.shut(7, api.calls[-1].at + 1.5)
            with pytest.raises(telegram.error.RetryAfter) as throttled:
                await sent.edit_text("b")
            assert throttled.value.retry_after == timedelta(seconds=2)
            api.trouble("getMe", Trouble.throttled(33), Trouble.error(502), Trouble.unreachable())
            with pytest.raises(telegram.error.RetryAfter) as throttled:
                await bot.get_me()
            assert throttled.value.retry_after == timedelta(seconds=33)
            with pytest.raises(telegram.error.NetworkError, match="Bad Gateway"):
                await bot.get_me()
            with pytest.raises(telegram.error.NetworkError, match="RemoteProtocolError"):
                await bot.get_me()
        with pytest.raises(telegram.error.InvalidToken):
            async with ptb_bot(address, "42:wrong"):
                pass


async def test_ptb_loses_its_poll_to_another_program(api: BotApi, address: str) -> None:
    with anyio.fail_after(SOON):
        async with ptb_bot(address) as bot, ptb_bot(address) as other, anyio.create_task_group() as tasks:

            async def poll() -> None:
                with pytest.raises(telegram.error.Conflict, match="terminated by other getUpdates"):
                    await bot.get_updates(timeout=30)
                api.user(7).says("a")

            tasks.start_soon(poll)
            await api.until(lambda: api.polled)
            assert len(await other.get_updates(timeout=30)) == 1
