"""A benchmark's Parquet files as text: one file of comma-separated values for each.

Invariant: the same rows in the same order, in as many files; a value has no comma, quote or line break, so
only the names in a header are quoted (the benchmark's payloads are letters and digits). The column `id` is
called `row_id` in headers, because Pathway reserves the former.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow.csv as pc
import pyarrow.parquet as pq

HEADER_NAMES = {"id": "row_id"}


def write_text_streams(data: Path, target: Path, streams: Sequence[str], *, header: bool) -> None:
    """Write data/<stream>/*.parquet as target/<stream>/*.csv."""
    options = pc.WriteOptions(include_header=header, quoting_style="none")
    for stream in streams:
        directory = target / stream
        directory.mkdir(parents=True)
        for file in sorted((data / stream).glob("*.parquet")):
            write_text_file(file, directory / f"{file.stem}.csv", options)


def write_text_file(source: Path, target: Path, options: pc.WriteOptions) -> None:
    """One Parquet file as text."""
    table = pq.read_table(source)
    names = [HEADER_NAMES.get(name, name) for name in table.column_names]
    pc.write_csv(table.rename_columns(names), target, options)
