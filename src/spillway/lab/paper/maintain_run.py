"""Runs the maintenance figures on real PostgreSQL servers; each gives its lines as {label: {x: value}}."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from spillway.lab.bench import postgres_servers
from spillway.lab.paper.maintain import MaintainExperiment
from spillway.lab.paper.maintain_bed import BedShape, Laboratory, Lines, by_name, chain, evenly
from spillway.lab.paper.maintain_plans import PLAN_FIGURES
from spillway.lab.paper.maintain_search import search_table
from spillway.maintain import RoundReport

SIX = 6
_BYTES = 64
_KEY_BYTES = 8


def run_maintain_figure(
    experiment: MaintainExperiment, *, quick: bool, note: Callable[[str], None]
) -> dict[str, Any]:
    """Run the experiment; servers are started for it and stopped after it."""
    if experiment.name == "table-11.3":
        lines = search_table(quick=quick)
    else:
        with (
            tempfile.TemporaryDirectory(prefix="spillway-figure-") as scratch,
            postgres_servers(Path(scratch), 1 if quick else 3) as dsns,
        ):
            laboratory = Laboratory(
                dsns, Path(scratch), 10_000 if quick else 100_000, 1 if quick else 3, quick, note, count()
            )
            lines = RUNS[experiment.name](laboratory)
    return {
        "figure": experiment.name,
        "title": experiment.title,
        "lines": {label: {x: round(y, 5) for x, y in points.items()} for label, points in lines.items()},
    }


def _of_one(updates: int) -> list[int]:
    return [updates, *[0] * (SIX - 1)]


_TEMPORARY: Mapping[str, Any] = {"inline_keys": 0}
_COMPOSITE: Mapping[str, Any] = {"cooperative": False, "sub_batch": 1_000_000}
_SUB_BATCHES: Mapping[str, Any] = {"cooperative": False, "sub_batch": 50}


def _one_source(
    lab: Laboratory, updates: Sequence[int], ways: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> Lines:
    """Updates of one source, by strategy and by how keys travel; the time of the queries."""
    lines: Lines = {}
    for label, (strategy, options) in ways.items():
        with lab.bed(BedShape(SIX, chain(SIX), lab.rows), **options) as bed:
            bed.seconds(_of_one(10), by_name("batch", bed))  # the first round has cold caches
            lines[label] = {
                str(number): bed.seconds(
                    _of_one(number),
                    by_name(strategy, bed),
                    repeats=1 if strategy == "sequential" else lab.repeats,
                    measure=lambda report: report.query_seconds,
                )
                for number in lab.some(updates)
            }
            lab.note(f"{label}: {lines[label]}")
    return lines


def _small_batches(lab: Laboratory) -> Lines:
    ways = {
        "sequential": ("sequential", _TEMPORARY),
        "batch, composite query": ("batch", _COMPOSITE),
        "batch, temporary table": ("batch", _TEMPORARY),
        "batch, keys in the query": ("batch", {}),
    }
    return _one_source(lab, (10, 20, 40, 60, 80, 100), ways)


def _small_ratios(lab: Laboratory) -> Lines:
    lines = _small_batches(lab)
    sequential = lines.pop("sequential")
    return {label: {x: sequential[x] / y for x, y in points.items()} for label, points in lines.items()}


def _large_batches(lab: Laboratory) -> Lines:
    ways = {
        "composite query": ("batch", _COMPOSITE),
        "composite query, sub-batches of 50": ("batch", _SUB_BATCHES),
        "temporary table": ("batch", _TEMPORARY),
        "keys in the query": ("batch", {}),
    }
    return _one_source(lab, (500, 1000, 1500, 2000, 2500, 3000), ways)


def _strategies(lab: Laboratory, updates: Sequence[int], strategies: Sequence[str]) -> Lines:
    lines: Lines = {strategy: {} for strategy in strategies}
    with lab.bed(BedShape(SIX, chain(SIX), lab.rows)) as bed:
        bed.seconds(evenly(60, SIX), by_name("batch", bed))
        for number in lab.some(updates):
            for strategy in strategies:
                lines[strategy][str(number)] = bed.seconds(
                    evenly(number, SIX), by_name(strategy, bed), repeats=lab.repeats
                )
                lab.note(f"{number} updates, {strategy}: {lines[strategy][str(number)]:.3f} s")
    return lines


def _join_ratios(lab: Laboratory) -> Lines:
    lines: Lines = {"batch": {}, "conditional": {}}
    for ratio in (0.5, 1.0, 3.0) if lab.quick else (0.5, 1.0, 1.5, 2.0, 2.5, 3.0):
        rows = max(500, min(lab.rows, int(lab.rows * 2 / max(1.0, ratio) ** (SIX - 1))))
        with lab.bed(BedShape(SIX, chain(SIX), rows, (ratio,) * (SIX - 1))) as bed:
            bed.seconds(evenly(60, SIX), by_name("batch", bed))
            for strategy, points in lines.items():
                points[f"{ratio:g}"] = bed.seconds(
                    evenly(200, SIX), by_name(strategy, bed), repeats=lab.repeats
                )
        lab.note(
            f"join ratio {ratio}: " + str({name: points[f"{ratio:g}"] for name, points in lines.items()})
        )
    return lines


def _distributions(lab: Laboratory) -> Lines:
    ratios: dict[str, float] = {}
    with lab.bed(BedShape(SIX, chain(SIX), lab.rows)) as bed:
        bed.seconds(evenly(60, SIX), by_name("batch", bed))
        for changed in lab.some(range(1, SIX + 1)):
            sizes = [1_000 // changed] * changed + [0] * (SIX - changed)
            batch, conditional = (
                bed.seconds(sizes, by_name(strategy, bed), repeats=lab.repeats)
                for strategy in ("batch", "conditional")
            )
            ratios[str(changed)] = batch / conditional
            lab.note(f"{changed} sources: {ratios[str(changed)]:.2f}")
    return {"batch / conditional": ratios}


def _delays(lab: Laboratory) -> Lines:
    """One round of each; the delay is computed from the bytes sent, not waited for."""
    lines: Lines = {}
    with lab.bed(BedShape(SIX, chain(SIX), lab.rows)) as bed:
        bed.seconds(evenly(60, SIX), by_name("batch", bed))
        for strategy in ("batch", "conditional"):
            reports: list[RoundReport] = []

            def measured(report: RoundReport, kept: list[RoundReport] = reports) -> float:
                kept.append(report)
                return report.maintain_seconds

            seconds = bed.seconds(
                evenly(1_000, SIX), by_name(strategy, bed), repeats=lab.repeats, measure=measured
            )
            tuples = (reports[-1].keys_sent * _KEY_BYTES + reports[-1].rows_received * _BYTES) / _BYTES
            lines[strategy] = {
                str(delay): seconds + tuples * delay / 1000 for delay in (0, 25, 50, 100, 150, 200)
            }
            lab.note(f"{strategy}: {tuples:.0f} times 64 bytes travelled")
    return lines


RUNS: Mapping[str, Callable[[Laboratory], Lines]] = {
    "10.8": _small_batches,
    "10.9": _small_ratios,
    "10.10": _large_batches,
    "10.11": lambda lab: _strategies(lab, range(100, 1001, 150), ("batch", "adjacent", "conditional")),
    "10.12": lambda lab: _strategies(lab, (1000, 2000, 3000, 6000, 10_000), ("batch", "conditional")),
    "10.13": _join_ratios,
    "10.14": _distributions,
    "10.15": _delays,
    **PLAN_FIGURES,
}
