"""What is known of the number of rows before a query starts; no session is needed."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spillway.job.run import RunConfig
from spillway.job.sources import SourceSpec
from spillway.spark.sources.input_rows import policy_settings


def test_rows_of_files_and_generated_streams_are_counted_for_active_disk(tmp_path: Path) -> None:
    for number in range(2):
        pq.write_table(pa.table({"k": list(range(30))}), tmp_path / f"{number}.parquet")
    files = SourceSpec("a", "parquet", str(tmp_path))
    stream = SourceSpec("b", "workload", options={"rows": "100"})
    sources: dict[str, object] = {"a": files, "b": stream, "c": SourceSpec("c", "csv", str(tmp_path))}
    config = RunConfig("state", adapt="active-disk", policy={"spill_share": 0.2})
    assert policy_settings(config, "ab", sources) == {"spill_share": 0.2, "input_rows": 160}
    assert policy_settings(config, "aab", sources)["input_rows"] == 220  # an input each time it is joined
    assert policy_settings(config, "abc", sources) == config.policy
    (tmp_path / "2.parquet").write_bytes(b"half")
    assert policy_settings(config, "ab", sources) == config.policy
    for other in (
        RunConfig("state", adapt="lazy-disk"),
        RunConfig("state", adapt="active-disk", until="forever"),
        RunConfig("state", adapt="active-disk", policy={"query_bytes": 7}),
    ):
        assert policy_settings(other, "b", sources) == other.policy
