"""An agent that asks, another that judges, and what came of it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from asking import Asked, ask, permission
from scripted import Played, Turn, scripted

from thinkwell.supervision import supervise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scripted import Script

RULES = "Commands that only read may run."


def rules(verdict: str, reason: str = "it is like that") -> Script:
    """A turn in which the judge gives a verdict."""

    async def script(turn: Turn) -> None:
        await turn.returns(verdict=verdict, reason=reason)

    return script


def told_of(prompt: str) -> dict[str, Any]:
    """The question as it stands in a judge's prompt, where nothing else looks like its fence."""
    ((tag, document),) = re.findall(r"(?sm)^<(question-[0-9a-f]{16})>\n(.*?)\n</\1>$", prompt)
    assert prompt.count(tag) == 4
    assert "</" not in document
    assert document.replace("\n", "").isprintable()
    told: dict[str, Any] = json.loads(document)
    return told


async def judged(
    *scripts: Script,
    requests: Sequence[Callable[[str], Any]] = (permission,),
    then: Sequence[Any] = (),
    permissions: Any = "ask",
    meanwhile: Any = None,
    instructions: str = RULES,
    **options: Any,
) -> tuple[Asked, list[str]]:
    """Let an agent ask and another one judge.

    Returns:
        What came of it, and the prompts of the judge.
    """
    prompts: list[str] = []

    def noting(script: Script) -> Script:
        async def noted(turn: Turn) -> str | None:
            prompts.append(turn.text)
            return await script(turn)

        return noted

    async with scripted(agent=Played([noting(script) for script in scripts])) as by:
        asked = await ask(
            *requests,
            permissions=permissions,
            on_question=[supervise(by, instructions, **options), *then],
            meanwhile=meanwhile,
        )
    return asked, prompts
