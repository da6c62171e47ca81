"""The metrics of `bench spill`, from results and journals alone.

How they are computed: the time to half is that of the first commit after which at least half of the final
results are out. The pause of a spill is the time in which a processor frees memory, the longest of all
processors, over the time of its epoch. The ratio of clean-up is rows that drove a probe in clean-up epochs
per second of those epochs, over the same of the epochs with input; both include the fixed cost of a job. A
row of the last input drives several terms of the clean-up and counts in each. `budget_metrics` has the rest.

A metric that cannot be computed is None, never 0. A peer that was stopped early counts with its limit: then
the ratio to it is the most that it can be.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spillway.lab.bench.budget_metrics import budget_metrics, cleanup_epochs, input_epochs
from spillway.lab.bench.spill_variant import FIFTH, FULL
from spillway.lab.engines import SPARK_ROCKSDB, PeerResult, results_agree
from spillway.manager.journal import EpochEntry


def spill_metrics(
    results: Sequence[PeerResult], journals: Mapping[str, Sequence[EpochEntry]]
) -> dict[str, Any]:
    """What `spillway bench spill --json` prints; `journals` has the epochs of each run of Spillway."""
    by_name = {result.engine: result for result in results}
    counts = {result.results for result in results if result.finished}
    final = max(counts, default=0)
    short = {name: epochs for name, epochs in journals.items() if name != FULL}
    return {
        **budget_metrics(results, journals, FULL),
        "seconds_to_half": {
            name: seconds_to_half(result.progress, final) for name, result in by_name.items()
        },
        "checksums": {name: result.checksum for name, result in by_name.items() if result.checksum},
        "results_agree": results_agree(results),
        "ratio_fifth_to_rocksdb": _ratio(by_name.get(FIFTH), by_name.get(SPARK_ROCKSDB)),
        "spill_pause_share": {name: spill_pause_share(epochs) for name, epochs in short.items()},
        "cleanup_rows_ratio": {name: cleanup_rows_ratio(epochs) for name, epochs in short.items()},
    }


def seconds_to_half(progress: Sequence[tuple[float, int]], results: int) -> float | None:
    """The time until half of the results were out; `progress` has the results so far at each commit."""
    return next((seconds for seconds, so_far in progress if results and 2 * so_far >= results), None)


def spill_pause_share(epochs: Iterable[EpochEntry]) -> float | None:
    """The largest share of its time that an epoch spent on freeing memory for a spill."""
    shares = (
        max(processor.seconds.get("free", 0.0) for processor in entry.processors) / entry.seconds.total
        for entry in epochs
        if entry.spills
    )
    return max(shares, default=None)


def spill_pauses(epochs: Iterable[EpochEntry]) -> list[dict[str, float]]:
    """Each spill: the resident bytes, the freed bytes, and how long the epoch waited."""
    found = []
    for entry in epochs:
        seconds = {processor.processor: processor.seconds.get("free", 0.0) for processor in entry.processors}
        for spill in entry.spills:
            pause = seconds[spill.processor]
            found.append(
                {
                    "resident_bytes": spill.resident_bytes,
                    "spilled_bytes": spill.bytes,
                    "pause_seconds": pause,
                    "share": round(pause / entry.seconds.total, 4),
                }
            )
    return found


def cleanup_rows_ratio(epochs: Sequence[EpochEntry]) -> float | None:
    """Speed of clean-up over speed at run time, in probing rows per second."""
    cleanup, runtime = _rows_per_s(cleanup_epochs(epochs)), _rows_per_s(input_epochs(epochs))
    return cleanup / runtime if cleanup is not None and runtime else None


def _rows_per_s(epochs: Sequence[EpochEntry]) -> float | None:
    seconds = sum(entry.seconds.total for entry in epochs)
    rows = sum(processor.probed_rows for entry in epochs for processor in entry.processors)
    return rows / seconds if seconds > 0 else None


def _ratio(own: PeerResult | None, peer: PeerResult | None) -> float | None:
    if own is None or peer is None or not own.finished or peer.seconds <= 0:
        return None
    return own.seconds / peer.seconds
