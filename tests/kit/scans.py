"""Scans of views without Spark: slots are named after their places, `s0`, `s1`, ..."""

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from spillway.model import Column, View, parse_ddl
from spillway.plan.operators import leaf_symbols
from spillway.plan.rules import Plan, plan_view
from spillway.plan.typing import PlanTypes, plan_types, read_input_types
from spillway.scan import ScanInput
from spillway.scan.native import native_inputs
from spillway.state.graph import Graph
from spillway.state.join import JoinOperator
from spillway.state.step import WireInput


def native_scans(
    view: str | View, sources: Mapping[str, str], event_time: str | None = None
) -> tuple[ScanInput | str, ...]:
    """The scans of a view over sources with these columns, one of which may be the event time of each."""
    catalog = {name: _columns(ddl, event_time) for name, ddl in sources.items()}
    plan = plan_view(View.sql(view) if isinstance(view, str) else view, catalog)
    columns = [catalog[input_.source] for input_ in plan.inputs]
    types = plan_types(
        plan, [read_input_types(input_, own) for input_, own in zip(plan.inputs, columns, strict=True)]
    )
    return native_inputs(plan, columns, types, _graph(plan, types))


def native_scan(view: str | View, sources: Mapping[str, str], event_time: str | None = None) -> ScanInput:
    """The scan of a view's first input."""
    scan = native_scans(view, sources, event_time)[0]
    assert isinstance(scan, ScanInput), scan
    return scan


def _columns(ddl: str, event_time: str | None) -> tuple[Column, ...]:
    return tuple(
        replace(column, lateness_us=1_000_000) if column.name == event_time else column
        for column in parse_ddl(ddl)
    )


def _graph(plan: Plan, types: PlanTypes) -> Graph:
    """An operator that has the slots of all inputs; nothing else of it is asked."""
    inputs = []
    for number, input_ in enumerate(plan.inputs):
        count = len(input_.columns) + (0 if types.exact[0] else len(types.keys))
        if plan.kind == "tree":
            count = len(leaf_symbols(plan, types.exact, number))  # type: ignore[arg-type]
        names = tuple(f"s{place}" for place in range(count))
        inputs.append(WireInput(input_.name, names, names))
    keys = tuple(() for _ in inputs)
    return Graph.of_one(JoinOperator(tuple(inputs), (), None, keys, 4, pa.schema([])))
