"""Most cases that talk by way of an official client, which Node.js runs, take long."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

HERE: Final = Path(__file__).parent

ONE_OF_EACH_KIND: Final = frozenset(
    {
        "test_a_conversation_has_everything_that_a_run_has[uvicorn]",
        "test_a_tool_call_is_an_interrupt_and_the_next_run_goes_on[uvicorn-payload0-resolved-yes]",
        "test_a_message_has_everything_that_a_run_has[uvicorn]",
        "test_a_tool_call_is_approved_and_the_same_message_goes_on[uvicorn]",
        "test_a_chat_is_answered_at_the_other_server[uvicorn]",
        "test_a_form_and_a_page_are_interrupts_and_a_wrong_answer_leaves_them_open[uvicorn]",
        "test_a_form_may_be_declined_and_a_page_opened[uvicorn]",
        "test_hostile_ids_and_huge_texts_arrive_as_they_are[uvicorn]",
        "test_pictures_reach_the_agent_and_other_files_are_refused[uvicorn]",
        "test_the_agent_gets_what_the_application_tells_of_itself[uvicorn]",
        "test_the_answer_can_be_had_once_more[uvicorn]",
    }
)
"""Those that do not take long."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the others off to the long tests."""
    for item in items:
        served = item.path.parent == HERE and "kind" in getattr(item, "fixturenames", ())
        if served and item.name not in ONE_OF_EACH_KIND:
            item.add_marker(pytest.mark.long)


@pytest.fixture(params=["uvicorn", "hypercorn-trio"])
def kind(request: pytest.FixtureRequest) -> Any:
    """Which server serves."""
    return request.param
