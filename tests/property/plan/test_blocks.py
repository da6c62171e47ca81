"""Random views of WITH and derived tables, planned and carried out, have DuckDB's rows for their text."""

from collections import Counter
from random import Random

import duckdb
import pytest

from kit.carried_out import carry_out
from kit.examples import examples
from kit.random_queries import CATALOG, RandomQuery, fill
from spillway.errors import ViewError
from spillway.model.view import View
from spillway.plan.operators import JoinPlan, TreePlan
from spillway.plan.rules import plan_view


def planned(sql: str) -> JoinPlan | TreePlan | None:
    """The plan of a view; None if no equalities connect its inputs."""
    try:
        plan = plan_view(View.sql(sql), CATALOG)
    except ViewError as error:
        assert "needs an equi-join" in str(error), sql
        return None
    assert isinstance(plan, JoinPlan | TreePlan)
    return plan


@pytest.mark.parametrize("part", range(4))
def test_random_views(database: duckdb.DuckDBPyConnection, part: int) -> None:
    seed = Random(20_000 + part)
    views = [RandomQuery(seed, unions=False, joins=True).sql for _ in range(examples())]
    plans = {sql: plan for sql in views if (plan := planned(sql)) is not None}
    assert len(plans) > len(views) // 4
    found = 0
    for _ in range(3):
        fill(database, seed)
        for sql, plan in plans.items():
            expected = Counter(database.execute(sql).fetchall())
            found += expected.total()
            assert Counter(carry_out(plan, database)) == expected, sql
    assert found
