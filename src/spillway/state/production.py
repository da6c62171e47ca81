"""Produces the results that driving rows give, at run time and in clean-up, up to the cap of an epoch."""

from collections.abc import Callable
from dataclasses import dataclass, field

from spillway.state.operator import JoinOperator
from spillway.state.orders import Limits
from spillway.state.probe import chunk, probe
from spillway.state.results import Writer, write_chunk
from spillway.state.segment import Segment


@dataclass(slots=True)
class Production:
    operator: JoinOperator
    writer: Writer
    limits: Limits
    sample: Callable[[], None]
    """Called at moments of much memory."""
    results_left: int = field(init=False)

    def __post_init__(self) -> None:
        self.results_left = self.limits.results

    def block(
        self, driver: int, block: Segment, others: list[list[Segment]], emitted: int
    ) -> tuple[int, int]:
        """Write what a block of rows of one input gives with the rows of the others.

        `emitted` results of its first row are out already. Returns the rows done, and the results that are
        out of the next.
        """
        operator, limits = self.operator, self.limits
        found = probe(block, driver, others, operator.groups, operator.key_columns, limits.gather_rows)
        stop = min(found.total, emitted + self.results_left)
        for low in range(emitted, stop, limits.chunk_rows):
            write_chunk(self.writer, operator, chunk(found, low, min(stop, low + limits.chunk_rows)))
            self.sample()
        self.results_left -= max(0, stop - emitted)
        return found.position(stop)
