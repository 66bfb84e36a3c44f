"""Errors for common first mistakes, which say what to write instead.

The methods are set when a class is made, so that type checkers do not see them and refuse such uses.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

C = TypeVar("C", bound=type)


def hints(**by_method: str) -> Callable[[C], C]:
    """Let missing special methods of a class raise a `TypeError` with a hint.

    Args:
        by_method: The hints, by names such as ``__await__``.
    """

    def add(cls: C) -> C:
        for name, hint in by_method.items():
            setattr(cls, name, _raising(hint))
        return cls

    return add


def not_open(block: str) -> Callable[[C], C]:
    """Let missing attributes of a class raise an `AttributeError` that says how to open the object.

    Args:
        block: The first line of the block.
    """

    def missing(self: object, name: str) -> NoReturn:
        hint = (
            f"it is not open yet. Write `{block}` and, in the block, `agent.{name}`; "
            "for a session, `async with agent.session() as session:`"
        )
        raise AttributeError(f"{type(self).__name__!r} has no {name!r}: {hint}", name=name, obj=self)

    def add(cls: C) -> C:
        setattr(cls, "__getattr__", missing)  # noqa: B010 - type checkers would see it
        return cls

    return add


def refuse_prompt(prompt: tuple[object, ...], call: str) -> None:
    """Refuse a prompt as an argument of a call that takes none.

    Raises:
        TypeError: There is a prompt.
    """
    if prompt and call == "think":
        shown = f"{prompt[0]!r:.60}"
        raise TypeError(f"think() takes a type and nothing else; the prompt follows: think(…).text({shown})")
    if prompt:
        raise TypeError(f'{call}() takes no prompt; give it before: agent.think(…).text("…").{call}()')


def check_run(given: object, call: str, *kinds: type) -> None:
    """Check a run that was given to a call.

    Args:
        given: What was given.
        call: The call, as it is written, with the run as ``{}``.
        kinds: The types of what it takes.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(given, kinds):
        name, kind = call.partition("(")[0], type(given).__name__
        blocks = type(given).__module__.startswith("thinkwell.sync")
        begun = call.format('agent.think().text("…").stream()')
        if isinstance(given, Coroutine):
            given.close()  # it would warn that it was never awaited
        if blocks and not any(each.__module__.startswith("thinkwell.sync") for each in kinds):
            raise TypeError(f"{name}() got a {kind} of the blocking API: use the {name}() of thinkwell.sync")
        raise TypeError(
            f"{name}() takes a run that has begun, not a {kind}: begin one by .stream(), as in {begun}"
        )


def _raising(hint: str) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise TypeError(hint)

    return refuse
