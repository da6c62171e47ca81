"""Small queries full of traps: each is planned, or refused by the name of the clause that cannot run yet.

A query that becomes possible loses its `refused` in `tests/fixtures/small_queries.json`. From then on
`tests/property/plan/test_algebra.py` compares it with DuckDB.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from spillway.errors import ViewError
from spillway.model.schema import parse_ddl
from spillway.model.view import View
from spillway.plan.rules import plan_view

QUERIES = json.loads((Path(__file__).parents[3] / "fixtures" / "small_queries.json").read_text())
CATALOG = {
    "a": parse_ddl("x bigint, y bigint, s string"),
    "b": parse_ddl("x bigint, z bigint, s string"),
    "c": parse_ddl("x bigint, z bigint, w bigint"),
}


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query["name"])
def test_planned_or_refused_by_name(query: dict[str, Any]) -> None:
    view = View.sql(query["sql"])
    if query["refused"] is None:
        assert plan_view(view, CATALOG).inputs
        return
    with pytest.raises(ViewError) as refused:
        plan_view(view, CATALOG)
    message = str(refused.value)
    if query["refused"] == "one source":
        assert "this one reads only a" in message
    else:
        assert message.startswith(f"{query['refused']} is not supported yet: ")
        assert "(line 1, column " in message
