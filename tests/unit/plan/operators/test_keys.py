"""Common types of join keys."""

import pytest

from spillway.errors import ViewError
from spillway.plan.operators.keys import common_key_type, hash_is_exact


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["int", "bigint"], "bigint"),
        (["tinyint", "smallint", "tinyint"], "smallint"),
        (["int", "decimal(10,2)"], "decimal(12,2)"),
        (["bigint", "decimal(38,18)"], "decimal(38,18)"),
        (["decimal(5,1)", "decimal(6,4)"], "decimal(8,4)"),
        (["int", "float"], "double"),
        (["decimal(10,2)", "double"], "double"),
        (["float", "float"], "float"),
        (["string", "varchar(5)", "char(3)"], "string"),
        (["date", "date"], "date"),
        (["timestamp", "timestamp"], "timestamp"),
        (["binary", "binary"], "binary"),
    ],
)
def test_common_type_does_not_depend_on_order(types: list[str], expected: str) -> None:
    terms = [(f"t{number}.k", kind) for number, kind in enumerate(types)]
    assert common_key_type(terms) == expected
    assert common_key_type(terms[::-1]) == expected


@pytest.mark.parametrize(
    ("left", "right"),
    [("bigint", "string"), ("date", "timestamp"), ("timestamp", "timestamp_ntz"), ("boolean", "int"),
     ("bigint", "decimal(38,20)"), ("binary", "string")],
)  # fmt: skip
def test_types_that_do_not_fit_are_refused_with_their_names(left: str, right: str) -> None:
    with pytest.raises(ViewError) as refused:
        common_key_type([("a.k", left), ("b.k", right)])
    assert str(refused.value) == f"key type mismatch: a.k is {left}, b.k is {right}; cast one of them"


@pytest.mark.parametrize(
    "kind",
    ["array<int>", "map<string,int>", "struct<a:int>", "variant", "interval day", "string collate UNICODE"],
)
def test_values_without_plain_equality_are_refused(kind: str) -> None:
    with pytest.raises(ViewError, match="cannot be a join key"):
        common_key_type([("a.k", kind), ("b.k", kind)])


def test_the_hash_of_one_short_value_is_exact() -> None:
    assert all(
        hash_is_exact([kind]) for kind in ("boolean", "long", "date", "timestamp", "double", "decimal(18,2)")
    )
    assert not any(hash_is_exact([kind]) for kind in ("string", "binary", "decimal(19,0)"))
    assert not hash_is_exact(["int", "int"])
