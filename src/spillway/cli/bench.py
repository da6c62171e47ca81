"""`spillway bench NAME`: named workloads against the engines that users have today.

Each command imports its benchmark when it runs, so the others need neither Spark nor a database client.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from spillway.cli.output import print_json, say, show_table
from spillway.errors import JobError

bench = typer.Typer(no_args_is_help=True, help="Measure against Spark's own join and DuckDB, in one run.")

AsJson = Annotated[bool, typer.Option("--json", help="Print the metrics as one JSON object.")]
StreamRows = Annotated[int, typer.Option(help="Rows per stream.", min=2)]
StreamFiles = Annotated[int, typer.Option(help="Files per stream; one is read per epoch.", min=1)]
PeerLimit = Annotated[float, typer.Option(help="Stop a peer after this many seconds.", min=1)]


@bench.command("list")
def list_(
    json: Annotated[bool, typer.Option("--json", help="Print the benchmarks as one JSON object.")] = False,
) -> None:
    """List the benchmarks: what each compares, its source, and the expected result."""
    from spillway.lab.bench import BENCHMARKS

    if json:
        print_json({"benchmarks": [asdict(benchmark) for benchmark in BENCHMARKS.values()]})
    else:
        show_table(
            ("benchmark", "compares", "seed", "section", "expected"),
            [
                (benchmark.name, benchmark.compares, benchmark.seed, benchmark.section, benchmark.expected)
                for benchmark in BENCHMARKS.values()
            ],
        )


@bench.command()
def join(
    rows: StreamRows = 1_000_000,
    epochs: StreamFiles = 20,
    engines: Annotated[
        str,
        typer.Option(
            help="Engines, separated by commas; also: spark-tuned, flink, flink-no-checkpoints, "
            "flink-binary-joins, pathway."
        ),
    ] = "spillway,spark-default,spark-rocksdb,duckdb",
    limit_seconds: PeerLimit = 600.0,
    free_run: Annotated[
        bool, typer.Option("--free", "--free-run", help="Each engine chooses its own batches of the files.")
    ] = False,
    cold: Annotated[
        bool, typer.Option("--cold", help="Time whole commands: a new process per run, no warm-up.")
    ] = False,
    repeats: Annotated[int, typer.Option(help="Runs of each engine; the median counts.", min=1)] = 1,
    json: AsJson = False,
) -> None:
    """A three-way join of streams: rows per second, memory, and growth of epochs."""
    from spillway.lab.bench import bench_join

    metrics = bench_join(
        rows=rows,
        epochs=epochs,
        engines=_names(engines),
        limit_seconds=limit_seconds,
        free_run=free_run,
        cold=cold,
        repeats=repeats,
        note=say,
    )
    _show(metrics, json)


@bench.command()
def tree(
    rows: StreamRows = 500_000,
    epochs: StreamFiles = 20,
    engines: Annotated[
        str, typer.Option(help="Engines, separated by commas; also: spark-tuned, spark-rocksdb.")
    ] = "spillway,spark-default,duckdb",
    limit_seconds: PeerLimit = 600.0,
    repeats: Annotated[int, typer.Option(help="Runs of each engine; the median counts.", min=1)] = 3,
    json: AsJson = False,
) -> None:
    """A chain of three joins on different keys: rows per second and memory, against Spark's own joins."""
    from spillway.lab.bench import bench_join

    metrics = bench_join(
        shape="tree",
        rows=rows,
        epochs=epochs,
        engines=_names(engines),
        limit_seconds=limit_seconds,
        repeats=repeats,
        note=say,
    )
    _show(metrics, json)


@bench.command()
def latency(
    rate: Annotated[int, typer.Option(help="Rows per second of all streams together.", min=100)] = 10_000,
    seconds: Annotated[float, typer.Option(help="How long files arrive after the warm-up.", min=1)] = 30.0,
    warm_seconds: Annotated[float, typer.Option(help="How long they arrive before it.", min=0)] = 10.0,
    interval_ms: Annotated[int, typer.Option(help="A file of each stream arrives this often.", min=1)] = 100,
    streams: Annotated[int, typer.Option(help="Streams of the join.", min=2, max=3)] = 3,
    engines: Annotated[
        str, typer.Option(help="Engines, separated by commas; also: flink.")
    ] = "spillway,spark-default",
    drain_seconds: Annotated[
        float, typer.Option(help="Stop an engine this long after the last file.", min=1)
    ] = 120.0,
    checkpoint_ms: Annotated[int, typer.Option(help="Flink takes a checkpoint this often.", min=10)] = 500,
    repeats: Annotated[int, typer.Option(help="Turns of each engine; medians count.", min=1)] = 3,
    json: AsJson = False,
) -> None:
    """The time from a row's arrival to its visible results (p50, p99), against Spark's own join."""
    from spillway.lab.bench import bench_latency

    metrics = bench_latency(
        rate=rate,
        seconds=seconds,
        warm_seconds=warm_seconds,
        interval_ms=interval_ms,
        streams=streams,
        engines=_names(engines),
        drain_seconds=drain_seconds,
        checkpoint_ms=checkpoint_ms,
        repeats=repeats,
        note=say,
    )
    _show(metrics, json)


