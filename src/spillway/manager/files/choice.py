"""Which of the files that wait one batch takes.

An input with a limit of its own takes what that allows, as in Spark. The others share a number of rows: each
gives about the same part of what it has, so that no input runs ahead of those it is joined with. The unit is
a file, and at least one is taken.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate

from spillway.manager.files.entry import FileEntry
from spillway.manager.files.options import ListingOptions

Waiting = Sequence[FileEntry]
WINDOW = 10_000
"""Files of an input that are looked at; of inputs with fewer, the same part."""
FIRST_FILES = 4
"""The first file of each input is taken up to so many times the rows: without one a join gives nothing."""
RowsOf = Callable[[int, FileEntry], float]
"""About how many rows a file of an input has, by the number of the input."""


def chosen(
    options: Sequence[ListingOptions],
    waiting: Sequence[Waiting],
    rows_of: RowsOf,
    most_rows: int | None,
    most_bytes: int | None,
) -> tuple[tuple[FileEntry, ...], ...]:
    """Per input the files of the next batch: the first of those that wait. None: no bound."""
    counts = [
        _within_limit(limit, entries) if limit.is_limited else 0
        for limit, entries in zip(options, waiting, strict=True)
    ]
    shared = [number for number, limit in enumerate(options) if not limit.is_limited]
    for number, count in _shared_counts(shared, waiting, rows_of, most_rows, most_bytes).items():
        counts[number] = count
    return tuple(tuple(entries[:count]) for entries, count in zip(waiting, counts, strict=True))


def _within_limit(limit: ListingOptions, entries: Waiting) -> int:
    if limit.max_files is not None:
        return min(limit.max_files, len(entries))
    assert limit.max_bytes is not None
    totals = accumulate(entry.size_bytes for entry in entries)
    fitting = next((n for n, total in enumerate(totals) if total > limit.max_bytes), len(entries))
    return min(max(1, fitting), len(entries))


def _shared_counts(
    inputs: Sequence[int],
    waiting: Sequence[Waiting],
    rows_of: RowsOf,
    most_rows: int | None,
    most_bytes: int | None,
) -> dict[int, int]:
    if most_rows is None and most_bytes is None:
        return {number: len(waiting[number]) for number in inputs}
    order: list[tuple[float, int, float, int]] = []
    most = max((len(waiting[number]) for number in inputs), default=0)
    for number in inputs:
        looked_at = (
            waiting[number][: -(-len(waiting[number]) * WINDOW // most)] if most > WINDOW else waiting[number]
        )
        rows = [max(rows_of(number, entry), 1.0) for entry in looked_at]
        before, total = 0.0, sum(rows)
        for entry, rows_of_file in zip(looked_at, rows, strict=True):
            order.append((before / total, number, rows_of_file, entry.size_bytes))
            before += rows_of_file
    counts = dict.fromkeys(inputs, 0)
    taken_rows = taken_bytes = 0.0
    for before, number, rows_of_file, size in sorted(order, key=lambda file: file[:2]):
        excess = FIRST_FILES if before == 0 else 1
        fits_rows = most_rows is None or taken_rows + rows_of_file <= excess * most_rows
        fits_bytes = most_bytes is None or taken_bytes + size <= most_bytes
        if taken_rows and not (fits_rows and fits_bytes):
            break
        counts[number] += 1
        taken_rows += rows_of_file
        taken_bytes += size
    return counts
