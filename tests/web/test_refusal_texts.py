"""What is said of each thing that cannot be used: where it stands, what is wrong, and what to do."""

from __future__ import annotations

import base64
import json
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
from asking import permission
from web_stage import Client, hello, scripted_agent, served

from thinkwell.events import ALL_TYPES
from thinkwell.web import web_app
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from scripted import Turn

    from thinkwell.events import JsonValue

JPEG: Final = base64.b64encode(b"\xff\xd8\xff" + b"0" * 20).decode()

VERDICTS: Final = "accept, allow, allow_always, allow_session, decline, deny, deny_always, deny_session"
GIVE: Final = f"give a boolean, an object or one of {VERDICTS}"
FIELDS: Final = "prompt, agent, output, folder, permissions, model, thread, title, timeout, meta"
WRONG: Final[tuple[tuple[JsonValue, str], ...]] = (
    (5, "an integer"),
    (True, "a boolean"),
    ([], "an array"),
    ({}, "an object"),
)
KINDS: Final = ", ".join(sorted({*ALL_TYPES, "all", "default"}))
COSTLY: Final = (
    "output: the pattern '(?=a)b' cannot be matched in linear time; do without look-around and "
    "back-references, and repeat less"
)
STATUSES: Final = "cancelled, completed, failed, interrupted, running"
TYPES: Final = "array, boolean, integer, null, number, object, string"

NOTHING: Final[dict[str, JsonValue]] = {}

