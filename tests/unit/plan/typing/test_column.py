"""Types of values that state carries, from Spark's text."""

import pyarrow as pa
import pytest

from spillway.errors import ViewError
from spillway.plan.operators.join import InputPlan, StateColumn
from spillway.plan.typing.column import InputTypes, check_carried, column_type


def test_nested_types_have_leaves_and_an_arrow_form() -> None:
    found = column_type("map<string,array<struct<a:int,b:decimal(5,1)>>>")
    assert found is not None
    assert found.leaves == ("string", "int", "decimal(5,1)")
    inner = pa.struct([("a", pa.int32()), ("b", pa.decimal128(5, 1))])
    assert found.arrow == pa.map_(pa.string(), pa.list_(inner))


@pytest.mark.parametrize(
    "text", ["variant", "time(6)", "struct<`a b`:int>", "array<interval>", "decimal(50,2)"]
)
def test_other_types_are_not_known(text: str) -> None:
    assert column_type(text) is None


def test_void_is_refused_with_the_name_of_the_column() -> None:
    void = column_type("void")
    assert void is not None
    column = StateColumn("c0", "NULL", "NULL")
    with pytest.raises(ViewError, match=r"a\.NULL has no type \(NULL\); cast it to one"):
        check_carried(InputPlan("a", "a", None, ("k",), (column,)), InputTypes(("int",), (void,)))
