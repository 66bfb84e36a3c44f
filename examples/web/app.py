"""Runs in your application: `HELPER_TOKEN=… uvicorn --app-dir examples/web app:app`."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from thinkwell.web import Access, RunServer, served_agent, web_app

runs = RunServer({"helper": served_agent(None, title="Helper")})
access = Access({os.environ["HELPER_TOKEN"]: "me"})  # each token is a caller, who sees only their own runs


async def home(request: Request) -> PlainTextResponse:
    return PlainTextResponse("The helper is under /helper\n")


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncGenerator[None]:
    async with runs:  # a mounted application has no lifespan
        yield


app = Starlette(
    routes=[Route("/", home), Mount("/helper", web_app(runs, access=access))],
    lifespan=lifespan,
)