STARTED: Final[tuple[tuple[JsonValue, str], ...]] = (
    # The whole of it
    ([], "the body: it is an array; give an object"),
    (5, "the body: it is an integer; give an object"),
    ("x", "the body: it is a string; give an object"),
    ({}, "prompt: it is missing; give a string or an array"),
    ({"promt": "x"}, "promt: there is no such field; do you mean prompt?"),
    ({"prompt": "x", "Agent": "claude"}, "Agent: there is no such field; do you mean agent?"),
    ({"prompt": "x", "zzz": 1}, f"zzz: there is no such field; there are {FIELDS}"),
    ({"prompt": "x", "z" * 999: 1}, f"{'z' * 100}: there is no such field; there are {FIELDS}"),
    # The prompt
    ({"prompt": None}, "prompt: it is null; give a string or an array"),
    ({"prompt": {}}, "prompt: it is an object; give a string or an array"),
    ({"prompt": 1.5}, "prompt: it is a number; give a string or an array"),
    ({"prompt": ""}, "prompt: it is blank; say what to think about"),
    ({"prompt": " \n"}, "prompt: it is blank; say what to think about"),
    ({"prompt": []}, "prompt: it is too short; give at least 1 item"),
    ({"prompt": [{"type": "text", "text": "x"}] * 101}, "prompt: it is too long; give at most 100 items"),
    ({"prompt": [{"type": "text", "text": " "}]}, "prompt: it is blank; say what to think about"),
    ({"prompt": ["x"]}, "prompt[0]: it is a string; give an object"),
    ({"prompt": [NOTHING]}, "prompt[0].type: it is missing; give one of text, image"),
    ({"prompt": [{"type": 5}]}, "prompt[0].type: it is something else; give one of text, image"),
    (
        {"prompt": [{"type": "txt"}]},
        "prompt[0].type: there is no 'txt'; do you mean text? There are text, image",
    ),
    ({"prompt": [{"type": "video"}]}, "prompt[0].type: there is no 'video'; choose one of text, image"),
    ({"prompt": [{"type": "text"}]}, "prompt[0].text: it is missing; give a string"),
    ({"prompt": [{"type": "text", "text": 5}]}, "prompt[0].text: it is an integer; give a string"),
    (
        {"prompt": [{"type": "text", "text": "x"}, {"type": "text", "test": "x"}]},
        "prompt[1].test: there is no such field; do you mean text?",
    ),
    ({"prompt": [{"type": "image"}]}, "prompt[0].data: it is missing; give a string of base64"),
    ({"prompt": [{"type": "image", "data": 5}]}, "prompt[0].data: it is an integer; give a string of base64"),
    (
        {"prompt": [{"type": "image", "data": "%"}]},
        "prompt[0].data: it is not base64; send the bytes of the file in that",
    ),
    (
        {"prompt": [{"type": "image", "data": JPEG}, {"type": "image", "data": "AAAA"}]},
        "prompt[1].data: it is not a PNG, JPEG, GIF or WebP; send one of these",
    ),
    # What can be chosen
    *(
        ({"prompt": "x", name: value}, f"{name}: it is {kind}; give a string or null")
        for name in ("agent", "folder", "permissions", "thread", "title")
        for value, kind in WRONG
    ),
    *(
        ({"prompt": "x", name: ""}, f"{name}: it is too short; give at least 1 character")
        for name in ("agent", "folder", "permissions", "thread")
    ),
    *(
        ({"prompt": "x", name: "x" * 201}, f"{name}: it is too long; give at most 200 characters")
        for name in ("agent", "folder", "permissions", "thread", "title")
    ),
    (
        {"prompt": "x", "agent": "clade"},
        "agent: there is no 'clade'; do you mean claude? There are claude, codex",
    ),
    (
        {"prompt": "x", "agent": "CODEX"},
        "agent: there is no 'CODEX'; do you mean codex? There are claude, codex",
    ),
    ({"prompt": "x", "agent": "nobody"}, "agent: there is no 'nobody'; choose one of claude, codex"),
    (
        {"prompt": "x", "folder": "../api"},
        "folder: there is no '../api'; do you mean api? There are api, site",
    ),
    ({"prompt": "x", "folder": "/etc"}, "folder: there is no '/etc'; choose one of api, site"),
    ({"prompt": "x", "permissions": "allow"}, "permissions: there is no 'allow'; choose one of ask, careful"),
    # The rest
    ({"prompt": "x", "timeout": "5"}, "timeout: it is a string; give a number or null"),
    ({"prompt": "x", "timeout": True}, "timeout: it is a boolean; give a number or null"),
    ({"prompt": "x", "timeout": 0}, "timeout: it is too small; give more than 0"),
    ({"prompt": "x", "timeout": -1.5}, "timeout: it is too small; give more than 0"),
    ({"prompt": "x", "meta": None}, "meta: it is null; give an object"),
    ({"prompt": "x", "meta": "x"}, "meta: it is a string; give an object"),
    ({"prompt": "x", "meta": {"a": "x" * 70_000}}, "meta: it is too long; give at most 65,536 bytes"),
    # A schema
    ({"prompt": "x", "output": "object"}, "output: it is a string; give an object or null"),
    ({"prompt": "x", "output": {"title": "x" * 60_000}}, "output: it is too long; give at most 50,000 bytes"),
    (
        {"prompt": "x", "output": {"type": 5}},
        f"output.type: it is an integer; give one of {TYPES}, or an array of some",
    ),
    (
        {"prompt": "x", "output": {"type": ["object", "nil"]}},
        f"output.type: it is an array; give one of {TYPES}, or an array of some",
    ),
    (
        {"prompt": "x", "output": {"type": "objekt"}},
        f"output.type: there is no 'objekt'; do you mean object? There are {TYPES}",
    ),
    (
        {"prompt": "x", "output": {"properties": {"a": {"type": "dict"}}}},
        f"output.properties.a.type: there is no 'dict'; choose one of {TYPES}",
    ),
    ({"prompt": "x", "output": {"properties": 1.5}}, "output.properties: it is a number; give an object"),
    ({"prompt": "x", "output": {"properties": None}}, "output.properties: it is null; give an object"),
    (
        {"prompt": "x", "output": {"items": True, "not": 5}},
        "output.not: it is an integer; give an object or a boolean",
    ),
    ({"prompt": "x", "output": {"required": "a"}}, "output.required: it is a string; give an array"),
    ({"prompt": "x", "output": {"required": [True]}}, "output.required[0]: it is a boolean; give a string"),
    (
        {"prompt": "x", "output": {"minLength": -1}},
        "output.minLength: it breaks what JSON Schema says of it (minimum); give what may stand there",
    ),
    (
        {"prompt": "x", "output": {"properties": {"x" * 999: 5}}},
        f"output.properties.{'x' * 88}: it is an integer; give an object or a boolean",
    ),
    (
        {"prompt": "x", "output": {"$ref": "#/$defs/a"}},
        "output: this JSON Schema refers to /$defs/a, which it does not contain; nothing is fetched",
    ),
    ({"prompt": "x", "output": {"pattern": "(?=a)b"}}, COSTLY),
    (
        {"prompt": "x", "output": {"patternProperties": {}}},
        "output: patternProperties cannot be used here; name the properties, or allow any",
    ),
)
"""Requests for runs, and what is said of each."""

