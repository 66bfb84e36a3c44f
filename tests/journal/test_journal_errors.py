"""The errors of journals carry what they know, through pickles too."""

from __future__ import annotations

import copy
import pickle

import pytest

from thinkwell.errors import ThinkwellError
from thinkwell.journal import JournalConflict, JournalError, JournalUnwritable


@pytest.mark.parametrize("kind", [JournalError, JournalConflict])
def test_an_error_of_a_journal_survives_a_pickle(kind: type[JournalError]) -> None:
    error = kind("the journal runs.sqlite", "the disk is full; make room, then try again")
    assert isinstance(error, ThinkwellError)
    for copied in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(copied) is kind
        assert (copied.where, copied.reason) == (error.where, error.reason)
        assert str(copied) == "the journal runs.sqlite: the disk is full; make room, then try again"


def test_what_has_no_room_says_what_is_wrong_without_a_path() -> None:
    what = "the disk is full"
    error = JournalUnwritable("the journal /srv/runs.sqlite", f"{what}; make room", what)
    for copied in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert vars(copied) == vars(error)
        assert (copied.what, str(copied)) == (what, f"the journal /srv/runs.sqlite: {what}; make room")
