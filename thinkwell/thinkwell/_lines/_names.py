"""Private names under which NDJSON messages are carried in the protocol."""

from __future__ import annotations

from typing import Final

MESSAGE_UPDATE: Final = "_thinkwell.dev/message"
"""Kind of the session update with a complete message, under ``message``."""

MESSAGE_META: Final = "thinkwell.dev/message"
"""In ``_meta`` of a question: the complete message that asks it."""

VALUE_META: Final = "thinkwell.dev/value"
"""In ``_meta`` of an answer: the exact value to send."""

SILENT_META: Final = "thinkwell.dev/silent"
"""In ``_meta`` of an answer: send nothing."""

RESULT_META: Final = "thinkwell.dev/result"
"""In ``_meta`` of the answer to a prompt: the fields of the result."""

SCHEMA_META: Final = "thinkwell.dev/schema"
"""In ``_meta`` of a prompt: the JSON Schema of the result."""

RESPOND_METHOD: Final = "_thinkwell.dev/respond"
"""Notification that answers a message that is not a question: ``kind``, ``id`` if it had one, ``value``, and
the ``sessionId`` of its run."""
