"""Places where a source can be mutated, and the mutants that a seed draws from them.

A mutant is a replacement of one expression or simple statement by its opposite or by nothing. Lines keep
their numbers.
"""

from __future__ import annotations

import ast
import json
import random
import re
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("thinkwell/thinkwell", "acp/thinkwell_acp")
GENERATED: Final = ("acp/thinkwell_acp/schema",)
SKIPPED: Final = ("pragma: no cover", "@overload", "TYPE_CHECKING", "win32", "_windows")

_COMPARED: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_OPERATORS: Final[dict[type[ast.operator], str]] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.FloorDiv: "*",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One replacement in one file, at the byte `start` of its text."""

    id: int
    file: str
    line: int
    start: int
    before: str
    after: str
    statement: bool

    def applied_to(self, text: bytes) -> bytes:
        """Return the file's text with the mutant in it."""
        return self._replaced(text, self.after)

    def is_in(self, text: bytes) -> bool:
        """Return whether a file's text still has the place that is mutated."""
        return self.before.encode() in text

    def probed_in(self, text: bytes) -> bytes:
        """Return the file's text with a call that records the cases that come by here."""
        call = f'__import__("_mutation_probe").hit({self.id})'
        inside = f"{call}; {self.before}" if self.statement else f"({call} or ({self.before}))"
        return self._replaced(text, inside)

    def _replaced(self, text: bytes, by: str) -> bytes:
        before = self.before.encode()
        places = [match.start() for match in re.finditer(re.escape(before), text)]
        if not places:
            raise ValueError(f"{self.file} has no {self.before!r} any more")
        start = min(places, key=lambda place: abs(place - self.start))  # it moves when the file changes
        return text[:start] + by.encode() + text[start + len(before) :]


def drawn(count: int, seed: int) -> list[Mutant]:
    """Draw mutants: half of them evenly over the areas, half at random over all, no two on one line."""
    areas: dict[str, list[Mutant]] = defaultdict(list)
    for file in _files():
        for mutant in _mutants(file):
            areas[_area(file)].append(mutant)
    chosen = random.Random(seed)
    everywhere = [mutant for area in sorted(areas) for mutant in areas[area]]
    for mutants in (everywhere, *(areas[area] for area in sorted(areas))):
        chosen.shuffle(mutants)
    even = (mutant for mutants in zip(*areas.values(), strict=False) for mutant in mutants)
    picked: dict[tuple[str, int], Mutant] = {}
    for source, enough in ((even, count // 2), (everywhere, count)):
        for mutant in source:
            if len(picked) < enough:
                picked.setdefault((mutant.file, mutant.line), mutant)
    ordered = sorted(picked.values(), key=lambda mutant: (mutant.file, mutant.start))
    return [replace(mutant, id=number) for number, mutant in enumerate(ordered)]


def saved(mutants: list[Mutant], path: Path) -> None:
    """Write mutants to a file, one on a line."""
    path.write_text("".join(json.dumps(asdict(mutant)) + "\n" for mutant in mutants), encoding="utf-8")


def loaded(path: Path) -> list[Mutant]:
    """Read the mutants of a file."""
    return [Mutant(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def _files() -> Iterator[str]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            file = path.relative_to(ROOT).as_posix()
            if not file.startswith(GENERATED) and "windows" not in path.name:
                yield file


def _area(file: str) -> str:
    parts = file.split("/")
    return "/".join(parts[1:3]) if len(parts) > 3 else parts[1]


def _mutants(file: str) -> Iterator[Mutant]:
    text = (ROOT / file).read_bytes()
    if b"# pragma: no cover file" in text:
        return
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = text.decode().splitlines()

    def made(node: ast.expr | ast.stmt, after: str, *, statement: bool = False) -> Mutant | None:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        around = "\n".join(lines[max(node.lineno - 2, 0) : node.end_lineno + 1])
        if any(word in around for word in SKIPPED):
            return None
        before = text[start:end].decode()
        if "\n" in before:  # so that lines keep their numbers
            return None
        return Mutant(0, file, node.lineno, start, before, after, statement)

    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in function.body:
                for node in _nodes(statement):
                    if isinstance(node, ast.expr | ast.stmt) and (change := _change(node)) is not None:
                        mutant = made(node, change, statement=isinstance(node, ast.stmt))
                        if mutant is not None:
                            yield mutant


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if not isinstance(
        node, ast.JoinedStr
    ):  # what stands in an f-string cannot hold its quotes before Python 3.12
        for child in ast.iter_child_nodes(node):
            yield from _nodes(child)


def _change(node: ast.expr | ast.stmt) -> str | None:
    change: str | None = None
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _COMPARED:
            change = f"{ast.unparse(left)} {_COMPARED[type(operator)]} {ast.unparse(right)}"
        case ast.BoolOp(op=operator, values=values):
            word = " or " if isinstance(operator, ast.And) else " and "
            change = word.join(f"({ast.unparse(value)})" for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            change = f"bool({ast.unparse(operand)})"
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS and not any(
            isinstance(side, ast.Constant | ast.JoinedStr) and not isinstance(getattr(side, "value", ""), int)
            for side in (left, right)
        ):
            change = f"({ast.unparse(left)}) {_OPERATORS[type(operator)]} ({ast.unparse(right)})"
        case ast.IfExp(test=test, body=body, orelse=orelse):
            change = f"{ast.unparse(orelse)} if {ast.unparse(test)} else {ast.unparse(body)}"
        case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())) | ast.AugAssign() | ast.Raise():
            change = "pass"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            change = "return None"
        case ast.Break():
            change = "continue"
        case ast.Continue():
            change = "break"
        case _:
            pass
    return (
        None if change is None or "\n" in change else f"({change})" if isinstance(node, ast.expr) else change
    )
