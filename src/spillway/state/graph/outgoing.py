"""What one task of an epoch sends: rows packed into parcels, the same number of them for every target.

The number is fixed before the task starts (`Quota`), because Spark pairs the parcels of a shuffle one by one
with others, and because a reader must notice when some are missing. A task that has more to send than fits
says so in its parcels; then the epoch is run again with a larger quota. Empty parcels cost little.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from spillway.state.graph.parcel import NO_OPERATOR, Parcel, encoded_rows
from spillway.state.graph.spool import Spool


@dataclass(frozen=True, slots=True)
class Quota:
    """How much each task of a stage sends to each target."""

    parcels: int
    parcel_bytes: int
    """A parcel is sealed when its rows take this much."""
    padding: Mapping[int, int] = field(default_factory=dict)
    """Per target, empty frames that the first task sends besides, so that all counts agree."""


@dataclass(slots=True)
class _Waiting:
    """Rows for one operator at one target that are not yet sealed."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    size: int = 0
    arrived: int = 0


class Outgoing:
    """Packs rows as they come. `sealed` gives what can be sent at once, `rest` everything else at the end."""

    def __init__(
        self,
        stage: int,
        writer: int,
        attempt: str,
        quota: Quota,
        targets: Mapping[int, Sequence[int]],
        spool_bytes: int,
    ) -> None:
        """`targets` says which operators a target has. Sealed parcels that nobody asks for (`sealed`) wait;
        more than `spool_bytes` for one target wait on disk."""
        self._head = Parcel(stage, writer, attempt)
        self._quota = quota
        self._targets = targets
        self._waiting: dict[tuple[int, int], _Waiting] = {}
        self._counts = dict.fromkeys(targets, 0)
        self._sealed = {target: Spool(spool_bytes) for target in targets}
        self._overflowed = False

    def write(self, target: int, operator: int, batch: pa.RecordBatch, arrived: int = 0) -> None:
        """Rows for an operator; a parcel that is full is sealed, so a batch may be cut."""
        row_bytes = -(-batch.nbytes // max(1, batch.num_rows))
        while batch.num_rows and not self._overflowed:
            waiting = self._waiting.setdefault((target, operator), _Waiting())
            room = max(0, self._quota.parcel_bytes - waiting.size) // max(1, row_bytes)
            if waiting.batches and (not room or waiting.batches[0].schema != batch.schema):
                self._seal(target, operator)
                continue
            piece = batch.slice(0, max(1, room))
            batch = batch.slice(piece.num_rows)
            waiting.batches.append(piece)
            waiting.size += piece.num_rows * row_bytes
            waiting.arrived += arrived
            arrived = 0  # counted with the first piece

    def sealed(self) -> Iterator[tuple[int, bytes]]:
        """Parcels that are ready, with their targets."""
        for target, spool in self._sealed.items():
            for data in spool.drain():
                yield target, data

    def packed(self, messages: Mapping[int, str]) -> dict[int, list[bytes]]:
        """Everything at once, by target, without empty parcels."""
        for target, operator in list(self._waiting):
            self._seal(target, operator)
        found = {target: list(spool.drain()) for target, spool in self._sealed.items()}
        for target, message in messages.items():
            found[target].append(self._with(operator=NO_OPERATOR, message=message).encoded())
        return found

    def overflow(self) -> None:
        """Nothing that was written counts."""
        self._overflowed = True
        self._waiting.clear()

    def rest(self, messages: Mapping[int, str]) -> Iterator[tuple[int, bytes]]:
        """What is left, `messages` included, and empty parcels up to the quota."""
        for target, operator in list(self._waiting):
            self._seal(target, operator)
        for target, spool in self._sealed.items():
            data: bytes | None
            for data in spool.drain():
                yield target, data
            last = self._with(operator=NO_OPERATOR, message=messages.get(target, ""))
            yield target, last.encoded()
            empty = self._with(operator=NO_OPERATOR).encoded()
            for _ in range(self._counts[target] + 1, self._quota.parcels):
                yield target, empty
            for _ in range(self._quota.padding.get(target, 0) if self._head.writer == 0 else 0):
                yield target, b""

    def _seal(self, target: int, operator: int) -> None:
        waiting = self._waiting.pop((target, operator))
        if self._counts[target] + 1 >= self._quota.parcels:  # the last one is for the message
            self._overflowed = True
        if self._overflowed:
            return
        self._counts[target] += 1
        parcel = self._with(operator=operator, arrived=waiting.arrived, rows=encoded_rows(waiting.batches))
        self._sealed[target].append(parcel.encoded())

    def _with(
        self, *, operator: int, arrived: int = 0, message: str = "", rows: pa.Buffer | None = None
    ) -> Parcel:
        head = self._head
        return Parcel(
            head.stage, head.writer, head.attempt, operator, arrived, self._overflowed, message, rows
        )
