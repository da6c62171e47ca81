"""Opens the input of a query: by the file loop where that is possible, else by Structured Streaming.

A checkpoint goes on with the kind of log that it began with: files of batches are either in Spark's log or in
the file log, never in both. Before its first batch is committed, a checkpoint may begin with either.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spillway.errors import CheckpointError
from spillway.job import RunConfig
from spillway.manager import Engine
from spillway.manager.files import (
    FileLog,
    FilePlanner,
    ListedInput,
    has_file_log,
    milliseconds,
    remove_file_log,
)
from spillway.policy import SizeLimits
from spillway.spark.sources import (
    SPARK_DIRECTORY,
    BatchFiles,
    FileInput,
    FilesOfBatches,
    check_log,
    log_address,
    require_log_store,
)
from spillway.spark.stream.batch_frames import BatchFrames
from spillway.spark.stream.file_loop import FileLoop, Pace
from spillway.spark.stream.input import QueryInput
from spillway.spark.stream.run_ahead import can_run_again, rewind
from spillway.spark.stream.stream_input import StreamInput
from spillway.state.storage import Storage

_LOG = logging.getLogger(__name__)
ROWS_SHARE = 0.8
"""Of the rows that an epoch may have: processors do not get equal shares."""
MEMORY_SHARE = 1 / 8
"""Bytes of files in an epoch, of the memory of all processors. They are about twice as large as state, and
state that has grown can be spilled only before the next epoch."""


@dataclass(frozen=True, slots=True)
class OpenedInput:
    """The input, and who knows the files of its batches."""

    input: QueryInput
    files: FilesOfBatches


def reads_by_loop(storage: Storage, listed: Sequence[ListedInput] | None) -> bool:
    """Whether the file loop reads the input, as far as can be said before the manifest is loaded."""
    return listed is not None and (has_file_log(storage) or not _has_spark_log(storage))


def open_input(
    stream: DataFrame,
    frames: Mapping[str, DataFrame],
    relations: Sequence[FileInput],
    listed: Sequence[ListedInput] | None,
    config: RunConfig,
    storage: Storage,
    engine: Engine,
) -> OpenedInput:
    """`stream` has the wire rows; `listed` are the inputs if the file loop can read them."""
    begins = engine.manifest.batch_id < 0
    is_logged = has_file_log(storage) and not begins
    if is_logged and listed is None:
        raise CheckpointError(
            f"checkpoint {storage.root} has a file log, but now an input needs Spark's own streaming; undo "
            "the change of the sources, or use a new checkpoint directory and an empty sink"
        )
    if listed is not None and (begins or is_logged or not _has_spark_log(storage)):
        loop = _loop(stream, relations, listed, config, storage, engine, must_work=is_logged)
        if loop is not None:
            return OpenedInput(loop, loop)
    require_log_store(stream.sparkSession, config.checkpoint)
    if begins:
        remove_file_log(storage)
    check_log(storage)
    rewind(storage, engine.manifest.batch_id)
    is_finite = config.until == "exhausted"
    runs_ahead = is_finite and all(map(can_run_again, frames.values()))
    return OpenedInput(StreamInput(_writer(stream, config), runs_ahead=runs_ahead), BatchFiles(storage))


def _loop(
    stream: DataFrame,
    relations: Sequence[FileInput],
    listed: Sequence[ListedInput],
    config: RunConfig,
    storage: Storage,
    engine: Engine,
    *,
    must_work: bool,
) -> FileLoop | None:
    try:
        maker = BatchFrames(stream, relations)
    except (Py4JError, PySparkException) as error:
        if must_work:
            raise
        _LOG.warning("Structured Streaming reads the input, because this Spark lacks: %s", error)
        return None
    manifest = engine.manifest
    log = FileLog(storage, engine.token, [input_.name for input_ in listed])
    known = log.load(manifest.batch_id, manifest.batch_token)
    planner = FilePlanner(listed, log, known, manifest.batch_id, _size_limits(config), _most_bytes(config))
    return FileLoop(
        planner, maker.frame_of, lambda: engine.manifest.batch_id, _pace(config), plan_of=maker.plan_of
    )


def _size_limits(config: RunConfig) -> SizeLimits | None:
    """A trigger takes everything that is there, as in Spark."""
    if config.until == "forever" and config.trigger is not None:
        return None
    most = int(config.epoch_rows * config.processors * ROWS_SHARE)
    return SizeLimits(max(1, most), config.latency_seconds)


def _most_bytes(config: RunConfig) -> int | None:
    memory = sum(config.memory_each) or (config.memory_bytes or 0) * config.processors
    return int(memory * MEMORY_SHARE) or None


def _pace(config: RunConfig) -> Pace | None:
    if config.until == "exhausted":
        return None
    return Pace(None if config.trigger is None else milliseconds(config.trigger) / 1000 or None)


def _has_spark_log(storage: Storage) -> bool:
    return bool(storage.entries(f"{SPARK_DIRECTORY}/offsets"))


def _writer(
    stream: DataFrame, config: RunConfig
) -> Callable[[Callable[[DataFrame, int], None]], DataStreamWriter]:
    def writer(on_batch: Callable[[DataFrame, int], None]) -> DataStreamWriter:
        made = stream.writeStream.foreachBatch(on_batch).option(
            "checkpointLocation", log_address(config.checkpoint)
        )
        if config.until == "exhausted":
            return made.trigger(availableNow=True)
        return made.trigger(processingTime=config.trigger or "0 seconds")

    return writer
