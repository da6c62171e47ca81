"""Joins a sink to the engine: one knows file names and numbers, the other wants staged epochs."""

from dataclasses import dataclass

from spillway.manager.engine import Files
from spillway.spark.sinks.sink import ResultFile, Sink, StagedEpoch


@dataclass(frozen=True, slots=True)
class SinkCommitter:
    sink: Sink
    query_id: str

    @property
    def staging(self) -> str | None:
        return self.sink.staging

    def last_committed(self, query_id: str) -> int:
        return self.sink.last_committed(query_id)

    def commit_files(self, sequence: int, files: Files) -> None:
        staged = tuple(ResultFile(name, rows, size) for name, rows, size in files)
        self.sink.commit(StagedEpoch(sequence, self.query_id, staged, sum(file.rows for file in staged)))
