"""Questions as messages: the exact and complete action, and the buttons for the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from thinkwell._display.numbers import seconds
from thinkwell._display.text import visible
from thinkwell.channels._html import HtmlPiece, escape, exactly
from thinkwell.channels._pieces import pieces, splits
from thinkwell.channels.telegram._values import ForceReply, InlineButton, InlineKeyboard

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from thinkwell.channels._protocols import ChannelChoice, ChannelQuestion

PRESS: Final = "q:"
"""The start of a button's data; the question's token and the choice's number follow."""

LIMIT: Final = 4_096
"""Most characters of a message, without its marks (Bot API, sendMessage)."""

OUTCOME: Final = 300
"""Characters that the last message reserves for the question's outcome."""

MOST_MESSAGES: Final = 16
"""Most messages of one question. A user cannot have read more than that, and can only refuse."""

MOST_BUTTONS: Final = 96
"""Most buttons under a message: Telegram accepts 100."""

LABEL: Final = 40
"""Characters of a label that fit on a button. Longer labels are written out above."""

ROW: Final = 24
"""Most characters of labels side by side."""

PLACEHOLDER: Final = 64
"""Most characters of the placeholder in an empty field for an answer (Bot API, ForceReply)."""


_STYLES: Final[dict[str, Literal["success", "danger"]]] = {"accept": "success", "reject": "danger"}


class Layout(NamedTuple):
    """A question as messages."""

    messages: list[str]
    """HTML. The last one has the buttons, and room for `OUTCOME` more characters."""
    choices: tuple[ChannelChoice, ...]
    """The choices of the buttons, by number."""
    keyboard: InlineKeyboard | None


_TOO_LONG: Final = "⚠ This is too long to be shown completely, so it cannot be allowed here."


def lay_out(question: ChannelQuestion, token: str) -> Layout:
    """Return a question as messages.

    An action that is not shown completely cannot be allowed: if it takes too many messages, the choices that
    let the agent continue are left out, and the last message says so.

    Args:
        question: The question.
        token: Tells its buttons from those of other questions; at most 40 ASCII characters.
    """
    choices = question.choices[:MOST_BUTTONS]
    messages = _messages(question, choices)
    if len(messages) > MOST_MESSAGES:
        choices = tuple(choice for choice in choices if choice.style == "reject")
        messages[MOST_MESSAGES - 1 :] = [_joined([*_plain(_TOO_LONG), *_notes(question)])]
    return Layout(messages, choices, _keyboard(choices, token))


def prompt_for(question: ChannelQuestion) -> tuple[str, ForceReply]:
    """Return the message that asks for a typed answer, as HTML, and its markup."""
    hint = f": {escape(question.hint)}" if question.hint else ""
    placeholder = question.hint[:PLACEHOLDER] or None
    return f"✎ Write your answer{hint}", ForceReply(force_reply=True, input_field_placeholder=placeholder)


def _messages(question: ChannelQuestion, choices: Sequence[ChannelChoice]) -> list[str]:
    """Return a complete question as HTML."""
    rows: list[list[HtmlPiece]] = [[]]
    for block in (*_text(question), *_code(exactly(visible(question.code))), *_footer(question, choices)):
        used = sum(len(each.text) + 2 for each in rows[-1])
        if used + len(block.text) > LIMIT - OUTCOME:
            rows.append([])
        rows[-1].append(block)
    return [_joined(blocks) for blocks in rows if blocks] or ["❓"]


def _joined(blocks: Sequence[HtmlPiece]) -> str:
    return "\n\n".join(block.html for block in blocks)


def _text(question: ChannelQuestion) -> Iterator[HtmlPiece]:
    yield from _plain(question.text)
    if question.url is not None:
        yield from _plain(exactly(visible(question.url)))


def _plain(text: str) -> Iterator[HtmlPiece]:
    for piece in pieces(text, LIMIT - OUTCOME):
        yield HtmlPiece(escape(piece), piece)


def _code(code: str) -> Iterator[HtmlPiece]:
    """Yield the action, cut after a line where necessary, with nothing left out."""
    if not code.strip():
        return
    room = LIMIT - OUTCOME
    if len(code) <= room:
        yield HtmlPiece(f"<pre>{escape(code)}</pre>", code)
        return
    parts = list(_exactly(code, room - len("Part 999 of 999:\n")))
    for number, part in enumerate(parts, 1):
        head = f"Part {number} of {len(parts)}:\n"
        yield HtmlPiece(f"{head}<pre>{escape(part)}</pre>", f"{head}{part}")


def _exactly(code: str, room: int) -> Iterator[str]:
    at = 0
    while len(code) - at > room:
        end = code.rfind("\n", at + room // 2, at + room) + 1 or at + room
        while splits(code, at, end) and end > at + room // 2:
            end -= 1
        yield code[at:end]
        at = end
    yield code[at:]


def _footer(question: ChannelQuestion, choices: Sequence[ChannelChoice]) -> Iterator[HtmlPiece]:
    if _is_listed(choices):
        for number, choice in enumerate(choices, 1):
            yield from _plain(f"{number}. {choice.label}")
    yield from _notes(question)


def _notes(question: ChannelQuestion) -> Iterator[HtmlPiece]:
    notes: list[str] = []
    if len(question.choices) > MOST_BUTTONS:
        notes.append(f"Only {MOST_BUTTONS} of {len(question.choices)} choices have a button here.")
    if question.deadline is not None:
        notes.append(f"Without an answer within {seconds(max(question.deadline, 0.0))}, it is denied.")
    if notes:
        text = "\n".join(notes)
        yield HtmlPiece(f"<i>{escape(text)}</i>", text)


def _is_listed(choices: Sequence[ChannelChoice]) -> bool:
    return any(len(choice.label) > LABEL for choice in choices)


def _keyboard(choices: Sequence[ChannelChoice], token: str) -> InlineKeyboard | None:
    if not choices:
        return None
    listed = _is_listed(choices)
    rows: list[list[InlineButton]] = []
    room = 0
    for number, choice in enumerate(choices):
        label = _label(choice.label, number + 1 if listed else None)
        if len(label) > room:
            rows.append([])
            room = ROW
        room -= len(label)
        style = _STYLES.get(choice.style)
        rows[-1].append(InlineButton(label, f"{PRESS}{token}:{number}", style=style))
    return InlineKeyboard(tuple(map(tuple, rows)))


def _label(label: str, number: int | None) -> str:
    short = label if len(label) <= LABEL else f"{label[: LABEL - 1]}…"
    return (short if number is None else f"{number}. {short}") if short.strip() else str(number or "•")
