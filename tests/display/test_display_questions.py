"""What an agent asks, as it is put to a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from thinkwell import FormField
from thinkwell import events as ev
from thinkwell._display.questions import KNOWN, Asked, Putting, allowed, answered, asked, verdict_words
from thinkwell._reducer import ViewReducer
from thinkwell.questions import FieldChoice
from thinkwell.view import AnswerView, QuestionView

if TYPE_CHECKING:
    from thinkwell.events import JsonValue

CWD = "/home/ada/shop"


def ask(*events: ev.ThoughtEvent, **question: Any) -> Asked:
    given: dict[str, Any] = {"id": "q", "title": "May I?", "tool_id": "t", **question}
    reducer = ViewReducer(agent="mine", cwd=CWD)
    reducer.apply([*events, ev.QuestionAsked(**given)])
    view = reducer.snapshot(None)
    return asked(view.questions[0], view)


def about(input_: JsonValue, kind: ev.ToolKind = "execute", **more: Any) -> Asked:
    return ask(ev.ToolStart(id="t", kind=kind, title="x", input=input_, **more))


def test_a_command_is_whole_and_exact() -> None:
    command = "rm -rf ~\t# \u202e\x1b[8m\n" + "x" * 100_000
    put = about({"command": command, "description": "harmless", "timeout": 5, "cwd": CWD})
    assert put.command == "rm -rf ~\\u0009# \\u202e\\u001b[8m\n" + "x" * 100_000
    assert put.arguments == ""
    assert put.call is not None
    assert put.call.verb == "run"


def test_what_else_the_arguments_say_is_told() -> None:
    put = about({"command": "ls", "args": ["-l"], "env": {"A": "b"}, "cwd": "/etc", "sudo": True})
    assert put.command == "A=b\nls -l"
    assert put.arguments == '{\n  "cwd": "/etc",\n  "sudo": true\n}'
    put = about({"command": "ls", "cmd": {"rm": "-rf"}, "args": "; rm", "env": "PATH=/tmp"})
    assert put.command == "ls"
    assert put.arguments == '{\n  "cmd": {\n    "rm": "-rf"\n  },\n  "args": "; rm",\n  "env": "PATH=/tmp"\n}'


@pytest.mark.parametrize(
    ("input_", "arguments"),
    [
        ({"title": "a", "description": "b"}, '{\n  "title": "a",\n  "description": "b"\n}'),
        ({"to": "\x1b[2Jall"}, '{\n  "to": "\\u001b[2Jall"\n}'),
        (["a"], '[\n  "a"\n]'),
        ("text\u202e", '"text\\u202e"'),
        ({}, ""),
        (None, ""),
    ],
)
def test_arguments_of_other_calls(input_: JsonValue, arguments: str) -> None:
    put = about(input_, "other")
    assert (put.command, put.arguments) == (None, arguments)


def test_arguments_that_are_nested_too_deep() -> None:
    deep: JsonValue = []
    for _ in range(100_000):
        deep = [deep]
    assert about(deep, "other").arguments == "arguments that are nested too deep to be shown"
    while deep:
        deep = deep.pop()


def test_a_change() -> None:
    diff = ev.DiffContent(path=f"{CWD}/a.py", old_text="a\n", new_text="b\n")
    put = about(
        {"file_path": "a.py", "old": "a", "new": "b", "force": True, "mode": "a"}, "edit", content=(diff,)
    )
    assert [change.path for change in put.changes] == ["a.py"]
    assert put.arguments == '{\n  "force": true,\n  "mode": "a"\n}'


def test_a_change_tells_only_what_is_in_it() -> None:
    diff = ev.DiffContent(path=f"{CWD}/a.py", old_text="a\n", new_text="b\n")
    input_: JsonValue = {"path": f"{CWD}/a.py", "destination": "/etc/passwd", "text": "other", "args": "x"}
    put = about(input_, "move", content=(diff,))
    assert put.arguments == '{\n  "destination": "/etc/passwd",\n  "text": "other",\n  "args": "x"\n}'
    many: JsonValue = {f"text{number}": "b" for number in range(1_000)}
    assert '"text7": "b"' in about(many, "edit", content=(diff,)).arguments


def test_folders_in_the_arguments_of_a_change() -> None:
    diff = ev.DiffContent(path=f"{CWD}/a.py", old_text=None, new_text="b\n")
    put = about({"cwd": CWD, "directory": "/etc"}, "edit", content=(diff,))
    assert put.arguments == '{\n  "directory": "/etc"\n}'


def test_not_every_question_is_remembered() -> None:
    putting = Putting()
    view = ViewReducer().snapshot(None)
    first = QuestionView(id="first", title="May I?")
    put = putting.put(first, view)
    assert putting.put(first, view) is put
    for number in range(KNOWN):
        putting.put(QuestionView(id=str(number), title="May I?"), view)
    assert putting.put(first, view) is not put
    assert putting.put(first, view) == put


def test_a_change_is_exact() -> None:
    diff = ev.DiffContent(path=f"{CWD}/a\u200b\n.py", old_text=None, new_text="a\tb\x1b[8m\u200b\r\n")
    (change,) = about(None, "edit", content=(diff,)).changes
    assert change.path == "a\\u200b\\u000a.py"
    assert [line.text for line in change.hunks[0].lines] == ["a   b\\u001b[8m\\u200b"]


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("May I?", ""),
        ("x" * 3_000, "x" * 3_000),
        ("May\u200bI  now?\nNow?", "May\\u200bI  now?\nNow?"),
    ],
)
def test_a_title_that_does_not_fit_into_a_line_is_there_as_it_is(title: str, said: str) -> None:
    assert ask(tool_id=None, title=title).said == said


def test_a_call_without_arguments_names_its_places() -> None:
    places = tuple(ev.Location(path=f"{CWD}/{name}") for name in ("a", "b\u200b", "c" * 1_000))
    put = about(None, "delete", locations=places)
    assert put.about == ("a", "b\\u200b", "c" * 1_000)
    assert about(None, "delete", locations=places * 50).more_about == 50
    assert ask(ev.ToolStart(id="t", kind="delete", title="`delete  x`")).about == (" x",)
    assert about({"path": "a"}, "delete", locations=places).about == ask(tool_id=None).about == ()


def test_a_call_that_nobody_knows() -> None:
    put = ask(tool_id=None)
    assert (put.call, put.command, put.arguments, put.changes) == (None, None, "", ())
    assert ask(tool_id="elsewhere").call is None


def test_a_page() -> None:
    put = ask(asks="url", url="https://user@xn--e1afmkfd.example\u202e/x y")
    assert (put.url, put.host) == ("https://user@xn--e1afmkfd.example\\u202e/x y", "")
    assert ask(asks="url", url="https://пример.example/").host == "xn--e1afmkfd.example"
    assert (put.asks, ask().url, ask().host) == ("url", None, "")


def test_time_that_is_left() -> None:
    assert ask(timeout=60, at=2.0).left(12) == 50
    assert ask(timeout=60, at=2.0).left(100) == 0
    assert ask().left(1) is None


def options(*given: tuple[str, str]) -> list[tuple[str, str, str]]:
    made = tuple(ev.QuestionOption(id=f"o{n}", name=name, kind=kind) for n, (name, kind) in enumerate(given))
    return [(choice.key, choice.label, choice.option_id) for choice in ask(options=made).options]


def test_keys_follow_from_what_an_option_means() -> None:
    assert options(
        ("Yes", "allow_once"),
        ("Always allow", "allow_always"),
        ("No", "reject_once"),
        ("Never.", "reject_always"),
    ) == [("y", "once", "o0"), ("a", "always", "o1"), ("n", "no", "o2"), ("d", "never", "o3")]


def test_words_of_the_agent_are_added_and_never_replace_the_meaning() -> None:
    assert options(
        ("Reject\x1b[2J", "allow_once"), ("", "allow_always"), ("No, keep planning", "reject_once")
    ) == [
        ("y", "once", "o0"),
        ("a", "always", "o1"),
        ("n", "no: No, keep planning", "o2"),
    ]
    assert options(("Reject it all", "allow_once"))[0][1] == "once: Reject it all"


def test_options_of_the_same_or_of_an_unknown_kind_get_digits() -> None:
    assert options(
        ("Yes", "allow_once"), ("Yes, and more", "allow_once"), ("Maybe", "perhaps"), ("", "sudo\x1b[2J")
    ) == [("y", "once", "o0"), ("1", "once: Yes, and more", "o1"), ("2", "Maybe", "o2"), ("3", "sudo", "o3")]
    many = options(*[(f"option {n}", "other") for n in range(12)])
    assert [key for key, _, _ in many] == [*"123456789"]


@pytest.mark.parametrize(
    ("field", "hint", "default"),
    [
        (FormField(name="n", type="string"), "text", ""),
        (
            FormField(name="n", type="string", maximum=9, format="email"),
            "text, at most 9 characters, email",
            "",
        ),
        (FormField(name="n", type="integer", minimum=1, default=3), "whole number, at least 1", "3"),
        (FormField(name="n", type="number", minimum=0.5, maximum=2), "number, 0.5 to 2", ""),
        (FormField(name="n", type="boolean", required=True, default=True), "yes or no, required", "yes"),
        (FormField(name="n", type="boolean", default=False), "yes or no", "no"),
        (
            FormField(name="n", type="choices", maximum=2, default=["a", "b"]),
            "any of these, at most 2 of them",
            "a, b",
        ),
        (FormField(name="n", type="string", default="\x1b[2Jx\n"), "text", "x"),
        (FormField(name="n", type="unknown", default={"a": 1}), "value", ""),
    ],
)
def test_fields(field: FormField, hint: str, default: str) -> None:
    (shown,) = ask(asks="form", fields=(field,)).fields
    assert (shown.hint, shown.default, shown.required) == (hint, default, field.required)


def test_names_of_fields_and_choices_are_clean_and_their_values_are_not_touched() -> None:
    choices = (FieldChoice(value="a\x1b", title="A\x1b[2J\n1"), FieldChoice(value="b", title=""))
    field = FormField(
        name="n\x1b", type="choice", title="T\u202e", description="one\n\ttwo ", choices=choices
    )
    (shown,) = ask(asks="form", fields=(field,)).fields
    assert (shown.name, shown.label, shown.description) == ("n\x1b", "T\\u202e", "one\n    two")
    assert shown.choices == (("a\x1b", "A 1"), ("b", "b"))
    assert shown.offered == "A 1 · b"


def test_of_many_choices_some_are_offered_at_a_glance() -> None:
    choices = tuple(FieldChoice(value=str(number), title="x" * 99) for number in range(1_000))
    (shown,) = ask(asks="form", fields=(FormField(name="n", type="choices", choices=choices),)).fields
    assert shown.offered == " · ".join(["x" * 59 + "…"] * 9 + ["… 991 more"])
    (shown,) = ask(asks="form", fields=(FormField(name="n", type="string"),)).fields
    assert shown.offered == ""


def answer(choice: str | None, by: str = "human", why: str = "") -> AnswerView:
    return AnswerView(id="q", title="t", choice=choice, by=by, why=why)


@pytest.mark.parametrize(
    ("given", "words", "yes"),
    [
        (answer("allow_once"), "allowed by human", True),
        (answer("allow_always", "policy", "rule 3"), "allowed for good by policy: rule 3", True),
        (answer("reject_once", "supervisor", "it\ndeletes"), "denied by supervisor: it deletes", False),
        (answer("reject_always"), "denied for good by human", False),
        (answer("accept"), "accepted by human", True),
        (answer("decline"), "declined by human", False),
        (answer("sudo\x1b[2J"), "sudo by human", False),
        (answer(None, "cancel", "the turn was cancelled"), "withdrawn: the turn was cancelled", None),
        (answer(None, ""), "withdrawn", None),
    ],
)
def test_answers(given: AnswerView, words: str, yes: bool | None) -> None:
    assert (answered(given), allowed(given)) == (words, yes)


def test_verdicts() -> None:
    verdict = ev.QuestionVerdict(id="q", verdict="allow_session", by="su\npervisor", why="fine\x1b[2J")
    assert verdict_words(verdict) == "su pervisor: allow session (fine)"
    assert verdict_words(ev.QuestionVerdict(id="q", verdict=None, by="policy", why="")) == "policy: no answer"
    reducer = ViewReducer()
    reducer.apply([ev.QuestionAsked(id="q", title="x"), verdict])
    view = reducer.snapshot(None)
    assert asked(view.questions[0], view).verdicts == ("su pervisor: allow session (fine)",)
