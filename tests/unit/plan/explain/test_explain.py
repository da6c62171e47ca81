"""What explain says of columns: each once."""

from spillway.model.schema import parse_ddl
from spillway.model.view import View
from spillway.plan.explain.explanation import explain_dict
from spillway.plan.rules.planner import plan_view


def test_a_selected_key_column_of_a_tree_is_not_listed_twice() -> None:
    """The key is kept in its common type beside the column, and is called so."""
    catalog = {name: parse_ddl("k long, id long, s string") for name in "abc"}
    sql = "SELECT a.id, a.s, b.s AS t, c.id AS i FROM a, b, c WHERE a.s = b.s AND b.id = c.k"
    report = explain_dict(plan_view(View.sql(sql), catalog), processors=2, groups=8)
    kept = [one["state"] for join in report["joins"] for one in join["inputs"]]
    assert kept[0] == ["a.id", "a.s", "key(a.s)"]
    for columns in kept:
        assert len(columns) == len(set(columns))
