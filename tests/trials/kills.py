"""Trials whose program is killed at random moments, and what is left of them.

``cd tests && python -m trials.kills --trials 200 --kills 50`` says what it has found.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil_free as processes
from msgspec import Struct
from trials.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM: Final = Path(__file__).parent / "programs" / "many.py"

PATIENCE: Final = 600.0
"""Seconds for the trials that are left after the last kill."""
