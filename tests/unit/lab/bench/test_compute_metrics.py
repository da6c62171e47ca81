"""The metrics of `bench compute` from made-up times, and its generator."""

from dataclasses import replace

import numpy as np
import pytest

from spillway.lab.bench.compute_claims import claims
from spillway.lab.bench.compute_metrics import (
    SQL_TREES,
    QueryRuns,
    ShortMemory,
    compute_metrics,
    noise,
    over_best,
    speed_ratio,
)
from spillway.workload.multi_join import LARGEST_BYTES, RESULT_ROWS, ROWS, WIDTH_BYTES, generate_query


def runs(relations: int, **seconds: float) -> QueryRuns:
    named = {name.replace("_", "-"): value for name, value in seconds.items()}
    return QueryRuns(relations, 0, named, {"chosen": 5, "duckdb": 5}, 0.1, 2.0, (1.0, 2.0, 8.0), "greedy")


def test_ratios_are_peers_over_chosen() -> None:
    both = [runs(8, chosen=1.0, spark_as_written=4.0), runs(8, chosen=2.0, spark_as_written=2.0)]
    metrics = compute_metrics(both)
    assert metrics["ratio_spark_as_written"] == 2.0  # the geometric mean of 4 and 1
    assert metrics["total_ratio_spark_as_written"] == 2.0
    assert metrics["ratio_spark_as_written_with_statistics"] == 0.8165  # of 4 over 3 and 2 over 4
    assert metrics["ratio_spark_cbo"] is None
    assert metrics["q_error_median"] == 2.0
    assert metrics["by_relations"]["8"]["queries"] == 2


def test_what_did_not_finish_is_counted_and_in_no_ratio() -> None:
    failed = QueryRuns(8, 1, {"chosen": 1.0}, {"chosen": 5}, 0.1, 2.0, unfinished={"spark-cbo": "no memory"})
    metrics = compute_metrics([runs(8, chosen=1.0, spark_cbo=3.0), failed])
    assert metrics["unfinished"] == {"spark-cbo": 1}
    assert metrics["ratio_spark_cbo"] == 3.0
    assert compute_metrics([failed])["ratio_spark_cbo"] is None


def test_a_peer_that_was_stopped_counts_with_the_time_it_had() -> None:
    late = {"unfinished": {"spark-cbo": "stopped after 60 s"}, "stopped": {"spark-cbo": 60.0}}
    stopped = QueryRuns(8, 1, {"chosen": 2.0}, {"chosen": 5}, 0.1, 2.0, **late)
    metrics = compute_metrics([runs(8, chosen=1.0, spark_cbo=30.0), stopped])
    assert (metrics["ratio_spark_cbo"], metrics["total_ratio_spark_cbo"]) == (30.0, 30.0)
    assert (metrics["stopped"], metrics["lower_bounds"]) == ({"spark-cbo": 1}, ["ratio_spark_cbo"])
    assert compute_metrics([runs(8, chosen=1.0, spark_cbo=30.0)])["lower_bounds"] == []


def test_the_noise_of_one_tree_is_told() -> None:
    one = replace(runs(8, chosen=1.0), all_seconds={"chosen": (9.0, 1.0, 2.0, 1.0, 2.0)})
    assert noise(one) == 2.0
    assert compute_metrics([one])["same_tree_noise_max"] == 2.0
    assert noise(replace(one, all_seconds={"chosen": (9.0, 1.0, 2.0)})) is None


def test_the_best_tree_is_the_fastest_measured_without_planning() -> None:
    one = runs(8, chosen=1.6, right_deep=1.0, segmented_bushy=2.0, duckdb=0.1)
    assert over_best(one) == 1.5
    assert over_best(runs(8, chosen=1.6, right_deep=1.6)) == 1.0
    assert speed_ratio([one], "duckdb") == pytest.approx(0.0625, abs=1e-3)


def test_first_runs_have_their_own_ratio() -> None:
    one = replace(runs(8, chosen=1.0, spark_cbo=2.0), first_seconds={"chosen": 2.0, "spark-cbo": 10.0})
    metrics = compute_metrics([one])
    assert (metrics["ratio_spark_cbo"], metrics["first_ratio_spark_cbo"]) == (2.0, 5.0)