@bench.command()
def epoch(
    state_rows: Annotated[int, typer.Option(help="Rows of state under the tiny epochs.", min=3)] = 1_000_000,
    rows: Annotated[int, typer.Option(help="Rows of a tiny epoch.", min=3)] = 100,
    epochs: Annotated[int, typer.Option(help="Epochs of each part.", min=30)] = 100,
    growth_rows: Annotated[int, typer.Option(help="Rows of an epoch that measures growth.", min=3)] = 30_000,
    limit_seconds: Annotated[float, typer.Option(help="Stop a part after this many seconds.", min=1)] = 600.0,
    json: AsJson = False,
) -> None:
    """Tiny epochs over a large state, by phase, and the growth of equal epochs of a join and of a tree."""
    from spillway.lab.bench import bench_epoch

    metrics = bench_epoch(
        state_rows=state_rows,
        rows=rows,
        epochs=epochs,
        growth_rows=growth_rows,
        limit_seconds=limit_seconds,
        note=say,
    )
    _show(metrics, json)


@bench.command()
def start(
    rows: Annotated[int, typer.Option(help="Rows per stream.", min=2)] = 10_000,
    repeats: Annotated[int, typer.Option(help="Turns of both sides; medians count.", min=1)] = 5,
    json: AsJson = False,
) -> None:
    """From the start of the command to the first result, against bare PySpark's first Python job."""
    from spillway.lab.bench import bench_start

    _show(bench_start(rows=rows, repeats=repeats, note=say), json)


@bench.command()
def spill(
    rows: StreamRows = 1_000_000,
    epochs: StreamFiles = 20,
    shares: Annotated[
        str, typer.Option(help="Divisors of the needed memory, separated by commas.")
    ] = "2,5,20",
    deferred: Annotated[
        str | None, typer.Option(help="Divisors that also run with deferred results.")
    ] = None,
    repeats: Annotated[int, typer.Option(help="Turns of each variant; medians count.", min=1)] = 1,
    rocksdb: Annotated[bool, typer.Option(help="Also run Spark's own join with RocksDB.")] = True,
    limit_seconds: Annotated[float, typer.Option(help="Stop a run after this many seconds.", min=1)] = 300.0,
    pause: Annotated[bool, typer.Option(help="Also measure how long spills of 200 MB delay epochs.")] = True,
    json: AsJson = False,
) -> None:
    """A three-way join with enough memory and with less, against Spark with RocksDB: time, processor time,
    early results."""
    from spillway.lab.bench import DEFERRED, bench_spill

    metrics = bench_spill(
        rows=rows,
        epochs=epochs,
        shares=_numbers(shares, "--shares"),
        deferred=DEFERRED if deferred is None else _numbers(deferred, "--deferred"),
        repeats=repeats,
        rocksdb=rocksdb,
        limit_seconds=limit_seconds,
        pause=pause,
        note=say,
    )
    _show(metrics, json)


@bench.command()
def scarce(
    scale: Annotated[float, typer.Option(help="Scale factor of the generated tables.", min=0.001)] = 1.0,
    data: Annotated[
        Path | None, typer.Option(help="A directory with lineitem.parquet and so on, instead.")
    ] = None,
    query: Annotated[str, typer.Option(help="A query of TPC-H that has a tree.")] = "q9_columns",
    memory: Annotated[str, typer.Option(help="Budget of one processor.")] = "24MB",
    files: Annotated[int, typer.Option(help="Files per table; one is read per epoch.", min=1)] = 12,
    planned: Annotated[bool, typer.Option("--planned", help="Take the planner's own tree.")] = False,
    deferred: Annotated[bool, typer.Option("--deferred", help="Also run with deferred results.")] = False,
    repeats: Annotated[int, typer.Option(help="Turns of each variant; medians count.", min=1)] = 1,
    limit_seconds: Annotated[float, typer.Option(help="Stop a run after this many seconds.", min=1)] = 600.0,
    json: AsJson = False,
) -> None:
    """A TPC-H query over streams of files, with enough memory and with little: time, processor time,
    exactness."""
    from spillway.lab.bench import bench_scarce
    from spillway.model import parse_bytes

    metrics = bench_scarce(
        scale=scale,
        data=data,
        query=query,
        memory_bytes=parse_bytes(memory, "--memory"),
        files=files,
        planned=planned,
        deferred=deferred,
        repeats=repeats,
        limit_seconds=limit_seconds,
        note=say,
    )
    _show(metrics, json)


