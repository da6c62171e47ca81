"""The entry point of the Python API: a Spark session that runs views.

    session = Session()
    query = session.run(View.sql("SELECT ..."), sources={"a": frame, ...}, checkpoint="state", path="out")
    query.awaitTermination()

Everything that can be refused is refused in `run`, before the first epoch: the view, the sources' columns,
the key types, the checkpoint's identity, the sink.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Unpack

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from spillway.detail_log import FILE_NAME as LOG_NAME
from spillway.detail_log import DetailLog, log_of
from spillway.errors import CheckpointError, SpillwayError
from spillway.job import (
    ComputeSettings,
    Job,
    RunConfig,
    RunSettings,
    SinkSpec,
    compute_config,
    read_costs,
    read_job,
    run_config,
)
from spillway.manager import (
    Budget,
    Checkpoint,
    CleanupLimits,
    Emulation,
    Engine,
    EngineConfig,
    InputEnd,
)
from spillway.manager.journal import FILE_NAME, Journal
from spillway.manager.relocation import RelocationLimits
from spillway.model import View
from spillway.plan.rules import Plan
from spillway.policy.spill import default_ahead_share, default_spill, default_spill_share
from spillway.spark.jvm import (
    adopt_session,
    build_session,
    comes_from_spark,
    count_executors,
    jvm_text,
    open_frame_jobs,
    stop_session,
)
from spillway.spark.session.bound_view import bind_view, open_sources, view_identity
from spillway.spark.session.warm_workers import warm_workers
from spillway.spark.sinks import Sink, open_sink, parquet_schema
from spillway.spark.sources import (
    BatchFiles,
    SourceCheck,
    SourceLike,
    check_mode,
    file_inputs,
    policy_settings,
    require_log_store,
)
from spillway.spark.stream import (
    Listener,
    Places,
    Query,
    Quotas,
    ScanAhead,
    SparkEpoch,
    Wire,
    check_hosts,
    listed_inputs,
    native_scans,
    open_input,
    reads_by_loop,
    remove_images,
)
from spillway.state.memory import ROOM_BYTES, HostProbe, TierDirectory, choose_directory
from spillway.state.orders import Limits
from spillway.state.storage import NewDirectories, Storage

UserFunction = Callable[[DataFrame, int], None]


class Session:
    """Runs views on a Spark session: its own, or an existing one, which it does not stop."""

    def __init__(
        self,
        spark: SparkSession | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        verbose: bool = False,
        log: Path | None = None,
    ) -> None:
        """`verbose` shows what Spark says; `log` takes the details of failures that belong to no checkpoint
        (by default a temporary file, which the error names)."""
        self._owns_spark = spark is None and SparkContext._active_spark_context is None
        self._log = log
        self.spark = build_session(settings or {}, verbose=verbose) if spark is None else adopt_session(spark)
        if self._owns_spark and self.spark.sparkContext._jsc.isLocal():
            warm_workers(self.spark.sparkContext)

    def run(
        self,
        view: View | str,
        sources: Mapping[str, SourceLike],
        *,
        checkpoint: str,
        sink: str = "delta",
        path: str | None = None,
        options: Mapping[str, str] | None = None,
        function: UserFunction | None = None,
        listener: Listener | None = None,
        **run: Unpack[RunSettings],
    ) -> Query:
        """Start a view. `run` takes the keys of a job file's `[run]` table, such as `memory="64MB"`.

        `function(DataFrame, sequence)` is called for each epoch when `sink` is "function".
        """
        config = run_config(checkpoint, run)
        spec = SinkSpec("function" if function else sink, path, options or {})
        query = view if isinstance(view, View) else View.sql(view)
        return self._start(query, sources, config, spec, function, listener)

    def run_job(self, job: Job | str | Path, *, listener: Listener | None = None) -> Query:
        """Start the view of a job file."""
        parsed = job if isinstance(job, Job) else read_job(job)
        return self._start(parsed.view, parsed.sources, parsed.run, parsed.sink, None, listener)

    def cleanup_job(self, job: Job | str | Path, *, listener: Listener | None = None) -> Query:
        """Drain pending input and produce all missing results of a stopped job, without new input."""
        parsed = job if isinstance(job, Job) else read_job(job)
        view, sources = parsed.view, parsed.sources
        return self._start(view, sources, parsed.run, parsed.sink, None, listener, stream=False)

    def compute(
        self,
        view: View | str,
        sources: Mapping[str, SourceLike],
        *,
        sink: str = "delta",
        path: str | None = None,
        options: Mapping[str, str] | None = None,
        **compute: Unpack[ComputeSettings],
    ) -> dict[str, Any]:
        """Compute a view over stored relations; `compute` takes the keys of a job's `[compute]` table."""
        from spillway.spark.compute import (
            plan_computation,  # takes a tenth of a second, and `run` needs none of it
        )

        computation = plan_computation(self.spark, view, sources, compute_config(compute), units=read_costs())
        return computation.run(SinkSpec(sink, path, options or {}))

    def plan(
        self,
        view: View,
        sources: Mapping[str, SourceLike],
        groups: int = 256,
        checkpoint: str | None = None,
    ) -> tuple[Plan, Wire]:
        """The plan of a view, bound to the sources' types; nothing is started.

        `checkpoint` is where the view runs: if it has run there, it keeps its tree.
        """
        return bind_view(view, sources, open_sources(self.spark, sources), groups, checkpoint)

    def stop(self) -> None:
        if self._owns_spark:
            stop_session(self.spark)

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, SpillwayError) and log_of(error) is None and comes_from_spark(error):
            DetailLog(self._log, jvm_text).record(error)
        self.stop()

    def _start(
        self,
        view: View,
        sources: Mapping[str, SourceLike],
        config: RunConfig,
        sink_spec: SinkSpec,
        function: UserFunction | None,
        listener: Listener | None,
        *,
        stream: bool = True,
    ) -> Query:
        frames = open_sources(self.spark, sources, BatchFiles(Storage(config.checkpoint)))
        plan, wire = bind_view(view, sources, frames, config.groups, config.checkpoint)
        relations = file_inputs(plan.inputs, frames, sources)
        for relation in relations:
            check_mode(relation.format, relation.options, f"source {relation.name}")
        sink = open_sink(
            sink_spec.format,
            sink_spec.path,
            sink_spec.options,
            checkpoint_dir=config.checkpoint,
            spark=self.spark,
            function=function,
        )
        listed = listed_inputs(
            self.spark, plan.inputs, frames, relations, config.trigger, Storage(config.checkpoint)
        )
        scans = native_scans(self.spark, plan, wire, frames, relations) if listed is not None else ()
        if stream and not reads_by_loop(Storage(config.checkpoint), listed):
            require_log_store(self.spark, config.checkpoint)
        schema = parquet_schema(wire.schema) if sink.staging is not None else wire.schema
        budget = None if config.memory_bytes is None else Budget(config.memory_bytes, config.state_share)
        own_budgets = tuple(Budget(size, config.state_share) for size in config.memory_each)
        identity = view_identity(plan, wire, config.groups, sources, sink_spec.format)
        opened = _Opened(Checkpoint(config.checkpoint, identity), sink)
        with ExitStack() as undo:
            undo.callback(opened.close)
            undo.callback(opened.checkpoint.abandon)
            _check_sink(opened, sink_spec)
            opened.tier = choose_directory(config.tier, opened.checkpoint.query_id, _needed(config))
            opened.tier.claim()
            if sink_spec.path is not None:
                undo.callback(NewDirectories(Storage(sink_spec.path)).remove_empty)
            undo.callback(remove_images, self.spark, opened.tier)
            check_hosts(self.spark, _probe(opened, sink_spec, config, count_executors(self.spark)))
            sink.prepare(opened.checkpoint.query_id, wire.schema)
            opened.journal = _journal(opened.checkpoint)
            graph = wire.graph.with_result_schema(schema)
            engine = Engine(
                EngineConfig(
                    processors=config.processors,
                    groups=config.groups,
                    tier=opened.tier.path,
                    limits=Limits(
                        rows=config.epoch_rows,
                        results=config.epoch_results,
                        lineage_one_in=config.lineage_one_in,
                    ),
                    budget=budget,
                    own_budgets=own_budgets,
                    spill=config.spill or default_spill(tree=not graph.is_one),
                    spill_share=config.spill_share or default_spill_share(rotation=config.rotation),
                    ahead_share=default_ahead_share(config.spill_share, tree=not graph.is_one),
                    inactive_epochs=config.inactive_epochs,
                    history_weight=config.history_weight,
                    room_share=config.room_share,
                    relocation=RelocationLimits(restart_epochs=config.restart_epochs),
                    cleanup=CleanupLimits(epoch_seconds=config.cleanup_seconds),
                    deferred=config.is_deferred(splittable=graph.splittable),
                    rotation=config.rotation,
                    rotation_gap_seconds=config.rotation_gap,
                    rotation_turns=config.rotation_turns,
                    rotation_backlog_bytes=config.rotation_backlog_bytes,
                    adapt=config.adapt,
                    policy=policy_settings(config, [input_.source for input_ in plan.inputs], sources),
                    distribution=config.distribution,
                    load_signal=config.load_signal,
                    buffer_bytes=config.buffer_bytes,
                    emulation=Emulation(config.row_seconds, config.speeds),
                ),
                graph,
                opened.checkpoint.query_id,
                opened.checkpoint.storage,
                sink,
                opened.journal,
            )
            sink.sweep(())  # committed files have left the staging area; the rest are from killed attempts
            storage = opened.checkpoint.storage
            jobs = open_frame_jobs(self.spark.sparkContext)
            ahead = ScanAhead(jobs)
            given = None
            if stream:
                given = open_input(
                    wire.stream, frames, relations, listed, config, storage, engine, scans, ahead.offer
                )
            query = Query(
                opened.checkpoint.query_id,
                engine,
                None if given is None else given.input,
                SparkEpoch(jobs, graph, Places(self.spark), Quotas(), ahead),
                partial(_close, opened, engine, ahead, self.spark),
                budget_is_hard=opened.tier.in_memory,
                clean_at_end=config.until == "exhausted" or not stream,
                input_end=InputEnd(storage) if config.until == "exhausted" else None,
                check=None if given is None else SourceCheck(self.spark, given.files, relations),
                listener=listener,
                log=_detail_log(storage),
            )
            undo.pop_all()
            return query


