"""Expected rows of joins, from the rows and the distinct keys of the inputs.

Rows multiply, and each class of equal terms lets one in `distinct` of the pairs pass, by the side that has
more values: the values of the other side are taken to be among them. An input whose number of values is not
known has as many as the best known of its class.

Where two inputs share several classes, their columns belong together (TPC-H's `partsupp` and `lineitem`):
there are at most as many pairs of values as the smaller of both has rows, not as many as the product says.
If a side has the columns from different inputs, they are independent.

Inputs are numbered, sets of them are bit masks. Known limit: skew is not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spillway.plan.rules.input_statistics import InputStatistics

RESIDUAL_SHARE = 1 / 3
"""The share of rows that a residual predicate is taken to let pass."""


class JoinSizes:
    """Sizes over one view; each set is estimated once."""

    def __init__(
        self,
        inputs: Sequence[InputStatistics],
        classes: Sequence[frozenset[int]],
        residuals: Sequence[int] = (),
    ) -> None:
        """`classes` are those that each input has terms of; `residuals` the inputs that each predicate
        reads."""
        self._rows = [max(input_.rows, 1.0) for input_ in inputs]
        self._all_rows = [max(input_.all_rows, input_.rows, 1.0) for input_ in inputs]
        self._classes = classes
        self._distinct = _distinct(inputs, classes, self._all_rows)
        self._residuals = residuals
        self._known: dict[int, float] = {}
        self._values_of: dict[tuple[int, int], float] = {}
        self._classes_of: dict[int, frozenset[int]] = {}

    def rows(self, mask: int) -> float:
        """Results of a join of the inputs in `mask`, which are connected; the same for every order."""
        found = self._known.get(mask)
        if found is None:
            found = self._known[mask] = self._estimate(mask)
        return found

    def candidates(self, parts: Sequence[int], shared: frozenset[int]) -> float:
        """Combinations of rows of joined sets that agree in the classes that all of them share."""
        found, reached = self.rows(parts[0]), parts[0]
        for part in parts[1:]:
            found *= self.rows(part) * self._share(shared, reached, part)
            reached |= part
        return max(found, self.rows(reached))

    def classes(self, mask: int) -> frozenset[int]:
        found = self._classes_of.get(mask)
        if found is None:
            every = (self._classes[member] for member in members(mask))
            found = self._classes_of[mask] = frozenset().union(*every)
        return found

    def _estimate(self, mask: int) -> float:
        waiting = members(mask)
        first = waiting.pop(0)
        rows, reached, classes = self._rows[first], 1 << first, self._classes[first]
        while waiting:
            added = next(member for member in waiting if self._classes[member] & classes)
            waiting.remove(added)
            share = self._share(self._classes[added] & classes, reached, 1 << added)
            rows *= self._rows[added] * share
            reached, classes = reached | 1 << added, classes | self._classes[added]
        return rows * RESIDUAL_SHARE ** sum(needed & mask == needed for needed in self._residuals)

    def _share(self, classes: frozenset[int], left: int, right: int) -> float:
        """The share of the pairs of two sets that agree in these classes."""
        widest = [max(self._values(key_class, side) for side in (left, right)) for key_class in classes]
        pairs = [self._pairs(classes, side) for side in (left, right)]
        together = prod(widest)
        if len(widest) > 1 and None not in pairs:
            together = min(together, max(*widest, min(known for known in pairs if known is not None)))
        return 1 / together

    def _values(self, key_class: int, mask: int) -> float:
        found = self._values_of.get((key_class, mask))
        if found is None:
            having = (member for member in members(mask) if key_class in self._classes[member])
            found = min(self._distinct[member][key_class] for member in having)
            self._values_of[key_class, mask] = found
        return found

    def _pairs(self, classes: frozenset[int], mask: int) -> float | None:
        """Combinations of values in inputs that have all of the classes; None if no input has."""
        whole = [member for member in members(mask) if classes <= self._classes[member]]
        known = [
            min(prod(self._distinct[member][key_class] for key_class in classes), self._all_rows[member])
            for member in whole
        ]
        return min(known, default=None)


def members(mask: int) -> list[int]:
    """The inputs of a set, in order."""
    return [number for number in range(mask.bit_length()) if mask >> number & 1]


def _distinct(
    inputs: Sequence[InputStatistics], classes: Sequence[frozenset[int]], all_rows: Sequence[float]
) -> list[dict[int, float]]:
    """Per input and class; where nothing of a class is known, its smallest input is taken to have each value
    once."""
    found: list[dict[int, float]] = [{} for _ in inputs]
    for key_class in frozenset().union(*classes):
        having = [number for number, of_input in enumerate(classes) if key_class in of_input]
        known = [inputs[number].distinct.get(key_class) for number in having]
        usual = max(
            (value for value in known if value is not None),
            default=min(all_rows[number] for number in having),
        )
        for number, value in zip(having, known, strict=True):
            found[number][key_class] = max(1.0, min(usual if value is None else value, all_rows[number]))
    return found
