"""The benchmark `scarce`: a TPC-H query over streams, with enough memory and with a small budget.

Each table is a stream of files, one of each is read per epoch, and the joins form a tree. The variants have
their own warm processes and take turns. Every run's results are compared with DuckDB's, row by row as
multisets.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from spillway.errors import JobError
from spillway.lab.bench.budget_metrics import budget_metrics, peak_resident_bytes
from spillway.lab.bench.budget_runs import BudgetRuns
from spillway.lab.engines import (
    MultisetDifference,
    PeerResult,
    generate_tables,
    multiset_difference,
    split_table,
    tpch_argv,
)
from spillway.workload import QUERIES, STREAM_TREES, tables_of, tables_read

ENOUGH, BUDGET, DEFERRED_BUDGET = "enough", "budget", "budget-deferred"
WARM_UP_ROWS = 60_000


def bench_scarce(
    *,
    scale: float,
    data: Path | None,
    query: str,
    memory_bytes: int,
    files: int,
    planned: bool,
    deferred: bool,
    repeats: int,
    limit_seconds: float,
    note: Callable[[str], None],
) -> dict[str, Any]:
    """Runs the variants; `data` has the tables already, `limit_seconds` stops a slow run."""
    if query not in STREAM_TREES:
        raise JobError(f"bench scarce: query {query}: must be one of {', '.join(STREAM_TREES)}")
    with tempfile.TemporaryDirectory(prefix="spillway-bench-scarce-") as scratch:
        root = Path(scratch)
        if data is None:
            generate_tables(root / "tables", scale, tables_read(query), note)
        streams = ScarceStreams(query, data or root / "tables", root, files)
        note(f"splitting each table into {files} files")
        streams.write()
        common: dict[str, Any] = {
            "planned": planned, "limit_seconds": limit_seconds, "warm_up": root / "warm-up",
        }  # fmt: skip
        options: dict[str, dict[str, Any]] = {ENOUGH: {}, BUDGET: {"memory_bytes": memory_bytes}}
        if deferred:
            options[DEFERRED_BUDGET] = {"memory_bytes": memory_bytes, "results": "deferred"}
        differences: dict[str, MultisetDifference] = {}
        with BudgetRuns(limit_seconds, note) as runs:
            for number in range(repeats):
                for name in list(options)[:: -1 if number % 2 else 1]:
                    argv = tpch_argv(root / "data", root / name, query, **common, **options[name])

                    def check(result: PeerResult, name: str = name) -> None:
                        found = streams.difference(Path(result.output))
                        if differences.get(name, MultisetDifference(0, 0)) == MultisetDifference(0, 0):
                            differences[name] = found

                    runs.turn(name, argv, check)
            results, journals = runs.results(), runs.journals()
        wanted = streams.wanted_rows()
    return {
        "bench": "scarce",
        "query": query,
        "scale": scale if data is None else None,
        "files": files,
        "tree": "planned" if planned else STREAM_TREES[query],
        "memory_bytes": memory_bytes,
        "repeats": repeats,
        "needed_bytes": peak_resident_bytes(journals.get(ENOUGH, [])),
        "wanted_results": wanted,
        **budget_metrics(results, journals, ENOUGH),
        "seconds_ratio": {name: _seconds_ratio(results, name) for name in options if name != ENOUGH},
        "exact": {name: found == MultisetDifference(0, 0) for name, found in differences.items()},
        "missing_results": {name: found.missing for name, found in differences.items()},
        "extra_results": {name: found.extra for name, found in differences.items()},
    }


@dataclass(frozen=True, slots=True)
class ScarceStreams:
    """The files of a query's tables, and what DuckDB finds in them."""

    query: str
    tables: Path
    root: Path
    files: int

    def write(self) -> None:
        """Write the streams, those of the warm-up, and the wanted results."""
        found = tables_of(self.query, self.tables)
        for name, path in found.items():
            split_table(path, self.root / "data" / name, files=self.files)
            split_table(path, self.root / "warm-up" / name, files=self.files, most_rows=WARM_UP_ROWS)
        with self._database() as database:
            for name in found:
                database.sql(f"CREATE VIEW {name} AS FROM read_parquet('{self.root}/data/{name}/*.parquet')")
            database.sql(f"COPY ({QUERIES[self.query]}) TO '{self._wanted}' (FORMAT parquet)")

    def difference(self, output: Path) -> MultisetDifference:
        """Of a run's output, against the wanted results."""
        with self._database() as database:
            files = sorted(str(file) for file in output.rglob("*.parquet"))
            if not files:
                return MultisetDifference(self.wanted_rows(), 0)
            found = f"FROM read_parquet([{', '.join(repr(file) for file in files)}])"
            return multiset_difference(database, f"FROM read_parquet('{self._wanted}')", found)

    def wanted_rows(self) -> int:
        with self._database() as database:
            ((rows,),) = database.sql(f"SELECT count(*) FROM read_parquet('{self._wanted}')").fetchall()
            return int(rows)

    @property
    def _wanted(self) -> Path:
        return self.root / "wanted.parquet"

    def _database(self) -> duckdb.DuckDBPyConnection:
        return duckdb.connect(config={"temp_directory": str(self.root / "duckdb")})


def _seconds_ratio(results: list[PeerResult], name: str) -> float | None:
    by_name = {result.engine: result for result in results if result.finished and result.seconds > 0}
    if name not in by_name or ENOUGH not in by_name:
        return None
    return round(by_name[name].seconds / by_name[ENOUGH].seconds, 2)
