"""Compares the runs of an experiment: the metrics that are printed and returned as JSON. Pure."""

from collections.abc import Sequence
from typing import Any

from spillway.errors import StateError
from spillway.lab.paper.experiment import ALL_MEMORY, LEAST, MOST, Axis, Experiment
from spillway.lab.paper.outcome import Outcome
from spillway.lab.paper.placement import ACTIVE, LAZY, NO_RELOCATION, UNBOUNDED, WITH_RELOCATION


def compare(experiment: Experiment, outcomes: Sequence[Outcome], expected_results: int) -> dict[str, Any]:
    """Refuses runs whose results differ from those of the workload."""
    for outcome in outcomes:
        if outcome.results_total != expected_results and (
            outcome.stopped is None or outcome.results_total > expected_results
        ):
            raise StateError(
                f"figure {experiment.name}: {outcome.variant.label} gave {outcome.results_total} results, "
                f"the workload has {expected_results}; please report this"
            )
    by_label = {outcome.variant.label: outcome for outcome in outcomes}
    metrics: dict[str, Any] = {
        "figure": experiment.name,
        "rows": experiment.rows,
        "epochs": experiment.epochs,
        "memory_bytes": experiment.memory_bytes,
        "state_bytes": max(outcome.state_bytes for outcome in outcomes),
        "results_total": expected_results,
        "runtime_results": {label: outcome.runtime_results for label, outcome in by_label.items()},
        "cleanup_results": {label: outcome.cleanup_results for label, outcome in by_label.items()},
        "cleanup_seconds": {label: round(outcome.cleanup_seconds, 3) for label, outcome in by_label.items()},
        "variants": {label: outcome.to_json() for label, outcome in by_label.items()},
    }
    if LEAST in by_label and MOST in by_label:
        least, most = by_label[LEAST], by_label[MOST]
        metrics["ratio_least_most"] = _ratio(least.runtime_results, most.runtime_results)
        metrics["cleanup_ratio"] = _ratio(least.cleanup_seconds, most.cleanup_seconds)
        metrics["cleanup_results_ratio"] = _ratio(least.cleanup_results, most.cleanup_results)
    for name, baseline in ((LAZY, NO_RELOCATION), (WITH_RELOCATION, NO_RELOCATION), (ACTIVE, LAZY)):
        if name in by_label and baseline in by_label:
            metrics |= _placement_ratios(by_label[name], by_label[baseline])
    if UNBOUNDED in by_label and LAZY in by_label:
        ratio = _ratio(by_label[UNBOUNDED].runtime_results, by_label[LAZY].runtime_results)
        metrics["ratio_runtime_results_unbounded"] = ratio
    if ALL_MEMORY in by_label and experiment.axis is Axis.RESULTS_BY_CLOCK:
        metrics["wall_ratio_to_all_memory"] = {
            label: _ratio(outcome.wall_seconds, by_label[ALL_MEMORY].wall_seconds)
            for label, outcome in by_label.items()
        }
    return metrics


def _placement_ratios(outcome: Outcome, baseline: Outcome) -> dict[str, Any]:
    """One policy over another: results at run time, clean-up, and the work of the busiest processor."""
    return {
        "ratio_runtime_results": _ratio(outcome.runtime_results, baseline.runtime_results),
        "cleanup_ratio": _ratio(outcome.cleanup_seconds, baseline.cleanup_seconds),
        "busiest_cleanup_rows_ratio": _ratio(
            max(outcome.cleanup_rows, default=0), max(baseline.cleanup_rows, default=0)
        ),
    }


def lines(metrics: dict[str, Any]) -> list[str]:
    """The comparison as text."""
    width = max(len(label) for label in metrics["variants"])
    made = [f"figure {metrics['figure']}: {metrics['results_total']:,} results in all"]
    for label, variant in metrics["variants"].items():
        made.append(
            f"{label:<{width}}  {variant['runtime_results']:>12,} at run time  "
            f"{variant['cleanup_results']:>12,} in clean-up ({variant['early_cleanup_results']:,} of them "
            f"during the run; {variant['cleanup_seconds']:.1f} s)  {variant['spills']:>4} spills  "
            f"{variant['relocations']:>3} relocations  {variant['wall_seconds']:.1f} s by the clock"
        )
        if variant["stopped"] is not None:
            made.append(f"{'':<{width}}  {variant['stopped']}")
    if "ratio_least_most" in metrics:
        made.append(
            f"less over more productive: {metrics['ratio_least_most']} times the results at run time, "
            f"{metrics['cleanup_ratio']} times the clean-up"
        )
    if "ratio_runtime_results" in metrics:
        made.append(
            f"against the other: {metrics['ratio_runtime_results']} times the results at run time, "
            f"{metrics['cleanup_ratio']} times the clean-up, "
            f"{metrics['busiest_cleanup_rows_ratio']} times the rows to clean up on the busiest processor"
        )
    if "ratio_runtime_results_unbounded" in metrics:
        made.append(
            f"{UNBOUNDED} against {LAZY}: "
            f"{metrics['ratio_runtime_results_unbounded']} times the results at run time"
        )
    for label, ratio in metrics.get("wall_ratio_to_all_memory", {}).items():
        made.append(f"{label}: {ratio} times the time of {ALL_MEMORY} by the clock")
    return made


def _ratio(a: float, b: float) -> float | None:
    return round(a / b, 3) if b else None
