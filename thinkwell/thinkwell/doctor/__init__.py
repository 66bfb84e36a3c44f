"""The doctor: checks an agent, step by step, without spending a token.

::

    diagnosis = await diagnose("claude")
    print(diagnosis.table())

It never sends a prompt. ``python -m thinkwell.doctor claude`` does the same in a terminal.
"""

from __future__ import annotations

from thinkwell.doctor._diagnose import diagnose
from thinkwell.doctor._diagnosis import Check, Diagnosis, Status

__all__ = ("Check", "Diagnosis", "Status", "diagnose")
