"""Twenty-five things that clients of this protocol get wrong, and that each of them has tests here."""

from __future__ import annotations

import re
from pathlib import Path

POINTS = {
    1: "a prompt's result comes after the updates before it",
    2: "cancelling a turn answers its open questions at once",
    3: "updates of a session that is not known yet are kept",
    4: "updates after the prompt's result are kept, and stay in their session",
    5: "neither a slow consumer nor a waiting handler holds up the reader",
    6: "an update of an unknown kind costs itself only",
    7: "an update of an unseen tool call creates the call",
    8: "patches: what is absent, null and empty means",
    9: "long lines, cut anywhere, ended by 0x0A only",
    10: "noise on standard output, floods on standard error",
    11: "what is written although it is empty, and what is not written",
    12: "which values of a capability mean yes",
    13: "what is not advertised is not called",
    14: "two id spaces, ids with their types",
    15: "a permission is answered with an option id that was offered",
    16: "requests are cancelled with one answer at most",
    17: "a cancelled prompt ends its turn before the next one",
    18: "the death of the agent fails everything and says why",
    19: "loading replays before its answer, resuming does not",
    20: "logins, in the agent and in a terminal",
    21: "chunks are grouped by message id",
    22: "terminals of the client",
    23: "modes and config options",
    24: "what is lenient and what is strict",
    25: "errors, extensions and trace context",
}


def test_every_point_has_tests_and_every_such_test_is_of_a_point() -> None:
    name = re.compile(r"^(?:async )?def test_point_(\d+)_\w+\(", re.MULTILINE)
    files = Path(__file__).parents[1].rglob("test_*.py")
    numbers = {number for file in files for number in name.findall(file.read_text("utf-8"))}
    assert numbers == {f"{point:02}" for point in POINTS}
