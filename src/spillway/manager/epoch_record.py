"""From what the processors report to the record that the manifest gets: the change that an epoch made."""

from collections.abc import Sequence
from dataclasses import dataclass

from spillway.manager.change import Change
from spillway.model import GroupSet, Window, union
from spillway.state.log import Counters, EpochRecord, Manifest
from spillway.state.orders import Report, grown, lineage
from spillway.state.rows import next_watermark, youngest


@dataclass(frozen=True, slots=True)
class EpochRun:
    """An epoch as it was run."""

    sequence: int
    token: int
    batch_id: int | None
    change: Change
    clean: bool
    """Whether it produced missing results and took no input."""
    growing: GroupSet
    """Groups that get rows in an epoch that produces missing results: of joins above those."""
    ending: bool
    """Whether the input had ended, so that all rows are final."""
    late: bool
    """Whether its results had been missing."""


def epoch_record(
    run: EpochRun,
    manifest: Manifest,
    windows: tuple[Window, ...],
    reports: Sequence[Report],
    placement: tuple[int, ...] | None,
) -> EpochRecord:
    """The record of an epoch that begins with `manifest`; `placement` if it changes with this epoch."""
    results = sum(report.results for report in reports)
    latest = youngest([manifest.latest, *(report.latest for report in reports)], len(windows))
    return EpochRecord(
        sequence=run.sequence,
        token=run.token,
        batch_id=run.batch_id,
        added=tuple(one for report in reports for one in report.added),
        replaced=tuple(slice_ for report in reports for slice_ in report.replaced),
        pending={report.processor: report.pending for report in reports},
        files=tuple(file for report in reports for file in report.files),
        counters=Counters(
            input_rows=sum(report.input_rows for report in reports),
            results_runtime=0 if run.late else results,
            results_cleanup=results if run.late else 0,
            epochs=1,
            spills=len(run.change.spills),
            relocations=len(run.change.step.switched),
            late_rows=sum(report.late_rows for report in reports),
            null_time_rows=sum(report.null_time_rows for report in reports),
            expired_rows=sum(sum(report.expired_rows.values()) for report in reports),
        ),
        placement=placement,
        processors=run.change.processors,
        spilled=run.change.spilled,
        suspended=run.change.suspended(manifest.suspended),
        grown={
            group: counts
            for group, counts in grown(reports).items()
            if not run.clean or run.growing >> group & 1
        },
        lineage=lineage(reports),
        cursors=tuple(cursor for report in reports for cursor in report.cursors)
        if run.clean
        else manifest.cursors,
        cleaned=union(report.cleaned for report in reports),
        restored=union(report.restored for report in reports),
        shrunk={
            group: (rows, report.expired_bytes.get(group, 0))
            for report in reports
            for group, rows in report.expired_rows.items()
        },
        latest=latest,
        watermark=next_watermark(manifest.watermark, latest, windows, ended=run.ending),
    )
