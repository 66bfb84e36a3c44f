"""The doctor checks an agent step by step, by default without spending a token.

::

    diagnosis = await diagnose("claude")
    print(diagnosis.table())

It sends a prompt only with ``prompt=True``. ``python -m thinkwell.doctor claude`` does the same in a
terminal.
"""

from __future__ import annotations

from thinkwell.doctor._check import Check, Status
from thinkwell.doctor._diagnose import diagnose
from thinkwell.doctor._diagnosis import Diagnosis, Verdict

__all__ = ("Check", "Diagnosis", "Status", "Verdict", "diagnose")
