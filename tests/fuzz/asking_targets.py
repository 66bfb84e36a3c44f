"""What an agent asks: permissions, command lines, forms and pages."""

from __future__ import annotations

from typing import Any

import msgspec
from fuzz.hostile import LEAVES, LONGEST, bodies, repeated
from fuzz.target import Target
from hypothesis import strategies as st

from thinkwell import events as ev
from thinkwell._call_facts import facts_of
from thinkwell._convert import Mapper
from thinkwell._forms import check_form
from thinkwell._json_schema import is_array, is_object
from thinkwell._log import RunLog
from thinkwell._policy.commands import allows, read_command, touches
from thinkwell._wire_questions import elicitation_question
from thinkwell.events import event_from_json, event_to_json
from thinkwell.permissions import PermissionPolicy, Rule
from thinkwell.questions import FormQuestion, PermissionQuestion, QuestionOption, UrlQuestion
from thinkwell_acp import schema as s
from thinkwell_acp.schema import DecodeError

# Permissions

_PIECES = (
    *(
        "a",
        "_",
        "__",
        ".",
        "..",
        "/",
        "\\",
        "~",
        "\0",
        " ",
        "\n",
        "-",
        "=",
        "[",
        "]",
        ":",
        "@",
        "%",
        "*",
        "?",
    ),
    *(
        "file:",
        "file://",
        "https://",
        "mcp__",
        "mcp.",
        " MCP Server)",
        "C:",
        "--- a/",
        "*** Move to: ",
        "\u00e4",
    ),
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


def check_permission(given: tuple[bytes, PermissionPolicy]) -> None:
    """What an agent asks is understood and decided in bounded time."""
    body, policy = given
    try:
        call = s.decode(s.ToolCallUpdate, body)
    except DecodeError:
        return
    log = RunLog(ev.ALL_TYPES)
    mapper = Mapper(log)
    facts = facts_of(call, None, "/code/project")
    mapper.update_tool(call)
    facts_of(call, log.view().tools[call.tool_call_id], "/code/project")
    question = PermissionQuestion(
        id="q",
        title=facts.title,
        agent="agent",
        options=(QuestionOption(id="y", name="Yes", kind="allow_once"),),
        kind=facts.kind,
        input=facts.input,
        content=facts.content,
        name=facts.name,
        server=facts.server,
        command=facts.command,
        paths=facts.paths,
    )
    decision = policy.decide(question, cwd="/code/project")
    assert decision.verdict in ("allow", "deny")
    assert len(decision.why) < 1000


_SHELL = (
    *(
        "a",
        "git",
        "push",
        " ",
        "\n",
        "\t",
        ";",
        "&&",
        "|",
        "&",
        "(",
        ")",
        "{ ",
        "}",
        "$(",
        "`",
        "${",
        "$((",
        "$'",
    ),
    *(
        "'",
        '"',
        "\\",
        "\\\n",
        "<<a",
        "<<'a'",
        "a\n",
        ">",
        "<(",
        "=",
        "#",
        "-",
        "--",
        "-c ",
        "[",
        "~",
        "*",
        "{}",
        "!",
    ),
    *(
        "sudo ",
        "env ",
        "bash -c ",
        "xargs ",
        "eval ",
        "find . -exec ",
        "if ",
        "do ",
        "a=",
        "\0",
        "\u00e4",
        "%",
    ),
)


def check_command(line: str) -> None:
    """A command line is read in bounded time; what is sure to be allowed is nothing that a rule denies."""
    reading = read_command(line)
    patterns = ("git push *", "a * - * b", "*")
    if allows(patterns[:1], reading):
        assert touches(patterns[:1], reading), "it is allowed by a pattern, and not denied by the same"
    for pattern in patterns:
        touches((pattern,), reading)


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


def check_form_question(given: tuple[bytes, dict[str, Any]]) -> None:
    """A request for input is a question, and any answer to it is checked."""
    body, answer = given
    try:
        request = s.decode(s.CreateElicitationRequest, body)
    except DecodeError:
        return
    if not isinstance(request, s.ElicitationFormMode | s.ElicitationUrlMode):
        return
    question = elicitation_question(request, id="q", agent="agent")
    match question:
        case UrlQuestion(host=host):
            assert host.isascii()
            assert len(host) <= 1000
        case FormQuestion(fields=fields):
            asked = ev.QuestionAsked(id="q", title=question.title, asks="form", fields=fields)
            assert event_from_json(event_to_json(asked)) == asked
            names = [field.name for field in fields]
            values, errors = check_form(fields, {**dict(zip(names, answer.values(), strict=False)), **answer})
            assert not values.keys() & errors.keys()
            msgspec.json.decode(msgspec.json.encode(values))


TARGETS = (
    Target(
        name="permissions",
        inputs=st.tuples(
            _CALLS.map(msgspec.json.encode) | bodies(s.ToolCallUpdate), st.sampled_from(_POLICIES)
        ),
        check=check_permission,
        weight=100,
    ),
    Target(name="commands", inputs=repeated(_SHELL), check=check_command, weight=100),
    Target(
        name="forms",
        inputs=st.tuples(bodies(s.CreateElicitationRequest, _fill), _ANSWERS),
        check=check_form_question,
    ),
)
