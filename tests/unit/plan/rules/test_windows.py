"""Window clauses in FROM: what they mean, and what is refused."""

import pytest

from spillway.errors import ViewError
from spillway.model.schema import Column
from spillway.model.view import View
from spillway.model.window import Window
from spillway.plan.rules.planner import plan_view

CATALOG = {
    "prices": (Column("sym", "string"), Column("ts", "timestamp", 5_000_000), Column("price", "double")),
    "news": (Column("sym", "string"), Column("at", "timestamp_ntz", 0), Column("text", "string")),
    "firms": (Column("sym", "string"), Column("name", "string")),
    "odd": (Column("sym", "string"), Column("day", "date", 0)),
}
SELECT = """SELECT p.price, n.text
    FROM prices AS p [RANGE 2 MINUTES] JOIN news n [RANGE 1.5 seconds] ON p.sym = n.sym"""


def test_a_window_becomes_a_residual_predicate_over_event_times() -> None:
    plan = plan_view(View.sql(SELECT), CATALOG)
    assert plan.windows == (Window(1, 120_000_000, 5_000_000), Window(1, 1_500_000, 0))
    assert [one.columns[1].expression for one in plan.inputs] == [
        "unix_micros(`ts`)",
        "timestampdiff(MICROSECOND, CAST('1970-01-01 00:00:00' AS TIMESTAMP_NTZ), `at`)",
    ]
    assert [one.filter for one in plan.inputs] == [None, None]
    assert [one.times for one in plan.inputs] == [("`ts`",), ("`at`",)]
    assert plan.residual is not None


def test_the_builder_takes_windows_too() -> None:
    built = View.of("prices p [RANGE 2 MINUTES]").join("news n [RANGE 1500 MILLISECONDS]", on="p.sym = n.sym")
    assert plan_view(built.select("p.price", "n.text"), CATALOG) == plan_view(View.sql(SELECT), CATALOG)


def test_an_input_without_a_range_is_unbounded_but_has_event_time() -> None:
    plan = plan_view(View.sql(SELECT.replace("[RANGE 1.5 seconds]", "")), CATALOG)
    assert plan.windows == (Window(1, 120_000_000, 5_000_000), Window(1, None, 0))


def test_lateness_is_not_part_of_the_view_but_the_range_is() -> None:
    later = CATALOG | {
        "prices": (Column("sym", "string"), Column("ts", "timestamp", 9), CATALOG["prices"][2])
    }
    prints = {
        plan_view(View.sql(SELECT), CATALOG).fingerprint,
        plan_view(View.sql(SELECT), later).fingerprint,
        plan_view(View.sql(SELECT.replace("2 MINUTES", "120 SECONDS")), CATALOG).fingerprint,
    }
    assert len(prints) == 1
    assert plan_view(View.sql(SELECT.replace("2 M", "3 M")), CATALOG).fingerprint not in prints


def test_brackets_elsewhere_are_left_alone() -> None:
    sql = "SELECT split(p.sym, '[RANGE]')[0] AS a, n.text FROM prices p, news n WHERE p.sym = n.sym"
    assert plan_view(View.sql(sql), CATALOG).windows == ()


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("FROM prices p [RANGE 2 PARSECS] JOIN news n ON p.sym = n.sym", "unknown unit PARSECS"),
        ("FROM prices p [RANGE MINUTES] JOIN news n ON p.sym = n.sym", "is not a window"),
        ("FROM prices p [RANGE 0 SECONDS] JOIN news n ON p.sym = n.sym", "above 0"),
        ("FROM prices p [ROWS 10] JOIN news n ON p.sym = n.sym", "windows of time only"),
        ("FROM prices p [RANGE 2 MINUTES JOIN news n ON p.sym = n.sym", "no closing bracket"),
        ("FROM prices p [RANGE 1 DAY] [RANGE 2 DAYS] JOIN news n ON p.sym = n.sym", "follows no source"),
        ("FROM prices p JOIN firms f [RANGE 2 MINUTES] ON p.sym = f.sym", "source firms has no event time"),
        ("FROM prices p [RANGE 1 DAY] JOIN firms f ON p.sym = f.sym", "is joined with a window of p"),
        ("FROM odd p [RANGE 1 DAY] JOIN news f ON p.sym = f.sym", "is date; it must be a timestamp"),
    ],
)
def test_refusals(sql: str, message: str) -> None:
    with pytest.raises(ViewError, match=message):
        plan_view(View.sql(f"SELECT p.sym {sql}"), CATALOG)
