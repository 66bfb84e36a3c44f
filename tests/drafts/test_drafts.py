"""The typed result while the agent writes it."""

from __future__ import annotations

from pydantic import BaseModel

from thinkwell.testing import ScriptedAgent, script


class Finding(BaseModel):
    line: int
    note: str = ""


class Review(BaseModel):
    title: str
    score: int
    findings: list[Finding] = []


REVIEW = {"title": "Good", "score": 12, "findings": [{"line": 1, "note": "a"}, {"line": 2}]}


async def test_a_model_grows_field_by_field() -> None:
    async with ScriptedAgent(script.returns(REVIEW, streamed=True)).open() as agent:
        stream = agent.think(Review).text("Review").stream()
        assert stream.view.drafts == "fields"
        drafts = [draft async for draft in stream.drafts()]
        for draft in drafts:
            print(draft)
        assert drafts[-1].value == dict(await stream.result)
    assert 0
