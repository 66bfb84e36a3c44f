"""Names under which what agents that speak lines say and hear goes through the protocol. Private to us."""

from __future__ import annotations

from typing import Final

MESSAGE_UPDATE: Final = "_thinkwell.dev/message"
"""Kind of the session update that holds a message, whole, under ``message``."""

MESSAGE_META: Final = "thinkwell.dev/message"
"""In ``_meta`` of a question: the message that asks it, whole."""

VALUE_META: Final = "thinkwell.dev/value"
"""In ``_meta`` of an answer: the very value to send."""

SILENT_META: Final = "thinkwell.dev/silent"
"""In ``_meta`` of an answer: nothing is to be sent."""

RESULT_META: Final = "thinkwell.dev/result"
"""In ``_meta`` of the answer to a prompt: the fields of the result."""

SCHEMA_META: Final = "thinkwell.dev/schema"
"""In ``_meta`` of a prompt: the JSON Schema of the result."""

RESPOND_METHOD: Final = "_thinkwell.dev/respond"
"""Notification that answers a message that is no question: ``kind``, ``id`` where it had one, ``value``, and
the ``sessionId`` of the run to which it was said."""