@bench.command()
def relocation(
    rows: Annotated[int, typer.Option(help="Rows per stream.", min=1000)] = 240_000,
    epochs: Annotated[int, typer.Option(help="Files per stream; one is read per epoch.", min=20)] = 45,
    balance: Annotated[bool, typer.Option(help="Also run five processors, one of them slow.")] = True,
    json: AsJson = False,
) -> None:
    """What it costs to move groups between processors, and what it brings when one of them is slow."""
    from spillway.lab.bench import SETTINGS, bench_relocation
    from spillway.spark.session import Session

    with Session(settings=SETTINGS) as session:
        metrics = bench_relocation(session, rows=rows, epochs=epochs, balance=balance, note=say)
    _show(metrics, json)


@bench.command()
def maintain(
    relations: Annotated[int, typer.Option(help="Relations in the chain.", min=2)] = 6,
    rows: Annotated[int, typer.Option(help="Rows of each relation.", min=10)] = 200_000,
    servers: Annotated[int, typer.Option(help="PostgreSQL servers that hold the relations.", min=1)] = 3,
    updates: Annotated[str, typer.Option(help="Updates per round, separated by commas.")] = "200,1000,3000",
    ratio: Annotated[float, typer.Option(help="How often a join value occurs.", min=0.1)] = 1.0,
    strategies: Annotated[
        str, typer.Option(help="Strategies, separated by commas.")
    ] = "batch,adjacent,conditional,auto",
    repeats: Annotated[int, typer.Option(help="Rounds of each strategy.", min=1)] = 3,
    indexed: Annotated[
        bool, typer.Option(help="Create indexes on join columns; without them, queries scan.")
    ] = False,
    refresh: Annotated[bool, typer.Option(help="Also compare with REFRESH MATERIALIZED VIEW.")] = False,
    spark: Annotated[bool, typer.Option(help="Use Delta tables and Spark jobs instead.")] = False,
    json: AsJson = False,
) -> None:
    """Maintenance strategies over PostgreSQL servers: seconds and queries per round."""
    options: dict[str, Any] = {
        "relations": relations, "rows": rows, "updates": _numbers(updates, "--updates"), "ratio": ratio,
        "strategies": _names(strategies), "repeats": repeats, "note": say,
    }  # fmt: skip
    if spark:
        if indexed or refresh:
            raise JobError(
                "--spark: Delta tables have no indexes and no REFRESH; leave --indexed and --refresh out"
            )
        from spillway.lab.bench import bench_tables
        from spillway.spark.session import Session

        with Session() as session:
            metrics = bench_tables(session.spark, **options)
    else:
        from spillway.lab.bench import bench_maintain

        metrics = bench_maintain(servers=servers, indexed=indexed, refresh=refresh, **options)
    _show(metrics, json)


@bench.command()
def compute(
    relations: Annotated[
        str | None, typer.Option(help="Relations per query, separated by commas; default 8 to 32.")
    ] = None,
    queries: Annotated[
        int | None, typer.Option(help="Queries of each size; default 8, and 3 of 24 and 32 relations.", min=1)
    ] = None,
    engines: Annotated[str | None, typer.Option(help="Engines, separated by commas; default all.")] = None,
    scale: Annotated[int, typer.Option(help="Multiplies the rows of each relation.", min=1)] = 1,
    limit_seconds: Annotated[float, typer.Option(help="Stop a run after this many seconds.", min=1)] = 60.0,
    json: AsJson = False,
) -> None:
    """Random joins of 8 to 32 stored relations, against Spark's own plans and DuckDB."""
    from spillway.lab.bench import ENGINES, RELATIONS, bench_compute

    counts = RELATIONS if relations is None else _numbers(relations, "--relations")
    chosen = ENGINES if engines is None else _names(engines)
    metrics = bench_compute(
        relations=counts,
        queries=queries,
        engines=chosen,
        scale=scale,
        limit_seconds=limit_seconds,
        note=say,
    )
    for claim in metrics["claims"]:
        say(claim)
    _show(metrics, json)


@bench.command()
def tpch(
    data: Annotated[
        Path, typer.Argument(help="A directory with customer.parquet, orders.parquet and so on.")
    ],
    queries: Annotated[
        str | None, typer.Option(help="Queries, separated by commas; default q3 and q9_columns.")
    ] = None,
    repeats: Annotated[int, typer.Option(help="Runs of each, after warming up.", min=1)] = 5,
    json: AsJson = False,
) -> None:
    """Joins of TPC-H by `compute`, statistics included, against Spark's own plan in the same session."""
    from spillway.lab.bench import DEFAULT_QUERIES, bench_tpch

    names = DEFAULT_QUERIES if queries is None else _names(queries)
    _show(bench_tpch(data=data, queries=names, repeats=repeats, note=say), json)


def _names(given: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in given.split(","))


def _numbers(given: str, option: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in given.split(","))
    except ValueError:
        raise JobError(f"{option} {given}: must be whole numbers separated by commas") from None


def _show(metrics: dict[str, Any], json: bool) -> None:
    if json:
        print_json(metrics)
    else:
        for key, value in metrics.items():
            typer.echo(f"{key}: {value}")
