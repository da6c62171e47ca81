"""A segment as one SQL statement: hash joins in the segment's order, each with the intended side built.

Hints tell Spark which side to build, and whether to replicate it (broadcast) or to partition both sides
(shuffled hash). With Spark's own reordering off, joins stay in the order in which they are written. Every
residual predicate is tested at the first join after which all of its columns exist. Segments are SQL text
because Spark analyses a statement once, but a chain of DataFrame joins after every join.
"""

from collections.abc import Callable

from spillway.compute import (
    ComputeView,
    Input,
    ProbeStep,
    ReadRelation,
    Segment,
    TreeCost,
    mask_of_input,
    members_of,
    quoted,
    steps,
)

REPLICATED, PARTITIONED = "BROADCAST", "SHUFFLE_HASH"


def segment_sql(
    view: ComputeView, model: TreeCost, segment: Segment, table_of: Callable[[Input], str | None]
) -> str:
    """The rows of a segment, with all columns; `table_of` gives the SQL that reads an input, and None for a
    segment that runs inside this statement."""

    def read(side: Input) -> str:
        text = table_of(side)
        if text is None:
            assert isinstance(side, Segment)
            return f"({segment_sql(view, model, side, table_of)})"
        return text

    text = f"{_spread(view, model, segment, read)} AS p"
    hints: list[str] = []
    for number, (step, replicated) in enumerate(
        zip(steps(model.graph, segment), model.replicated(segment), strict=True)
    ):
        hints.append(f"{REPLICATED if replicated else PARTITIONED}(b{number})")
        text += f" JOIN {read(step.build)} AS b{number} ON {join_condition(view, step)}"
    return f"SELECT /*+ {', '.join(hints)} */ * FROM {text}"


def _spread(view: ComputeView, model: TreeCost, segment: Segment, read: Callable[[Input], str]) -> str:
    """The rows that probe, spread over all processors if fewer tasks would read them.

    They are spread by the hash of all columns: unlike round robin, that needs no sorting to be repeatable.
    """
    probe = segment.probe
    if not isinstance(probe, int) or not model.spreads(segment):
        return read(probe)
    columns = ", ".join((str(model.machine.processors), *view.names(probe)))
    return f"(SELECT /*+ REPARTITION({columns}) */ * FROM {read(probe)})"


def relation_sql(relation: ReadRelation, table: str) -> str:
    """The rows and columns of a relation that the view needs, as a subquery over its table."""
    items = ", ".join(f"{column.expression} AS {column.name}" for column in relation.columns)
    where = "" if relation.filter is None else f" WHERE {relation.filter}"
    return f"(SELECT {items or '1 AS one'} FROM {table}{where})"


def own_sql(view: ComputeView, table_of: Callable[[str], str]) -> str:
    """The view as it was written, for Spark to order; `table_of` gives the table of a source."""
    tables = ", ".join(
        f"{relation_sql(relation, table_of(relation.source))} AS t{number}"
        for number, relation in enumerate(view.relations)
    )
    conditions = [*view.equalities, *(f"({predicate.condition})" for predicate in view.residual)]
    items = ", ".join(f"{expression} AS {quoted(name)}" for name, expression in view.outputs)
    return f"SELECT {items} FROM {tables} WHERE {' AND '.join(conditions)}"


def kept_sql(view: ComputeView, mask: int, rows: str) -> str:
    """The rows of a set with only the columns that later joins or the result need."""
    wanted = {
        name
        for key in view.keys
        if any(not mask & 1 << member for member, _ in key.members)
        for name in [next((name for member, name in key.members if mask & 1 << member), None)]
        if name is not None
    }
    later = [expression for _, expression in view.outputs]
    later += [predicate.condition for predicate in view.residual if predicate.mask & ~mask]
    names = [name for index in members_of(mask) for name in view.names(index)]
    needed = [name for name in names if name in wanted or any(quoted(name) in text for text in later)]
    return f"SELECT {', '.join(needed) or '1 AS one'} FROM ({rows})"


def output_sql(view: ComputeView, rows: str) -> str:
    """The view's result over the joined rows."""
    items = ", ".join(f"{expression} AS {quoted(name)}" for name, expression in view.outputs)
    return f"SELECT {items} FROM ({rows})"


def join_condition(view: ComputeView, step: ProbeStep) -> str:
    """The equalities of one join, and the residual predicates that it makes testable."""
    added = mask_of_input(step.build)
    parts = []
    for number in step.classes:
        key = view.keys[number]
        of = dict(key.members)
        sides = [
            next(of[index] for index in members_of(mask) if index in of) for mask in (step.before, added)
        ]
        parts.append(f"{sides[0]} = {sides[1]}")
    parts += [
        f"({predicate.condition})"
        for predicate in view.residual
        if predicate.mask & ~step.after == 0 and predicate.mask & ~step.before and predicate.mask & ~added
    ]
    return " AND ".join(parts)
