"""One browser for all cases of the page, each in a profile of its own; most of them take long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from page.browsing import Browser, browsing

if TYPE_CHECKING:
    from collections.abc import Generator

ONE_OF_EACH_KIND: Final = frozenset(
    {
        "test_a_run_is_started_and_watched_to_its_end[uvicorn]",
        "test_a_typed_result_fills_in",
        "test_runs_are_listed_filtered_and_deleted",
        "test_an_answer_by_mouse",
        "test_an_answer_by_keyboard[y-y]",
        "test_a_form_is_filled_in",
        "test_a_window_that_becomes_narrow_shows_the_timeline_with_a_question",
        "test_a_cut_connection_goes_on_where_it_was",
        "test_who_has_given_no_token_is_asked_for_one",
        "test_nothing_of_it_is_run_or_loaded",
        "test_any_moment_can_be_seen_again",
    }
)
"""The cases in a browser that do not take long."""


@pytest.hookimpl(tryfirst=True)  # before a case's group becomes a part of its name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put all that needs the browser on one worker, and most of it off to the long tests."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("browser"))
            if item.name not in ONE_OF_EACH_KIND:
                item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[Browser]:
    """A real browser."""
    with browsing(tmp_path_factory.mktemp("browser")) as started:
        yield started
