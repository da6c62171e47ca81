"""What travels between the joins of a tree, and what each keeps in state.

A join's output carries what the joins above it read: columns of leaves, the hash of a term that a join
above has in its key (and the term itself where hashes are not exact), the event times of windows, and, as
lineage, the group numbers that the row passed through. Hashes are computed once, by Spark, where the row
enters the view; so all sides of a join hash alike, whatever path they take.

Pure: from a plan, and from which joins have exact hashes, to expressions over each operator's own columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from spillway.model import Window
from spillway.plan.expression import Call, Cast, ColumnRef, Expression, Literal, references
from spillway.plan.operators.tree import Below, Child, Leaf, TreePlan


@dataclass(frozen=True, slots=True, order=True)
class LeafColumn:
    """A state column of a leaf."""

    leaf: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class KeyHash:
    """The hash of a leaf's term of a class."""

    leaf: int
    key_class: int


@dataclass(frozen=True, slots=True, order=True)
class KeyValue:
    """A leaf's term of a class, in the type in which the class is compared."""

    leaf: int
    key_class: int


@dataclass(frozen=True, slots=True, order=True)
class GroupNumber:
    """Lineage: the group of a join that the row came through."""

    join: int


@dataclass(frozen=True, slots=True, order=True)
class Deadline:
    """The watermark after which a row that a join produced can match no other row."""

    join: int


Symbol: TypeAlias = LeafColumn | KeyHash | KeyValue | GroupNumber | Deadline


@dataclass(frozen=True, slots=True)
class InputLayout:
    """The columns of one input of an operator, in order."""

    child: Child
    columns: tuple[Symbol, ...]
    key_columns: tuple[int, ...]
    """The key columns, if equal hashes do not imply equal keys."""
    hashes: tuple[Symbol, ...]
    """What the hash of a row is made of; for a leaf Spark computes it."""


@dataclass(frozen=True, slots=True)
class OperatorLayout:
    """One join. Outputs and residual are over its own inputs' columns."""

    inputs: tuple[InputLayout, ...]
    outputs: tuple[Expression, ...]
    """Of the root: the view's outputs; of another: the hashes for its parent, then what the parent keeps.

    Its own group number, the last column that the parent keeps, is not among them.
    """
    residual: Expression | None
    windows: tuple[Window, ...]
    lineage: tuple[tuple[int, ColumnRef], ...]
    """Joins below, and the column with their group numbers."""


def layout(plan: TreePlan, exact: Sequence[bool]) -> tuple[OperatorLayout, ...]:
    """The operators of a tree; `exact` says of each join whether equal hashes are equal keys."""
    return _Layout(plan, tuple(exact)).operators()


def leaf_symbols(plan: TreePlan, exact: Sequence[bool], leaf: int) -> tuple[Symbol, ...]:
    """What Spark must provide for a leaf, besides the hash that routes its rows."""
    made = _Layout(plan, tuple(exact))
    join = next(number for number, node in enumerate(plan.joins) if Leaf(leaf) in node.children)
    return made.columns(join, Leaf(leaf))