ANSWERS: Final[tuple[tuple[JsonValue, str], ...]] = (
    ([], "the body: it is an array; give an object"),
    ({}, "question: it is missing; give a string"),
    ({"question": 5, "answer": True}, "question: it is an integer; give a string"),
    ({"qestion": "q", "answer": True}, "qestion: there is no such field; do you mean question?"),
    ({"question": "q", "answer": True, "y": 1}, "y: there is no such field; there are question, answer, why"),
    ({"question": "q", "answer": True, "why": 5}, "why: it is an integer; give a string or null"),
    ({"question": "q"}, f"answer: it is missing; {GIVE}"),
    ({"question": "q", "answer": None}, f"answer: it is null; {GIVE}"),
    ({"question": "q", "answer": 5}, f"answer: it is an integer; {GIVE}"),
    ({"question": "q", "answer": []}, f"answer: it is an array; {GIVE}"),
    (
        {"question": "q", "answer": "alow"},
        f"answer: there is no 'alow'; do you mean allow? There are {VERDICTS}",
    ),
    ({"question": "q", "answer": "maybe"}, f"answer: there is no 'maybe'; choose one of {VERDICTS}"),
    ({"question": "q", "answer": {}}, "answer: give one of option, form and stop"),
    ({"question": "q", "answer": {"option": "a", "stop": "b"}}, "answer: give one of option, form and stop"),
    ({"question": "q", "answer": {"optn": "a"}}, "answer.optn: there is no such field; do you mean option?"),
    ({"question": "q", "answer": {"option": 5}}, "answer.option: it is an integer; give a string or null"),
    ({"question": "q", "answer": {"stop": ""}}, "answer.stop: it is too short; give at least 1 character"),
    ({"question": "q", "answer": {"form": 5}}, "answer.form: it is an integer; give an object or null"),
    (
        {"question": "q", "answer": {"form": {"a": {}}}},
        "answer.form[...]: it is an object; give a string, an integer, a number, a boolean, an array or null",
    ),
    (
        {"question": "q", "answer": {"form": {"a": [5]}}},
        "answer.form[...][0]: it is an integer; give a string",
    ),
)
"""Answers to questions, likewise."""

