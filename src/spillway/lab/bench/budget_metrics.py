"""What every benchmark with budgets tells of each variant: time, processor time, results, epochs.

The ratio of processor time is that of a variant over that of enough memory; of variants that took turns, the
median over the rounds. A variant that was repeated is represented by its run of median time; processor times
are medians. A metric that cannot be computed is None, never 0; one that was stopped at its limit has the
results and epochs that it came to, and no ratio.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from spillway.lab.engines import PeerResult
from spillway.manager.journal import EpochEntry


def budget_metrics(
    results: Sequence[PeerResult], journals: Mapping[str, Sequence[EpochEntry]], enough: str
) -> dict[str, Any]:
    """By variant; `enough` names the one with enough memory, `journals` has the epochs of Spillway's runs."""
    by_name = {result.engine: result for result in results}
    return {
        "seconds": {name: result.seconds for name, result in by_name.items()},
        "all_seconds": {
            name: [round(seconds, 2) for seconds in result.all_seconds] for name, result in by_name.items()
        },
        "cpu_seconds": {name: _rounded(result.cpu_seconds) for name, result in by_name.items()},
        "all_cpu_seconds": {
            name: [round(seconds, 2) for seconds in result.all_cpu_seconds]
            for name, result in by_name.items()
        },
        "cpu_ratio": {
            name: _rounded(cpu_ratio(by_name.get(enough), by_name[name]))
            for name in journals
            if name != enough
        },
        "results": {name: result.results for name, result in by_name.items()},
        "finished": {name: result.finished for name, result in by_name.items()},
        "notes": {name: result.note for name, result in by_name.items() if result.note},
        "spills": {name: sum(len(entry.spills) for entry in epochs) for name, epochs in journals.items()},
        "results_runtime": {name: _results(input_epochs(epochs)) for name, epochs in journals.items()},
        "results_cleanup": {name: _results(cleanup_epochs(epochs)) for name, epochs in journals.items()},
        "epochs_runtime": {name: len(input_epochs(epochs)) for name, epochs in journals.items()},
        "epochs_cleanup": {name: len(cleanup_epochs(epochs)) for name, epochs in journals.items()},
    }


def cpu_ratio(enough: PeerResult | None, short: PeerResult) -> float | None:
    """Processor time over that with enough memory."""
    if enough is None or not (enough.finished and short.finished):
        return None
    if len(enough.all_cpu_seconds) == len(short.all_cpu_seconds) > 1:
        pairs = zip(short.all_cpu_seconds, enough.all_cpu_seconds, strict=True)
        return median(ours / least for ours, least in pairs)
    return short.cpu_seconds / enough.cpu_seconds if short.cpu_seconds and enough.cpu_seconds else None


def peak_resident_bytes(epochs: Iterable[EpochEntry]) -> int:
    """The most state that any one processor held after any epoch."""
    return max((processor.resident_bytes for entry in epochs for processor in entry.processors), default=0)


def input_epochs(epochs: Iterable[EpochEntry]) -> list[EpochEntry]:
    return [entry for entry in epochs if not entry.is_cleanup]


def cleanup_epochs(epochs: Iterable[EpochEntry]) -> list[EpochEntry]:
    return [entry for entry in epochs if entry.is_cleanup]


def _results(epochs: Iterable[EpochEntry]) -> int:
    return sum(entry.results for entry in epochs)


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 2)
