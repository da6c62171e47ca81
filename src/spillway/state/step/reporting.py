"""The report of a step, made of what its parts have counted."""

from collections.abc import Sequence

from spillway.state.orders import Report
from spillway.state.rows import Pending
from spillway.state.step.collection import Collection
from spillway.state.step.intake import Intake
from spillway.state.step.phases import Phases
from spillway.state.step.results import Writer, Written
from spillway.state.step.state_view import StateView
from spillway.state.step.tally import nonzero
from spillway.state.step.task import Task


def step_report(
    task: Task,
    state: StateView,
    results: Writer,
    phases: Phases,
    *,
    files: Written,
    pending: Sequence[Pending],
    probed_rows: int,
    intake: Intake | None = None,
    collection: Collection | None = None,
) -> Report:
    """`pending` is all that waits from now on; a clean-up epoch has no intake."""
    state.settle()
    resident_bytes = state.tier.resident_bytes() + state.open_bytes
    peak_bytes = max(state.image_bytes + state.open_bytes, state.meter.peak_bytes)
    tally = state.tally
    return Report(
        processor=task.orders.processor,
        host=task.attempt.host,
        executor=task.attempt.executor,
        added=tuple(state.runs.added),
        replaced=tuple(state.replaced),
        pending=tuple(pending),
        files=files,
        input_rows=0 if intake is None else intake.input_rows,
        probed_rows=probed_rows,
        results=results.rows,
        resident_bytes=resident_bytes,
        loaded_bytes=state.loaded_bytes,
        busy_seconds=phases.busy_seconds,
        seconds=phases.seconds,
        collected_rows={} if collection is None else nonzero(collection.rows),
        collected_bytes={} if collection is None else nonzero(collection.bytes),
        group_rows=nonzero(tally.rows),
        group_bytes=nonzero(tally.bytes),
        group_results=nonzero(results.group_results),
        freed_bytes=state.tier.freed_bytes,
        peak_bytes=peak_bytes,
        latest=() if intake is None else tuple(intake.latest),
        late_rows=0 if intake is None else intake.late_rows,
        null_time_rows=0 if intake is None else intake.null_time_rows,
        expired_rows=nonzero(tally.expired_rows),
        expired_bytes=nonzero(tally.expired_bytes),
        lineage=tally.lineage(results.lineage_results),
    )