QUERIES: Final = (
    ("/api/runs?limit=x", "limit: it is a string; give an integer"),
    ("/api/runs?limit=", "limit: it is a string; give an integer"),
    ("/api/runs?limit=1.5", "limit: it is a string; give an integer"),
    ("/api/runs?limit=0", "limit: it is too small; give 1 or more"),
    ("/api/runs?limit=501", "limit: it is too large; give 500 or less"),
    ("/api/runs?status=runing", f"status: there is no 'runing'; do you mean running? There are {STATUSES}"),
    ("/api/runs?status=", f"status: there is no ''; choose one of {STATUSES}"),
    (f"/api/runs?status={'x' * 999}", f"status: there is no '{'x' * 100}'; choose one of {STATUSES}"),
    *(
        (f"{{run}}/events?after={after}", "after: it is a string; give an integer")
        for after in ("x", "1.5", "", "null")
    ),
    ("{run}/events?after=-1", "after: it is too small; give 0 or more"),
    *(
        (f"{{run}}/events?after={after}", f"after: it is too large; give {2**53 - 1} or less")
        for after in (2**53, "9" * 40)
    ),
    ("{run}/events?format=xml", "format: there is no 'xml'; choose one of ag-ui, ai-sdk, native"),
    (
        "{run}/events?format=ag_ui",
        "format: there is no 'ag_ui'; do you mean ag-ui? There are ag-ui, ai-sdk, native",
    ),
    ("{run}/events?include=mesage", f"include: there is no 'mesage'; do you mean message? There are {KINDS}"),
    (
        "{run}/events?include=Message",
        f"include: there is no 'Message'; do you mean message? There are {KINDS}",
    ),
    (
        "{run}/events?include=%20message",
        f"include: there is no ' message'; do you mean message? There are {KINDS}",
    ),
    *(
        (f"{{run}}/events?include={include}", f"include: there is no {name!r}; choose one of {KINDS}")
        for include, name in (("message,zzz", "zzz"), ("message,x%0d%0a", "x\r\n"), ("", ""), ("end", "end"))
    ),
)
"""Parameters of URLs, likewise."""


async def asks(turn: Turn) -> None:
    response = await turn.client.request_permission(permission(turn.session_id))
    turn.say("Yes." if isinstance(response.outcome, s.SelectedPermissionOutcome) else "No.")


@asynccontextmanager
async def client(tmp_path: Path, play: Any = hello) -> AsyncGenerator[Client]:
    folders = {"api": tmp_path, "site": tmp_path}
    agent, _ = scripted_agent(play, folders=folders, permissions={"ask": "ask", "careful": "deny"})
    async with served(agents={"claude": agent, "codex": agent}) as stage:
        yield Client(web_app(stage.server))


async def refused(
    client: Client, method: str, url: str, body: JsonValue = None, code: str = "invalid", status: int = 422
) -> str:
    """Send what is refused, and return the words for it."""
    content = None if method == "GET" else json.dumps(body).encode()
    answered = await client.ask(method, url, content=content)
    assert answered.status == status, (body, await answered.body())
    error: dict[str, str] = (await answered.json())["error"]
    assert error["code"] == code
    return error["message"]


async def test_runs_that_cannot_be_started(tmp_path: Path) -> None:
    async with client(tmp_path) as asked:
        said = [await refused(asked, "POST", "/api/runs", body) for body, _ in STARTED]
        assert await (await asked.get("/api/runs")).json() == {"runs": [], "next": None}
    assert said == [text for _, text in STARTED]


async def test_a_name_that_looks_like_a_place(tmp_path: Path) -> None:
    name = " - at `$.b" + ".c" * 1000
    async with client(tmp_path) as asked:
        said = await refused(asked, "POST", "/api/runs", {"prompt": [{"type": name}]})
        assert said == f"prompt[0].type: there is no {name[:100]!r}; choose one of text, image"
        said = await refused(asked, "POST", "/api/runs", {"prompt": "x", f"a{name}": 1})
        assert said.endswith(": object contains unknown field `a")
        assert len(said) < 200
        said = await refused(asked, "POST", "/api/runs", {"prompt": "x", f"{'a' * 1000}{name}": 1})
        assert len(said) < 700


async def test_answers_that_cannot_be_read(tmp_path: Path) -> None:
    async with client(tmp_path) as asked:
        said = [await refused(asked, "POST", "/api/runs/run-1/answer", body) for body, _ in ANSWERS]
    assert said == [text for _, text in ANSWERS]


async def test_queries_that_cannot_be_used(tmp_path: Path) -> None:
    async with client(tmp_path) as asked:
        run = (await asked.post("/api/runs", {"prompt": "Go."})).headers["location"]
        said = [await refused(asked, "GET", url.format(run=run)) for url, _ in QUERIES]
    assert said == [text for _, text in QUERIES]


async def test_every_text_has_one_form() -> None:
    texts = [text for _, text in (*STARTED, *ANSWERS, *QUERIES)]
    for text in texts:
        place, colon, rest = text.partition(": ")
        assert place
        assert colon
        assert rest[0].islower()
        assert not rest.endswith(".")
        assert not any(word in text for word in ("None", "True", "think(", "Schema(", "`", " str ", " int "))


