"""A tree for readers: its segments as text and as plain values, with estimates and measurements.

Segments are numbered in the order in which they can run; the last one gives the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spillway.compute.cost import TreeCost
from spillway.compute.join_graph import members_of
from spillway.compute.tree import Input, Segment, mask_of_input, steps
from spillway.compute.trees import Proposal
from spillway.compute.way import SPARK

MeasuredSegments = Mapping[int, Mapping[str, Any]]


def tree_report(model: TreeCost, plan: Proposal, measured: MeasuredSegments | None = None) -> dict[str, Any]:
    """The plan as plain values; `measured` by segment: seconds, step_rows, table_bytes, kept."""
    numbers = {segment: number for number, segment in enumerate(plan.tree.segments())}
    segments = [
        _segment(model, segment, numbers, (measured or {}).get(number)) for segment, number in numbers.items()
    ]
    report: dict[str, Any] = {
        "tree": plan.algorithm,
        "segments": segments,
        "estimated_seconds": round(plan.seconds, 6),
        "estimated_work_seconds": round(plan.work, 6),
        "fits_memory": plan.fits,
        "processors": model.machine.processors,
    }
    errors = [step["q_error"] for segment in segments for step in segment["joins"] if step.get("q_error")]
    if errors:
        report["q_error_median"] = round(sorted(errors)[len(errors) // 2], 4)
    return report


def draw_text(report: Mapping[str, Any]) -> str:
    """The drawing of a report: one block per segment, the final one first."""
    lines = [
        f"tree: {report['tree']}, {len(report['segments'])} segments, estimated "
        f"{report['estimated_seconds']:.3f} s on {report['processors']} processors"
        + ("" if report["fits_memory"] else "; a hash table is larger than the memory and is partitioned")
    ]
    if report.get("way") == SPARK:
        lines.insert(0, f"Spark's own plan: {report['reason']}. Otherwise it would be this tree:")
    elif "way" in report:
        lines.append(f"by {report['way']}: {report['reason']}")
    for segment in reversed(report["segments"]):
        final = " (final)" if segment is report["segments"][-1] else ""
        took = f", took {segment['measured_seconds']:.2f} s" if "measured_seconds" in segment else ""
        lines.append(
            f"segment {segment['number']}{final}: {segment['table_bytes'] / 1e6:.1f} MB of hash tables{took}"
        )
        lines.append(f"  probe {segment['probe']} ({segment['probe_rows']:,} rows)")
        for number, join in enumerate(segment["joins"]):
            way = "replicated" if join["replicated"] else "partitioned"
            found = f", measured {join['measured_rows']:,}" if join.get("measured_rows") is not None else ""
            branch = "└─" if number == len(segment["joins"]) - 1 else "├─"
            lines.append(
                f"  {branch} {join['build']} ({join['build_rows']:,} rows, {way}) on {join['on']}: "
                f"{join['estimated_rows']:,} rows{found}"
            )
    return "\n".join(lines)


def _segment(
    model: TreeCost, segment: Segment, numbers: Mapping[Segment, int], seen: Mapping[str, Any] | None
) -> dict[str, Any]:
    joins = []
    rows = model.cardinality.rows
    found = seen["step_rows"] if seen is not None else [None] * len(segment.builds)
    for step, replicated, measured in zip(
        steps(model.graph, segment), model.replicated(segment), found, strict=True
    ):
        estimated = rows(step.after)
        join: dict[str, Any] = {
            "build": _name(step.build, model, numbers),
            "build_rows": round(rows(mask_of_input(step.build))),
            "on": ", ".join(model.graph.classes[number].label for number in step.classes),
            "replicated": replicated,
            "estimated_rows": round(estimated),
        }
        if seen is not None:
            join["measured_rows"] = measured
            join["q_error"] = None if measured is None else round(q_error(estimated, measured), 4)
        joins.append(join)
    made: dict[str, Any] = {
        "number": numbers[segment],
        "relations": [model.graph.relations[index].name for index in members_of(segment.mask)],
        "probe": _name(segment.probe, model, numbers),
        "probe_rows": round(rows(mask_of_input(segment.probe))),
        "joins": joins,
        "table_bytes": round(model.memory_bytes(segment)),
    }
    if seen is not None:
        made |= {
            "measured_seconds": seen["seconds"],
            "measured_table_bytes": seen["table_bytes"],
            "kept": seen["kept"],
        }
    return made


def q_error(estimated: float, measured: float) -> float:
    """How many times the estimate is off, in either direction; zero rows count as one."""
    low, high = sorted((max(estimated, 1.0), max(measured, 1.0)))
    return high / low


def _name(side: Input, model: TreeCost, numbers: Mapping[Segment, int]) -> str:
    return model.graph.relations[side].name if isinstance(side, int) else f"segment {numbers[side]}"
