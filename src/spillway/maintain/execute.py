"""Executes a plan: sources answer its queries, everything else is done here, on Arrow tables.

The answer to a query is the source as it was at some moment after the round was cut, with the changes after
the round that it contains. Both are exact, so what is joined is exactly the wanted state: rows now,
minus later changes, minus (for a part `before`) the round's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from spillway.maintain.algebra import Algebra, ArrowAlgebra, distinct, equal, negated, weighted
from spillway.maintain.definition import ViewDefinition, wide
from spillway.maintain.delta import WEIGHT, delta_schema, row_schema
from spillway.maintain.evaluation import evaluating
from spillway.maintain.plan import MaintenancePlan, MaintenanceQuery, Part, Take
from spillway.maintain.slots import Slots
from spillway.maintain.unify import KeySet, keys, signature, unify


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows per key set, and the signed changes among them that came after the round was cut."""

    rows: tuple[pa.Table, ...]
    later: pa.Table


Ask = Callable[[int, Sequence[KeySet]], Answer]
"""Input and key sets to the answer of its source."""


@dataclass(slots=True)
class ExecutionMetrics:
    """What the execution of a plan took."""

    queries: int = 0
    skipped: int = 0
    """Queries without any row to send."""
    keys_sent: int = 0
    rows_received: int = 0
    joined_rows: int = 0
    """Rows of all intermediate results."""

    def add(self, key_sets: Sequence[KeySet], answer: Answer) -> None:
        self.queries += 1
        self.keys_sent += sum(key_set.keys.num_rows for key_set in key_sets)
        self.rows_received += sum(table.num_rows for table in answer.rows)


