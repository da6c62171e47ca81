"""A plan carried out step by step, with DuckDB in the place of Spark: the rows of its view."""

from typing import Any

import duckdb
import pyarrow.compute as pc

from spillway.plan.expression.evaluation import evaluate, result_type
from spillway.plan.expression.nodes import ColumnRef
from spillway.plan.operators import JoinPlan, TreePlan


def carry_out(plan: JoinPlan | TreePlan, database: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """Filter, project, join on the keys; then the residuals; then the outputs."""
    names: list[ColumnRef] = []
    parts: list[str] = []
    first: dict[int, str] = {}
    if isinstance(plan, TreePlan):
        key_classes = plan.key_classes
        residuals = [join.residual for join in plan.joins]
    else:
        key_classes = tuple(tuple(range(len(input_.keys))) for input_ in plan.inputs)
        residuals = [plan.residual]
    for index, input_ in enumerate(plan.inputs):
        keys = [f"{key} AS key{part}" for part, key in enumerate(input_.keys)]
        kept = [f"{c.expression} AS v{index}_{position}" for position, c in enumerate(input_.columns)]
        names += [ColumnRef(index, position) for position in range(len(input_.columns))]
        rows = f"SELECT {', '.join(keys + kept)} FROM {input_.source} WHERE {input_.filter or 'true'}"
        equal = [
            f"{first[number]} = i{index}.key{part}"
            for part, number in enumerate(key_classes[index])
            if first.setdefault(number, f"i{index}.key{part}") != f"i{index}.key{part}"
        ]
        joined = f"JOIN ({rows}) i{index} ON {' AND '.join(equal) or 'true'}"
        parts.append(f"({rows}) i0" if index == 0 else joined)
    selected = ", ".join(["1", *(f"v{ref.input}_{ref.column}" for ref in names)])
    query = f"SELECT {selected} FROM {' '.join(parts)}".replace("`", '"')
    table = database.sql(query).to_arrow_table()
    columns = {ref: table.column(number).combine_chunks() for number, ref in enumerate(names, 1)}
    for residual in residuals:
        if residual is not None:
            holds = pc.fill_null(evaluate(residual, columns.__getitem__, table.num_rows), False)
            table = table.filter(holds)
            columns = {ref: array.filter(holds) for ref, array in columns.items()}
    results = [evaluate(output.value, columns.__getitem__, table.num_rows) for output in plan.outputs]
    types = [result_type(output.value, lambda ref: columns[ref].type) for output in plan.outputs]
    assert [result.type for result in results] == types
    return list(zip(*(result.to_pylist() for result in results), strict=True))
