"""Texts of agents on their way to a chat, at their worst: messages stay valid, and nothing is lost."""
# Private: pure functions from text to messages. A bot around them cannot be asked what was lost.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fuzz.hostile import repeated
from fuzz.target import Target
from hypothesis import strategies as st
from telegram_html import LONGEST_REQUEST, Parsed, below_quote, misnested, parse, received, told

from thinkwell._display.text import clean, exact, line
from thinkwell.channels import ChannelCapabilities, ChannelChoice, ChannelQuestion
from thinkwell.channels._html import _SHOWN, carried, compose, live
from thinkwell.channels._pieces import pieces
from thinkwell.channels.telegram._message import Writing
from thinkwell.channels.telegram._question_text import OUTCOME, lay_out

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT: Final = 4_096
_TEXTS: Final = repeated(
    [
        *("a", " ", "\n", "\t", "\r\n", ". ", "word ", "Words. ", "\x1b[31m", "\x1b", "\x00"),
        *("\u2028", "\ud800"),
        *("<", "&", ">", "<b>", "&lt;", '"', "*", "**", "***", "`", "``", "```", "```py\n"),
        *("\n```\n", "~~~\n"),
        *("# ", "#", "[", "](", ")", "[a](b)", "![", "\\", "_", "> ", "- ", "|", "〜", "。", "重"),
        *("\u0301", "\u030a", "\u200d", "\u200b", "\u200f", "\u202e", "\ufe0f", "👩", "🇩", "क्", "\U0001f3fd"),
    ]
)
_CAPABILITIES: Final = tuple(
    ChannelCapabilities(edits=True, html=True, max_length=limit, expandable_quote=folds)
    for limit, folds in ((LIMIT, True), (200, True), (100, False), (30, True))
)


def _held(html: str, limit: int) -> Parsed:
    assert len(html.encode()) <= LONGEST_REQUEST
    parsed = parse(html)
    assert not misnested(parsed)
    held = received(parsed)
    assert len(held.text) <= limit
    return held


def check_messages(given: tuple[str, str, bool, ChannelCapabilities]) -> None:
    """Every message is one that Telegram takes, and together they say what was said."""
    text, thinking, markdown, capabilities = given
    limit = capabilities.max_length or 0
    for seconds in (None, 3.0):
        for piece in live(
            text, thinking=thinking, seconds=seconds, capabilities=capabilities, markdown=markdown
        ):
            _held(piece.html, limit)
    composed = compose(text, thinking=thinking, seconds=3.0, capabilities=capabilities, markdown=markdown)
    held = [_held(piece.html, limit) for piece in composed]
    if not markdown and not _SHOWN.sub("", carried(text)).strip(" \n"):  # no message has nothing that shows
        said = [below for one in held if (below := below_quote(one))]
        assert told(carried(text), said) or not said


def check_pieces(given: tuple[str, int]) -> None:
    """Pieces are short enough, and lose nothing but white space."""
    text, limit = given
    cut = pieces(text, limit)
    assert all(0 < len(piece) <= limit for piece in cut)
    assert "".join("".join(cut).split()) == "".join(text.split())


def check_writing(given: tuple[list[tuple[str, str]], bool]) -> None:
    """Whatever comes in whatever order, what is shown meanwhile can be shown."""
    steps, markdown = given
    writing = Writing(markdown=markdown)
    for kind, text in steps:
        match kind:
            case "add":
                writing.add(text)
            case "think":
                writing.think(text)
            case "stop":
                writing.stop_thinking(float(len(text)))
            case _:
                writing.tell(text)
        parts = writing.parts()
        assert all(len(part.plain) <= LIMIT for part in parts)
        for part in parts[-1:]:  # to read all of them again and again takes too long
            _held(part.html, LIMIT)
    for part in writing.final(f"{writing.text}\n\n⚠ The agent has died."):
        _held(part.html, LIMIT)


def check_question(given: tuple[str, str, str | None, list[str], float | None]) -> None:
    """What would be done is there to the last character, or cannot be allowed."""
    text, code, url, labels, deadline = given
    question = ChannelQuestion(
        id="q",
        text=clean(text),
        code=exact(code),
        url=None if url is None else exact(url),
        choices=tuple(
            ChannelChoice(id=str(number), label=line(label), style="reject" if number % 2 else "accept")
            for number, label in enumerate(labels)
        ),
        deadline=deadline,
    )
    layout = lay_out(question, "t" * 40)
    for html in layout.messages[:-1]:
        _held(html, LIMIT)
    _held(f"{layout.messages[-1]}\n\n<b>→ {'x' * (OUTCOME - 4)}</b>", LIMIT)
    if any(choice.style == "accept" for choice in layout.choices) and not url:
        parsed = map(parse, layout.messages)
        shown = "".join(one.of(entity) for one in parsed for entity in one.entities if entity.type == "pre")
        assert _escaped(question.code) == shown or not question.code.strip()


def _escaped(code: str) -> str:
    for dropped in "\u030a\u0333\u033f":  # Telegram leaves them out
        code = code.replace(dropped, f"\\u{ord(dropped):04x}")
    return code


_STEPS: Final = st.lists(
    st.tuples(st.sampled_from(["add", "add", "think", "stop", "tell"]), _TEXTS), max_size=8
)

TARGETS: Final[Sequence[Target]] = (
    Target(
        name="channel messages",
        inputs=st.tuples(_TEXTS, _TEXTS, st.booleans(), st.sampled_from(_CAPABILITIES)),
        check=check_messages,
    ),
    Target(
        name="channel pieces",
        inputs=st.tuples(_TEXTS, st.sampled_from([1, 2, 7, 60, LIMIT])),
        check=check_pieces,
    ),
    Target(name="channel writing", inputs=st.tuples(_STEPS, st.booleans()), check=check_writing),
    Target(
        name="channel question",
        inputs=st.tuples(
            _TEXTS,
            _TEXTS,
            st.none() | _TEXTS,
            st.lists(_TEXTS, max_size=4) | st.lists(st.just("x"), max_size=120),
            st.none() | st.floats(-1, 1e9),
        ),
        check=check_question,
    ),
)
