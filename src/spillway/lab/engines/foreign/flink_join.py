"""Flink's SQL join of the benchmark's rows, in one JVM that stays warm.

A program (see `process`) for Flink's own environment: it imports pyflink and the standard library only. What
Flink is given: its multi-join operator (one operator for joins on a common key) or a chain of joins, state
on the heap, 12 GiB of it as Spark has, object reuse, one slot per core, and input and output as text in the
file system. With `--checkpoint-ms` it takes exactly-once checkpoints, and its output becomes visible with
them; without, at the end.

Known limit: Flink has no epochs; it reads all files as fast as it can.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

HEAP = "-Xmx12g"
TEXT = {"csv.disable-quote-character": "true"}


def settings(cores: int, checkpoint_ms: int | None, *, multi_join: bool = True) -> dict[str, str]:
    """Flink's configuration for one run."""
    found = {
        "parallelism.default": str(cores),
        "table.optimizer.multi-join.enabled": str(multi_join).lower(),
        "pipeline.object-reuse": "true",
        "state.backend.type": "hashmap",
        "taskmanager.numberOfTaskSlots": str(cores),
        "taskmanager.memory.network.min": "256mb",
        "taskmanager.memory.network.max": "256mb",
        "rest.bind-port": "0",
    }
    if checkpoint_ms is not None:
        found |= {
            "execution.checkpointing.interval": f"{checkpoint_ms} ms",
            "execution.checkpointing.mode": "EXACTLY_ONCE",
            "execution.checkpointing.storage": "filesystem",
        }
    return found


def table_sql(name: str, columns: str, directory: Path, **options: str) -> str:
    """A table of text files in a directory."""
    given = {"connector": "filesystem", "path": directory.as_uri(), "format": "csv", **TEXT, **options}
    text = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    return f"CREATE TEMPORARY TABLE {name} ({columns}) WITH ({text})"


def environment(cores: int, checkpoint_ms: int | None, out: Path, *, multi_join: bool = True) -> Any:
    """A streaming table environment."""
    from pyflink.common import Configuration
    from pyflink.table import EnvironmentSettings, TableEnvironment

    configuration = Configuration()
    for key, value in settings(cores, checkpoint_ms, multi_join=multi_join).items():
        configuration.set_string(key, value)
    if checkpoint_ms is not None:
        configuration.set_string("execution.checkpointing.dir", (out / "checkpoints").as_uri())
    return TableEnvironment.create(
        EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration).build()
    )


def create_results(tables: Any, view: str, directory: Path) -> list[str]:
    """The table `results` with the view's columns, which are returned."""
    columns: list[str] = tables.sql_query(view).get_schema().get_field_names()
    kinds = ", ".join(f"{name} {'BIGINT' if name.endswith('_id') else 'STRING'}" for name in columns)
    tables.execute_sql(table_sql("results", kinds, directory))
    return columns


def set_up(java_home: str, logs: Path) -> None:
    """What Flink's JVM takes from the environment; before pyflink is imported."""
    os.environ["JAVA_HOME"] = java_home
    os.environ["JVM_ARGS"] = HEAP
    os.environ["FLINK_LOG_DIR"] = str(logs)


def run(job: dict[str, Any], data: Path, out: Path, cores: int, checkpoint_ms: int | None) -> dict[str, Any]:
    """Join all rows below `data` to text in out/results."""
    tables = environment(cores, checkpoint_ms, out, multi_join=job["multi_join"])
    for stream in job["streams"]:
        tables.execute_sql(table_sql(stream, job["schema"], data / stream))
    columns = create_results(tables, job["view"], out / "results")
    statement = f"INSERT INTO results {job['view']}"
    plan = tables.explain_sql(statement)
    began = time.perf_counter()
    tables.execute_sql(statement).wait()
    seconds = time.perf_counter() - began
    operator = "multi-join" if "MultiJoin" in plan else "binary joins"
    checkpoints = "none" if checkpoint_ms is None else f"exactly-once every {checkpoint_ms} ms"
    return {
        "engine": job["engine"],
        "rows_in": job["rows_in"],
        "results": 0,
        "seconds": seconds,
        "epoch_seconds": [seconds],
        "output": str(out / "results"),
        "output_columns": columns,
        "note": f"{operator}; checkpoints: {checkpoints}; heap state; text in, text out; its own batches",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", type=json.loads)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--java-home", required=True)
    parser.add_argument("--checkpoint-ms", type=int)
    arguments = parser.parse_args()
    job = arguments.job
    runs = Path(job["out"])
    runs.mkdir(parents=True, exist_ok=True)
    set_up(arguments.java_home, runs)

    def turn(data: str) -> dict[str, Any]:
        out = Path(mkdtemp(prefix="run-", dir=runs))
        return run(job, Path(data), out, arguments.cores, arguments.checkpoint_ms)

    if job["warm_up"] is not None:
        for _ in range(job["warm_up_runs"]):
            turn(job["warm_up"])
    for _ in sys.stdin:
        sys.stdout.write(json.dumps(turn(job["data"])) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
