"""Spark's own stream-stream join under live input: default state store, no trigger, Parquet sink.

A program (see `process`). It joins other files first, so the clock meets compiled code; state of that run is
released.
"""

from pathlib import Path

from pyspark.sql import SparkSession

from spillway.lab.engines.data import JoinShape, fresh, write_warm_up
from spillway.lab.engines.live.live_run import RESULTS_NAME, LiveQuery, live_parser, run_live
from spillway.lab.engines.live.visibility import by_spark_log
from spillway.lab.engines.process import serve
from spillway.lab.engines.result import SPARK_DEFAULT, PeerResult
from spillway.lab.engines.spark_join import forget_state, joined, start_session
from spillway.lab.engines.spark_join import run as run_to_end


def start(spark: SparkSession, shape: JoinShape, live: Path, out: Path) -> LiveQuery:
    """Start the view over the live directories."""
    results = out / RESULTS_NAME
    writer = joined(spark, shape, live, free_run=True).writeStream.format("parquet").outputMode("append")
    query = writer.option("path", str(results)).option("checkpointLocation", str(out / "checkpoint")).start()

    def batch_seconds() -> tuple[float, ...]:
        return tuple(
            progress.durationMs["triggerExecution"] / 1000
            for progress in query.recentProgress
            if progress.numInputRows > 0
        )

    def visible() -> dict[str, float]:
        return by_spark_log(results) if (results / "_spark_metadata").exists() else {}

    return LiveQuery(query.stop, visible, batch_seconds, lambda: query.isActive)


def main() -> None:
    arguments = live_parser(__doc__).parse_args()
    job = arguments.job
    spark = start_session("default", arguments.cores)
    warm_up = arguments.out / "warm-up"
    write_warm_up(job.shape, warm_up, arguments.warm_up_rows)
    run_to_end(spark, job.shape, warm_up, fresh(arguments.out), "warm-up", limit_seconds=None, free_run=False)

    def turn() -> PeerResult:
        forget_state(spark)
        return run_live(
            SPARK_DEFAULT, job, fresh(arguments.out),
            lambda shape, live, out: start(spark, shape, live, out),
        )  # fmt: skip

    serve(turn)
    spark.stop()


if __name__ == "__main__":
    main()
