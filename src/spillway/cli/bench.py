"""`spillway bench NAME`: named workloads against the engines that users have today."""

from typing import Annotated, Any

import typer

from spillway.bench.join import ENGINES, bench_join
from spillway.bench.spill import bench_spill
from spillway.cli.output import print_json, say

bench = typer.Typer(no_args_is_help=True, help="Measure against Spark's own join and DuckDB, in one run.")


@bench.command()
def join(
    rows: Annotated[int, typer.Option(help="Rows per stream.", min=2)] = 1_000_000,
    epochs: Annotated[int, typer.Option(help="Files per stream; one is read per epoch.", min=1)] = 20,
    engines: Annotated[str, typer.Option(help="Which engines, with commas.")] = ",".join(ENGINES),
    limit_seconds: Annotated[float, typer.Option(help="Stop a peer after this long.", min=1)] = 600.0,
    free_run: Annotated[bool, typer.Option(help="Each engine chooses its own epochs.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object.")] = False,
) -> None:
    """A three-way join of streams: rows per second, memory, and growth of epochs."""
    figures = bench_join(
        rows=rows,
        epochs=epochs,
        engines=tuple(engine.strip() for engine in engines.split(",")),
        limit_seconds=limit_seconds,
        free_run=free_run,
        note=say,
    )
    _show(figures, json)


@bench.command()
def spill(
    rows: Annotated[int, typer.Option(help="Rows per stream.", min=2)] = 300_000,
    epochs: Annotated[int, typer.Option(help="Files per stream; one is read per epoch.", min=1)] = 20,
    limit_seconds: Annotated[float, typer.Option(help="Stop the peer after this long.", min=1)] = 120.0,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object.")] = False,
) -> None:
    """A three-way join with all, half and a fifth of the memory it needs, against Spark with RocksDB."""
    _show(bench_spill(rows=rows, epochs=epochs, limit_seconds=limit_seconds, note=say), json)


@bench.command()
def relocation(
    rows: Annotated[int, typer.Option(help="Rows per stream.", min=1000)] = 240_000,
    epochs: Annotated[int, typer.Option(help="Files per stream; one is read per epoch.", min=20)] = 45,
    balance: Annotated[bool, typer.Option(help="Also five processors, one of them slow.")] = True,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object.")] = False,
) -> None:
    """What it costs to move groups between processors, and what it brings when one of them is slow."""
    from spillway.spark.relocation_bench import SETTINGS, bench_relocation  # imports Spark: only here
    from spillway.spark.view_session import Session

    with Session(settings=SETTINGS) as session:
        figures = bench_relocation(session, rows=rows, epochs=epochs, balance=balance, note=say)
    _show(figures, json)


def _show(figures: dict[str, Any], json: bool) -> None:
    if json:
        print_json(figures)
    else:
        for key, value in figures.items():
            typer.echo(f"{key}: {value}")
