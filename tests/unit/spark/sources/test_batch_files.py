"""Which files a batch has, from logs as Spark writes them, with one file for every few steps."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.errors import CheckpointError, StateError
from spillway.spark.sources.batch_files import BatchFiles
from spillway.spark.sources.log_store import check_log
from spillway.state.storage.storage import Storage


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[list[int]], int, int]:
    """How many steps each source makes in each batch, how often its log is compacted, old steps removed."""
    sources = draw(st.integers(1, 3))
    steps = st.lists(st.integers(0, 2), min_size=sources, max_size=sources)
    return draw(st.lists(steps, min_size=1, max_size=8)), draw(st.integers(2, 4)), draw(st.integers(0, 2))


@given(logs())
def test_every_file_is_in_one_batch(
    tmp_path_factory: pytest.TempPathFactory, log: tuple[list[list[int]], int, int]
) -> None:
    batches, compaction, kept = log
    root = tmp_path_factory.mktemp("log")
    (root / "spark" / "offsets").mkdir(parents=True)
    sources = len(batches[0])
    done = [0] * sources
    files = BatchFiles(Storage(str(root)))
    for batch_id, steps in enumerate(batches):
        for source, count in enumerate(steps):
            directory = root / "spark" / "sources" / str(source)
            directory.mkdir(parents=True, exist_ok=True)
            for step in range(done[source], done[source] + count):
                entries = [{"path": f"file:///d{source}/{step}-{n}", "batchId": step} for n in range(2)]
                name = str(step)
                if (step + 1) % compaction == 0:
                    entries = [
                        {"path": f"file:///d{source}/{old}-{n}", "batchId": old}
                        for old in range(step + 1)
                        for n in range(2)
                    ]
                    name = f"{step}.compact"
                    for old in range(step - kept):
                        (directory / str(old)).unlink(missing_ok=True)
                lines = ["v1", *map(json.dumps, entries)]
                (directory / name).write_text("\n".join(lines))
            done[source] += count
        offsets = [json.dumps({"logOffset": count - 1}) if count else "-" for count in done]
        text = "\n".join(["v1", json.dumps({"conf": {}}), *offsets, offsets[0]])
        (root / "spark" / "offsets" / str(batch_id)).write_text(text)
        for source, count in enumerate(steps):
            wanted = [
                f"file:///d{source}/{step}-{n}"
                for step in range(done[source] - count, done[source])
                for n in range(2)
            ]
            assert files.of(batch_id, source, source) == wanted
        assert files.of(batch_id, sources, 0) == files.of(batch_id, 0, 0)  # a relation that occurs twice
    for source in range(sources):
        first = f"file:///d{source}/0-0" if done[source] else None
        assert files.first(f"/d{source}") == first
    assert files.first("/d") is None


@pytest.mark.parametrize("text", ["", "garbage", "v1\n{}\nnot json", "v1\n{}\n7"])
def test_a_damaged_file_of_the_log_is_named(tmp_path: Path, text: str) -> None:
    offsets = tmp_path / "spark" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text(text)
    with pytest.raises(StateError, match=r"spark/offsets/0, a file of Spark's log, is corrupted; restore it"):
        BatchFiles(Storage(str(tmp_path))).of(0, 0, 0)


def test_a_log_of_another_spark_is_named(tmp_path: Path) -> None:
    (tmp_path / "spark" / "offsets").mkdir(parents=True)
    (tmp_path / "spark" / "offsets" / "0").write_text("v2\n{}\n-")
    with pytest.raises(CheckpointError, match=r"offsets/0 has Spark's log version v2; Spillway reads v1"):
        BatchFiles(Storage(str(tmp_path))).of(0, 0, 0)


@pytest.mark.parametrize("text", ["", "garbage", "{}", "7"])
def test_a_damaged_identity_of_the_log_is_named(tmp_path: Path, text: str) -> None:
    check_log(Storage(str(tmp_path)))  # a new checkpoint has none
    (tmp_path / "spark").mkdir()
    (tmp_path / "spark" / "metadata").write_text('{"id":"379ead86"}')
    check_log(Storage(str(tmp_path)))
    (tmp_path / "spark" / "metadata").write_text(text)
    with pytest.raises(StateError, match=r"spark/metadata, a file of Spark's log, is corrupted; restore it"):
        check_log(Storage(str(tmp_path)))
