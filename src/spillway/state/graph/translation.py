"""Between the numbers of a graph and those of one of its operators: orders on their way down, reports up."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spillway.model import GroupSet, all_groups, union
from spillway.state.graph.graph import Graph
from spillway.state.orders import CleanupBatch, Files, Orders, Report, lineage
from spillway.state.rows import Cursor, Pending, Run


def local_orders(graph: Graph, orders: Orders, number: int) -> Orders:
    """A processor's orders as the step of one operator understands them."""
    operator, first_group, first = (
        graph.operators[number],
        graph.first_groups[number],
        graph.first_inputs[number],
    )
    after = first + len(operator.inputs)
    mask = all_groups(operator.groups)

    def local(groups: GroupSet) -> GroupSet:
        return groups >> first_group & mask

    def own(runs: Sequence[Run]) -> tuple[Run, ...]:
        return tuple(
            replace(
                run,
                input=run.input - first,
                live=local(run.live),
                spilled=local(run.spilled),
                unsaid=local(run.unsaid),
            )
            for run in runs
            if first <= run.input < after
        )

    def queue(entries: Sequence[Pending]) -> tuple[Pending, ...]:
        return tuple(
            replace(entry, input=entry.input - first, groups=local(entry.groups))
            for entry in entries
            if first <= entry.input < after
        )

    def batch(ordered: CleanupBatch) -> CleanupBatch:
        return replace(ordered, cursor=replace(ordered.cursor, groups=local(ordered.cursor.groups)))

    runs = own(orders.runs)
    names = {run.name for run in runs}
    grows = orders.clean and graph.group_sets[number] & graph.downstream(orders.cleaned)
    return replace(
        orders,
        groups=local(orders.groups),
        runs=runs,
        merges=tuple(merge for merge in orders.merges if merge[0] in names),
        pending=queue(orders.pending),
        tier=f"{orders.tier}/{number}",
        free=local(orders.free),
        cleanup=tuple(batch(ordered) for ordered in orders.cleanup if local(ordered.cursor.groups)),
        cleanup_runs=own(orders.cleanup_runs),
        collects=orders.collects or bool(grows),
        cleaned=0,
        expired=tuple(name for name in orders.expired if name in names),
        keep=local(orders.keep),
        suspended=local(orders.suspended),
        suspended_pending=queue(orders.suspended_pending),
        incoming=own(orders.incoming),
        shared_tier=True,
    )


def merged_report(graph: Graph, reports: Sequence[Report]) -> Report:
    """One processor's reports, one of each operator in order, as that of the whole graph."""
    numbered = list(zip(reports, graph.first_groups, graph.first_inputs, strict=True))

    def counts(of: str) -> dict[int, int]:
        found: dict[int, int] = {}
        for report, first, _ in numbered:
            found |= {first + group: n for group, n in getattr(report, of).items()}
        return found

    seconds: dict[str, float] = {}
    for report in reports:
        for phase, value in report.seconds.items():
            seconds[phase] = seconds.get(phase, 0.0) + value
    files = merged_files(reports)
    return Report(
        processor=reports[0].processor,
        host=reports[0].host,
        executor=reports[0].executor,
        added=tuple(_global_run(run, *at) for report, *at in numbered for run in report.added),
        replaced=tuple(
            (name, groups << first) for report, first, _ in numbered for name, groups in report.replaced
        ),
        pending=tuple(_global_pending(entry, *at) for report, *at in numbered for entry in report.pending),
        files=files,
        input_rows=sum(report.input_rows for report in reports),
        probed_rows=sum(report.probed_rows for report in reports),
        results=sum(rows for of_root in files.values() for _, rows, _ in of_root),
        resident_bytes=sum(report.resident_bytes for report in reports),
        loaded_bytes=sum(report.loaded_bytes for report in reports),
        busy_seconds=sum(report.busy_seconds for report in reports),
        seconds=seconds,
        collected_rows=counts("collected_rows"),
        collected_bytes=counts("collected_bytes"),
        read_bytes=sum(report.read_bytes for report in reports),
        work=sum(report.work for report in reports),
        group_rows=counts("group_rows"),
        group_bytes=counts("group_bytes"),
        group_results=counts("group_results"),
        freed_bytes=sum(report.freed_bytes for report in reports),
        peak_bytes=max(report.peak_bytes for report in reports),
        cursors=tuple(
            _global_cursor(cursor, first) for report, first, _ in numbered for cursor in report.cursors
        ),
        cleaned=union(report.cleaned << first for report, first, _ in numbered),
        restored=union(report.restored << first for report, first, _ in numbered),
        latest=_latest(graph, reports),
        late_rows=sum(report.late_rows for report in reports),
        null_time_rows=sum(report.null_time_rows for report in reports),
        expired_rows=counts("expired_rows"),
        expired_bytes=counts("expired_bytes"),
        lineage=lineage(reports) | _outputs(graph, reports),
        wall_seconds=sum(report.wall_seconds for report in reports),
    )


def merged_files(reports: Sequence[Report]) -> Mapping[str, Files]:
    """The result files of several reports, by result."""
    found: dict[str, Files] = {}
    for report in reports:
        for name, files in report.files.items():
            found[name] = (*found.get(name, ()), *files)
    return found


def _outputs(graph: Graph, reports: Sequence[Report]) -> dict[int, tuple[int, int, int]]:
    """What came through the groups whose own results are those of a view."""
    return {
        graph.first_groups[number] + group: (results, 0, 0)
        for number in {root.producer for root in graph.roots}
        for group, results in reports[number].group_results.items()
    }


def _latest(graph: Graph, reports: Sequence[Report]) -> tuple[int | None, ...]:
    if not graph.windows:
        return ()
    return tuple(
        time
        for operator, report in zip(graph.operators, reports, strict=True)
        for time in (report.latest or (None,) * len(operator.inputs))
    )


def _global_run(run: Run, first_group: int, first_input: int) -> Run:
    return replace(
        run,
        input=run.input + first_input,
        live=run.live << first_group,
        spilled=run.spilled << first_group,
        unsaid=run.unsaid << first_group,
    )


def _global_pending(entry: Pending, first_group: int, first_input: int) -> Pending:
    return replace(entry, input=entry.input + first_input, groups=entry.groups << first_group)


def _global_cursor(cursor: Cursor, first_group: int) -> Cursor:
    return replace(cursor, groups=cursor.groups << first_group)
