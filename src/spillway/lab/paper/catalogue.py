"""The experiments by the number of their figure."""

from dataclasses import replace

from spillway.lab.paper.experiment import Experiment, experiment_of
from spillway.lab.paper.placement import RELOCATION_EXPERIMENTS, SPILL_EXPERIMENTS

EXPERIMENTS = {experiment.name: experiment for experiment in (*SPILL_EXPERIMENTS, *RELOCATION_EXPERIMENTS)}


def find_experiment(name: str, *, quick: bool = False) -> Experiment:
    found = experiment_of(name, EXPERIMENTS)
    return _shortened(found) if quick else found


def _shortened(found: Experiment) -> Experiment:
    """A fifth of the rows, twice as wide: two fifths of the state, and of the memory for it."""
    return replace(
        found,
        rows=20_000,
        tuple_range=found.tuple_range // 5,
        join_ratio=_with_shorter_ranges(found.join_ratio),
        width_bytes=800,
        epochs=8 if len(found.variants) > 4 or found.variants[0].processors == 1 else 20,
        memory_bytes=found.memory_bytes * 2 // 5,
        row_seconds=found.row_seconds * found.rows / 20_000,
    )


def _with_shorter_ranges(join_ratio: str) -> str:
    classes = [part.split(":") for part in join_ratio.split(",")]
    return ",".join(
        ":".join([*fields[:2], *(str(int(size) // 5) for size in fields[2:])]) for fields in classes
    )
