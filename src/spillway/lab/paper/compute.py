"""The experiments of figures 3.7 to 3.9 and 3.11 to 3.13 of the dissertation (3.4.2); 3.10 is an example.

There: ten machines and a database server; here: the processors of one Spark session and Parquet files, so
that the "data servers" of figure 3.7 are the files that a relation is read from. Averages are over queries
with the same seeds for all lines of a figure. `quick` takes fewer queries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from spillway.compute import Segment, TreeCost
from spillway.compute.trees import compose, incremental_tree, minimized_work, right_deep_tree
from spillway.errors import JobError

MakeTree = Callable[[TreeCost], Segment]
RIGHT_DEEP, BUSHY = "right-deep", "segmented bushy"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a figure at one place of the horizontal axis."""

    label: str
    make: MakeTree


@dataclass(frozen=True, slots=True)
class Point:
    """One place of the horizontal axis."""

    x: str
    relations: int
    seeds: tuple[int, ...]
    lines: tuple[Line, ...]
    files: int = 1


@dataclass(frozen=True, slots=True)
class ComputeExperiment:
    name: str
    title: str
    x_label: str
    points: tuple[Point, ...]
    memory_share: float | None = None
    """Memory as a share of what the right-deep tree's hash tables take; None: enough."""


def bushy(size: int, *, by_steps: bool = True) -> MakeTree:
    return lambda model: compose(model, size, by_steps=by_steps)


def _pair(size: int) -> tuple[Line, ...]:
    return Line(RIGHT_DEEP, right_deep_tree), Line(BUSHY, bushy(size))


def _seeds(count: int) -> tuple[int, ...]:
    return tuple(range(count))


def _group_sizes(relations: int, seeds: tuple[int, ...]) -> tuple[Point, ...]:
    return tuple(
        Point(
            str(size),
            relations,
            seeds,
            (
                Line("largest result probes", bushy(size, by_steps=False)),
                Line("fewest probe steps", bushy(size)),
            ),
        )
        for size in range(3, 7)
    )


_EXPERIMENTS = (
    ComputeExperiment(
        "3.7",
        "Files per relation (there: data servers), right-deep",
        "relations",
        tuple(
            Point(f"{count}", count, _seeds(3), (Line(f"{files} files", right_deep_tree),), files)
            for count in (8, 12, 16)
            for files in (1, 2, 4)
        ),
    ),
    ComputeExperiment(
        "3.8",
        "Queries of 8 relations, at most 3 per group",
        "query",
        tuple(Point(f"{seed}", 8, (seed,), _pair(3)) for seed in range(20)),
    ),
    ComputeExperiment(
        "3.9",
        "Right-deep against segmented bushy",
        "relations",
        tuple(Point(f"{count}", count, _seeds(6), _pair(size)) for count, size in ((8, 3), (12, 4), (16, 4))),
    ),
    ComputeExperiment(
        "3.11",
        "Relations in the group that probes the final segment, 16 relations",
        "most relations per group",
        tuple(
            Point(f"{size}", 16, _seeds(4), (Line("largest result probes", bushy(size, by_steps=False)),))
            for size in (2, 3, 4, 5, 6, 8)
        ),
    ),
    ComputeExperiment(
        "3.12",
        "Most relations per group, 16 relations",
        "most relations per group",
        _group_sizes(16, _seeds(4)),
    ),
    ComputeExperiment(
        "3.13",
        "Memory for a third of the hash tables, 32 relations",
        "query",
        tuple(
            Point(
                f"{seed}",
                32,
                (seed,),
                (Line("segmented right-deep", minimized_work), Line(BUSHY, incremental_tree)),
            )
            for seed in range(10)
        ),
        memory_share=1 / 3,
    ),
)
COMPUTE_FIGURES = tuple(one.name for one in _EXPERIMENTS)


def compute_experiment(name: str, *, quick: bool = False) -> ComputeExperiment:
    found = next((one for one in _EXPERIMENTS if one.name == name), None)
    if found is None:
        raise JobError(f"there is no figure {name}; known are {', '.join(COMPUTE_FIGURES)}")
    if not quick:
        return found
    points = found.points if len(found.points[0].seeds) > 1 else found.points[:3]
    return replace(found, points=tuple(replace(one, seeds=one.seeds[:1]) for one in points))


def outcome_dict(
    experiment: ComputeExperiment, seconds: dict[tuple[str, str], float], table_bytes: dict[str, int]
) -> dict[str, object]:
    """The averages by line and place, as plain values; measured hash tables where memory is limited."""
    labels = list(dict.fromkeys(label for label, _ in seconds))
    lines = {
        label: {x: round(value, 4) for (other, x), value in seconds.items() if other == label}
        for label in labels
    }
    made: dict[str, object] = {"figure": experiment.name, "title": experiment.title, "seconds": lines}
    if experiment.memory_share is not None:
        made["table_bytes_over_budget"] = {label: size for label, size in table_bytes.items() if size > 0}
    return made
