"""Figures 11.7 to 11.12 and 11.14: estimated against measured plans.

V1 is a chain of four relations, V2 has one edge more and V3 two (figure 11.6); the joins of R1 with R2 and of
R3 with R4 find an index at R1 and at R4. Plans are named by the inputs they visit, as in the dissertation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from spillway.lab.paper.maintain import ESTIMATED, MEASURED
from spillway.lab.paper.maintain_bed import Bed, BedShape, Laboratory, Lines, evenly
from spillway.maintain import CostSample, MaintenancePlan, QueryCost, RoundReport, fit
from spillway.maintain.search import grouping_paths, instances
from spillway.maintain.strategies import conditional_plan, extended_batch_plan

_VIEWS = {
    "V1": ((0, 1), (1, 2), (2, 3)),
    "V2": ((0, 1), (0, 2), (1, 2), (2, 3)),
    "V3": ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3)),
}
_SIX_EDGES = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (1, 4))
_BATCH_PLANS = {
    "B(1)": "2134,1234,4312,3124", "B(2)": "2314,1324,4321,3142", "B(3)": "2341,1342,4321,3412",
    "B(4)": "2341,1342,4321,3241", "B(5)": "2341,1342,4321,3214",
}  # fmt: skip
_GROUPING_PLANS = {"G(1)": "4312", "G(2)": "4321", "G(3)": "1234", "G(4)": "2134"}
_VALUE_SECONDS = 0.0025
"""5 ms for a row of two attributes."""


def _four(lab: Laboratory, view: str) -> BedShape:
    edges = _VIEWS[view]
    indexes = ((0, edges.index((0, 1))), (3, edges.index((2, 3))))
    return BedShape(4, edges, lab.rows, indexes=indexes)


def batch_plan(
    bed: Bed, model: QueryCost, sizes: Sequence[int], pick: Callable[..., object] = min
) -> MaintenancePlan:
    """The batch plan with the lowest estimate of each step, or with the highest."""
    graph = bed.definition.graph
    orders = {}
    for node in graph.nodes:
        steps = instances(graph, model, node, sizes[node])
        found = pick(steps, key=lambda step: step.seconds)
        orders[node] = found.visited[1:]  # type: ignore[attr-defined]
    return extended_batch_plan(graph, sizes, orders)


def grouping_plans(bed: Bed, sizes: Sequence[int]) -> dict[str, MaintenancePlan]:
    """All grouping plans by their path."""
    graph = bed.definition.graph
    return {
        "-".join(str(node + 1) for node in path): conditional_plan(graph, sizes, path)
        for path in grouping_paths(graph)
    }


def _estimate(model: QueryCost, plan: MaintenancePlan, sizes: Sequence[int]) -> float:
    return model.estimate(plan, [float(size) for size in sizes]).seconds


def _timed(lab: Laboratory, bed: Bed, plan: MaintenancePlan, sizes: Sequence[int]) -> float:
    return bed.seconds(sizes, lambda _: plan, repeats=lab.repeats)


def _diversity(lab: Laboratory) -> Lines:
    lines: Lines = {label: {} for label in ("best batch", "worst batch", "best grouping", "worst grouping")}
    sizes = evenly(2_000, 4)
    for view in _VIEWS:
        with lab.bed(_four(lab, view)) as bed:
            model = bed.model()
            grouped = sorted(grouping_plans(bed, sizes).values(), key=lambda p: _estimate(model, p, sizes))
            plans = {
                "best batch": batch_plan(bed, model, sizes),
                "worst batch": batch_plan(bed, model, sizes, max),
                "best grouping": grouped[0],
                "worst grouping": grouped[-1],
            }
            for label, plan in plans.items():
                lines[label][view] = _timed(lab, bed, plan, sizes)
            lab.note(f"{view}: " + str({label: points[view] for label, points in lines.items()}))
    return lines


def _regression(lab: Laboratory) -> Lines:
    """Queries the third relation by its edge to the second, for two, four and six of its columns."""
    edge = _VIEWS["V2"].index((1, 2))
    observed: dict[int, dict[int, float]] = {}
    with lab.bed(BedShape(4, _VIEWS["V2"], lab.rows, payloads=4)) as bed:
        columns = bed.column_names(2)
        key = columns.index(f"e{edge}")
        for attributes in (2, 4, 6):
            places = [key, *(place for place in range(len(columns)) if place != key)][:attributes]
            for rows in lab.some(range(100, 1001, 150)):
                keys = pa.table({"c0": pa.array(range(0, rows * 7, 7), pa.int64())})
                observed.setdefault(attributes, {})[rows] = min(
                    _seconds(lambda keys=keys, places=places: bed.ask(2, places, keys))  # type: ignore[misc]
                    for _ in range(1 + lab.repeats)
                )
    samples = [CostSample(rows, a, y) for a, points in observed.items() for rows, y in points.items()]
    function = fit(samples)
    lab.note(f"fitted: {function}")
    lines: Lines = {}
    for attributes, points in observed.items():
        lines[f"{MEASURED}, {attributes} attributes"] = {str(rows): y for rows, y in points.items()}
        lines[f"{ESTIMATED}, {attributes} attributes"] = {
            str(rows): function(rows, attributes) for rows in points
        }
    return lines


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _batch_estimates(lab: Laboratory) -> Lines:
    lines: Lines = {f"{w} {k}": {} for w in ("best", "worst") for k in (MEASURED, ESTIMATED)}
    with lab.bed(_four(lab, "V2")) as bed:
        model = bed.model()
        for updates in lab.some(range(200, 2001, 300)):
            sizes = evenly(updates, 4)
            for which, pick in (("best", min), ("worst", max)):
                plan = batch_plan(bed, model, sizes, pick)
                lines[f"{which} {MEASURED}"][str(updates)] = _timed(lab, bed, plan, sizes)
                lines[f"{which} {ESTIMATED}"][str(updates)] = _estimate(model, plan, sizes)
    return lines


def _grouping_estimates(lab: Laboratory) -> Lines:
    lines: Lines = {}
    with lab.bed(_four(lab, "V2")) as bed:
        model = bed.model()
        for updates in lab.some(range(200, 2001, 300)):
            sizes = evenly(updates, 4)
            for path, plan in grouping_plans(bed, sizes).items():
                measured = lines.setdefault(f"{path} {MEASURED}", {})
                measured[str(updates)] = _timed(lab, bed, plan, sizes)
                estimated = lines.setdefault(f"{path} {ESTIMATED}", {})
                estimated[str(updates)] = _estimate(model, plan, sizes)
    return lines


def _nodes(text: str) -> tuple[int, ...]:
    return tuple(int(digit) - 1 for digit in text)


def _selected_plans(lab: Laboratory, names: Sequence[str], delay_seconds: float) -> Lines:
    edges = _VIEWS["V2"]
    ratios = tuple(50.0 if edge in ((0, 2), (1, 2)) else 1.0 for edge in edges)
    shape = BedShape(4, edges, lab.rows // 5, ratios, ((3, edges.index((2, 3))),))
    scale = 1 if not lab.quick else 10
    sizes = [2_000 // scale, 2_000 // scale, 10, 10]
    points: dict[str, float] = {}
    with lab.bed(shape) as bed:
        graph = bed.definition.graph
        width = len(bed.column_names(0))

        def measured(report: RoundReport) -> float:
            values = report.keys_sent + report.rows_received * width
            return report.maintain_seconds + delay_seconds * values

        for name in names:
            if name in _BATCH_PLANS:
                orders = {_nodes(path)[0]: _nodes(path)[1:] for path in _BATCH_PLANS[name].split(",")}
                plan = extended_batch_plan(graph, sizes, orders)
            else:
                plan = conditional_plan(graph, sizes, _nodes(_GROUPING_PLANS[name]))
            points[name] = bed.seconds(sizes, lambda _, plan=plan: plan, measure=measured)  # type: ignore[misc]
            lab.note(f"{name}: {points[name]:.3f} s")
    return {MEASURED: points}


def _six_relations(lab: Laboratory) -> Lines:
    lines: Lines = {f"{w} {k}": {} for w in ("best batch", "best grouping") for k in (MEASURED, ESTIMATED)}
    shape = BedShape(6, _SIX_EDGES, lab.rows, indexes=((0, 0), (5, 4)))
    with lab.bed(shape) as bed:
        model = bed.model()
        for updates in lab.some(range(1_000, 10_001, 1_500)):
            sizes = evenly(updates, 6)
            grouped = min(grouping_plans(bed, sizes).values(), key=lambda p: _estimate(model, p, sizes))
            for label, plan in (("best batch", batch_plan(bed, model, sizes)), ("best grouping", grouped)):
                lines[f"{label} {MEASURED}"][str(updates)] = _timed(lab, bed, plan, sizes)
                lines[f"{label} {ESTIMATED}"][str(updates)] = _estimate(model, plan, sizes)
            lab.note(f"{updates} updates: " + str({k: v[str(updates)] for k, v in lines.items()}))
    return lines


PLAN_FIGURES: Mapping[str, Callable[[Laboratory], Lines]] = {
    "11.7": _diversity,
    "11.8": _regression,
    "11.9": _batch_estimates,
    "11.10": _grouping_estimates,
    "11.11": lambda lab: _selected_plans(lab, [*_BATCH_PLANS, *_GROUPING_PLANS], 0.0),
    "11.12": lambda lab: _selected_plans(lab, [*_BATCH_PLANS], _VALUE_SECONDS),
    "11.14": _six_relations,
}
