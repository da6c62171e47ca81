"""What one row costs in each phase of a partitioned hash join (dissertation, 2.4.2), in seconds.

`spillway calibrate` measures these costs on a machine. The defaults are guesses of the right order of
magnitude: without calibration, estimates can compare trees but do not predict seconds.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from spillway.errors import JobError


@dataclass(frozen=True, slots=True)
class UnitCosts:
    read: float = 2.0e-7
    """Reading a row from its source."""
    partition: float = 2.5e-7
    """Finding a row's partition."""
    network: float = 6.0e-9
    """Moving one byte between processors."""
    build: float = 3.0e-7
    """Inserting a row into a hash table."""
    probe: float = 1.5e-7
    """Looking a row up in one hash table."""
    keep: float = 5.0e-9
    """Keeping one byte of a segment's result for a later segment."""
    setup: float = 0.12
    """Starting and ending a segment, which is a job of its own."""
    launch: float = 0.02
    """Starting the build of one hash table."""
    contention: float = 0.05
    """f(k) = 1 + contention * (k - 1): how much longer k processors take to move rows together."""

    def contention_factor(self, processors: int) -> float:
        return 1.0 + self.contention * (processors - 1)

    def to_json(self) -> dict[str, float]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Any, where: str) -> UnitCosts:
        """Stored costs; anything but positive numbers with known names is refused."""
        names = {field.name for field in fields(cls)}
        if not isinstance(values, dict) or set(values) != names:
            raise JobError(f"{where} does not hold unit costs; run spillway calibrate again")
        if not all(isinstance(value, float | int) and 0 <= value < 1e6 for value in values.values()):
            raise JobError(f"{where} holds a unit cost that is not a positive number; run spillway calibrate")
        return cls(**{name: float(value) for name, value in values.items()})


COLUMNAR = UnitCosts(
    read=1.2e-7,
    partition=0.0,
    network=0.0,
    build=1.0e-7,
    probe=5.5e-8,
    keep=4e-9,
    setup=0.15,
    launch=1e-3,
    contention=0.0,
)
"""For tasks that join columns; fitted to 105 trees for queries of `bench compute` with 8 to 16 relations
(15 % off on average). `setup` is the Spark job, and `keep` handing a byte of the result to Spark."""
