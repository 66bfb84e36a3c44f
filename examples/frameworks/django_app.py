"""An agent that all views share, with Django: `python examples/frameworks/django_app.py runserver`."""

import sys
from functools import cache
from threading import Lock

from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path
from pydantic import BaseModel

from thinkwell import ThinkwellError
from thinkwell.sync import Agent, open_agent

settings.configure(ALLOWED_HOSTS=["127.0.0.1", "localhost"], ROOT_URLCONF=__name__)


class Review(BaseModel):
    """What the agent returns."""

    summary: str
    score: int


lock = Lock()


@cache
def opened() -> Agent:
    return open_agent().start()  # closed when the process ends


def shared_agent() -> Agent:
    """Return the agent of this process, opened by its first request: no agent survives a fork."""
    with lock:
        return opened()


def review(request: HttpRequest) -> JsonResponse:
    try:
        found = shared_agent().think(Review).text(request.GET.get("text", "")).run(timeout=600)
    except ThinkwellError as error:
        return JsonResponse({"error": type(error).__name__}, status=502)
    return JsonResponse(found.model_dump(mode="json"))


urlpatterns = [path("review", review)]
application = get_wsgi_application()

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
