"""Options as text: what they mean, and that every fault names the option on one line."""

from fractions import Fraction

import pytest

from spillway.errors import SourceError
from spillway.workload.options import DEFAULT_ROWS_PER_TASK, parse_options
from spillway.workload.workload import Alternation, PartitionClass


def test_all_options() -> None:
    parsed = parse_options(
        {
            "STREAM": "a", "rows": "100", "rowspertrigger": "10", "tupleRange": "30000",
            "joinRatio": "4:1/3, 2:1/3, 1:1/3:45000", "partitions": "30", "rate": "2000",
            "alternate": "300s/600s:10", "width": "7", "plainKeys": "true", "seed": "9",
            "paced": "true", "rowsPerTask": "50",
        }
    )  # fmt: skip
    workload = parsed.workload
    assert (parsed.stream, parsed.rows, parsed.rows_per_trigger) == ("a", 100, 10)
    assert (parsed.rows_per_task, parsed.paced) == (50, True)
    third = Fraction(1, 3)
    assert workload.classes == (
        PartitionClass(4, third),
        PartitionClass(2, third),
        PartitionClass(1, third, 45_000),
    )
    assert workload.alternation == Alternation(600, 10, 300)
    assert (workload.partitions, workload.width_bytes, workload.seed, workload.plain_keys) == (30, 7, 9, True)


def test_defaults() -> None:
    parsed = parse_options({"stream": "a", "rows": "5"})
    assert parsed.rows_per_trigger is None and not parsed.paced
    assert parsed.rows_per_task == DEFAULT_ROWS_PER_TASK
    assert parse_options({"stream": "a", "rows": "5", "joinRatio": "3"}).workload == parsed.workload


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rows": "1"}, "stream is missing"),
        ({"stream": "a"}, "no end"),
        ({"stream": "a", "rows": "x"}, "rows = 'x'"),
        ({"stream": "a", "rows": "-1"}, "rows = '-1'"),
        ({"stream": "a", "rows": "1", "rowPerTrigger": "3"}, "unknown option 'rowPerTrigger'"),
        ({"stream": "a", "rows": "1", "rowsPerTrigger": "0"}, "use 1 or more"),
        ({"stream": "a", "rows": "1", "path": "d"}, "takes no path"),
        ({"stream": "a", "rows": "1", "rate": "0"}, "rate"),
        ({"stream": "a", "rows": "1", "rate": "nan"}, "rate"),
        ({"stream": "a", "rows": "1", "joinRatio": "4:1/3,2:1/3"}, "add up to 1"),
        ({"stream": "a", "rows": "1", "joinRatio": "4:1/0"}, "share"),
        ({"stream": "a", "rows": "1", "joinRatio": "0.5"}, "join ratio"),
        ({"stream": "a", "rows": "1", "joinRatio": "4:1:2:3"}, "ratio:share"),
        ({"stream": "a", "rows": "1", "tupleRange": "100"}, "too small"),
        ({"stream": "a", "rows": "1", "alternate": "300s"}, "period:factor"),
        ({"stream": "a", "rows": "1", "alternate": "1s:10"}, "lengthen"),
        ({"stream": "a", "rows": "1", "alternate": "300s:10", "partitions": "3"}, "even"),
        ({"stream": "a", "rows": "1", "paced": "yes"}, "true or false"),
        ({"stream": "a", "rows": "1", "width": "70000"}, "width"),
    ],
)
def test_faults_name_the_option(options: dict[str, str], said: str) -> None:
    with pytest.raises(SourceError, match=said) as caught:
        parse_options(options)
    assert "\n" not in str(caught.value)
