"""The number of rows of stored inputs, where it is cheap to find: for estimates of what a query needs.

Generated streams declare it; the footers of Parquet files on local disks have it. Filters of the view are not
applied, so the number is an upper bound.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spillway.job import RunConfig, SourceSpec
from spillway.spark.sources.workload import FORMAT

MOST_FILES = 256
"""No footers are read if a source has more files than this."""


def policy_settings(
    config: RunConfig, inputs: Iterable[str], sources: Mapping[str, object]
) -> Mapping[str, object]:
    """The parameters of the placement policy, with the row count of all inputs if it needs that."""
    wants_rows = config.adapt == "active-disk" and config.until == "exhausted"
    if not wants_rows or "query_bytes" in config.policy or "input_rows" in config.policy:
        return config.policy
    counts = [_rows(sources[name]) for name in inputs]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts) or not sum(known):
        return config.policy
    return {**config.policy, "input_rows": sum(known)}


def _rows(source: object) -> int | None:
    if not isinstance(source, SourceSpec):
        return None
    if source.format == FORMAT:
        return int(source.options["rows"]) if "rows" in source.options else None
    if source.format != "parquet" or source.path is None:
        return None
    files = sorted(Path(source.path).glob("*.parquet"))
    if not files or len(files) > MOST_FILES:
        return None
    try:
        return sum(int(pq.read_metadata(path).num_rows) for path in files)
    except (OSError, pa.ArrowInvalid):  # Spark will report what is wrong with the file
        return None
