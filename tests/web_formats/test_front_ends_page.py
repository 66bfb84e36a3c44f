"""The page about front ends: its programs in TypeScript run, and it tells of everything that there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from front_end_stage import asks, plan
from node_packages import node_answers
from real_servers import listening
from web_stage import Client, served

from thinkwell.web import web_app

if TYPE_CHECKING:
    from scripted import Turn

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "front-ends.md").read_text("utf-8")
FILES = dict(re.findall(r'^```ts title="([\w.]+)"\n(.*?)^```$', PAGE, re.DOTALL | re.MULTILINE))


async def careful(turn: Turn) -> None:
    turn.update(plan("completed"))
    turn.say("I look. ")
    turn.say(f"You said {await asks(turn)}.")


@pytest.mark.long
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_program_for_ag_ui_asks_and_answers(tmp_path: Path, anyio_backend: str) -> None:
    script = tmp_path / "ask.ts"
    script.write_text(FILES["ask.ts"], "utf-8")
    async with served(careful) as stage, listening(web_app(stage.server), "uvicorn") as where:
        output = await node_answers(script, env={"AG_UI_URL": f"{where.url}/ag-ui/scripted"})
    assert output.startswith("I look. Do t1 {")
    assert "You said yes." in output
    assert "status: 'completed'" in output


@pytest.mark.long
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_options_for_the_ai_sdk_make_a_chat(tmp_path: Path, anyio_backend: str) -> None:
    (tmp_path / "chat.ts").write_text(FILES["chat.ts"], "utf-8")
    script = tmp_path / "sends.ts"
    script.write_text(
        """
        import { options } from "./chat.ts";
        const message = { id: "1", role: "user" as const, parts: [{ type: "text" as const, text: "Go." }] };
        const { transport } = options;
        const about = { chatId: "c", messages: [message], abortSignal: undefined, messageId: undefined };
        const stream = await transport.sendMessages({ trigger: "submit-message", ...about });
        for await (const chunk of stream) {
          console.log(chunk.type);
        }
        console.log(options.sendAutomaticallyWhen({ messages: [message] }));
        """,
        "utf-8",
    )
    async with served(careful) as stage, listening(web_app(stage.server), "uvicorn") as where:
        output = await node_answers(script, env={"AI_SDK_URL": f"{where.url}/ai-sdk/scripted"})
    lines = output.split()
    assert lines[0] == "start"
    assert "tool-approval-request" in lines
    assert lines[-2:] == ["finish", "false"]


async def test_what_may_be_chosen_is_told() -> None:
    async with served(careful) as stage:
        described = await (await Client(web_app(stage.server)).get("/api/openapi.json")).json()
    choices = described["components"]["schemas"]["Choices"]["properties"]
    told = re.findall(r"thinkwell: \{ ([\w, ]+) \}", PAGE)
    assert len(told) == 2
    for names in told:
        assert sorted(names.split(", ")) == sorted(choices)


def test_every_kind_of_part_is_told() -> None:
    source = Path(__file__).parents[2] / "thinkwell" / "thinkwell" / "web" / "front_ends" / "_ai_sdk.py"
    kinds = set(re.findall(r'"(data-[a-z]+|file|source-url)"', source.read_text("utf-8")))
    assert kinds
    for kind in kinds | {"data-diff", "data-terminal"}:
        assert f"`{kind}`" in PAGE, kind
