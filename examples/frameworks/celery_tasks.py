"""Tasks of Celery: `celery --app celery_tasks worker`, in this folder."""

import os
from functools import cache

from celery import Celery
from celery.signals import worker_process_shutdown
from pydantic import BaseModel

from thinkwell.sync import Agent, open_agent

app = Celery(
    "reviews",
    broker=os.environ.get("CELERY_BROKER", "redis://localhost"),
    backend=os.environ.get("CELERY_BACKEND", "redis://localhost"),
)


class Review(BaseModel):
    """What the agent returns."""

    summary: str
    score: int


@cache
def shared_agent() -> Agent:
    """Return the agent of this worker process, opened by its first task: no agent survives a fork."""
    return open_agent().start()


@worker_process_shutdown.connect
def close(**_: object) -> None:
    if shared_agent.cache_info().currsize:  # a worker process ends without what Python does at its exit
        shared_agent().close()


@app.task
def review(text: str) -> dict[str, object]:
    """Return JSON: that is what goes through the broker."""
    return shared_agent().think(Review).text(text).run(timeout=600).model_dump(mode="json")
