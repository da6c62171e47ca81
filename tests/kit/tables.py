"""Random tables of two columns, x and y, and what others do to them; and bags of rows with their changes."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from hypothesis import strategies as st

from spillway.maintain.reference import Bag


def random_rows(chance: random.Random, count: int) -> pa.Table:
    values = [[chance.choice([None, 0, 1, 2]) for _ in range(count)] for _ in range(2)]
    return pa.table({"x": pa.array(values[0], pa.int64()), "y": pa.array(values[1], pa.int64())})


def change_delta(path: Path, chance: random.Random) -> None:
    """A new version: rows more, rows less, other rows, or the same rows in other files."""
    changes: list[Callable[[], object]] = [
        lambda: write_deltalake(path, random_rows(chance, 3), mode="append"),
        lambda: DeltaTable(path).delete(f"x = {chance.randrange(3)}"),
        lambda: write_deltalake(path, random_rows(chance, 6), mode="overwrite"),
        lambda: DeltaTable(path).optimize.compact(),
    ]
    chance.choice([changes[0], *changes])()


@st.composite
def changes(draw: st.DrawFn, state: Bag, rows: st.SearchStrategy[object], most: int = 3) -> Bag:
    """Inserts of any rows and deletes of rows that are there; an update is both."""
    delta: Bag = Counter(draw(st.lists(rows, max_size=most)))
    there = sorted(state.elements(), key=repr)
    if there:
        for place in draw(st.lists(st.integers(0, len(there) - 1), max_size=most, unique=True)):
            delta[there[place]] -= 1
    return Counter({row: weight for row, weight in delta.items() if weight})


def plus(state: Bag, delta: Bag) -> Bag:
    return Counter({row: state[row] + delta[row] for row in {*state, *delta} if state[row] + delta[row]})
