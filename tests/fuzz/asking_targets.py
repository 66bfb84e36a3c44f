"""What an agent asks: permissions, command lines, forms and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from fuzz.hostile import LEAVES, LONG_RUN, LONGEST, bodies, is_array, is_object, repeated
from fuzz.talking import CWD, SESSION, request, talk
from fuzz.target import Target, on_both, told
from hypothesis import strategies as st

from thinkwell import AnswerInvalid, wait_for_answer
from thinkwell import events as ev
from thinkwell.events import event_from_json, event_to_json
from thinkwell.permissions import PermissionPolicy, Rule
from thinkwell.questions import PermissionQuestion, UrlQuestion
from thinkwell_acp import schema as s
from thinkwell_acp.schema import DecodeError

if TYPE_CHECKING:
    from thinkwell import ThoughtStream
    from thinkwell.questions import Question

# Permissions

_PIECES = (
    *("a", "_", "__", ".", "..", "/", "\\", "~", "\0", " ", "\n", "-", "=", "[", "]", ":", "@", "%"),
    *("*", "?"),
    *("file:", "file://", "https://", "mcp__", "mcp.", " MCP Server)", "C:", "--- a/"),
    *("*** Move to: ", "\u00e4"),
)
_WORDS = repeated(_PIECES)
_ARGUMENT_KEYS = st.sampled_from(
    [
        "command",
        "cmd",
        "args",
        "env",
        "path",
        "paths",
        "work_dir",
        "files",
        "changes",
        "text",
        "server",
        "tool",
    ]
) | repeated(["a", "_", "dir", "path"], LONGEST // 10)


def _often(item: Any, count: int) -> list[Any]:
    return [item] * count


def _holders(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(inner, max_size=3)
        | st.dictionaries(_ARGUMENT_KEYS, inner, max_size=4)
        | st.builds(_often, st.sampled_from(_PIECES), st.integers(0, LONGEST))
    )


_ARGUMENTS: st.SearchStrategy[Any] = st.recursive(_WORDS | LEAVES, _holders, max_leaves=6)
_CALLS = st.fixed_dictionaries(
    {"toolCallId": st.just("t")},
    optional={
        "title": _WORDS,
        "name": _WORDS,
        "kind": st.sampled_from(["execute", "edit", "read", "other", "delete", "fetch"]),
        "rawInput": _ARGUMENTS,
        "locations": st.lists(st.fixed_dictionaries({"path": _WORDS}), max_size=3)
        | st.builds(_often, st.just({"path": ""}), st.integers(0, LONGEST)),
        "content": st.lists(
            st.fixed_dictionaries({"type": st.just("diff"), "path": _WORDS, "newText": _WORDS}), max_size=2
        ),
        "_meta": st.fixed_dictionaries(
            {
                "claudeCode": st.fixed_dictionaries(
                    {}, optional={"toolName": _WORDS, "mcpServer": _ARGUMENTS}
                )
                | LEAVES
            }
        ),
    },
)

_RULES: tuple[dict[str, Any], ...] = (
    {"tool": "*a*_"},
    {"server": "a*", "tool": "_*a"},
    {"command": "git push * --force *"},
    {"command": "a * - * b"},
    {"path": "src/**"},
    {"path": "/**/a/**/.env"},
    {"kind": "execute"},
)
_POLICIES = tuple(
    PermissionPolicy(rules=tuple(Rule(verdict, **criteria) for criteria in chosen))
    for verdict in ("allow", "deny")
    for chosen in [*([one] for one in _RULES), _RULES]
)


_CHOICES = b'"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]'


async def check_permission(given: tuple[bytes, PermissionPolicy]) -> None:
    """What an agent asks is understood and decided in bounded time, also of a call that is known already."""
    body, policy = given
    try:
        call = s.decode(s.ToolCallUpdate, body)
    except DecodeError:
        return
    params = b'{"sessionId":"%b","toolCall":%b,%b}' % (SESSION.encode(), s.encode(call), _CHOICES)
    asked = ("q0", "q1")
    talked = await talk(
        *(request(id_, "session/request_permission", params) for id_ in asked),
        waits_for=asked,
        permissions=policy,
    )
    for id_ in asked:
        assert talked.answers[id_]["outcome"]["outcome"] in ("selected", "cancelled")
    decided = [event for event in talked.events if isinstance(event, ev.QuestionAnswered)]
    assert len(decided) == 2
    assert all(len(decision.why) < 1000 for decision in decided)


_SHELL = (
    *("a", "git", "push", " ", "\n", "\t", ";", "&&", "|", "&", "(", ")", "{ ", "}", "$(", "`", "${"),
    *("$((", "$'"),
    *("'", '"', "\\", "\\\n", "<<a", "<<'a'", "a\n", ">", "<(", "=", "#", "-", "--", "-c ", "[", "~"),
    *("*", "{}", "!"),
    *("sudo ", "env ", "bash -c ", "xargs ", "eval ", "find . -exec ", "if ", "do ", "a=", "\0"),
    *("\u00e4", "%"),
)


def check_command(line: str) -> None:
    """A command line is read in bounded time; what is sure to be allowed is nothing that a rule denies."""
    question = PermissionQuestion(id="q", title="", agent="a", options=(), kind="execute", command=line)
    for pattern in ("git push *", "a * - * b", "*"):
        allowing = PermissionPolicy(rules=(Rule("allow", command=pattern),), otherwise="deny")
        denying = PermissionPolicy(rules=(Rule("deny", command=pattern),), otherwise="allow")
        denied = denying.decide(question, cwd=CWD).verdict == "deny"
        assert allowing.decide(question, cwd=CWD).verdict == "deny" or denied, pattern


# Forms and pages

_ANSWERS = st.dictionaries(
    st.text(max_size=2),
    st.one_of(
        st.text(max_size=5),
        st.floats(),
        st.integers(),
        st.booleans(),
        st.none(),
        st.lists(st.text(max_size=3) | st.none(), max_size=3),
        st.sampled_from([10**4000, "\ud800", b"x", object, {}, [[]]]),
        _WORDS,
    ),
    max_size=4,
)
_PATTERNS = repeated(
    ["a", "(", ")", "*", "+", "{9}", "{", "}", "|", "[", "]", "\\", "^", "$", ".", "(?x)", "?"]
)


def _fill(value: Any, draw: st.DrawFn) -> Any:
    """Give a form patterns, choices and links to be afraid of."""
    if is_array(value):
        return [_fill(item, draw) for item in value]
    if not is_object(value):
        return value
    odd = {
        "pattern": _PATTERNS,
        "url": _URLS,
        "format": st.sampled_from(["email", "uri", "date", "date-time"]),
    }
    return {
        key: draw(odd[key]) if key in odd and item is not None else _fill(item, draw)
        for key, item in value.items()
    }


_URLS = repeated(
    ["https://", "a", ".", "/", ":", "@", "[", "]", "\\", "%", "xn--", "\u00e4", "\u212a", "\0", " ", "?"]
)


async def check_form_question(given: tuple[bytes, dict[str, Any]]) -> None:
    """A request for input is a question, and any answer to it is checked."""
    body, answer = given
    try:
        request_ = s.decode(s.CreateElicitationRequest, body)
    except DecodeError:
        return
    if not isinstance(request_, s.ElicitationFormMode | s.ElicitationUrlMode):
        return
    params = s.encode(msgspec.structs.replace(request_, session_id=SESSION))

    seen: list[Question] = []

    async def reply(stream: ThoughtStream[str]) -> None:
        async for event in stream:
            if isinstance(event, ev.QuestionAsked):
                assert event_from_json(event_to_json(event)) == event
                _reply(stream, event, answer)

    talked = await talk(
        request("q", "elicitation/create", params),
        waits_for=["q"],
        look=reply,
        permissions="ask",
        on_question=(seen.append, wait_for_answer),
    )
    assert len(seen) <= 1
    for question in seen:
        if isinstance(question, UrlQuestion):
            assert 0 < len(question.host) <= 1000
            assert question.host.isascii()
    assert talked.answers["q"].get("action") in ("accept", "decline", "cancel")


def _reply(stream: ThoughtStream[str], question: ev.QuestionAsked, answer: dict[str, Any]) -> None:
    names = [field.name for field in question.fields]
    values = {**dict(zip(names, answer.values(), strict=False)), **answer}
    try:
        stream.answer(question.id, values if question.asks == "form" else "accept")
    except AnswerInvalid as exc:
        told("".join(exc.errors.values()), where=exc.errors.keys() <= {*names, *answer, ""})
        stream.answer(question.id, "decline")


TARGETS = (
    Target(
        name="permissions",
        inputs=st.tuples(
            _CALLS.map(msgspec.json.encode) | bodies(s.ToolCallUpdate), st.sampled_from(_POLICIES)
        ),
        check=on_both(check_permission),
        weight=60 if LONG_RUN else 25,
    ),
    Target(name="commands", inputs=repeated(_SHELL), check=check_command, weight=100),
    Target(
        name="forms",
        inputs=st.tuples(bodies(s.CreateElicitationRequest, _fill), _ANSWERS),
        check=on_both(check_form_question),
        weight=60 if LONG_RUN else 25,
    ),
)