@dataclass(frozen=True, slots=True)
class _Layout:
    plan: TreePlan
    exact: tuple[bool, ...]

    def operators(self) -> tuple[OperatorLayout, ...]:
        return tuple(self._operator(number) for number in range(len(self.plan.joins)))

    def columns(self, join: int, child: Child) -> tuple[Symbol, ...]:
        """What a join keeps of a child's rows: what it reads itself or passes on."""
        plan = self.plan
        needed: set[Symbol] = set()
        leaves = set(plan.leaves(child))
        above: int | None = join
        while above is not None:
            needed |= self._read(above, leaves)
            above = plan.parent(above)
        own = plan.joins[join]
        for key_class in own.classes:
            leaf = plan.representative(child, key_class)
            # Rows are sorted by the hash of this join; it is not a column.
            if KeyHash(leaf, key_class) in needed and not self._hash_is_read_above(join, leaf, key_class):
                needed.discard(KeyHash(leaf, key_class))
        kept: list[Symbol] = sorted(needed, key=_order)
        if isinstance(child, Below):
            if plan.windows:
                kept.append(Deadline(child.number))
            kept += [GroupNumber(below) for below in (*plan.descendants(child.number), child.number)]
        return tuple(kept)

    def _hash_is_read_above(self, join: int, leaf: int, key_class: int) -> bool:
        above = self.plan.parent(join)
        while above is not None:
            if KeyHash(leaf, key_class) in self._read(above, {leaf}):
                return True
            above = self.plan.parent(above)
        return False

    def _read(self, join: int, leaves: set[int]) -> set[Symbol]:
        """What a join itself reads of rows of these leaves."""
        plan = self.plan
        node = plan.joins[join]
        found: set[Symbol] = set()
        expressions = [] if node.residual is None else [node.residual]
        if join == len(plan.joins) - 1:
            expressions += [output.value for output in plan.outputs]
        for expression in expressions:
            found |= {LeafColumn(ref.input, ref.column) for ref in references(expression)}
        for child in node.children:
            for key_class in node.classes:
                leaf = plan.representative(child, key_class)
                found.add(KeyHash(leaf, key_class))
                if not self.exact[join]:
                    found.add(KeyValue(leaf, key_class))
        if plan.windows:
            found |= {LeafColumn(leaf, plan.windows[leaf].column) for leaf in range(len(plan.inputs))}
        return {symbol for symbol in found if _leaf(symbol) in leaves}

    def _operator(self, number: int) -> OperatorLayout:
        plan = self.plan
        join = plan.joins[number]
        inputs = tuple(self._input(number, child) for child in join.children)
        where: dict[Symbol, ColumnRef] = {}
        for position, input_ in enumerate(inputs):
            for column, symbol in enumerate(input_.columns):
                where[symbol] = ColumnRef(position, column)
        own = _renamed(lambda ref: where[LeafColumn(ref.input, ref.column)])
        parent = plan.parent(number)
        if parent is None:
            outputs = tuple(own(output.value) for output in plan.outputs)
        else:
            outputs = self._passed_on(number, parent, where)
        lineage = tuple((symbol.join, where[symbol]) for symbol in where if isinstance(symbol, GroupNumber))
        residual = None if join.residual is None else own(join.residual)
        windows = tuple(self._window(input_) for input_ in inputs) if plan.windows else ()
        return OperatorLayout(inputs, outputs, residual, windows, lineage)

    def _input(self, join: int, child: Child) -> InputLayout:
        columns = self.columns(join, child)
        keys = [
            (self.plan.representative(child, key_class), key_class)
            for key_class in self.plan.joins[join].classes
        ]
        return InputLayout(
            child,
            columns,
            () if self.exact[join] else tuple(columns.index(KeyValue(*key)) for key in keys),
            tuple(KeyHash(*key) for key in keys),
        )

    def _passed_on(self, number: int, parent: int, where: dict[Symbol, ColumnRef]) -> tuple[Expression, ...]:
        """The hashes that the parent sorts by, and the columns that it keeps, except our group number."""
        above = self._input(parent, Below(number))
        made: list[Expression] = [where[symbol] for symbol in above.hashes]
        for symbol in above.columns[:-1]:
            if isinstance(symbol, Deadline) and symbol.join == number:
                made.append(self._deadline(number, where))
            else:
                made.append(where[symbol])
        return tuple(made)

    def _deadline(self, number: int, where: dict[Symbol, ColumnRef]) -> Expression:
        plan = self.plan
        ends: list[Expression] = []
        for leaf in plan.leaves(Below(number)):
            window = plan.windows[leaf]
            if window.range_us is not None:
                time = where[LeafColumn(leaf, window.column)]
                ends.append(Call("+", (time, Literal(window.range_us, "bigint"))))
        if not ends:
            return Literal((1 << 63) - 1, "bigint")
        return ends[0] if len(ends) == 1 else Call("least", tuple(ends))

    def _window(self, input_: InputLayout) -> Window:
        plan = self.plan
        if isinstance(input_.child, Leaf):
            window = plan.windows[input_.child.number]
            column = input_.columns.index(LeafColumn(input_.child.number, window.column))
            return Window(column, window.range_us, window.lateness_us)
        ranged = any(plan.windows[leaf].range_us is not None for leaf in plan.leaves(input_.child))
        column = input_.columns.index(Deadline(input_.child.number))
        return Window(column, 0 if ranged else None, 0, derived=True)


def _leaf(symbol: Symbol) -> int | None:
    return None if isinstance(symbol, GroupNumber | Deadline) else symbol.leaf


def _order(symbol: Symbol) -> tuple[int, int, int]:
    kinds = (LeafColumn, KeyHash, KeyValue)
    assert isinstance(symbol, kinds)
    number = symbol.column if isinstance(symbol, LeafColumn) else symbol.key_class
    return kinds.index(type(symbol)), symbol.leaf, number


def _renamed(column: Callable[[ColumnRef], ColumnRef]) -> Callable[[Expression], Expression]:
    def rename(expression: Expression) -> Expression:
        if isinstance(expression, ColumnRef):
            return column(expression)
        if isinstance(expression, Call):
            return Call(expression.function, tuple(rename(argument) for argument in expression.arguments))
        if isinstance(expression, Cast):
            return Cast(rename(expression.argument), expression.type)
        return expression

    return rename
