"""A driver of the cluster: jobs of one session, each started and waited for, and an outcome line for each.

cluster_driver.py MASTER JOB...
"""

import json
import sys

from spillway import Session
from spillway.errors import SpillwayError


def main(master: str, *jobs: str) -> None:
    settings = {
        "spark.master": master,
        "spark.executor.instances": "2",
        "spark.executor.memory": "500m",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.sql.shuffle.partitions": "2",
    }
    with Session(settings=settings) as session:
        for job in jobs:
            try:
                query = session.run_job(job)
                query.awaitTermination()
                print(json.dumps({"job": job, "hosts": _hosts(query.recentProgress)}), flush=True)
            except SpillwayError as error:
                print(json.dumps({"job": job, "error": str(error)}), flush=True)


def _hosts(progress: list[dict[str, object]]) -> list[str]:
    return sorted({one["host"] for epoch in progress for one in epoch["processors"]})  # type: ignore[attr-defined]


main(*sys.argv[1:])
