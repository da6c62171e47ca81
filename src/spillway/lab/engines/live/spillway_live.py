"""Spillway under live input, with `until = "forever"` and no limit on what an epoch reads.

A program (see `process`). It joins other files first, so the clock meets compiled code.
"""

from pathlib import Path
from typing import Any

from spillway.job import SourceSpec
from spillway.lab.engines.data import HELD_FOR_LONG, JoinShape, fresh, write_warm_up
from spillway.lab.engines.live.live_run import RESULTS_NAME, LiveQuery, live_parser, run_live
from spillway.lab.engines.live.visibility import by_rename
from spillway.lab.engines.process import serve
from spillway.lab.engines.result import SPILLWAY
from spillway.lab.engines.spillway_join import run as run_to_end
from spillway.spark.session import Session


def start(session: Session, processors: int, shape: JoinShape, live: Path, out: Path) -> LiveQuery:
    """Start the view over the live directories."""
    epochs: list[float] = []

    def note(entry: dict[str, Any]) -> None:
        epochs.append(entry["seconds"]["total"])

    query = session.run(
        shape.view_sql,
        {
            stream: SourceSpec(stream, "parquet", str(live / stream), shape.schema_sql)
            for stream in shape.streams
        },
        checkpoint=str(out / "checkpoint"),
        sink="parquet",
        path=str(out / RESULTS_NAME),
        processors=processors,
        until="forever",
        listener=note,
    )
    return LiveQuery(
        query.stop, lambda: by_rename(out / RESULTS_NAME), lambda: tuple(epochs), lambda: query.isActive
    )


def main() -> None:
    arguments = live_parser(__doc__).parse_args()
    job, cores = arguments.job, arguments.cores
    with Session(settings={"spark.master": f"local[{cores},4]", **HELD_FOR_LONG}) as session:
        warm_up = arguments.out / "warm-up"
        write_warm_up(job.shape, warm_up, arguments.warm_up_rows)
        run_to_end(session, job.shape, warm_up, fresh(arguments.out), cores, free_run=False)
        serve(
            lambda: run_live(
                SPILLWAY, job, fresh(arguments.out),
                lambda shape, live, out: start(session, cores, shape, live, out),
            )
        )  # fmt: skip


if __name__ == "__main__":
    main()
