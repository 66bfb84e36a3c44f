"""The agent that remembers, and what it remembers."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROGRAM = Path(__file__).parent / "programs" / "remembering_agent.py"


def remembering(*can: str) -> str:
    """Return the command of an agent that can do these things."""
    return shlex.join([sys.executable, str(PROGRAM), *can])


def remember(folder: Path, sessions: Sequence[Mapping[str, object]]) -> Path:
    """Write what the agent remembers, and return the file."""
    file = folder / "sessions.json"
    file.write_text(json.dumps([dict(info) for info in sessions]), "utf-8")
    return file
