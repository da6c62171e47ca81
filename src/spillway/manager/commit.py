"""What the engine needs of a sink to commit an epoch."""

from typing import Protocol

from spillway.state.orders import Files


class ResultSink(Protocol):
    """The part of a sink that the engine needs."""

    @property
    def staging(self) -> str | None: ...

    def last_committed(self, query_id: str) -> int: ...

    def commit_files(self, sequence: int, files: Files) -> None: ...
