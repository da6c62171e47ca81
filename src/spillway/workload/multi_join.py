"""Random multi-join queries, as in the dissertation's experiments (3.4.1): connected acyclic join graphs.

A relation has 1,000 to 100,000 rows of about 40 bytes: a key column for each edge, an `id` and a payload. An
edge's keys are uniform over a domain that is drawn around the larger side's number of rows, so that joins
grow and shrink; domains are then scaled until the expected result is what was drawn from `result_rows`. The
relations are numbered as a user might write them: each joins one before it, otherwise in no particular order.
As there, the data of a query is at most 600 MB, intermediate results in the written order included: graphs
with larger ones are drawn again. So are graphs with a join of which hardly a row is expected, because the
result would be empty; each time the domains move nearer to the number of rows. Known limit: some queries of
16 relations, and most of 24 and 32, still have an empty result.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spillway.errors import SourceError

ROWS = (1_000, 100_000)
RESULT_ROWS = (10_000, 300_000)
LARGEST_BYTES = 600e6
"""Limit of an intermediate result in the order in which the query is written."""
LEAST_ROWS = 20.0
"""Least rows of any intermediate result when each join is the one that leaves the fewest rows."""
WIDTH_BYTES = 40
SAME_KEY_SHARE = 0.25
"""The share of relations that join on a column of their neighbour that is already in use."""
SPREAD = 16.0
"""A domain is at most this factor smaller or larger than the row count of the larger side."""
_MOST_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class GeneratedRelation:
    name: str
    rows: int
    keys: tuple[int, ...]
    """Numbers of the key domains that it has a column for: column `k3` holds keys of domain 3."""


@dataclass(frozen=True, slots=True)
class MultiJoin:
    """A query: relations, the domain of each key, and which relation joins which before it on which key."""

    relations: tuple[GeneratedRelation, ...]
    domains: tuple[int, ...]
    edges: tuple[tuple[int, int, int], ...]
    """Earlier relation, later relation, key."""
    seed: int
    skew: float = 0.0
    null_share: float = 0.0

    @property
    def sql(self) -> str:
        """The view: all joins, and all columns but the keys of later relations."""
        items = [
            f"{relation.name}.id AS {relation.name}_id, {relation.name}.p AS {relation.name}_p"
            for relation in self.relations
        ]
        text = f"SELECT {', '.join(items)} FROM {self.relations[0].name}"
        for left, right, key in self.edges:
            names = self.relations[left].name, self.relations[right].name
            text += f" JOIN {names[1]} ON {names[0]}.k{key} = {names[1]}.k{key}"
        return text

    def table(self, index: int) -> pa.Table:
        """The rows of one relation."""
        relation = self.relations[index]
        random = np.random.default_rng((self.seed, index))
        columns: dict[str, pa.Array] = {}
        for key in relation.keys:
            values = _keys(random, relation.rows, self.domains[key], self.skew)
            empty = random.random(relation.rows) < self.null_share if self.null_share else None
            columns[f"k{key}"] = pa.array(values, mask=empty)
        columns["id"] = pa.array(np.arange(relation.rows, dtype=np.int64))
        width = max(4, WIDTH_BYTES - 8 * len(columns))
        letters = random.integers(97, 123, size=relation.rows * width, dtype=np.uint8).tobytes()
        offsets = np.arange(0, relation.rows * width + 1, width, dtype=np.int32)
        columns["p"] = pa.StringArray.from_buffers(
            relation.rows, pa.py_buffer(offsets), pa.py_buffer(letters)
        )
        return pa.table(columns)

    def write(self, directory: Path, files: int = 1) -> None:
        """Each relation in `files` Parquet files: directory/NAME/part-0.parquet and so on."""
        for index, relation in enumerate(self.relations):
            target = directory / relation.name
            target.mkdir(parents=True)
            table = self.table(index)
            size = -(-table.num_rows // files)
            for number in range(files):
                pq.write_table(table.slice(number * size, size), target / f"part-{number}.parquet")


def generate_query(
    relations: int,
    seed: int,
    *,
    rows: tuple[int, int] = ROWS,
    result_rows: tuple[int, int] = RESULT_ROWS,
    skew: float = 0.0,
    null_share: float = 0.0,
) -> MultiJoin:
    """The query of this seed."""
    if relations < 2:
        raise SourceError(f"workload: a join of {relations} relations: use 2 or more")
    for attempt in range(_MOST_ATTEMPTS):
        spread = SPREAD ** (1 - attempt / _MOST_ATTEMPTS)
        made = _draw(relations, (seed, relations, attempt), rows, result_rows, spread)
        if _largest_bytes(made) <= LARGEST_BYTES * rows[1] / ROWS[1] and _smallest_rows(made) >= LEAST_ROWS:
            break
    return replace(made, seed=seed, skew=skew, null_share=null_share)


def _draw(
    relations: int,
    seed: tuple[int, ...],
    rows: tuple[int, int],
    results: tuple[int, int],
    spread: float,
) -> MultiJoin:
    random = np.random.default_rng(seed)
    sizes = np.exp(random.uniform(np.log(rows[0]), np.log(rows[1]), size=relations)).astype(int)
    keys: list[list[int]] = [[] for _ in range(relations)]
    edges: list[tuple[int, int, int]] = []
    domains: list[float] = []
    for right in range(1, relations):
        left = int(random.integers(right))
        if keys[left] and random.random() < SAME_KEY_SHARE:
            key = int(random.choice(keys[left]))
        else:
            key = len(domains)
            domains.append(max(sizes[left], sizes[right]) * spread ** random.uniform(-1, 1))
            keys[left].append(key)
        keys[right].append(key)
        edges.append((left, right, key))
    expected = float(np.sum(np.log(sizes)) - sum(np.log(domains[key]) for _, _, key in edges))
    wanted = float(random.uniform(np.log(results[0]), np.log(results[1])))
    factor = float(np.exp((expected - wanted) / len(edges)))
    made = tuple(
        GeneratedRelation(f"r{index}", int(size), tuple(keys[index])) for index, size in enumerate(sizes)
    )
    return MultiJoin(made, tuple(max(1, round(domain * factor)) for domain in domains), tuple(edges), 0)


def _largest_bytes(query: MultiJoin) -> float:
    """The largest expected intermediate result in the order of the view's text."""
    rows = largest = float(query.relations[0].rows)
    for _, right, key in query.edges:
        rows *= query.relations[right].rows / query.domains[key]
        largest = max(largest, rows * (right + 1) * WIDTH_BYTES)
    return largest


def _smallest_rows(query: MultiJoin) -> float:
    """The smallest expected intermediate result, greedily: two parts of an acyclic graph have one edge."""
    part = list(range(len(query.relations)))
    rows = {index: float(relation.rows) for index, relation in enumerate(query.relations)}
    smallest, waiting = min(rows.values()), list(query.edges)
    while waiting:
        joined = [rows[part[left]] * rows[part[right]] / query.domains[key] for left, right, key in waiting]
        number = int(np.argmin(joined))
        left, right, _ = waiting.pop(number)
        kept, gone = part[left], part[right]
        rows[kept] = joined[number]
        part = [kept if index == gone else index for index in part]
        smallest = min(smallest, rows[kept])
    return smallest


def _keys(random: np.random.Generator, rows: int, domain: int, skew: float) -> np.ndarray:
    """Uniform keys; with `skew` above zero, small keys are more frequent."""
    return (domain * random.random(rows) ** (1.0 + skew)).astype(np.int64)
