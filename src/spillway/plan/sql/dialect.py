"""Spark SQL as Spillway reads it: sqlglot's Spark dialect, but functions are kept as they were written.

sqlglot translates functions between dialects, and a round trip may change one subtly. A view's expressions
are run by Spark, so each must come out exactly as it went in: every call stays an anonymous call with its
own name, except the few whose arguments have a grammar of their own. `CAST` and `TRY_CAST` stay apart for
the same reason.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

_OWN_GRAMMAR = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "POSITION", "OVERLAY")


class SpillwayDialect(Spark):
    """The dialect of views."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar = ["\\", "'", '"']  # Spark 4 reads 'it''s' as it's

    class Parser(SparkParser):
        STRICT_CAST: ClassVar = True
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser for name, parser in SparkParser.FUNCTION_PARSERS.items() if name in _OWN_GRAMMAR
        }


def is_aggregate(function: str) -> bool:
    """Whether Spark's function of this name aggregates rows."""
    kind = getattr(SparkParser.FUNCTIONS.get(function.upper()), "__self__", None)
    return (isinstance(kind, type) and issubclass(kind, exp.AggFunc)) or function.lower() in _AGGREGATES


_AGGREGATES = frozenset({
    "any", "any_value", "approx_count_distinct", "approx_percentile", "array_agg", "avg", "bit_and",
    "bit_or", "bit_xor", "bool_and", "bool_or", "collect_list", "collect_set", "corr", "count",
    "count_if", "count_min_sketch", "covar_pop", "covar_samp", "every", "first", "first_value",
    "grouping", "grouping_id", "histogram_numeric", "kurtosis", "last", "last_value", "listagg",
    "max", "max_by", "mean", "median", "min", "min_by", "mode", "percentile", "percentile_approx",
    "percentile_cont", "percentile_disc", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept",
    "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "skewness", "some", "std",
    "stddev", "stddev_pop", "stddev_samp", "string_agg", "sum", "try_avg", "try_sum", "var_pop",
    "var_samp", "variance",
})  # fmt: skip
