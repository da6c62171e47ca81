"""What one attempt of a step is to do, and the names of the files that it may create.

Invariant: an attempt only creates files under names of its own and changes nothing that exists, so a step may
be run any number of times; only the attempt whose report is committed counts.
"""

from dataclasses import dataclass

from spillway.state.orders import Orders
from spillway.state.step.operator import Operator
from spillway.state.storage import Storage


@dataclass(frozen=True, slots=True)
class TaskAttempt:
    """One attempt of a task, and where it runs; `id` makes its file names its own."""

    host: str
    executor: str
    id: str


class Task:
    """The orders for one operator on one processor, as one attempt carries them out."""

    def __init__(self, orders: Orders, operator: Operator, attempt: TaskAttempt) -> None:
        self.orders = orders
        self.operator = operator
        self.attempt = attempt
        self.storage = Storage(orders.state)

    def file_name(self, suffix: str) -> str:
        """A name that no other attempt of this or any other step uses."""
        return f"{self.orders.sequence:012d}-{self.orders.processor:04d}-{self.attempt.id}-{suffix}"
