"""What Spark throws, as the one line that a user reads: texts are as Spark 4.3 gives them, cut short."""

import pytest

from spillway.errors import (
    CheckpointError,
    EvaluationError,
    SessionError,
    SourceError,
    SpillwayError,
    StateError,
    ViewError,
)
from spillway.spark.jvm.failure import as_spillway_error, first_cause

STREAM = "[STREAM_FAILED] Query [id = 5bb61664-2f2d, runId = e075f3d3-0bff] terminated with exception: "
PLAN = "\n~WriteToMicroBatchDataSourceV1 ForeachBatchSink, [checkpointLocation=/data/state/spark], Append\n"
FULL = "java.io.IOException: No space left on device"

TOLD: dict[str, tuple[str, type[SpillwayError], str]] = {
    "worker": (
        "pyspark.errors.PythonException: Traceback\n  File ...\n"
        "spillway.errors.ViewError: division by zero (in p.price / v.shares)\n SQLSTATE: 39000",
        ViewError,
        "division by zero (in p.price / v.shares)",
    ),
    "truncated Parquet": (
        f"{STREAM}[FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER] Encountered error while reading file "
        "file:///data/a%20b/2.parquet. Could not read footer. SQLSTATE: KD001\n\tat org.apache.spark.x\n"
        "Caused by: java.lang.RuntimeException: file:/data/a%20b/2.parquet is not a Parquet file. Expected "
        "magic number at tail\n\tat x\n",
        SourceError,
        "file /data/a b/2.parquet cannot be read (file:/data/a%20b/2.parquet is not a Parquet file. Expected "
        "magic number at tail): it is damaged or has another format; write it again under the same name, "
        'then run the job again; options = { ignoreCorruptFiles = "true" } skips such files',
    ),
    "damaged page": (
        ": org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
        "file:///data/2.parquet.  SQLSTATE: KD001\n\tat x\nCaused by: java.io.IOException: could not decode "
        "the dictionary for [k]\n\tat x\nCaused by: java.io.IOException: FAILED_TO_UNCOMPRESS(5)\n",
        SourceError,
        "file /data/2.parquet cannot be read (could not decode the dictionary for [k]): it is damaged",
    ),
    "lost file": (
        "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:///data/2.csv. File "
        "does not exist. It is possible the underlying files have been updated.",
        SourceError,
        "file /data/2.csv is gone; put it back, then run the job again",
    ),
    "division": (
        "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL "
        'instead. If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error. SQLSTATE: 22012'
        "\n== SQL (line 1, position 1) ==\n`price` / `price`\n^^^^^^^^^^^^^^^^^\n",
        EvaluationError,
        "price / price fails on a row: Division by zero. Use `try_divide` to tolerate divisor being 0 and "
        "return NULL instead.",
    ),
    "cast": (
        '[CAST_OVERFLOW] The value 1000L of the type "BIGINT" cannot be cast to "TINYINT" due to overflow. '
        "Use `try_cast` to tolerate overflow and return NULL instead. SQLSTATE: 22003\n\tat x",
        EvaluationError,
        'the view fails on a row: The value 1000L of the type "BIGINT" cannot be cast to "TINYINT"',
    ),
    "log of Spark": (
        f"{STREAM}Failed to read log file file:/data/state/spark/offsets/2. [MALFORMED_LOG_FILE] Log file "
        "was malformed: failed to read correct log version from garbage. SQLSTATE: KD002",
        StateError,
        "/data/state/spark/offsets/2, a file of Spark's log, is corrupted; restore it from a backup, or",
    ),
    "full log": (
        f"{STREAM}{FULL} SQLSTATE: XXKST{PLAN}\tat x.HDFSMetadataLog.write(x)\nCaused by: {FULL}",
        CheckpointError,
        "Spark cannot write its log to /data/state/spark: No space left on device; free some space there",
    ),
    "full scratch": (
        f"Job aborted due to stage failure: {FULL}\n\tat org.apache.spark.storage.DiskBlockObjectWriter.x(y)",
        SessionError,
        "Spark cannot write to its scratch directory (spark.local.dir, by default /tmp): No space left",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_the_line_names_the_file_or_the_expression_and_what_to_do(name: str) -> None:
    text, kind, told = TOLD[name]
    found = as_spillway_error(RuntimeError(text))
    assert type(found) is kind
    assert str(found).startswith(told)
    assert "SQLSTATE" not in str(found)


def test_a_stack_trace_in_the_cause_tells_where_it_happened() -> None:
    text, kind, told = TOLD["full log"]
    first, rest = text.split("\tat ")
    error = RuntimeError(first)
    error.__context__ = ValueError(f": {FULL}\n\tat {rest}")
    found = as_spillway_error(error)
    assert type(found) is kind and str(found).startswith(told)


def test_what_is_not_known_is_told_without_clutter() -> None:
    error = RuntimeError(f"{STREAM}[SOME_CONDITION] It did not work. SQLSTATE: 42000\nmore")
    assert as_spillway_error(error) is None
    assert first_cause(error) == "[SOME_CONDITION] It did not work."
