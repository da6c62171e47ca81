"""Pathway's join of the benchmark's rows, in one process that stays warm.

A program (see `process`) for Pathway's own environment: it imports pathway and the standard library only.
What Pathway is given: one worker thread per core, no persistence (so no exactly-once), and all input in one
commit (`static` mode), which is its fastest way to read it. Input and output are text.

Known limit: Pathway has no epochs here. It appends columns `time` and `diff` to its output; inner joins of
input that only grows have no negative `diff`, and a result with one would change the checksum's count.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

META_COLUMNS = ("time", "diff")


def three_way(streams: dict[str, Any]) -> Any:
    """The view of `bench join`."""
    a, b, c = (streams[name] for name in "abc")
    two = a.join(b, a.k == b.k).select(k=b.k, a_id=a.row_id, b_id=b.row_id, ap=a.p, bp=b.p)
    return two.join(c, two.k == c.k).select(
        a_id=two.a_id, b_id=two.b_id, c_id=c.row_id, ap=two.ap, bp=two.bp, cp=c.p
    )


def chain(streams: dict[str, Any]) -> Any:
    """The view of `bench tree`."""
    a, b, c, d = (streams[name] for name in "abcd")
    two = a.join(b, a.r == b.l).select(r=b.r, a_id=a.row_id, b_id=b.row_id, ap=a.p, bp=b.p)
    three = two.join(c, two.r == c.l).select(
        r=c.r, a_id=two.a_id, b_id=two.b_id, c_id=c.row_id, ap=two.ap, bp=two.bp, cp=c.p
    )
    return three.join(d, three.r == d.l).select(
        a_id=three.a_id, b_id=three.b_id, c_id=three.c_id, d_id=d.row_id,
        ap=three.ap, bp=three.bp, cp=three.cp, dp=d.p,
    )  # fmt: skip


VIEWS: dict[str, tuple[Callable[[dict[str, Any]], Any], dict[str, type]]] = {
    "join": (three_way, {"k": int, "row_id": int, "p": str}),
    "tree": (chain, {"l": int, "r": int, "row_id": int, "p": str}),
}


def run(job: dict[str, Any], data: Path, out: Path) -> dict[str, Any]:
    """Join all rows below `data` to the file out/results.csv."""
    import pathway as pw
    from pathway.internals.parse_graph import G

    G.clear()
    view, columns = VIEWS[job["shape"]]
    schema = pw.schema_from_types(**columns)
    streams = {
        name: pw.io.csv.read(str(data / name), schema=schema, mode="static") for name in job["streams"]
    }
    results = view(streams)
    target = out / "results.csv"
    pw.io.csv.write(results, str(target))
    began = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    seconds = time.perf_counter() - began
    return {
        "engine": job["engine"],
        "rows_in": job["rows_in"],
        "results": 0,
        "seconds": seconds,
        "epoch_seconds": [seconds],
        "output": str(target),
        "output_columns": [*results.column_names(), *META_COLUMNS],
        "note": "all input in one commit; no persistence; text in, text out",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", type=json.loads)
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    os.environ["PATHWAY_THREADS"] = str(arguments.cores)
    job = arguments.job
    runs = Path(job["out"])
    runs.mkdir(parents=True, exist_ok=True)
    if job["warm_up"] is not None:
        for _ in range(job["warm_up_runs"]):
            run(job, Path(job["warm_up"]), Path(mkdtemp(prefix="run-", dir=runs)))
    for _ in sys.stdin:
        answer = run(job, Path(job["data"]), Path(mkdtemp(prefix="run-", dir=runs)))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
