"""Tables of TPC-H as Parquet files: generated, and split into streams of files.

The generator, `tpchgen-cli`, is installed into an environment of its own on first use (see
`foreign.environment`). Files of a stream have rising modification times, by which they are read in order; row
`i` of `n` goes to the same file in every table of the same size, so keys that rise together arrive together.
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq

from spillway.errors import JobError
from spillway.lab.engines.foreign import EngineEnvironment

_VERSION = "4.0.0"
_ENVIRONMENT = EngineEnvironment(
    "tpchgen", _VERSION, (f"tpchgen-cli=={_VERSION}",), ((3, 11), (3, 12), (3, 13), (3, 10))
)


def generate_tables(
    directory: Path, scale: float, tables: Iterable[str], note: Callable[[str], None]
) -> None:
    """Write the tables of a scale factor, each to one Parquet file."""
    program = _ENVIRONMENT.ensure(note).with_name("tpchgen-cli")
    note(f"generating TPC-H at scale factor {scale:g}")
    argv = [
        str(program), "parquet", "-s", f"{scale:g}", "--output-dir", str(directory),
        "--tables", ",".join(tables),
    ]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise JobError(f"tpchgen-cli ended with code {done.returncode}: {done.stderr.strip()[-300:]}")


def split_table(table: Path, directory: Path, *, files: int, most_rows: int | None = None) -> None:
    """Write the rows of a Parquet file, or its first ones, as a stream of files."""
    rows = pq.read_table(table)
    if most_rows is not None:
        rows = rows.slice(0, most_rows)
    directory.mkdir(parents=True)
    bounds = [rows.num_rows * number // files for number in range(files + 1)]
    first_modified = int(time.time()) - files
    for number, (low, high) in enumerate(pairwise(bounds)):
        path = directory / f"part-{number:05d}.parquet"
        pq.write_table(rows.slice(low, high - low), path)
        os.utime(path, (first_modified + number, first_modified + number))
