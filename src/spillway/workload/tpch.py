"""The join parts of TPC-H queries: what is selected before it is aggregated; and where their tables are.

`q9_columns` is `q9` without arithmetic over two inputs. Data in Parquet files is made for example by
`tpchgen-cli parquet -s 1 --output-dir DIR` (on PyPI)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spillway.errors import JobError

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
QUERIES: Mapping[str, str] = MappingProxyType(
    {
        "q3": (
            "SELECT l.l_orderkey, o.o_orderdate, o.o_shippriority, l.l_extendedprice * (1 - l.l_discount) AS"
            " revenue FROM customer c, orders o, lineitem l WHERE c.c_mktsegment = 'BUILDING' AND "
            "c.c_custkey = o.o_custkey AND l.l_orderkey = o.o_orderkey AND o.o_orderdate < DATE '1995-03-15'"
            " AND l.l_shipdate > DATE '1995-03-15'"
        ),
        "q5": (
            "SELECT n.n_name, l.l_extendedprice * (1 - l.l_discount) AS revenue FROM customer c, orders o, "
            "lineitem l, supplier s, nation n, region r WHERE c.c_custkey = o.o_custkey AND l.l_orderkey = "
            "o.o_orderkey AND l.l_suppkey = s.s_suppkey AND c.c_nationkey = s.s_nationkey AND s.s_nationkey "
            "= n.n_nationkey AND n.n_regionkey = r.r_regionkey AND r.r_name = 'ASIA' AND o.o_orderdate >= "
            "DATE '1994-01-01' AND o.o_orderdate < DATE '1995-01-01'"
        ),
        "q7": (
            "SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, year(l.l_shipdate) AS l_year, "
            "l.l_extendedprice * (1 - l.l_discount) AS volume FROM supplier s, lineitem l, orders o, "
            "customer c, nation n1, nation n2 WHERE s.s_suppkey = l.l_suppkey AND o.o_orderkey = "
            "l.l_orderkey AND c.c_custkey = o.o_custkey AND s.s_nationkey = n1.n_nationkey AND c.c_nationkey"
            " = n2.n_nationkey AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = "
            "'GERMANY' AND n2.n_name = 'FRANCE')) AND l.l_shipdate BETWEEN DATE '1995-01-01' AND DATE "
            "'1996-12-31'"
        ),
        "q8": (
            "SELECT year(o.o_orderdate) AS o_year, l.l_extendedprice * (1 - l.l_discount) AS volume, "
            "n2.n_name AS nation FROM part p, supplier s, lineitem l, orders o, customer c, nation n1, "
            "nation n2, region r WHERE p.p_partkey = l.l_partkey AND s.s_suppkey = l.l_suppkey AND "
            "l.l_orderkey = o.o_orderkey AND o.o_custkey = c.c_custkey AND c.c_nationkey = n1.n_nationkey "
            "AND n1.n_regionkey = r.r_regionkey AND r.r_name = 'AMERICA' AND s.s_nationkey = n2.n_nationkey "
            "AND o.o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31' AND p.p_type = 'ECONOMY "
            "ANODIZED STEEL'"
        ),
        "q9": (
            "SELECT n.n_name AS nation, year(o.o_orderdate) AS o_year, l.l_extendedprice * (1 - "
            "l.l_discount) - ps.ps_supplycost * l.l_quantity AS profit FROM part p, supplier s, lineitem l, "
            "partsupp ps, orders o, nation n WHERE s.s_suppkey = l.l_suppkey AND ps.ps_suppkey = l.l_suppkey"
            " AND ps.ps_partkey = l.l_partkey AND p.p_partkey = l.l_partkey AND o.o_orderkey = l.l_orderkey "
            "AND s.s_nationkey = n.n_nationkey AND p.p_name LIKE '%green%'"
        ),
        "q9_columns": (
            "SELECT n.n_name AS nation, o.o_orderdate, l.l_extendedprice, l.l_discount, ps.ps_supplycost, "
            "l.l_quantity FROM part p, supplier s, lineitem l, partsupp ps, orders o, nation n WHERE "
            "s.s_suppkey = l.l_suppkey AND ps.ps_suppkey = l.l_suppkey AND ps.ps_partkey = l.l_partkey AND "
            "p.p_partkey = l.l_partkey AND o.o_orderkey = l.l_orderkey AND s.s_nationkey = n.n_nationkey AND"
            " p.p_name LIKE '%green%'"
        ),
        "q10": (
            "SELECT c.c_custkey, c.c_name, l.l_extendedprice * (1 - l.l_discount) AS revenue, c.c_acctbal, "
            "n.n_name, c.c_address, c.c_phone, c.c_comment FROM customer c, orders o, lineitem l, nation n "
            "WHERE c.c_custkey = o.o_custkey AND l.l_orderkey = o.o_orderkey AND o.o_orderdate >= DATE "
            "'1993-10-01' AND o.o_orderdate < DATE '1994-01-01' AND l.l_returnflag = 'R' AND c.c_nationkey ="
            " n.n_nationkey"
        ),
        "q11": (
            "SELECT ps.ps_partkey, ps.ps_supplycost * ps.ps_availqty AS value FROM partsupp ps, supplier s, "
            "nation n WHERE ps.ps_suppkey = s.s_suppkey AND s.s_nationkey = n.n_nationkey AND n.n_name = "
            "'GERMANY'"
        ),
        "q12": (
            "SELECT l.l_shipmode, o.o_orderpriority FROM orders o, lineitem l WHERE o.o_orderkey = "
            "l.l_orderkey AND l.l_shipmode IN ('MAIL', 'SHIP') AND l.l_commitdate < l.l_receiptdate AND "
            "l.l_shipdate < l.l_commitdate AND l.l_receiptdate >= DATE '1994-01-01' AND l.l_receiptdate < "
            "DATE '1995-01-01'"
        ),
        "q14": (
            "SELECT p.p_type, l.l_extendedprice * (1 - l.l_discount) AS revenue FROM lineitem l, part p "
            "WHERE l.l_partkey = p.p_partkey AND l.l_shipdate >= DATE '1995-09-01' AND l.l_shipdate < DATE "
            "'1995-10-01'"
        ),
        "q19": (
            "SELECT l.l_extendedprice * (1 - l.l_discount) AS revenue FROM lineitem l, part p WHERE "
            "p.p_partkey = l.l_partkey AND l.l_shipmode IN ('AIR', 'AIR REG') AND l.l_shipinstruct = "
            "'DELIVER IN PERSON' AND ((p.p_brand = 'Brand#12' AND l.l_quantity >= 1 AND l.l_quantity <= 11 "
            "AND p.p_size BETWEEN 1 AND 5) OR (p.p_brand = 'Brand#23' AND l.l_quantity >= 10 AND "
            "l.l_quantity <= 20 AND p.p_size BETWEEN 1 AND 10) OR (p.p_brand = 'Brand#34' AND l.l_quantity "
            ">= 20 AND l.l_quantity <= 30 AND p.p_size BETWEEN 1 AND 15))"
        ),
    }
)

STREAM_TREES: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {"q9_columns": ((((("l", "ps"), ("s", "n")), "p"), "o"))}
)
"""The joins of queries that also run over streams. This one joins `partsupp` on both of its keys."""


def tables_of(query: str, directory: Path) -> dict[str, Path]:
    """The tables that a query reads: `DIR/name.parquet`, or a directory of files `DIR/name`."""
    found = {}
    for name in tables_read(query):
        places = [path for path in (directory / f"{name}.parquet", directory / name) if path.exists()]
        if not places:
            raise JobError(
                f"{directory} has no {name}.parquet; make the tables by tpchgen-cli parquet --output-dir"
            )
        found[name] = places[0]
    return found


def tables_read(query: str) -> tuple[str, ...]:
    """The names of the tables that a query reads."""
    if query not in QUERIES:
        raise JobError(f"query {query}: must be one of {', '.join(QUERIES)}")
    return tuple(name for name in TABLES if re.search(rf"\b{name} ", QUERIES[query]))
