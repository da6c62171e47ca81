"""The manifest: a fold of records that survives storage, and a log that one driver at a time can extend."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spillway.errors import CheckpointError, StateError
from spillway.model import from_text, to_text
from spillway.state.log.manifest import NO_BATCH, Manifest
from spillway.state.log.manifest_log import ManifestLog
from spillway.state.log.record import Counters, EpochRecord
from spillway.state.rows.compaction import CompactionLimits, choose_merges
from spillway.state.rows.pending import Pending
from spillway.state.rows.run import Position, Run, in_order
from spillway.state.storage.document import encode_document, read_document
from spillway.state.storage.storage import Storage

PLACEMENT = (0, 0, 1)


def run(name: str, epoch: int, *, live: int = 0b111, size: int = 10, input_: int = 0) -> Run:
    return Run(f"runs/{name}", input_, Position(epoch), epoch, 1, size, 1, live)


def record(sequence: int, **changes: object) -> EpochRecord:
    fields: dict[str, object] = {
        "sequence": sequence,
        "token": 1,
        "batch_id": sequence,
        "added": (run(f"{sequence}", sequence),),
        "replaced": (),
        "pending": {},
        "files": {"": ((f"{sequence}.parquet", 2, 30),)},
        "counters": Counters(input_rows=5, results_runtime=2, epochs=1),
    }
    return EpochRecord(**(fields | changes))  # type: ignore[arg-type]


def store_files(storage: Storage, manifest: Manifest) -> None:
    for name in manifest.files():
        storage.write(name, b"state")


def test_a_record_and_a_manifest_survive_storage() -> None:
    waiting = (Pending("pending/x", 1, 9, 100, 7, 450, 0b10, (6,), skip=3, emitted=4),)
    entry = record(0, pending={2: waiting}, placement=(1, 1, 2), replaced=(("runs/0", 0b1),))
    assert from_text(EpochRecord, to_text(entry)) == entry
    manifest = Manifest(-1, NO_BATCH, PLACEMENT).apply(record(0)).apply(record(1, pending={2: waiting}))
    assert from_text(Manifest, to_text(manifest)) == manifest
    assert manifest.pending_rows == 6
    assert manifest.counters == Counters(input_rows=10, results_runtime=4, epochs=2)
    assert manifest.files() == {"runs/0", "runs/1", "pending/x"}


def test_applying_records() -> None:
    manifest = Manifest(-1, NO_BATCH, PLACEMENT).apply(record(0)).apply(record(1, batch_id=None))
    assert (manifest.sequence, manifest.batch_id) == (1, 0)
    part = manifest.apply(record(2, replaced=(("runs/0", 0b011),)))
    assert part.runs["runs/0"].live == 0b100
    gone = part.apply(record(3, replaced=(("runs/0", 0b100),), placement=(1, 1, 1)))
    assert "runs/0" not in gone.runs
    assert (manifest.placement, gone.placement) == (PLACEMENT, (1, 1, 1))
    with pytest.raises(StateError, match="epoch 7 after epoch 3"):
        gone.apply(record(7))


def test_a_group_of_which_all_rows_expired_has_none() -> None:
    """Some expired on disk, the rest in memory after a clean-up brought it back."""
    grown = {0: (1, 10, 0)}
    manifest = Manifest(-1, NO_BATCH, PLACEMENT)
    for sequence in range(2):
        manifest = manifest.apply(
            record(sequence, added=(run(f"{sequence}", sequence, live=1),), grown=grown)
        )
    manifest = manifest.apply(record(2, added=(), spilled=1))
    manifest = manifest.apply(record(3, added=(), dropped=(("runs/0", 1),)))
    assert manifest.groups[0].spilled_bytes == 10
    manifest = manifest.apply(record(4, added=(run("4", 4, live=1),), grown=grown))
    manifest = manifest.apply(record(5, added=(), restored=1))
    assert manifest.groups[0].bytes == 20
    gone = (("runs/1", 1), ("runs/4", 1))
    manifest = manifest.apply(record(6, added=(), replaced=gone, shrunk={0: (2, 20)}))
    assert not manifest.runs
    assert (manifest.groups[0].rows, manifest.groups[0].bytes) == (0, 0)


@given(st.integers(0, 30), st.integers(1, 6))
def test_whatever_the_snapshots_the_log_gives_back_what_was_committed(
    quick_directory: Callable[[], Path], epochs: int, snapshot_epochs: int
) -> None:
    storage = Storage(str(quick_directory()))
    log = ManifestLog(storage, snapshot_epochs=snapshot_epochs)
    manifest = log.load(PLACEMENT)
    for sequence in range(epochs):
        replaced = ((f"runs/{sequence - 1}", 0b111),) if sequence % 3 == 2 else ()
        entry = record(sequence, replaced=replaced, placement=PLACEMENT if sequence == 0 else None)
        for added in entry.added:
            storage.write(added.name, b"state")
        manifest = log.commit(manifest, entry)
        assert all(storage.exists(name) for name in manifest.files())
    again = ManifestLog(storage, snapshot_epochs=snapshot_epochs)
    assert again.load((9, 9, 9)) == (manifest if epochs else Manifest(-1, NO_BATCH, (9, 9, 9)))
    assert set(storage.list("runs/")) >= set(manifest.runs)
    last = [entry.sequence for entry in again.records_after(epochs - 2)]
    assert last == ([epochs - 1] if epochs else [])
    assert len(storage.list("manifest/")) <= 3 * snapshot_epochs + 2


def test_files_that_nobody_refers_to_are_swept_at_the_next_start(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    log = ManifestLog(storage)
    manifest = log.commit(log.load(PLACEMENT), record(0))
    store_files(storage, manifest)
    for orphan in ("runs/killed", "pending/killed"):
        storage.write(orphan, b"x")
    again = ManifestLog(storage)
    loaded = again.load(PLACEMENT)
    assert len(storage.list("runs/")) == 2
    again.sweep(loaded)
    assert storage.list("runs/") == ["runs/0"]
    assert storage.list("pending/") == []


def test_files_of_kept_records_outlive_a_restart_and_go_with_the_second_snapshot_after_it(
    tmp_path: Path,
) -> None:
    """Until then the snapshot before the last one could still be read with its records."""
    storage = Storage(str(tmp_path))
    log = ManifestLog(storage, snapshot_epochs=4)
    waits = Pending("pending/x", 0, 9, 100, 7, 90, 0b1, (9,))
    manifest = log.commit(log.load(PLACEMENT), record(0, pending={0: (waits,)}))
    store_files(storage, manifest)
    manifest = log.commit(manifest, record(1, replaced=(("runs/0", 0b111),)))
    store_files(storage, manifest)
    assert manifest.files() == {"runs/1"}

    log = ManifestLog(storage, snapshot_epochs=4)
    manifest = log.load(PLACEMENT)
    log.sweep(manifest)
    passed = {"pending/x", "runs/0"}
    kept = []
    for sequence in range(2, 12):
        manifest = log.commit(manifest, record(sequence, added=()))
        kept.append(passed & (set(storage.list("runs/")) | set(storage.list("pending/"))))
    assert kept == [passed] * 5 + [set()] * 5  # snapshots are after epochs 3, 7 and 11
    assert manifest.files() == {"runs/1"} and storage.exists("runs/1")


def test_a_driver_that_was_taken_over_commits_nothing(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    old = ManifestLog(storage)
    manifest = old.load(PLACEMENT)
    new = ManifestLog(storage)
    assert new.token == old.token + 1
    with pytest.raises(CheckpointError, match=r"another driver \(process \d+ on .*\) took over"):
        old.commit(manifest, record(0))
    assert storage.list("manifest/") == []
    new.commit(new.load(PLACEMENT), record(0))
    with pytest.raises(CheckpointError, match=r"epoch 0 is already in .*manifest.*; stop one of the two"):
        new.commit(manifest, record(0))


@pytest.mark.parametrize("position", [2, 15, 50, -1])
def test_documents_are_checked(tmp_path: Path, position: int) -> None:
    storage = Storage(str(tmp_path))
    body = {"numbers": list(range(20)), "text": "ä\n"}
    storage.write("x.json", encode_document(body))
    assert read_document(storage, "x.json") == body
    content = bytearray((tmp_path / "x.json").read_bytes())
    content[position] ^= 2
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises((StateError, CheckpointError), match=r"x\.json (is corrupted|has format version)"):
        read_document(storage, "x.json")


@pytest.mark.parametrize("content", [b"", b"\n", b"[]\n{}", b"{}\n{}", b'{"spillway": 1}\n{}', b"\xff\xfe\n"])
def test_a_document_without_a_header_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(StateError, match=r"x\.json is corrupted: no header; restore"):
        read_document(Storage(str(tmp_path)), "x.json")


@given(st.lists(st.integers(1, 400), max_size=150), st.integers(2, 6), st.sampled_from([4_000, 10**9]))
@example([400 // (epoch + 1) + 1 for epoch in range(150)], 3, 10**9)  # ever less
@example([epoch + 1 for epoch in range(150)], 3, 10**9)  # ever more
def test_merging_keeps_runs_few_and_adjacent(sizes: list[int], fanout: int, most: int) -> None:
    """Merges carried out epoch by epoch: logarithmically many runs and rewrites, always of neighbours."""
    limits = CompactionLimits(fanout=fanout, max_bytes=most)
    runs: list[Run] = []
    rewritten = 0
    for epoch, size in enumerate(sizes):
        for names in choose_merges(runs, 2, limits):
            chosen = [candidate for candidate in runs if candidate.name in names]
            first = runs.index(chosen[0])
            assert [candidate.name for candidate in runs[first : first + len(chosen)]] == list(names)
            assert len(chosen) >= (fanout if most > sum(sizes) else 2)
            merged = replace(
                run(f"m{epoch}", 0, size=sum(candidate.bytes for candidate in chosen)),
                position=chosen[0].position,
                last_epoch=chosen[-1].last_epoch,
                parts=sum(candidate.parts for candidate in chosen),
            )
            assert merged.bytes <= limits.max_bytes
            rewritten += merged.bytes
            runs[first : first + len(chosen)] = [merged]
        runs.append(run(f"{epoch}", epoch, size=size))
    assert sum(candidate.bytes for candidate in runs) == sum(sizes)
    assert sum(candidate.parts for candidate in runs) == len(sizes)
    tiers = 1 + next(tier for tier in range(10) if fanout ** (tier + 1) > len(sizes))
    large = [candidate for candidate in runs if candidate.bytes >= limits.max_bytes // 2]
    assert len(runs) <= 2 * len(large) + tiers * fanout
    assert rewritten <= sum(sizes) * (tiers + (2 if large else 0))
    assert choose_merges([run("x", 0, input_=1)], 2, limits) == ()


def test_runs_of_an_epoch_that_wrote_many_are_merged_once() -> None:
    """With a budget an epoch may write a run for each round."""
    limits = CompactionLimits(fanout=3)
    many = [run(f"{number}", 0) for number in range(30)]
    assert choose_merges(many, 1, limits) == (tuple(candidate.name for candidate in many),)
    merged = replace(run("m", 0, size=300), parts=30)
    later = [run(f"1-{number}", 1) for number in range(30)]
    assert choose_merges([merged, *later], 1, limits) == (tuple(candidate.name for candidate in later),)


def test_a_merged_run_takes_the_place_of_its_parts() -> None:
    """An epoch may write several runs of an input; a merge may take only some of them."""
    first, second, third = (replace(run(name, 4), position=Position(4, 1, n)) for n, name in enumerate("abc"))
    merged = replace(run("m", 9), position=second.position, parts=2)
    assert from_text(Run, to_text(merged)) == merged
    assert in_order([third, merged, first]) == [first, merged, third]


def test_a_checkpoint_of_an_older_format_is_refused(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    log = ManifestLog(storage)
    log.commit(Manifest(-1, NO_BATCH, PLACEMENT), record(0))
    file = tmp_path / "manifest" / f"{0:012d}.json"
    file.write_bytes(file.read_bytes().replace(b'"spillway": 6', b'"spillway": 5'))
    with pytest.raises(
        CheckpointError, match=r"has format version 5, this Spillway reads 6; use the version"
    ):
        log.load(PLACEMENT)


@pytest.mark.parametrize("place", ["manifest", "owners"])
def test_a_file_of_somebody_else_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / place).mkdir()
    (tmp_path / place / "note.txt").write_text("mine")
    with pytest.raises(
        StateError, match=rf"{tmp_path}/{place}/note.txt is not a file of Spillway; move it out"
    ):
        ManifestLog(Storage(str(tmp_path))).load((0,))
