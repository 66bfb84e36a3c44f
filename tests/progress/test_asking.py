"""Questions, answered at the keyboard."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from asking import options, permission
from progress.stage import Keeping, Pty, is_open, kept, stream_of
from scripted import Turn, scripted

from thinkwell import events as ev
from thinkwell import replay
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from progress.stage import Keeping

    from thinkwell import ThoughtStream


def asks(*requests: Callable[[str], Any]) -> Callable[[Turn], Any]:
    """A turn that asks all of this at once, and says what it was told."""

    async def script(turn: Turn) -> None:
        told: dict[int, str] = {}

        async def ask(number: int, request: Any) -> None:
            if isinstance(request, s.RequestPermissionRequest):
                answer: Any = await turn.client.request_permission(request)
                told[number] = getattr(answer.outcome, "option_id", "cancelled")
            else:
                answer = await turn.client.create_elicitation(request)
                told[number] = f"{answer.action} {answer.content}"

        async with anyio.create_task_group() as group:
            for number, make in enumerate(requests):
                group.start_soon(ask, number, make(turn.session_id))
        turn.say(", ".join(told[number] for number in sorted(told)))

    return script


@asynccontextmanager
async def asked(
    pty: Pty, *requests: Callable[[str], Any], **settings: Any
) -> AsyncGenerator[tuple[Keeping, ThoughtStream[Any]]]:
    """Show a run that asks."""
    async with scripted(asks(*requests), permissions="ask", **settings) as agent:
        stream = stream_of(agent)
        with anyio.fail_after(30):
            async with kept(stream, out=pty.out, keyboard=pty.keyboard) as (renderer, _):
                yield renderer, stream


async def press(
    pty: Pty, renderer: Keeping, key: str, until: Callable[[Keeping], bool] | None = None, *, run: int = 0
) -> None:
    """Press a key until it counts: by default, until the question is not asked any more."""
    await renderer.until(lambda kept: len(kept.last) > run and is_open(kept.last[run]))
    asked = renderer.last[run].asking

    def settled(kept: Keeping) -> bool:
        return kept.last[run].asking != asked

    done = until or settled
    while not done(renderer):
        pty.type(key)
        with anyio.move_on_after(0.3):
            await renderer.until(done)


def answer_of(stream: ThoughtStream[Any]) -> ev.QuestionAnswered:
    (answer,) = (event for event in stream._log.events if isinstance(event, ev.QuestionAnswered))
    return answer


@pytest.mark.parametrize(("key", "told"), [("y", "y"), ("n", "x"), ("a", "a"), ("d", "n"), ("Y", "y")])
async def test_one_key_answers(pty: Pty, key: str, told: str) -> None:
    before = pty.settings()
    async with asked(pty, permission) as (renderer, stream):
        await press(pty, renderer, key)
        assert await stream.result == told
        assert (answer_of(stream).by, answer_of(stream).why) == ("human", f"[{key.lower()}] was pressed")
        await renderer.until(lambda kept: "finish" in kept.calls)
    assert pty.settings() == before
    assert not renderer.last[0].asking


async def test_the_keyboard_is_ours_only_while_something_is_asked(pty: Pty) -> None:
    before = pty.settings()
    gate = anyio.Event()

    async def script(turn: Turn) -> None:
        turn.say("Well")
        await gate.wait()
        await turn.client.request_permission(permission(turn.session_id))

    async with scripted(script, permissions="ask") as agent:
        with anyio.fail_after(30):
            stream = stream_of(agent)
            async with kept(stream, out=pty.out, keyboard=pty.keyboard) as (renderer, _):
                await renderer.shows(lambda run: run.view.text == "Well")
                assert pty.settings() == before
                pty.type("y\n")  # before there was a question
                gate.set()
                await renderer.shows(is_open)
                assert pty.settings() != before
                await press(pty, renderer, "n")
                await stream.result
                assert answer_of(stream).option_id == "x"


async def test_what_is_pressed_while_the_question_appears_does_not_count(pty: Pty) -> None:
    async with asked(pty, permission) as (renderer, stream):
        await renderer.shows(is_open)
        pty.type("y")
        await press(pty, renderer, "n")
        assert await stream.result == "x"


async def test_other_keys_are_explained(pty: Pty) -> None:
    async with asked(pty, permission) as (renderer, stream):
        await press(pty, renderer, "q", lambda kept: bool(kept.last[0].problem))
        assert renderer.last[0].problem == "[q] means nothing here: press [a], [d], [y], [n], [e]"
        await press(pty, renderer, "y")
        assert await stream.result == "y"


async def test_what_an_agent_only_offers_to_allow_can_be_denied(pty: Pty) -> None:
    def offer(session_id: str) -> Any:
        return permission(session_id, offered=options("allow_once"))

    async with asked(pty, offer) as (renderer, stream):
        await press(pty, renderer, "n")
        assert await stream.result == "cancelled"
    assert stream.view.answers[0].by == "human"


async def test_a_key_is_for_what_was_seen(pty: Pty) -> None:
    gate = anyio.Event()

    async def script(turn: Turn) -> None:
        async def change() -> None:
            await gate.wait()
            turn.update(s.ToolCallProgress(tool_call_id="t1", raw_input={"command": "rm -rf ~"}))

        async with anyio.create_task_group() as group:
            group.start_soon(change)
            call = s.ToolCallUpdate(
                tool_call_id="t1", title="ls", kind="execute", raw_input={"command": "ls"}
            )
            answer: Any = await turn.client.request_permission(permission(turn.session_id, call))
            turn.say(answer.outcome.option_id)

    async with scripted(script, permissions="ask") as agent:
        with anyio.fail_after(30):
            stream = stream_of(agent)
            async with kept(stream, out=pty.out, keyboard=pty.keyboard) as (renderer, _):
                await press(pty, renderer, "q", lambda kept: bool(kept.last[0].problem))
                gate.set()
                while stream.view.tools["t1"].input != {"command": "rm -rf ~"}:
                    await stream._log.wait()
                pty.type("y")
                await renderer.shows(lambda run: is_open(run) and not run.problem)
                await press(pty, renderer, "n")
                assert await stream.result == "x"


async def test_an_explanation_is_wanted_as_often_as_its_key_is_pressed(pty: Pty) -> None:
    async with asked(pty, permission) as (renderer, stream):
        await press(pty, renderer, "e", lambda kept: is_open(kept.last[0]) and kept.last[0].explained == 1)
        await press(pty, renderer, "e", lambda kept: kept.last[0].explained > 1)
        await press(pty, renderer, "y")
        assert await stream.result == "y"
    assert "suspend" not in renderer.calls


def _is_elsewhere(at: int | None, kept: Keeping) -> bool:
    return kept.last[0].chosen != at


async def test_arrows_go_from_key_to_key(pty: Pty) -> None:
    async with asked(pty, permission) as (renderer, stream):
        await press(pty, renderer, "\x1b[B", lambda kept: kept.last[0].chosen is not None)
        while (at := renderer.last[0].chosen) != 1:
            pty.type("\x1bOA" if at else "\x1b[C")
            await renderer.until(partial(_is_elsewhere, at))
        pty.type("\r")
        assert await stream.result == "n"


async def test_several_questions_one_after_another(pty: Pty) -> None:
    async with asked(pty, permission, permission) as (renderer, stream):
        first = (await renderer.shows(is_open)).asking
        await press(pty, renderer, "y")
        await renderer.shows(lambda run: run.asking not in (None, first))
        await press(pty, renderer, "n")
        assert sorted((await stream.result).split(", ")) == ["x", "y"]


async def test_questions_of_several_runs(pty: Pty) -> None:
    agents = [scripted(asks(permission), permissions="ask") for _ in range(2)]
    async with agents[0] as first, agents[1] as second:
        streams = [stream_of(first), stream_of(second)]
        with anyio.fail_after(30):
            async with kept(*streams, out=pty.out, keyboard=pty.keyboard) as (renderer, _):
                await renderer.until(lambda kept: any(map(is_open, kept.last)))
                order = [0, 1] if is_open(renderer.last[0]) else [1, 0]
                assert not is_open(renderer.last[order[1]])
                await press(pty, renderer, "y", run=order[0])
                assert await streams[order[0]].result == "y"
                await press(pty, renderer, "n", run=order[1])
                assert await streams[order[1]].result == "x"


async def test_a_question_that_is_answered_elsewhere_is_gone(pty: Pty) -> None:
    before = pty.settings()
    async with asked(pty, permission) as (renderer, stream):
        shown = await renderer.shows(is_open)
        assert shown.asking is not None
        stream.answer(shown.asking, "deny", by="another")
        assert await stream.result == "x"
        await renderer.shows(lambda run: run.asking is None)
    assert pty.settings() == before
    assert answer_of(stream).by == "another"


async def test_a_question_that_times_out_is_gone(pty: Pty) -> None:
    async with asked(pty, permission, question_timeout=2) as (renderer, stream):
        await renderer.shows(is_open)
        assert await stream.result == "x"
        await renderer.shows(lambda run: run.asking is None)
    assert answer_of(stream).by == "deadline"


async def test_settings_are_given_back_when_the_block_fails(pty: Pty) -> None:
    before = pty.settings()
    with pytest.raises(KeyError, match="mine"):  # noqa: PT012 - what raises is the block
        async with asked(pty, permission) as (renderer, _):
            await renderer.shows(is_open)
            assert pty.settings() != before
            raise KeyError("mine")
    assert pty.settings() == before


async def test_a_replay_asks_nothing(pty: Pty, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    async with scripted(asks(permission), permissions="ask", question_timeout=0.5, record=file) as agent:
        await agent.think().text("Go").run()
    with anyio.fail_after(30):
        async with kept(replay(file, speed=0.2), out=pty.out, keyboard=pty.keyboard) as (renderer, _):
            await renderer.until(lambda kept: "finish" in kept.calls)
    assert any(run.view.questions for (run,) in renderer.frames)
    assert not any(run.asking for (run,) in renderer.frames)


class NoKeyboard:
    """A keyboard that cannot be used."""

    def take(self, *, lines: bool = False) -> bool:
        raise OSError(f"no keyboard, lines: {lines}")

    def key(self) -> str | None:
        raise NotImplementedError

    line = key

    def forget(self) -> None:
        raise NotImplementedError

    mute = unmute = release = forget

    def close(self) -> None:
        pass


async def test_what_fails_in_asking_ends_the_drawing_only(caplog: pytest.LogCaptureFixture) -> None:
    async with scripted(asks(permission), permissions="ask") as agent:
        stream = stream_of(agent)
        with anyio.fail_after(30):
            async with kept(stream, keyboard=NoKeyboard()) as (renderer, _):
                await renderer.until(lambda kept: "suspend" in kept.calls)
                stream.answer(stream.view.questions[0].id, "allow")
                assert await stream.result == "y"
    (record,) = (record for record in caplog.records if record.levelname == "ERROR")
    assert "no keyboard" in str(record.exc_info)


# Forms and pages


SCHEMA = s.ElicitationSchema(
    properties={
        "name": s.StringPropertySchema(title="Your name", description="As you\nwrite it", min_length=2),
        "age": s.IntegerPropertySchema(minimum=1),
        "size": s.NumberPropertySchema(default=1.5),
        "sure": s.BooleanPropertySchema(),
        "colour": s.StringPropertySchema(enum=("red", "blue"), default="red"),
        "many": s.MultiSelectPropertySchema(items=s.StringMultiSelectItems(enum=("a", "b", "c"))),
    },
    required=("name", "age"),
)


def form(session_id: str) -> Any:
    return s.ElicitationFormMode(session_id=session_id, message="Who are you?", requested_schema=SCHEMA)


def page(session_id: str) -> Any:
    return s.ElicitationUrlMode(
        session_id=session_id, message="Log in", elicitation_id="e1", url="https://login.example/\u202eabc"
    )


async def fill_in(pty: Pty, *lines: tuple[str, str]) -> None:
    """Type lines, each when its prompt is there."""
    for prompt, text in lines:
        await pty.sees(prompt)
        pty.type(f"{text}\n")


def away(kept: Keeping) -> bool:
    return "suspend" in kept.calls


async def test_a_form_is_filled_in_line_by_line(pty: Pty) -> None:
    before = pty.settings()
    async with asked(pty, form) as (renderer, stream):
        await press(pty, renderer, "f", away)
        await fill_in(
            pty,
            (r"Your name \(text.*required\)\r\n  As you\r\n  write it\r\n> ", "A"),
            (r"at least 2.*\r\n(?s:.*)> ", "Ada"),
            (r"age.*\r\n> ", ""),
            (r"a value is required(?s:.*)> ", "old"),
            (r"(?s:.*)> ", "36"),
            (r"size.*\r\n  Enter: 1.5; -: leave it empty\r\n> ", "-"),
            (r"sure.*\r\n> ", "Yes"),
            (r"colour.*\r\n  1  red\r\n  2  blue\r\n  Enter: red.*\r\n> ", "2"),
            (r"many(?s:.*)> ", "1, c"),
        )
        told = await stream.result
        assert "{'name': 'Ada', 'age': 36, 'sure': True, 'colour': 'blue', 'many': ('a', 'c')}" in told
        assert (answer_of(stream).by, answer_of(stream).choice) == ("human", "accept")
        await renderer.until(lambda kept: "finish" in kept.calls)
    assert pty.settings() == before
    calls = [call for call in renderer.calls if call != "draw"]
    assert calls == ["suspend", "finish"]


@pytest.mark.parametrize(
    ("message", "rows"),
    [
        ("Who are you?", r" \? Who are you\?\r\n"),
        ("Who\n> are\x1b[2J you?", r" \? Who\r\n   > are\\u001b\[2J you\?\r\n"),
        ("x" * 9_000, " \\? x{5000}… and 4,000 more characters\r\n"),
    ],
)
async def test_what_is_asked_stays_in_sight_while_a_form_is_filled_in(
    pty: Pty, message: str, rows: str
) -> None:
    def make(session_id: str) -> Any:
        return s.ElicitationFormMode(session_id=session_id, message=message, requested_schema=SCHEMA)

    async with asked(pty, make) as (renderer, stream):
        await press(pty, renderer, "f", away)
        await pty.sees(f"{rows}Enter ends a line, Ctrl-D leaves the form.\r\n\r\nYour name")
        stream.cancel()


def one_of(
    choice: s.StringPropertySchema,
    *others: tuple[str, s.StringPropertySchema],
    required: tuple[str, ...] = (),
) -> Callable[[str], Any]:
    """A form that begins with a choice."""
    schema = s.ElicitationSchema(properties={"answer": choice, **dict(others)}, required=required)

    def make(session_id: str) -> Any:
        return s.ElicitationFormMode(session_id=session_id, message="Which?", requested_schema=schema)

    return make


COLOURS = s.StringPropertySchema(enum=("red", "blue"))
OTHER = ("other", s.StringPropertySchema(title="Something else"))
ENDS = "  A choice ends the form; {} goes on to: Something else\r\n> "
FIRST = rf"answer \(one of these\)\r\n  1  red\r\n  2  blue\r\n{ENDS.format('Enter')}"


async def test_a_choice_is_all_of_a_form_that_offers_a_text_instead(pty: Pty) -> None:
    async with asked(pty, one_of(COLOURS, OTHER)) as (renderer, stream):
        await press(pty, renderer, "f", away)
        await fill_in(pty, (FIRST, "green"), (r"should be one of.*\r\n(?s:.*)> ", "2"))
        assert await stream.result == "accept {'answer': 'blue'}"
    assert "Something else (text)" not in pty.seen


async def test_without_a_choice_the_text_is_asked_for(pty: Pty) -> None:
    async with asked(pty, one_of(COLOURS, OTHER)) as (renderer, stream):
        await press(pty, renderer, "f", away)
        await fill_in(pty, (FIRST, ""), (r"Something else \(text\)\r\n> ", "green"))
        assert await stream.result == "accept {'other': 'green'}"


@pytest.mark.parametrize(
    ("default", "lines", "told"),
    [
        ("blue", [""], "{'answer': 'blue'}"),
        ("blue", ["1"], "{'answer': 'red'}"),
        ("blue", ["-", "green"], "{'other': 'green'}"),
        ("grey", ["", "green"], "{'other': 'green'}"),
    ],
)
async def test_a_choice_that_is_made_already_is_one(
    pty: Pty, default: str, lines: list[str], told: str
) -> None:
    choice = s.StringPropertySchema(enum=("red", "blue"), default=default)
    first = f"  Enter: {default}; -: leave it empty\r\n{ENDS.format('-')}"
    async with asked(pty, one_of(choice, OTHER)) as (renderer, stream):
        await press(pty, renderer, "f", away)
        await fill_in(pty, *zip((first, r"Something else \(text\)\r\n> "), lines, strict=False))
        assert await stream.result == f"accept {told}"


@pytest.mark.parametrize(
    ("others", "required"),
    [
        ((OTHER,), ("answer",)),
        ((OTHER,), ("other",)),
        ((("other", s.StringPropertySchema(title="Something else", default="x")),), ()),
        ((("other", s.StringPropertySchema(title="Something else", enum=("x",))),), ()),
        ((OTHER, ("more", s.StringPropertySchema())), ()),
    ],
)
async def test_of_other_forms_every_field_is_asked_for(
    pty: Pty, others: tuple[tuple[str, s.StringPropertySchema], ...], required: tuple[str, ...]
) -> None:
    """The text is not there instead of a choice; or something would be sent that nobody has seen."""
    async with asked(pty, one_of(COLOURS, *others, required=required)) as (renderer, stream):
        await press(pty, renderer, "f", away)
        await fill_in(pty, (r"2  blue\r\n> ", "1"), (r"Something else \((?s:.*)> ", "x"))
        if len(others) > 1:
            await fill_in(pty, (r"more(?s:.*)> ", "y"))
        told = await stream.result
        assert "'answer': 'red', 'other': 'x'" in told
        assert ("'more': 'y'" in told) == (len(others) > 1)
    assert "ends the form" not in pty.seen


async def test_a_form_of_one_choice_is_as_ever(pty: Pty) -> None:
    async with asked(pty, one_of(COLOURS)) as (renderer, stream):
        await press(pty, renderer, "f", away)
        await fill_in(pty, (r"2  blue\r\n> ", "blue"))
        assert await stream.result == "accept {'answer': 'blue'}"


async def test_a_form_is_declined(pty: Pty) -> None:
    async with asked(pty, form) as (renderer, stream):
        await press(pty, renderer, "n")
        assert "decline" in await stream.result


async def test_a_form_that_is_left_can_be_filled_in_later(pty: Pty) -> None:
    async with asked(pty, form) as (renderer, stream):
        await press(pty, renderer, "f", away)
        await fill_in(pty, ("Your name(?s:.*)> ", "Ada"))
        await pty.sees("age(?s:.*)> ")
        pty.type("\x04")
        await renderer.until(lambda kept: kept.calls[-2:] == ["suspend", "draw"] and is_open(kept.last[0]))
        await press(pty, renderer, "n")
        assert "decline" in await stream.result


async def test_a_form_that_is_answered_elsewhere_is_gone(pty: Pty) -> None:
    async def script(turn: Turn) -> str | None:
        await turn.client.create_elicitation(form(turn.session_id))
        await asks(permission)(turn)
        return None

    async with scripted(script, permissions="ask") as agent:
        stream = stream_of(agent)
        with anyio.fail_after(30):
            async with kept(stream, out=pty.out, keyboard=pty.keyboard) as (renderer, _):
                await press(pty, renderer, "f", away)
                await pty.sees("Your name(?s:.*)> ")
                question = stream.view.questions[0]
                stream.answer(question.id, {"name": "Bob", "age": 3}, by="another")
                await pty.sees("The question is gone")
                await renderer.shows(lambda run: run.asking not in (None, question.id))
                await press(pty, renderer, "y")
                assert await stream.result == "y"


async def test_a_form_that_is_half_filled_in_when_the_run_ends(pty: Pty) -> None:
    before = pty.settings()
    async with asked(pty, form) as (renderer, stream):
        await press(pty, renderer, "f", away)
        await pty.sees("Your name(?s:.*)> ")
        stream.cancel()
        await renderer.until(lambda kept: "finish" in kept.calls)
        await pty.sees(r"\r\n")
    assert pty.settings() == before
    assert [call for call in renderer.calls if call != "draw"] == ["suspend", "finish"]


async def test_a_page_is_accepted_when_it_was_opened(pty: Pty) -> None:
    async with asked(pty, page) as (renderer, stream):
        await press(pty, renderer, "e", lambda kept: kept.last[0].explained > 0)
        await press(pty, renderer, "y")
        assert "accept" in await stream.result


async def test_a_page_is_declined(pty: Pty) -> None:
    async with asked(pty, page) as (renderer, stream):
        await press(pty, renderer, "n")
        assert "decline" in await stream.result
