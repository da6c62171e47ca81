"""Random graphs of joins and selections, what their wire brings, and their results by DuckDB.

All rows have the columns c0, c1, c2, of any source and operator. A graph is told by plain values: expressions
are numbers of entries in the lists below.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from spillway.plan.expression.nodes import Call, ColumnRef, Expression, Literal, describe
from spillway.state.graph.edge import OperatorEdge, Produced, Root, Selection
from spillway.state.graph.graph import Graph
from spillway.state.join.operator import JoinOperator
from spillway.state.rows.xxhash import xxhash64
from spillway.state.select.operator import SelectOperator
from spillway.state.step.operator import HASH_WIRE_COLUMN, TAG_COLUMN, WireInput

MOST_RESULTS = 600
"""Of all operators together."""
SOURCES, COLUMNS = 3, ("c0", "c1", "c2")
SLOTS = ("s0", "s1", "s2")
SCHEMA = pa.schema([(name, pa.int64()) for name in COLUMNS])
C0, C1, C2 = (ColumnRef(0, column) for column in range(3))


def _long(value: int) -> Literal:
    return Literal(value, "bigint")


PREDICATES: tuple[Expression | None, ...] = (
    None,
    None,
    Call("<>", (C0, _long(2))),
    Call("<=", (C0, C1)),
    Call("not", (Call("is null", (C1,)),)),
    Call("or", (Call("=", (C0, _long(1))), Call("is null", (C1,)))),
)
PROJECTIONS: tuple[tuple[Expression, ...], ...] = (
    (C0, C1, C2),
    (C1, C0, C2),
    (C2, C1, C0),
    (C0, Call("%", (Call("+", (C1, C2)), _long(3))), C2),
    (Call("coalesce", (C1, _long(1))), C0, C2),
)
RESIDUALS: tuple[Expression | None, ...] = (
    None,
    Call("<=", (ColumnRef(0, 1), ColumnRef(1, 1))),
    Call("<>", (ColumnRef(0, 0), ColumnRef(1, 2))),
)
Feed: TypeAlias = "tuple[int, int, int, bool]"
"""Where rows come from (sources first, then operators), predicate, projection; or whether all go on as they
are."""
Made: TypeAlias = "tuple[list[list[Feed]], list[int], int, list[tuple[int, int]], int, bool]"
"""An operator: the feeds of each input, the key column of each, residual (of a selection: predicate), the
outputs as (input, column), groups, whether different keys have equal hashes."""
Rows: TypeAlias = "list[tuple[int, tuple[int | None, int | None, int]]]"
"""Source and values of each row."""


@st.composite
def graphs(draw: st.DrawFn, most_groups: int) -> dict[str, Any]:
    """Operators and roots; every operator leads to some result. In half of them all rows go on, so that there
    are many results."""
    operators: list[Made] = []
    dense = draw(st.booleans())
    predicate = st.just(0) if dense else st.integers(0, len(PREDICATES) - 1)
    for number in range(draw(st.integers(1, 5))):
        feed = st.tuples(
            st.integers(0, SOURCES - 1) if not number else st.integers(0, SOURCES + number - 1),
            predicate,
            st.integers(0, len(PROJECTIONS) - 1),
            st.booleans(),
        )
        inputs = draw(st.sampled_from([1, 2, 2, 2, 3]))
        feeds = [draw(st.lists(feed, min_size=1, max_size=2)) for _ in range(inputs)]
        if number:  # more often one over the other, and diamonds
            feeds[0][0] = (SOURCES + draw(st.integers(0, number - 1)), *feeds[0][0][1:])
        outputs = [(draw(st.integers(0, inputs - 1)), draw(st.integers(0, 2))) for _ in COLUMNS]
        operators.append(
            (
                feeds,
                [draw(st.integers(0, 1)) for _ in range(inputs)],
                0 if dense else draw(st.integers(0, len(RESIDUALS if inputs > 1 else PREDICATES) - 1)),
                outputs,
                draw(st.integers(1, most_groups)),
                draw(st.booleans()),
            )
        )
    fed = {feed[0] - SOURCES for made in operators for feeds in made[0] for feed in feeds}
    finals = [number for number in range(len(operators)) if number not in fed]
    finals += draw(st.lists(st.integers(0, len(operators) - 1), max_size=2))
    roots = [
        (
            final,
            draw(st.sampled_from(["x", "y", "z"])),
            draw(predicate),
            draw(st.integers(0, len(PROJECTIONS) - 1)),
            draw(st.booleans()),
        )
        for final in finals
    ]
    return {"operators": operators, "roots": roots}


@st.composite
def arriving(draw: st.DrawFn) -> list[Rows]:
    """The rows of each epoch; values are few, some are null, and each row has a number of its own."""
    random = np.random.default_rng(draw(st.integers(0, (1 << 32) - 1)))
    values, nulls = draw(st.integers(2, 6)), draw(st.sampled_from([0, 0.15]))
    epochs: list[Rows] = [[] for _ in range(draw(st.integers(2, 6)))]
    for number in range(draw(st.integers(6, 40))):
        drawn = [None if random.random() < nulls else int(random.integers(values)) for _ in range(2)]
        epochs[random.integers(len(epochs))].append(
            (int(random.integers(SOURCES)), (drawn[0], drawn[1], number))
        )
    return epochs


@dataclass(frozen=True)
class GraphWire:
    """The graph that is told, and its batches."""

    operators: Sequence[Made]
    roots: Sequence[tuple[int, str, int, int, bool]]

    @property
    def graph(self) -> Graph:
        edges = tuple(
            OperatorEdge(
                feed[0] - SOURCES,
                consumer,
                number,
                keys=len(self._keys(consumer, number)),
                hashed=False,
                selection=self._selection(consumer, number, feed),
            )
            for consumer, number, feed in self._feeds()
            if feed[0] >= SOURCES
        )
        return Graph(
            tuple(self._operator(number) for number in range(len(self.operators))),
            tuple((consumer, number) for consumer, number, feed in self._feeds() if feed[0] < SOURCES),
            edges=edges,
            roots=tuple(
                Root(
                    producer,
                    name,
                    None if plain else Selection(PROJECTIONS[outputs], SCHEMA, PREDICATES[rows]),
                )
                for producer, name, rows, outputs, plain in self.roots
            ),
        )

    def _feeds(self) -> Iterator[tuple[int, int, Feed]]:
        for consumer, made in enumerate(self.operators):
            for number, feeds in enumerate(made[0]):
                for feed in feeds:
                    yield consumer, number, feed

    def _operator(self, number: int) -> JoinOperator | SelectOperator:
        feeds, keys, condition, outputs, groups, collides = self.operators[number]
        inputs = tuple(WireInput(f"i{place}", COLUMNS, SLOTS) for place in range(len(feeds)))
        values = tuple(ColumnRef(*output) for output in outputs)
        if len(inputs) == 1:
            return SelectOperator((inputs[0],), values, PREDICATES[condition], groups, SCHEMA)
        return JoinOperator(
            inputs=inputs,
            outputs=values,
            residual=RESIDUALS[condition],
            key_columns=tuple((key,) if collides else () for key in keys),
            groups=groups,
            result_schema=SCHEMA,
        )

    def _keys(self, consumer: int, number: int) -> tuple[Expression, ...]:
        """What the hash of a row is made of: its key, or a part of it; nothing for a selection."""
        feeds, keys, _, _, _, collides = self.operators[consumer]
        key = ColumnRef(0, keys[number])
        if len(feeds) == 1:
            return ()
        return (Call("%", (key, _long(2))) if collides else key,)

    def _selection(self, consumer: int, number: int, feed: Feed) -> Selection | None:
        _, predicate, projection, plain = feed
        keys = self._keys(consumer, number)
        if plain and not keys:
            return None
        columns = PROJECTIONS[0] if plain else PROJECTIONS[projection]
        keyed = tuple(_over(key, columns) for key in keys)
        fields = [(f"k{place}", pa.int64()) for place in range(len(keys))]
        schema = pa.schema([*fields, *SCHEMA])
        return Selection((*keyed, *columns), schema, None if plain else PREDICATES[predicate])

    def batch(self, rows: Rows) -> pa.RecordBatch | None:
        """What Spark would make of some rows."""
        parts = []
        tags = [taken for taken in self._feeds() if taken[2][0] < SOURCES]
        for tag, (consumer, number, feed) in enumerate(tags):
            mine = [values for source, values in rows if source == feed[0]]
            arrays = [pa.array(list(column), pa.int64()) for column in zip(*mine, strict=True)]
            if not mine:
                continue
            hashes = xxhash64([arrays[2]])
            produced = Produced(SCHEMA, hashes, hashes, arrays).selected(
                self._selection(consumer, number, feed)
            )
            keys = len(self._keys(consumer, number))
            produced = produced.with_values(keys)
            hashes = xxhash64(produced.arrays[:keys]) if keys else produced.hashes
            columns = [pa.array(np.full(produced.rows, tag, np.int8)), pa.array(hashes)]
            parts.append(
                pa.RecordBatch.from_arrays(
                    [*columns, *produced.arrays[keys:]], names=[TAG_COLUMN, HASH_WIRE_COLUMN, *SLOTS]
                )
            )
        table = pa.Table.from_batches(parts) if parts else None
        return table.combine_chunks().to_batches()[0] if table is not None and table.num_rows else None

    def by_definition(self, rows: Rows) -> tuple[dict[str, Counter[tuple[Any, ...]]], int]:
        """The rows of each result, and how many rows all operators together have."""
        with duckdb.connect() as connection:
            connection.execute("SET threads = 1")
            for source in range(SOURCES):
                mine = [values for own, values in rows if own == source]
                table = pa.table(
                    [pa.array([values[place] for values in mine], pa.int64()) for place in range(3)],
                    schema=SCHEMA,
                )
                connection.register(f"n{source}", table)
            total = 0
            for number in range(len(self.operators)):
                connection.execute(f"CREATE TEMP TABLE n{SOURCES + number} AS {self._sql(number)}")
                found = connection.execute(f"SELECT count(*) FROM n{SOURCES + number}").fetchone()
                assert found is not None
                total += found[0]
                if total > MOST_RESULTS:
                    return {}, total
            results: dict[str, Counter[tuple[Any, ...]]] = {}
            for producer, name, predicate, projection, plain in self.roots:
                feed = (SOURCES + producer, predicate, projection, plain)
                results.setdefault(name, Counter()).update(connection.execute(_feed_sql(feed)).fetchall())
            return results, total

    def _sql(self, number: int) -> str:
        feeds, keys, condition, outputs, _, _ = self.operators[number]
        inputs = [
            "(" + " UNION ALL ".join(map(_feed_sql, of_input)) + f") i{n}" for n, of_input in enumerate(feeds)
        ]
        columns = ", ".join(
            f"i{of}.c{column} AS {name}" for (of, column), name in zip(outputs, COLUMNS, strict=True)
        )
        conditions = [f"i0.c{keys[0]} = i{n}.c{key}" for n, key in enumerate(keys) if n]
        own = RESIDUALS[condition] if len(feeds) > 1 else PREDICATES[condition]
        if own is not None:
            conditions.append(describe(own, lambda ref: f"i{ref.input}.c{ref.column}"))
        where = " AND ".join(f"({one})" for one in conditions) or "true"
        return f"SELECT {columns} FROM {', '.join(inputs)} WHERE {where}"


def _feed_sql(feed: Feed) -> str:
    node, predicate, projection, plain = feed
    values = PROJECTIONS[0] if plain else PROJECTIONS[projection]
    columns = ", ".join(
        f"{describe(value, _name)} AS {name}" for value, name in zip(values, COLUMNS, strict=True)
    )
    own = None if plain else PREDICATES[predicate]
    where = "" if own is None else f" WHERE {describe(own, _name)}"
    return f"SELECT {columns} FROM n{node}{where}"


def _name(ref: ColumnRef) -> str:
    return f"c{ref.column}"


def _over(value: Expression, columns: Sequence[Expression]) -> Expression:
    """The expression with these in the place of its columns."""
    if isinstance(value, ColumnRef):
        return columns[value.column]
    assert isinstance(value, Call)
    return Call(
        value.function,
        tuple(part if isinstance(part, Literal) else _over(part, columns) for part in value.arguments),
    )
