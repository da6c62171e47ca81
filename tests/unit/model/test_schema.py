"""DDL text to columns."""

import pytest

from spillway.errors import ViewError
from spillway.model.schema import Column, normalise_type, parse_ddl


def test_type_names_are_normalised() -> None:
    assert parse_ddl("k long, `odd name`: INTEGER NOT NULL, p decimal(10, 2) COMMENT 'it\\'s'") == (
        Column("k", "bigint"),
        Column("odd name", "int"),
        Column("p", "decimal(10,2)"),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("LONG", "bigint"),
        ("decimal", "decimal(10,0)"),
        ("numeric(5)", "decimal(5,0)"),
        ("varchar( 7 )", "varchar(7)"),
        ("timestamp_ltz", "timestamp"),
        ("array<struct<a: long, b: map<string, byte>>>", "array<struct<a:bigint,b:map<string,tinyint>>>"),
        ("struct<`x y`: int>", "struct<`x y`:int>"),
        ("interval day to second", "interval day to second"),
        ("string collate UTF8_LCASE", "string collate UTF8_LCASE"),
    ],
)
def test_types(text: str, expected: str) -> None:
    assert normalise_type(text) == expected
    assert normalise_type(expected) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "declares no column"),
        ("k", "ends too early"),
        ("k lnog", "unknown type 'lnog'"),
        ("k long p string", "expected ','"),
        ("k decimal(40,2)", "outside decimal"),
        ("k array<int", "expected '>'"),
        ("k long, K int", "column K twice"),
        ("k long; p int", "unexpected ';'"),
        ("k decimal(1,2,3)", "unexpected '3'"),
        (", k long", "expected a column name"),
    ],
)
def test_bad_text_is_refused_in_one_line(text: str, problem: str) -> None:
    with pytest.raises(ViewError) as refused:
        parse_ddl(text)
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)
