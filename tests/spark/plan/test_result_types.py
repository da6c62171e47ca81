"""The result of a view with arithmetic over several inputs has the columns and types that Spark gives it."""

from typing import TYPE_CHECKING

import pytest

from spillway.model.schema import parse_ddl
from spillway.model.view import View
from spillway.plan.expression import spark_type
from spillway.plan.rules.planner import plan_view
from spillway.plan.typing.input import read_input_types
from spillway.plan.typing.plan import plan_types

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {
    "part": "p_partkey bigint, p_name string",
    "supplier": "s_suppkey bigint, s_nationkey int",
    "partsupp": "ps_partkey bigint, ps_suppkey bigint, ps_supplycost decimal(15,2), ps_availqty int",
    "orders": "o_orderkey bigint, o_orderdate date, o_totalprice decimal(15,2)",
    "nation": "n_nationkey int, n_name string",
    "lineitem": "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_quantity decimal(15,2), "
    "l_extendedprice decimal(15,2), l_discount decimal(15,2), l_shipdate date",
}
PROFIT = """
SELECT n.n_name AS nation, year(o.o_orderdate) AS o_year,
       l.l_extendedprice * (1 - l.l_discount) - ps.ps_supplycost * l.l_quantity AS profit
FROM part p, supplier s, lineitem l, partsupp ps, orders o, nation n
WHERE s.s_suppkey = l.l_suppkey AND ps.ps_suppkey = l.l_suppkey AND ps.ps_partkey = l.l_partkey
  AND p.p_partkey = l.l_partkey AND o.o_orderkey = l.l_orderkey AND s.s_nationkey = n.n_nationkey
  AND p.p_name LIKE '%green%'
"""
SHARES = """
SELECT l.l_extendedprice / o.o_totalprice AS share,
       round(l.l_extendedprice - o.o_totalprice, 1) AS difference,
       l.l_quantity % ps.ps_availqty AS rest, ps.ps_availqty div l.l_quantity AS times,
       datediff(l.l_shipdate, o.o_orderdate) AS days,
       coalesce(l.l_shipdate, o.o_orderdate) + INTERVAL 1 MONTH AS due,
       CASE WHEN ps.ps_supplycost > l.l_extendedprice THEN ps.ps_supplycost ELSE 0 END AS lost,
       l.l_quantity * 1.5e0 + ps.ps_supplycost AS weight
FROM lineitem l, orders o, partsupp ps
WHERE o.o_orderkey = l.l_orderkey AND ps.ps_suppkey = l.l_suppkey
"""


@pytest.mark.parametrize("sql", [PROFIT, SHARES], ids=["profit", "shares"])
def test_a_view_has_the_types_of_spark(spark: "SparkSession", sql: str) -> None:
    catalog = {name: parse_ddl(columns) for name, columns in TABLES.items()}
    for name, columns in TABLES.items():
        spark.createDataFrame([], columns).createOrReplaceTempView(name)
    expected = [(field.name, field.dataType.simpleString()) for field in spark.sql(sql).schema.fields]
    plan = plan_view(View.sql(sql), catalog)
    types = plan_types(plan, [read_input_types(input_, catalog[input_.source]) for input_ in plan.inputs])
    assert [(field.name, spark_type(field.type)) for field in types.schema] == expected
    for name in TABLES:
        spark.catalog.dropTempView(name)
