"""All files of a schedule, written before the run, and the results that they must give.

The writer of a run then only makes them visible, one by one, so that it takes no processor time from the
engine. Invariant: file i of a stream has the rows [i * n, (i + 1) * n), so a row's id tells its file.
"""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from spillway.lab.engines.data import ROWS_PER_KEY, WIDTH_BYTES, JoinShape
from spillway.lab.engines.live.schedule import Schedule
from spillway.lab.engines.result_sum import ResultSum, query_sum
from spillway.workload import UniformJoin


def write_waiting(directory: Path, shape: JoinShape, schedule: Schedule, seed: int = 0) -> None:
    """Write every drop of every stream to directory/<stream>."""
    keys = max(1, schedule.rows_per_stream // ROWS_PER_KEY)
    spec = UniformJoin(keys, shape.streams, WIDTH_BYTES, seed)
    for stream in shape.streams:
        (directory / stream).mkdir(parents=True)
        for number in range(schedule.drops):
            low = number * schedule.rows_per_file
            batch = spec.rows(stream, low, low + schedule.rows_per_file)
            path = directory / stream / file_name(number)
            pq.write_table(pa.Table.from_batches([batch]), path, compression="snappy")


def file_name(number: int) -> str:
    """The file of a drop."""
    return f"part-{number:06d}.parquet"


def expected_sum(directory: Path, shape: JoinShape) -> ResultSum:
    """The results of the view over all files, computed by DuckDB."""
    with duckdb.connect() as database:
        for stream in shape.streams:
            files = str(directory / stream / "*.parquet").replace("'", "''")
            database.execute(f"CREATE VIEW {stream} AS SELECT * FROM read_parquet('{files}')")
        return query_sum(database, shape.view_sql)
