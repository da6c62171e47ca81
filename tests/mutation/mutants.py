"""Mutants: small changes of a function that a test should notice.

A mutant is one changed place in the body of a function: a comparison, an operator, a constant, a bound of a
slice, a condition, or a statement that is left out. Messages of errors, assertions and annotations stay as
they are, and so does code outside functions.
"""

import ast
import copy
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}

Path_ = tuple[str | int, ...]
"""How to reach a node from the module: names of fields and positions in lists."""


@dataclass(frozen=True, slots=True)
class Mutant:
    path: str
    """Relative to the package."""
    function: str
    """The outermost function around the change, qualified by its class."""
    line: int
    kind: str
    before: str
    after: str
    occurrence: int
    """Which of the equal changes of the function it is."""

    @property
    def key(self) -> str:
        return f"{self.path}::{self.function}::{self.kind}::{self.before} -> {self.after}::{self.occurrence}"


@dataclass(frozen=True, slots=True)
class Change:
    """A mutant with the changed function."""

    mutant: Mutant
    source: Path
    where: Path_
    function: ast.FunctionDef

    def code(self) -> CodeType:
        """The code of the changed function."""
        tree = ast.parse(self.source.read_text())
        _put(tree, self.where, self.function)
        found = compile(ast.fix_missing_locations(tree), str(self.source), "exec")
        for name in self.mutant.function.split("."):
            inside = [one for one in found.co_consts if isinstance(one, CodeType) and one.co_name == name]
            found = next((one for one in inside if _begins(one, self.function)), inside[0])
        return found


def changes(source: Path, name: str) -> Iterator[Change]:
    """All mutants of a file, in the order of its text."""
    tree = ast.parse(source.read_text())
    seen: dict[tuple[str, ...], int] = {}
    for function, where in _functions(tree):
        original = _at(tree, where)
        for place in _places(original, ()):
            for kind, edit in _edits(_at(original, place)):
                changed = copy.deepcopy(original)
                statement = _statement(original, place)
                before = _shown(_at(original, statement))
                if not edit(changed, place):
                    continue
                after = _shown(_at(changed, statement))
                if after == before:
                    continue
                identity = (function, kind, before, after)
                occurrence = seen[identity] = seen.get(identity, -1) + 1
                line = _at(original, statement).lineno
                mutant = Mutant(name, function, line, kind, before, after, occurrence)
                yield Change(mutant, source, where, changed)


def _begins(code: CodeType, function: ast.FunctionDef) -> bool:
    """Whether a code object is of this function; several of one name, as of a property, differ in lines."""
    first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
    return code.co_firstlineno == first


def sampled(everything: Sequence[Change], count: int, seed: int) -> list[Change]:
    """So many of them, the same for the same seed."""
    return random.Random(seed).sample(list(everything), min(count, len(everything)))


def _functions(tree: ast.Module) -> Iterator[tuple[str, Path_]]:
    """Outermost functions and methods, with their qualified names."""

    def walk(body: list[ast.stmt], where: Path_, prefix: str) -> Iterator[tuple[str, Path_]]:
        for number, node in enumerate(body):
            here: Path_ = (*where, "body", number)
            if isinstance(node, ast.FunctionDef):
                yield prefix + node.name, here
            elif isinstance(node, ast.ClassDef):
                yield from walk(node.body, here, f"{prefix}{node.name}.")

    return walk(tree.body, (), "")