async def test_answers_that_do_not_fit(tmp_path: Path) -> None:
    async with client(tmp_path, asks) as asked:
        run = (await asked.post("/api/runs", {"prompt": "Go."})).headers["location"]
        async with (
            asked.stream("GET", f"{run}/events?include=question") as watched,
            aclosing(watched.events()) as events,
        ):
            question = await anext(events)
        id_ = question.json()["id"]

        async def answered(
            answer: JsonValue, code: str = "answer_invalid", to: str = id_, of: str = run
        ) -> str:
            body: JsonValue = {"question": to, "answer": answer}
            return await refused(
                asked, "POST", f"{of}/answer", body, code, 422 if code == "answer_invalid" else 404
            )

        assert (await answered({"option": "zzz"})).startswith("answer: there is no option 'zzz'; offered: ")
        wrong = await answered({"form": {"password": "a secret"}})
        assert wrong.startswith("answer: a form is no answer to it; say 'allow', ")
        closed = await answered(True, "question_not_open", "x" * 999)
        assert closed == (
            f"question: there is no '{'x' * 100}' that is open, it may have been answered; open are {id_}"
        )
        assert (await asked.post(f"{run}/answer", {"question": id_, "answer": "allow"})).status == 204
        await asked.events(f"{run}/events")
        assert "the run has ended" in await answered("allow", "question_not_open")
        assert "there is no such run" in await answered("allow", "run_not_found", of="/api/runs/none")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "the body of the request is not JSON: it is empty; send an object"),
        (b"{", "the body of the request is not JSON: input data was truncated; send an object"),
        (b"\xff", "the body of the request is not JSON: invalid character (byte 0); send an object"),
    ],
)
async def test_bodies_that_are_no_json(content: bytes, text: str, tmp_path: Path) -> None:
    async with client(tmp_path) as asked:
        answered = await asked.ask("POST", "/api/runs", content=content)
        assert (answered.status, (await answered.json())["error"]["message"]) == (400, text)


async def test_names_of_nothing() -> None:
    async with served(hello) as stage:
        asked = Client(web_app(stage.server))
        for name in ("folder", "model"):
            said = await refused(asked, "POST", "/api/runs", {"prompt": "x", name: "x"})
            assert said == f"{name}: there is no 'x'; there is none to choose"


async def test_other_clients_are_told_in_the_same_words(tmp_path: Path) -> None:
    runs: dict[str, JsonValue] = {
        "threadId": "t",
        "runId": "r",
        "state": None,
        "messages": [{"id": "1", "role": "user", "content": "Go."}],
        "tools": [],
        "context": [],
        "forwardedProps": {"thinkwell": {"folder": 5}},
    }
    async with client(tmp_path) as asked:
        assert await refused(asked, "POST", "/ag-ui/claude", {**runs, "messages": 5}) == (
            "messages: it is an integer; give an array"
        )
        assert await refused(asked, "POST", "/ag-ui/claude", runs) == (
            "forwardedProps.thinkwell.folder: it is an integer; give a string or null"
        )

        async def of_letta(url: str, body: JsonValue) -> str:
            answered = await asked.post(url, body)
            assert answered.status == 422
            detail: str = (await answered.json())["detail"]
            return detail

        assert await of_letta("/v1/agents/", {"name": 5}) == "name: it is an integer; give a string or null"
        assert await of_letta("/v1/agents/", {"metadata": {"thinkwell": {"agnt": "x"}}}) == (
            "metadata.thinkwell.agnt: there is no such field; do you mean agent?"
        )
        agent = (await (await asked.post("/v1/agents/", {"name": "a"})).json())["id"]
        said: JsonValue = {"messages": [{"role": "user", "content": "x", "otid": 5}]}
        assert await of_letta(f"/v1/agents/{agent}/messages", said) == (
            "messages[0].otid: it is an integer; give a string or null"
        )
