"""The manifest: what is committed. A fold of epoch records over an initial state.

A record says what one epoch changed; `apply` is the only place where committed state changes. Everything
else (memory tier, staged files, the sink) is either derived from it or waits for it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from spillway.errors import StateError
from spillway.model import GroupSet, WrittenAs, group_set, members, placed_on, union
from spillway.state.log.group_state import GroupState
from spillway.state.log.record import Counters, EpochRecord, OwedEpoch
from spillway.state.rows import Cursor, Pending, Run, restricted_to

NO_BATCH = -1
_RUNS = WrittenAs(tuple[Run, ...], lambda runs: runs.values(), lambda runs: {run.name: run for run in runs})


@dataclass(frozen=True, slots=True)
class Manifest:
    """The committed state after epoch `sequence`."""

    sequence: int
    batch_id: int
    placement: tuple[int, ...]
    processors: int | None = None
    """How many there are, if that is known apart from the placement: one may have no group."""
    runs: Annotated[Mapping[str, Run], _RUNS] = field(default_factory=dict)
    pending: Mapping[int, tuple[Pending, ...]] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    groups: Mapping[int, GroupState] = field(default_factory=dict)
    """Groups that ever had rows."""
    cursors: tuple[Cursor, ...] = ()
    latest: tuple[int | None, ...] = ()
    watermark: int | None = None
    suspended: GroupSet = 0
    """Groups whose state is one generation on disk, and whose input waits."""
    owed: Mapping[str, tuple[OwedEpoch, ...]] = field(default_factory=dict)
    """Per result, the epochs that its sink lacked when the last record was made, and that of the record."""
    batch_token: int = 0
    """Of the driver that committed the last batch: it names the files of that batch in the file log."""

    @property
    def processor_count(self) -> int:
        return 1 + max(self.placement) if self.processors is None else self.processors

    def apply(self, record: EpochRecord) -> "Manifest":
        if record.sequence != self.sequence + 1:
            raise StateError(
                f"the manifest has epoch {record.sequence} after epoch {self.sequence}: the records between "
                "them are missing; restore them from a backup"
            )
        runs = {name: _spilled(run, record.spilled) for name, run in self.runs.items()}
        for name, groups in record.replaced:
            runs[name] = replace(runs[name], live=runs[name].live & ~groups)
        for name, groups in record.dropped:
            runs[name] = replace(runs[name], spilled=runs[name].spilled & ~groups)
        for run in record.added:
            runs[run.name] = run
        done = record.cleaned | record.restored
        runs = {
            name: _restored(_spilled(_said(run, done), record.cleaned), record.restored)
            for name, run in runs.items()
        }
        return Manifest(
            sequence=record.sequence,
            batch_id=self.batch_id if record.batch_id is None else record.batch_id,
            placement=self.placement if record.placement is None else record.placement,
            runs={name: run for name, run in runs.items() if run.live or run.spilled},
            pending={processor: queue for processor, queue in record.pending.items() if queue},
            counters=self.counters.plus(record.counters),
            groups=self._groups_after(record, runs.values()),
            cursors=record.cursors,
            latest=record.latest,
            watermark=record.watermark,
            suspended=record.suspended,
            processors=record.processors,
            owed=self._owed_after(record),
            batch_token=self.batch_token if record.batch_id is None else record.token,
        )

    def with_placement(self, placement: tuple[int, ...]) -> "Manifest":
        """The same state under another placement: pending rows go to the processors of their groups."""
        entries = [entry for queue in self.pending.values() for entry in queue]
        pending = {}
        for processor in sorted(set(placement)):
            mine = restricted_to(entries, placed_on(placement, processor))
            pending[processor] = tuple(sorted(mine, key=lambda entry: not entry.emitted))
        return replace(self, placement=placement, pending=pending)

    def _owed_after(self, record: EpochRecord) -> dict[str, tuple[OwedEpoch, ...]]:
        found = {}
        for name, files in record.files.items():
            last = record.delivered.get(name, self.sequence)
            before = (epoch for epoch in self.owed.get(name, ()) if epoch.sequence > last)
            found[name] = (*before, OwedEpoch(record.sequence, files))
        return found

    def _groups_after(self, record: EpochRecord, runs: Iterable[Run]) -> dict[int, GroupState]:
        groups = dict(self.groups)
        for group in members(record.spilled):
            groups[group] = groups.get(group, GroupState()).spilled(record.sequence)
        for group, counts in record.grown.items():
            groups[group] = groups.get(group, GroupState(born_epoch=record.sequence)).grown(
                record.sequence, *counts
            )
        for group, unsaid in record.collected.items():
            groups[group] = groups.get(group, GroupState(born_epoch=record.sequence)).collected(*unsaid)
        for group, counts in record.lineage.items():
            groups[group] = groups.get(group, GroupState(born_epoch=record.sequence)).traced(*counts)
        live = union(run.live for run in runs)
        for group, lost in record.shrunk.items():
            state = groups[group].shrunk(*lost)
            groups[group] = state if live >> group & 1 else state.shrunk(state.rows, state.bytes)
        for group in members(union(slice_ for _, slice_ in record.dropped)):
            left = sum(run.rows for run in runs if run.spilled >> group & 1)
            gone = sum(self.runs[name].rows for name, slice_ in record.dropped if slice_ >> group & 1)
            state = groups[group]
            groups[group] = (
                state.with_share_spilled(left / (left + gone)) if left else state.without_spilled()
            )
        for group in members(record.cleaned):
            groups[group] = groups[group].cleaned(record.sequence)
        for group in members(record.restored):
            groups[group] = groups[group].restored(record.sequence)
        return groups

    @property
    def mid_row_groups(self) -> GroupSet:
        """Groups inside a row of which a probe has stopped: their generation must not end before."""
        groups = 0
        for queue in self.pending.values():
            for entry in queue:
                groups |= entry.groups if entry.emitted else 0
        return groups

    @property
    def split_groups(self) -> GroupSet:
        """Groups with several generations, between which results are missing and can be produced now."""
        split = (group for group, state in self.groups.items() if state.is_split)
        return group_set(split) & ~self.mid_row_groups

    @property
    def waiting_groups(self) -> GroupSet:
        """Groups that may have pending rows whose time has come."""
        entries = (entry for queue in self.pending.values() for entry in queue)
        return union(entry.groups for entry in entries if entry.has_final(self.watermark))

    @property
    def spilled_groups(self) -> GroupSet:
        """Groups with generations on disk."""
        return group_set(group for group, state in self.groups.items() if state.ended or state.unsaid_rows)

    def files(self) -> set[str]:
        """The state files that this manifest refers to."""
        return set(self.runs) | {pending.name for queue in self.pending.values() for pending in queue}

    @property
    def pending_rows(self) -> int:
        return sum(pending.rows_left for queue in self.pending.values() for pending in queue)


def _spilled(run: Run, groups: GroupSet) -> Run:
    ended = run.live & groups
    return replace(run, live=run.live & ~ended, spilled=run.spilled | ended) if ended else run


def _said(run: Run, groups: GroupSet) -> Run:
    """The run after a clean-up of these groups: all that its rows give is out."""
    return replace(run, unsaid=run.unsaid & ~groups) if run.unsaid & groups else run


def _restored(run: Run, groups: GroupSet) -> Run:
    back = run.spilled & groups
    return replace(run, live=run.live | back, spilled=run.spilled & ~back) if back else run
