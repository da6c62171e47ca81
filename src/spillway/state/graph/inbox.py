"""What one task of an epoch receives: parcels in any order, handed out operator by operator.

Rows of the operator that runs first stream through. Those of others, and all that come before the
processor's own message where that is needed first, wait in a spool.

Invariant: a task that ends normally has read exactly the parcels that were sent to it. (To a Python task, a
shuffle file that cannot be fetched looks like the end of its input.)
"""

from collections.abc import Iterator

import pyarrow as pa

from spillway.errors import StateError
from spillway.state.graph.level_message import LevelMessage
from spillway.state.graph.parcel import NO_OPERATOR, Parcel, decode_parcel, encoded_rows
from spillway.state.graph.spool import Spool


class OverflowedEpochError(Exception):
    """A task had more to send than its quota; the epoch has to be run again with a larger one."""


class Inbox:
    def __init__(self, frames: Iterator[bytes], expected: int, processor: int, spool_bytes: int) -> None:
        """`frames` are parcels and padding; `expected` is the number of parcels."""
        self._frames = frames
        self._expected = expected
        self._processor = processor
        self._spool_bytes = spool_bytes
        self._held: dict[int, Spool] = {}
        self._count = 0
        self._own: LevelMessage | None = None
        self.arrived = 0
        """Rows of the view's inputs so far."""
        self.seen: set[tuple[int, int, str]] = set()
        """Stages, tasks and attempts of all parcels so far."""

    def own_message(self) -> LevelMessage:
        """What this processor told itself in the stage before."""
        while self._own is None and (parcel := self._next()) is not None:
            self._hold(parcel)
        return self._own or LevelMessage()

    def rows_of(self, operator: int) -> Iterator[pa.RecordBatch]:
        """The rows of one operator; ask for each operator once."""
        while True:
            parcel = self._next_of(operator)
            if parcel is None:
                return
            yield from parcel.batches()
            del parcel  # before the next one is there

    def put(self, operator: int, batch: pa.RecordBatch) -> None:
        """Rows from an operator of this task for another one here, whose turn comes later."""
        parcel = Parcel(0, self._processor, "", operator, rows=encoded_rows([batch]))
        self._spool(operator).append(parcel.encoded())

    def finish(self) -> None:
        """Read what is left; no rows may be."""
        while (parcel := self._next()) is not None:
            self._hold(parcel)
        if any(self._held.values()):
            raise StateError("rows of an epoch came that no operator has read; this is a bug of Spillway")
        if self._count != self._expected:
            raise StateError(
                f"processor {self._processor} got {self._count} of {self._expected} parcels; Spark runs its "
                "task again"
            )

    def skip(self) -> None:
        """Read everything and forget it."""
        for _ in self._frames:
            pass

    def _next_of(self, operator: int) -> Parcel | None:
        spool = self._spool(operator)
        if (data := spool.pop()) is not None:
            return decode_parcel(data)
        while (parcel := self._next()) is not None:
            if parcel.operator == operator:
                return parcel
            self._hold(parcel)
        return None

    def _next(self) -> Parcel | None:
        for data in self._frames:
            if not data:
                continue
            parcel = decode_parcel(data)
            self._count += 1
            self.seen.add((parcel.stage, parcel.writer, parcel.attempt))
            self.arrived += parcel.arrived
            if parcel.overflowed:
                raise OverflowedEpochError
            if parcel.message:
                self._own = LevelMessage.read(parcel.message)
            return parcel
        return None

    def _hold(self, parcel: Parcel) -> None:
        if parcel.operator != NO_OPERATOR and parcel.rows is not None:
            self._spool(parcel.operator).append(parcel.encoded())

    def _spool(self, operator: int) -> Spool:
        return self._held.setdefault(operator, Spool(self._spool_bytes))
