"""Which files a batch has, from logs as Spark writes them, with one file for every few steps."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.spark.sources.batch_files import BatchFiles
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