def _places(node: ast.AST, where: Path_) -> Iterator[Path_]:
    """All nodes of a function's body that may be changed."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "args") and not isinstance(node, ast.Call):
            continue
        for number, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST):
                continue
            here: Path_ = (*where, field, number) if isinstance(value, list) else (*where, field)
            yield here
            if not isinstance(child, ast.Raise | ast.Assert | ast.JoinedStr):
                yield from _places(child, here)


Edit = Callable[[ast.AST, Path_], bool]


def _edits(node: ast.AST) -> Iterator[tuple[str, Edit]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in COMPARISONS.get(type(node.ops[0]), ()):
            yield "comparison", _setting("ops", [other()])
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in ARITHMETIC:
        yield "arithmetic", _setting("op", ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield "boolean", _setting("op", ast.And() if isinstance(node.op, ast.Or) else ast.Or())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield "negation", _replacing(lambda old: old.operand)
    elif isinstance(node, ast.Constant):
        yield from _constants(node.value)
    elif isinstance(node, ast.Slice):
        for bound in ("lower", "upper"):
            if getattr(node, bound) is not None and not isinstance(getattr(node, bound), ast.Constant):
                yield "off by one", _bound(bound)
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        yield "swapped branches", _negating()
    if isinstance(node, ast.comprehension) and node.ifs:
        yield "filter left out", _setting("ifs", [])
    if isinstance(node, ast.keyword) and node.arg is not None:
        yield "argument left out", _dropping()
    if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant | ast.Yield | ast.YieldFrom):
        yield "statement left out", _replacing(lambda _: ast.Pass())
    if isinstance(node, ast.AugAssign | ast.Continue | ast.Break | ast.Raise | ast.Delete):
        yield "statement left out", _replacing(lambda _: ast.Pass())
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript):
        yield "statement left out", _replacing(lambda _: ast.Pass())


def _constants(value: object) -> Iterator[tuple[str, Edit]]:
    if isinstance(value, bool):
        yield "constant", _setting("value", not value)
    elif isinstance(value, int):
        yield "constant", _setting("value", value + 1)
        if value > 1:
            yield "constant", _setting("value", value - 1)
    elif isinstance(value, float):
        yield "constant", _setting("value", value * 2 + 1)


def _setting(field: str, value: object) -> Edit:
    def edit(tree: ast.AST, place: Path_) -> bool:
        setattr(_at(tree, place), field, value)
        return True

    return edit


def _replacing(made: Callable[[ast.AST], ast.AST]) -> Edit:
    def edit(tree: ast.AST, place: Path_) -> bool:
        _put(tree, place, ast.copy_location(made(_at(tree, place)), _at(tree, place)))
        return True

    return edit


def _bound(name: str) -> Edit:
    def edit(tree: ast.AST, place: Path_) -> bool:
        node = _at(tree, place)
        setattr(node, name, ast.BinOp(getattr(node, name), ast.Add(), ast.Constant(1)))
        return True

    return edit


def _negating() -> Edit:
    def edit(tree: ast.AST, place: Path_) -> bool:
        node = _at(tree, place)
        test = node.test
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return False  # the same as leaving out the negation
        if isinstance(test, ast.Compare) and isinstance(
            test.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn | ast.Is | ast.IsNot
        ):
            return False  # the same as the other comparison
        node.test = ast.UnaryOp(ast.Not(), test)
        return True

    return edit


def _dropping() -> Edit:
    def edit(tree: ast.AST, place: Path_) -> bool:
        call = _at(tree, place[:-2])
        if not isinstance(call, ast.Call):
            return False
        del call.keywords[int(place[-1])]
        return True

    return edit


def _at(tree: ast.AST, place: Path_) -> Any:
    node: Any = tree
    for step in place:
        node = node[step] if isinstance(step, int) else getattr(node, step)
    return node


def _put(tree: ast.AST, place: Path_, node: ast.AST) -> None:
    holder = _at(tree, place[:-1])
    if isinstance(place[-1], int):
        holder[place[-1]] = node
    else:
        setattr(holder, place[-1], node)


def _statement(tree: ast.AST, place: Path_) -> Path_:
    """The smallest statement around a place."""
    while not isinstance(_at(tree, place), ast.stmt):
        place = place[:-1]
    return place


def _shown(node: ast.AST) -> str:
    """A statement on one line, without the bodies that it heads."""
    bare = copy.copy(node)
    for field in ("body", "orelse", "finalbody", "handlers"):
        if getattr(bare, field, None) and isinstance(getattr(bare, field), list):
            setattr(bare, field, [ast.Pass()] if field == "body" else [])
    if isinstance(bare, ast.Try):
        bare.finalbody = [ast.Pass()]
    return " ".join(ast.unparse(ast.fix_missing_locations(bare)).split())