def test_trees_agree_by_their_rows_and_not_only_by_their_number() -> None:
    one = replace(runs(8, chosen=1.0), checksums={"chosen": "a", "duckdb": "a"})
    assert compute_metrics([one])["results_agree"] is True
    assert compute_metrics([replace(one, checksums={"chosen": "a", "duckdb": "b"})])["results_agree"] is False
    short = ShortMemory(100, 90, 4, 5, 2.0, "greedy", checksum="b")
    assert compute_metrics([replace(one, short_memory=short)])["results_agree"] is False
    same = replace(one, short_memory=replace(short, checksum="a"))
    assert compute_metrics([same])["results_agree"] is True


def test_short_memory_is_within_or_not() -> None:
    short = ShortMemory(100, 90, 4, 5, 2.0, "greedy")
    one = replace(runs(32, chosen=1.0), short_memory=short)
    metrics = compute_metrics([one, runs(32, chosen=1.0)])
    assert (metrics["short_memory_queries"], metrics["short_memory_within_budget"]) == (1, True)
    assert (metrics["short_memory_used_max"], metrics["results_agree"]) == (0.9, True)
    over = replace(one, short_memory=replace(short, table_bytes_peak=101, rows=4))
    metrics = compute_metrics([over])
    assert (metrics["short_memory_within_budget"], metrics["results_agree"]) == (False, False)
    assert "short_memory_queries" not in compute_metrics([runs(8, chosen=1.0)])


def test_the_claim_is_told_either_way() -> None:
    slower = [runs(8, chosen=1.0, right_deep=1.0, segmented_bushy=1.3)] * 4
    faster = [runs(8, chosen=1.0, right_deep=2.0, segmented_bushy=1.0)] * 4
    same = [runs(8, chosen=1.0, right_deep=1.0, segmented_bushy=0.99)] * 4
    assert "in 0 of 4 queries, with 30% more time in all (8 relations: +30%;" in claims(slower)[0]
    assert "does not hold here. There" in claims(slower)[0]
    assert claims(faster)[0].endswith("it holds here")
    assert "they take the same time" in claims(same)[0]
    statements = [replace(one, columns=False) for one in slower]
    assert claims(statements) == [], "these trees were no columns"


def test_claims_of_statements_and_of_short_memory() -> None:
    one = runs(32, chosen=1.0, right_deep=1.0, segmented_bushy=1.0)
    sql = dict(zip(SQL_TREES, (2.0, 2.0, 3.0), strict=True))
    shapes = {"segmented-right-deep": 4.0, "incremental": 5.0}
    short = ShortMemory(100, 90, 4, 5, 2.0, "greedy", shapes)
    told = claims([replace(one, seconds={**one.seconds, **sql}, short_memory=short)])
    assert [text.split(":")[0] for text in told] == [
        "3.8, 3.9, joining columns",
        "3.8, 3.9, as Spark statements",
        "3.13, memory for a third of the hash tables",
        "not in the dissertation",
    ]
    assert "in 0 of 1 queries, with 25% more time in all" in told[2]
    assert "2.00 times as long as joining columns" in told[3]


@pytest.mark.parametrize("relations", [2, 8, 32])
def test_queries_are_connected_acyclic_and_bounded(relations: int) -> None:
    for seed in range(5):
        query = generate_query(relations, seed)
        assert query == generate_query(relations, seed)
        assert [right for _, right, _ in query.edges] == list(range(1, relations))
        assert all(left < right for left, right, _ in query.edges)
        assert all(ROWS[0] - 1 <= one.rows <= ROWS[1] for one in query.relations)
        rows = [float(query.relations[0].rows)]
        for _, right, key in query.edges:
            rows.append(rows[-1] * query.relations[right].rows / query.domains[key])
        assert RESULT_ROWS[0] * 0.8 <= rows[-1] <= RESULT_ROWS[1] * 1.2
        assert max(rows) * relations * WIDTH_BYTES <= LARGEST_BYTES * relations
        if relations == 32:
            assert min(rows) > 1, "hardly a row left would mean an empty result"


def test_rows_have_their_keys_nulls_and_skew() -> None:
    query = generate_query(4, 1, skew=2.0, null_share=0.2)
    table = query.table(0)
    key = query.relations[0].keys[0]
    column = table[f"k{key}"]
    assert 0.1 < column.null_count / len(column) < 0.3
    values = column.drop_null().to_numpy()
    assert 0 <= values.min() <= values.max() < query.domains[key]
    assert np.median(values) < 0.25 * query.domains[key]
    assert table.num_rows == query.relations[0].rows
