"""A typed endpoint and a stream of events with FastAPI: `fastapi run examples/frameworks/fastapi_app.py`."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from thinkwell import Agent, ThinkwellError, ThoughtStream, event_to_json, open_agent
from thinkwell.web import EventStream, sse_frame


class Task(BaseModel):
    """What a client sends."""

    text: str


class Review(BaseModel):
    """What the agent returns."""

    summary: str
    score: int


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[dict[str, Agent]]:
    async with open_agent() as agent:  # one for all requests
        yield {"agent": agent}


def shared_agent(request: Request) -> Agent:
    agent: Agent = request.state.agent
    return agent


SharedAgent = Annotated[Agent, Depends(shared_agent)]
app = FastAPI(lifespan=lifespan)


@app.post("/reviews")
async def review(task: Task, agent: SharedAgent) -> Review:
    return await agent.think(Review).text(task.text).run(timeout=600)


@app.post("/answers")
async def answer(task: Task, agent: SharedAgent) -> EventStream:
    return EventStream(frames(agent.think().text(task.text).stream(timeout=600)))


async def frames(stream: ThoughtStream[str]) -> AsyncGenerator[bytes]:
    try:
        async for event in stream:
            yield sse_frame(event_to_json(event), id=event.seq)
    finally:
        stream.cancel()  # the client has gone; of a run that is over, nothing


@app.exception_handler(ThinkwellError)
async def failed(request: Request, error: ThinkwellError) -> JSONResponse:
    return JSONResponse({"error": type(error).__name__}, status_code=502)
