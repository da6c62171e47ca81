"""Reads the job file of a maintained view into its settings; `maintain.settings` says what is in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spillway.errors import JobError
from spillway.job.job import read_spark, read_view
from spillway.job.table import known, path_of, read_job_file, resolve, subtable, text
from spillway.maintain import AUTO, KINDS, RECOMPUTE, MaintainJob, ServerSpec, TableLocation
from spillway.maintain.sources import FEEDS
from spillway.maintain.strategies import STRATEGIES

UNTIL = ("exhausted", "forever")


def read_maintain_job(path: str | Path) -> MaintainJob:
    return read_job_file(path, parse_maintain_job)


def parse_maintain_job(document: Mapping[str, Any], base: Path) -> MaintainJob:
    """The job in a parsed TOML document; `base` is the directory of relative paths."""
    if not {"servers", "maintain"} & set(document):
        raise JobError(
            "there is no [servers] and no [maintain] table, so spillway maintain cannot run this job; "
            "use spillway run or spillway compute"
        )
    known(document, ("view", "servers", "sources", "maintain", "spark"), "the job file")
    servers = {name: _server(name, body, base) for name, body in subtable(document, "servers").items()}
    sources = {name: _source(name, body, servers) for name, body in subtable(document, "sources").items()}
    table = subtable(document, "maintain")
    known(table, ("store", "strategy", "until", "interval_seconds", "spark_rows"), "[maintain]")
    if "store" not in table:
        raise JobError('[maintain] has no store; for example store = "view.duckdb"')
    interval = table.get("interval_seconds", 1.0)
    if isinstance(interval, bool) or not isinstance(interval, int | float) or interval < 0:
        raise JobError(f"[maintain] interval_seconds = {interval!r}: must be a number of at least 0")
    store = Path(resolve(text(table, "store", "[maintain]"), base))
    for name, spec in servers.items():
        if spec.kind in ("duckdb", "sqlite") and Path(spec.place).resolve() == store.resolve():
            raise JobError(
                f"[maintain] store = {str(store)!r} is the file of [servers.{name}]; choose another file"
            )
    return MaintainJob(
        view=read_view(subtable(document, "view"), base),
        servers=servers,
        sources=sources,
        store=store,
        strategy=_choice(table, "strategy", (AUTO, *STRATEGIES, RECOMPUTE)),
        until=_choice(table, "until", UNTIL),
        interval_seconds=float(interval),
        spark=read_spark(document) if "spark" in document else None,
        spark_rows=_whole(table, "spark_rows", 5_000_000, "[maintain]"),
    )


def _server(name: str, body: object, base: Path) -> ServerSpec:
    where = f"[servers.{name}]"
    if not isinstance(body, Mapping):
        raise JobError(f"{where} must be a table with kind and dsn or path")
    known(body, ("kind", "dsn", "path", "cooperative", "sub_batch", "feed"), where)
    if body.get("kind") not in KINDS:
        raise JobError(f"{where} kind = {body.get('kind')!r}: must be one of {', '.join(KINDS)}")
    wanted = "dsn" if body["kind"] == "postgresql" else "path"
    if wanted not in body:
        raise JobError(f"{where} has no {wanted}")
    place = text(body, "dsn", where) if wanted == "dsn" else path_of(body, base, where) or ""
    cooperative = body.get("cooperative", True)
    sub_batch = _whole(body, "sub_batch", 1, where) if "sub_batch" in body else None
    if not isinstance(cooperative, bool):
        raise JobError(f"{where} cooperative = {cooperative!r}: must be true or false")
    feed = body.get("feed")
    if "feed" in body and (feed not in FEEDS or wanted != "dsn"):
        raise JobError(f"{where} feed = {feed!r}: must be one of {', '.join(FEEDS)}, and only for postgresql")
    return ServerSpec(body["kind"], place, cooperative, sub_batch, feed)


def _source(name: str, body: object, servers: Mapping[str, ServerSpec]) -> TableLocation:
    where = f"[sources.{name}]"
    if not isinstance(body, Mapping):
        raise JobError(f"{where} must be a table with server and table")
    known(body, ("server", "table"), where)
    if "server" not in body:
        raise JobError(f"{where} has no server; it must be one of {', '.join(servers)}")
    server = text(body, "server", where)
    if server not in servers:
        raise JobError(f"{where} server = {server!r}: there is no [servers.{server}]")
    return TableLocation(server, text(body, "table", where) if "table" in body else name)


def _whole(table: Mapping[str, Any], key: str, default: int, where: str) -> int:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise JobError(f"{where} {key} = {value!r}: must be a whole number of at least 1")
    return value


def _choice(table: Mapping[str, Any], key: str, values: tuple[str, ...]) -> str:
    value = table.get(key, values[0])
    if value not in values:
        raise JobError(f"[maintain] {key} = {value!r}: must be one of {', '.join(values)}")
    return str(value)