@dataclass(slots=True)
class _Opened:
    """What a query holds open; closed together in any case."""

    checkpoint: Checkpoint
    sink: Sink
    tier: TierDirectory | None = None
    journal: Journal | None = None

    def close(self) -> None:
        if self.journal is not None:
            self.journal.close()
        self.sink.close()
        if self.tier is not None:
            self.tier.remove()
        self.checkpoint.close()


def _close(opened: _Opened, engine: Engine, ahead: ScanAhead, spark: SparkSession) -> None:
    """Close a query that no longer runs an epoch, and remove files of tasks that outlived their epoch."""
    with ExitStack() as closing:
        closing.callback(opened.close)
        if opened.tier is not None:
            closing.callback(remove_images, spark, opened.tier)
        ahead.close()
        if not engine.undelivered:
            opened.sink.sweep(())


def _detail_log(storage: Storage) -> DetailLog:
    path = storage.local_path(LOG_NAME)
    return DetailLog(None if path is None else Path(path), jvm_text)


def _check_sink(opened: _Opened, spec: SinkSpec) -> None:
    """Refuse a sink that this query never wrote to: it would lack all epochs so far."""
    if opened.checkpoint.has_epochs and not opened.sink.belongs_to(opened.checkpoint.query_id):
        raise CheckpointError(
            f"checkpoint {opened.checkpoint.storage.root} has epochs whose results are not in the sink "
            f"{spec.path or spec.format}: the sink changed, or was deleted; give the sink that the job had "
            "before, restore it, or start with a new checkpoint and an empty sink"
        )


def _probe(opened: _Opened, sink: SinkSpec, config: RunConfig, executors: int) -> HostProbe:
    """What every executor must have: access to the paths, and room for the processors that it may get."""
    paths = [("checkpoint", opened.checkpoint.storage.root)]
    if sink.path is not None:
        paths.append(("sink", Storage(sink.path).root))
    assert opened.tier is not None
    budget = max((config.memory_bytes or 0, *config.memory_each))
    room = budget * -(-config.processors // max(1, executors))
    if not budget and config.tier is None and opened.tier.in_memory:
        room = ROOM_BYTES
    return HostProbe(tuple(paths), opened.tier, room)


def _needed(config: RunConfig) -> int | None:
    if config.memory_each:
        return sum(config.memory_each)
    return None if config.memory_bytes is None else config.memory_bytes * config.processors


def _journal(checkpoint: Checkpoint) -> Journal:
    """The journal beside the checkpoint; a checkpoint on a remote store has none on this machine."""
    path = checkpoint.storage.local_path(FILE_NAME)
    return Journal(None if path is None else Path(path))
