"""Result files under a small budget: several of them, none with more row groups than memory allows."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spillway.errors import SinkError
from spillway.plan.expression.nodes import ColumnRef
from spillway.state.join.operator import JoinOperator
from spillway.state.orders.orders import NO_BOUND
from spillway.state.step.operator import WireInput
from spillway.state.step.result_files import LEAST_ROW_GROUPS
from spillway.state.step.results import ONLY_RESULT, ResultWriter

SCHEMA = pa.schema([("id", pa.int64())])
OPERATOR = JoinOperator(
    inputs=(WireInput("a", ("id",), ("s0",)), WireInput("b", ("id",), ("s0",))),
    outputs=(ColumnRef(0, 0),),
    residual=None,
    key_columns=((), ()),
    groups=4,
    result_schema=SCHEMA,
)


@pytest.mark.parametrize(("chunk_bytes", "files"), [(1, 3), (NO_BOUND, 1)])
def test_a_file_ends_before_what_parquet_notes_of_it_is_too_much(
    tmp_path: Path, chunk_bytes: int, files: int
) -> None:
    writer = ResultWriter(OPERATOR, str(tmp_path), "out", "snappy", {}, chunk_bytes)
    chunks = LEAST_ROW_GROUPS * 2 + 1
    for number in range(chunks):
        ids = pa.array(np.arange(10) + 10 * number)
        writer.write_rows(np.zeros(10, dtype=np.int64), OPERATOR.outputs, lambda _, ids=ids: ids)  # type: ignore[misc]
    written = writer.close()[ONLY_RESULT]
    assert len(written) == files
    found = [pq.ParquetFile(tmp_path / name) for name, _, _ in written]
    assert max(file.num_row_groups for file in found) == (LEAST_ROW_GROUPS if files > 1 else chunks)
    assert [file.metadata.num_rows for file in found] == [rows for _, rows, _ in written]
    assert [(tmp_path / name).stat().st_size for name, _, _ in written] == [size for _, _, size in written]
    ids = sorted(value for file in found for value in file.read()["id"].to_pylist())
    assert ids == list(range(10 * chunks))
    assert writer.rows == 10 * chunks


def test_a_sink_that_cannot_be_created_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    writer = ResultWriter(OPERATOR, str(tmp_path / "file"), "out", "snappy", {})
    with pytest.raises(
        SinkError, match=r"cannot write results of the sink to \S+/file/out: .*; correct that"
    ) as told:
        writer.write_rows(np.zeros(1, dtype=np.int64), OPERATOR.outputs, lambda _: pa.array([1]))
    assert str(told.value).count("file/out") == 1
