"""The context of one tool call, for its handler."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import anyio

from thinkwell_acp.schema import JsonObject, JsonValue

Notify: TypeAlias = Callable[[str, JsonObject], None]
"""Sends a notification (method, params) to a client. It never waits and never raises."""

_STEP = 1e-6
"""The increment of a sign of life over the last progress: too small to show, and MCP requires progress to
rise every time."""


class CallContext:
    """A running call: the caller's additions to it, and a way to report progress."""

    meta: JsonObject
    """The ``_meta`` of the request; may be empty."""

    def __init__(self, meta: JsonObject, notify: Notify) -> None:
        self.meta = meta
        token: JsonValue = meta.get("progressToken")
        self._token = token if isinstance(token, (str, int)) else None
        self._notify = notify
        self._last = 0.0
        self._total: float | None = None
        self._message: str | None = None
        self._quiet = True
        self._over = False

    def report(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress to the caller, if it asked for it. Nothing is sent after the call's end.

        Args:
            progress: How much is done, in any unit. It must rise from report to report; if it does not, a
                little is added.
            total: The amount in all, if known.
            message: A text about the current step.
        """
        if self._token is None or self._over:
            return
        self._quiet = False
        self._last = max(progress, self._last + _STEP, math.nextafter(self._last, math.inf))
        self._total, self._message = total, message
        params: JsonObject = {"progressToken": self._token, "progress": self._last}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self._notify("notifications/progress", params)

    def finish(self) -> None:
        """Send nothing from now on: progress after the result would be an error."""
        self._over = True

    async def keep_alive(self, interval: float) -> None:
        """Send a sign of life after `interval` seconds without a report. Runs until cancelled.

        Clients that reset their time limit on progress give up a silent call after one to five minutes.
        """
        if self._token is None:
            return
        while True:
            self._quiet = True
            await anyio.sleep(interval)
            if self._quiet:
                self.report(self._last, self._total, self._message)
