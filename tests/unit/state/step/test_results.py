"""The writer of results: what it counts, what it writes, and what it says about the file."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spillway.errors import SinkError
from spillway.plan.expression.nodes import ColumnRef
from spillway.state.join.operator import JoinOperator
from spillway.state.rows.group import group_starts
from spillway.state.step.lineage import Lineage, LineageCounter
from spillway.state.step.operator import WireInput
from spillway.state.step.results import ResultWriter

GROUPS = 4
OPERATOR = JoinOperator(
    inputs=tuple(WireInput(name, ("id", "g"), ("s0", "s1")) for name in "ab"),
    outputs=(ColumnRef(0, 0), ColumnRef(1, 0)),
    residual=None,
    key_columns=((), ()),
    groups=GROUPS,
    result_schema=pa.schema([("a", pa.int64()), ("b", pa.int32())]),
    lineage=(Lineage(0, GROUPS, ColumnRef(0, 1)), Lineage(8, 3, ColumnRef(1, 1))),
)


def columns(ref: ColumnRef) -> pa.Array:
    values = {(0, 0): [1, 2, 3], (1, 0): [4, 5, 6], (0, 1): [0, 0, 3], (1, 1): [2, 1, 2]}
    return pa.array(values[ref.input, ref.column], pa.int64())


def writer(staging: str | None) -> ResultWriter:
    counters = {of.first: LineageCounter(of.groups) for of in OPERATOR.lineage}
    return ResultWriter(OPERATOR, staging, "r.parquet", "zstd", counters)


def test_rows_are_written_in_the_view_s_types_and_counted_by_group_and_lineage(tmp_path: Path) -> None:
    made = writer(str(tmp_path))
    hashes = group_starts(GROUPS)[np.array([1, 1, 3])]
    made.write_rows(hashes, OPERATOR.outputs, columns)
    made.write_rows(hashes, OPERATOR.outputs, columns)
    assert made.rows == 6
    assert made.group_results.tolist() == [0, 4, 0, 2]
    assert {join: counts.tolist() for join, counts in made.lineage_results.items()} == {
        0: [4, 0, 0, 2],
        8: [0, 2, 4],
    }
    file = tmp_path / "r.parquet"
    assert made.close() == {"": (("r.parquet", 6, file.stat().st_size),)}
    table = pq.read_table(file)
    assert table.schema.equals(OPERATOR.result_schema)
    assert table.to_pydict() == {"a": [1, 2, 3] * 2, "b": [4, 5, 6] * 2}
    group = pq.read_metadata(file).row_group(0).column(0)
    assert group.compression == "ZSTD" and group.statistics is None and not group.has_dictionary_page


def test_results_that_are_only_counted_make_no_file() -> None:
    made = writer(None)
    assert made.close() == {}
    made.write_rows(group_starts(GROUPS)[:3], OPERATOR.outputs, columns)
    assert made.close() == {"": (("r.parquet", 3, 0),)}
    assert made.group_results.tolist() == [1, 1, 1, 0]


def test_without_results_there_is_no_file(tmp_path: Path) -> None:
    assert writer(str(tmp_path)).close() == {}
    assert list(tmp_path.iterdir()) == []


def test_a_full_sink_is_named_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "r.parquet").symlink_to("/dev/full")
    made = writer(str(tmp_path))
    with pytest.raises(
        SinkError, match=f"results of the sink to {tmp_path}/r.parquet: No space left on .*; free"
    ):
        made.write_rows(group_starts(GROUPS)[np.array([1, 1, 3])], OPERATOR.outputs, columns)
        made.close()
