"""`Transcript`: questions and their answers, to look up later."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from thinkwell._display.fences import fenced
from thinkwell._display.text import LINE, in_json, line, visible
from thinkwell.events import JsonValue
from thinkwell.questions import FormQuestion

if TYPE_CHECKING:
    import os

    from thinkwell._core.exit import Ruling
    from thinkwell.questions import Question

TITLE: Final = 100
"""Most characters of a question in a heading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A question and its answer. The agent wrote the question: do not trust it."""

    kind: Literal["question", "approval"]
    question: str
    answer: JsonValue
    """The original answer: the handler's return value, ``True`` or ``False``, or the values of a form.
    ``None`` if there is none, as for a declined form."""
    by: str
    """Who answered; see `thinkwell.events.QuestionAnswered`."""
    why: str
    seconds: float
    """Seconds from the question to the answer."""
    at: Annotated[datetime, msgspec.Meta(tz=True)]
    """When it was answered, in UTC."""
    agent: str = ""
    run_id: str = ""
    question_id: str = ""
    details: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """All fields of the message."""


class Transcript(list[Record]):
    """A list of records, in the order of the answers.

    Unlike every log of thinkwell, it has the answers themselves: form values may be secret.
    """

    def to_json(self) -> list[dict[str, JsonValue]]:
        """Return the records as JSON."""
        return [{**dataclasses.asdict(record), "at": record.at.isoformat()} for record in self]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the records to a file, one line of JSON each, replacing its content.

        Raises:
            OSError: The file cannot be written.
        """
        lines = [in_json(json.dumps(record, ensure_ascii=False)) + "\n" for record in self.to_json()]
        Path(path).write_text("".join(lines), encoding="utf-8", newline="\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Transcript:
        """Read a file written by `save`.

        Raises:
            OSError: The file cannot be read.
            ValueError: A line is not a record; the message names it.
        """
        records = cls()
        for number, data in enumerate(Path(path).read_bytes().split(b"\n"), 1):
            if data.strip():
                try:
                    records.append(msgspec.convert(json.loads(data), Record))
                except (ValueError, RecursionError) as exc:
                    raise ValueError(
                        f"{path}, line {number}: this is no record of a transcript: {exc}"
                    ) from exc
        return records

    def markdown(self) -> str:
        """Return the records as a readable document. Text from the agent is escaped."""
        return "\n".join(_section(number, record) for number, record in enumerate(self, 1))


def record_of(
    question: Question, details: dict[str, JsonValue], kind: str, ruling: Ruling, seconds: float
) -> Record:
    """Return the record of a question that has ended."""
    answer: JsonValue = None
    if ruling.said is not None:
        (answer,) = ruling.said
    elif isinstance(question, FormQuestion):
        answer = ruling.values
        if question.message is not None and answer is not None:  # the agent's form of it
            answer = answer.get("other") or answer.get("answer")
    elif not (ruling.cancels or ruling.silent):
        answer = ruling.allows
    return Record(
        kind="approval" if kind == "approval" else "question",
        question=question.title,
        answer=answer,
        by=ruling.by,
        why=ruling.why,
        seconds=seconds,
        at=datetime.now(UTC),
        agent=question.agent,
        run_id=question.run_id or "",
        question_id=question.id,
        details=details,
    )


def _section(number: int, record: Record) -> str:
    asked = f"{record.kind} {record.question_id} of {record.run_id}, agent {record.agent}"
    answered = f"{record.by}, after {record.seconds:.1f} s, at {record.at:%Y-%m-%d %H:%M:%S} UTC"
    return "\n".join(
        (
            f"## {number}. {_code(record.question, TITLE)}\n",
            f"- Asked: {_code(asked)}",
            f"- Answered by: {_code(answered)}",
            f"- Why: {_code(record.why)}\n",
            _fenced(record.details or record.question),
            _fenced(record.answer),
        )
    )


def _fenced(value: JsonValue) -> str:
    """Return a value as a block of code, in which all characters are visible."""
    if isinstance(value, str):
        return fenced(visible(value), "text")
    return fenced(in_json(json.dumps(value, ensure_ascii=False, indent=2)), "json")


def _code(text: str, limit: int = LINE) -> str:
    """Return a text as a line of code, in which nothing is markup."""
    return f"`{line(text, limit).replace('`', 'ˋ')}`"
