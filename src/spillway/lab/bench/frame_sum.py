"""The sum of a frame's rows in any order, as `lab.engines.result_sum` computes it in DuckDB."""

from pyspark.sql import DataFrame

from spillway.compute import quoted
from spillway.lab.engines import NULL, ResultSum


def frame_sum(frame: DataFrame) -> ResultSum:
    text = ", ".join(f"coalesce(cast({quoted(name)} AS string), '{NULL}')" for name in sorted(frame.columns))
    hashed = f"conv(substr(md5(concat_ws('|', {text})), 1, 15), 16, 10)"
    ((rows, total),) = frame.selectExpr("count(*)", f"sum(cast({hashed} AS decimal(38, 0)))").collect()
    return ResultSum(int(rows), f"{int(total or 0):x}")


class SummingWriter:
    """Takes the result of an execution and keeps only its sum."""

    def __init__(self) -> None:
        self.found: ResultSum | None = None

    def __call__(self, frame: DataFrame) -> None:
        self.found = frame_sum(frame)
