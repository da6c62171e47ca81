"""What the manifest knows of each group: its generations, and the statistics of the current one.

A generation is complete in itself: every result that its rows alone can give was produced. `ended` holds the
last epoch of each generation that was spilled, ascending; the current generation follows them. Statistics
count only the current generation, so that a freshly begun one is not judged by what went to disk.
"""

from typing import NamedTuple


class GroupState(NamedTuple):
    """A tuple, because each epoch makes new ones for all groups: half the time of a frozen dataclass."""

    ended: tuple[int, ...] = ()
    rows: int = 0
    bytes: int = 0
    results: int = 0
    born_epoch: int = 0
    """The first epoch of the current generation."""
    active_epoch: int = -1
    """The last epoch in which rows came."""
    spilled_bytes: int = 0
    """Of all generations that were spilled."""
    spilled_results: int = 0
    spilled_rows: int = 0
    """Not less than there are: rows that expire on disk are not counted one by one."""
    unsaid_rows: int = 0
    """Those of them that were only written, and joined with nothing."""
    outputs: int = 0
    """In a tree: results of the view that came through the group, while this generation was there."""
    inter_rows: int = 0
    """In a tree: rows that came from it and that joins above keep."""
    inter_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        return self.bytes + self.spilled_bytes

    @property
    def reward(self) -> float:
        """Results per byte over all generations: what its clean-up can be expected to give."""
        return (self.results + self.spilled_results) / max(1, self.total_bytes)

    @property
    def is_split(self) -> bool:
        """Whether results are missing: it has several generations, or rows that were only written."""
        return self.unsaid_rows > 0 or len(self.ended) + (self.rows > 0) > 1

    def grown(self, epoch: int, rows: int, size: int, results: int) -> "GroupState":
        return self._replace(
            rows=self.rows + rows,
            bytes=self.bytes + size,
            results=self.results + results,
            active_epoch=epoch if rows else self.active_epoch,
        )

    def collected(self, rows: int, size: int) -> "GroupState":
        """The group after rows were only written."""
        return self._replace(
            spilled_bytes=self.spilled_bytes + size,
            spilled_rows=self.spilled_rows + rows,
            unsaid_rows=self.unsaid_rows + rows,
        )

    def traced(self, outputs: int, inter_rows: int, inter_bytes: int) -> "GroupState":
        """The group after it took part in results of the view, and in rows that joins above keep."""
        return self._replace(
            outputs=self.outputs + outputs,
            inter_rows=self.inter_rows + inter_rows,
            inter_bytes=self.inter_bytes + inter_bytes,
        )

    def shrunk(self, rows: int, size: int) -> "GroupState":
        """The group after rows of its current generation expired."""
        return self._replace(rows=max(0, self.rows - rows), bytes=max(0, self.bytes - size))

    def with_share_spilled(self, share: float) -> "GroupState":
        """The group after about this share is left of what it had on disk."""
        return self._replace(spilled_bytes=int(self.spilled_bytes * share))

    def without_spilled(self) -> "GroupState":
        """The group after all that it had on disk expired."""
        return self._replace(ended=(), spilled_bytes=0, spilled_results=0, spilled_rows=0)

    def spilled(self, epoch: int) -> "GroupState":
        """The group after its current generation ended just before `epoch`."""
        return GroupState(
            ended=(*self.ended, epoch - 1),
            born_epoch=epoch,
            active_epoch=self.active_epoch,
            spilled_bytes=self.spilled_bytes + self.bytes,
            spilled_results=self.spilled_results + self.results,
            spilled_rows=self.spilled_rows + self.rows,
            unsaid_rows=self.unsaid_rows,
        )

    def cleaned(self, epoch: int) -> "GroupState":
        """The group after its clean-up in `epoch`: all its rows are one generation, on disk."""
        return GroupState(
            ended=(epoch,),
            born_epoch=epoch + 1,
            active_epoch=self.active_epoch,
            spilled_bytes=self.spilled_bytes + self.bytes,
            spilled_results=self.spilled_results + self.results,
            spilled_rows=self.spilled_rows + self.rows,
        )

    def restored(self, epoch: int) -> "GroupState":
        """The group after its clean-up in `epoch`: all its rows are one generation, in memory."""
        return GroupState(
            rows=self.rows + self.spilled_rows,
            bytes=self.total_bytes,
            results=self.results + self.spilled_results,
            born_epoch=epoch + 1,
            active_epoch=self.active_epoch,
            outputs=self.outputs,
            inter_rows=self.inter_rows,
            inter_bytes=self.inter_bytes,
        )