class Executor:
    """Runs the plans of one view; holds no state between them but the connection."""

    def __init__(self, definition: ViewDefinition, algebra: Algebra | None = None) -> None:
        self._definition = definition
        self._algebra = algebra or ArrowAlgebra()
        self._connection = duckdb.connect()
        self._empties: dict[tuple[int, ...], pa.Table] = {}

    def close(self) -> None:
        self._connection.close()

    def filtered(self, node: int, delta: pa.Table) -> pa.Table:
        """A delta of input `node` in wide columns; rows the view leaves out are gone, equal ones summed.

        Summed first: a row that came and went must not reach the view's conditions, which may fail on it.
        """
        return self.kept(node, self._algebra.consolidate(delta))

    def kept(self, node: int, delta: pa.Table) -> pa.Table:
        """The same with equal rows as they are."""
        return self._wide(node, self._kept(node, delta))

    def consolidated(self, rows: pa.Table) -> pa.Table:
        """Equal rows as one with the sum of their weights."""
        return self._algebra.consolidate(rows)

    def run(
        self, plan: MaintenancePlan, deltas: Sequence[pa.Table], ask: Ask, metrics: ExecutionMetrics
    ) -> pa.Table:
        """The signed delta of the view; `deltas` are the round's own, as `filtered` gives them."""
        slots = Slots(plan, deltas)
        for step in plan.steps:
            if isinstance(step, MaintenanceQuery):
                self._query(plan, step, slots, deltas[step.input], ask, metrics)
            elif isinstance(step, Take):
                slots[step.write] = slots[step.read].slice(step.row, 1)
            else:
                columns = slots[step.reads[0]].column_names
                slots[step.write] = pa.concat_tables([slots[read].select(columns) for read in step.reads])
            slots.spend(step)
        return self.project([slots[slot] for slot in plan.results])

    def project(self, rows: Sequence[pa.Table]) -> pa.Table:
        """Joined rows as rows of the view: residual conditions, result columns, equal rows summed."""
        definition = self._definition
        columns = [*definition.wide_columns(definition.graph.nodes), WEIGHT]
        joined = pa.concat_tables([t.select(columns) for t in rows] or [self._empty(definition.graph.nodes)])
        names = [f"o{place}" for place in range(len(definition.outputs))]
        plain = [item.sql for item in definition.outputs if item.sql in columns]
        if definition.residual is None and len(plain) == len(names):
            return self._algebra.consolidate(joined.select([*plain, WEIGHT]).rename_columns([*names, WEIGHT]))
        self._connection.register("joined", joined)
        items = [f"{item.sql} AS {name}" for item, name in zip(definition.outputs, names, strict=True)]
        keep = f" WHERE {definition.residual}" if definition.residual else ""
        with evaluating():
            found = self._connection.sql(f"SELECT {', '.join([*items, WEIGHT])} FROM joined{keep}")
            rows = found.to_arrow_table()
        return self._algebra.consolidate(rows)

    def _query(
        self,
        plan: MaintenancePlan,
        query: MaintenanceQuery,
        slots: Slots,
        own: pa.Table,
        ask: Ask,
        metrics: ExecutionMetrics,
    ) -> None:
        groups = unify(query, slots)
        key_sets = self._key_sets(query.input, groups, slots)
        if key_sets:
            answer = ask(query.input, key_sets)
            metrics.add(key_sets, answer)
        else:
            answer = self._no_answer(query.input)
            metrics.skipped += 1
        for part in query.parts:
            slots[part.write] = self._empty(plan.covers[part.write])
        by_columns = dict(zip((key_set.columns for key_set in key_sets), answer.rows, strict=True))
        for parts in groups:
            columns = signature(self._definition, query.input, parts[0])
            rows = by_columns.get(columns, by_columns.get(()))
            if rows is None:
                continue
            state = self._state(query.input, rows, answer.later, own if parts[0].before else None)
            for part in parts:
                joined = self._join(query.input, part, slots[part.read], state)
                metrics.joined_rows += joined.num_rows
                names = [*self._definition.wide_columns(plan.covers[part.write]), WEIGHT]
                slots[part.write] = joined.select(names)

    def _key_sets(self, node: int, groups: Sequence[tuple[Part, ...]], slots: Slots) -> list[KeySet]:
        """What to ask the source for: one set of keys per signature; all rows answer every other part too."""
        found: dict[tuple[int, ...], list[pa.Table]] = {}
        for parts in groups:
            columns = signature(self._definition, node, parts[0])
            if not columns:
                return [KeySet((), pa.table({}))]
            found.setdefault(columns, []).append(keys(self._definition, node, parts, slots))
        sets = [KeySet(columns, distinct(pa.concat_tables(tables))) for columns, tables in found.items()]
        return [key_set for key_set in sets if key_set.keys.num_rows]

    def _state(self, node: int, rows: pa.Table, later: pa.Table, own: pa.Table | None) -> pa.Table:
        """The wanted state of input `node`, as far as the keys of a query reach."""
        state = [self._wide(node, weighted(self._kept(node, rows)))]
        if later.num_rows:
            state.append(self._wide(node, negated(self._kept(node, later))))
        if own is not None and own.num_rows:
            state.append(negated(own.select(state[0].column_names)))
        # Summed before the join: one input is narrower than what it is joined with.
        return self._algebra.consolidate(pa.concat_tables(state)) if len(state) > 1 else state[0]

    def _join(self, node: int, part: Part, delta: pa.Table, state: pa.Table) -> pa.Table:
        """One part joined with a state of input `node`; edges that are left to us are evaluated at once."""
        joined = self._algebra.join(delta, state, self._pairs(node, part.edges))
        for number in part.local:
            holds = [
                equal(joined.column(ours), joined.column(theirs))
                for ours, theirs in self._pairs(node, [number])
            ]
            joined = joined.filter(reduce(pc.and_, holds))
        return joined

    def _kept(self, node: int, rows: pa.Table) -> pa.Table:
        """Rows of a source without those that the view's own filter leaves out."""
        condition = self._definition.inputs[node].filter
        if condition is None or not rows.num_rows:
            return rows
        self._connection.register("rows_in", rows)
        with evaluating():
            kept: pa.Table = self._connection.sql(f"FROM rows_in WHERE {condition}").to_arrow_table()
        return kept

    def _wide(self, node: int, delta: pa.Table) -> pa.Table:
        """A source's delta with the column names of joined rows."""
        return delta.rename_columns([n if n == WEIGHT else f"c{node}_{n[1:]}" for n in delta.column_names])

    def _no_answer(self, node: int) -> Answer:
        return Answer((), delta_schema(self._definition.inputs[node].columns).empty_table())

    def _pairs(self, node: int, edges: Sequence[int]) -> list[tuple[str, str]]:
        """The columns that edges make equal: of a delta, and of input `node`."""
        definition = self._definition
        pairs = []
        for number in edges:
            edge = definition.graph.edges[number]
            other = edge.other(node)
            ours, theirs = definition.edge_columns(edge, other), definition.edge_columns(edge, node)
            pairs += [(wide(other, a), wide(node, b)) for a, b in zip(ours, theirs, strict=True)]
        return pairs

    def _empty(self, nodes: Sequence[int]) -> pa.Table:
        if tuple(nodes) not in self._empties:
            self._empties[tuple(nodes)] = self._make_empty(nodes)
        return self._empties[tuple(nodes)]

    def _make_empty(self, nodes: Sequence[int]) -> pa.Table:
        fields = [
            pa.field(wide(node, place), field.type)
            for node in sorted(nodes)
            for place, field in enumerate(row_schema(self._definition.inputs[node].columns))
        ]
        return pa.schema([*fields, pa.field(WEIGHT, pa.int64())]).empty_table()
