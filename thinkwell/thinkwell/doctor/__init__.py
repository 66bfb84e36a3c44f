"""The doctor: checks an agent, step by step, without spending a token unless it may.

::

    diagnosis = await diagnose("claude")
    print(diagnosis.table())

It sends no prompt unless it is asked to, by ``prompt=True``. ``python -m thinkwell.doctor claude`` does the
same in a terminal.
"""

from __future__ import annotations

from thinkwell.doctor._check import Check, Status
from thinkwell.doctor._diagnose import diagnose
from thinkwell.doctor._diagnosis import Diagnosis, Verdict

__all__ = ("Check", "Diagnosis", "Status", "Verdict", "diagnose")
