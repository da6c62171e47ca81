"""Kinds of values: what is rendered is read back, reading twice is reading once, the schema says the same."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from spillway.errors import JobError
from spillway.job.environment import Expanded
from spillway.job.keys import DeclaredKey, keys_of
from spillway.job.kinds import (
    ByteSize,
    FilePath,
    Flag,
    KeyPlace,
    ListOf,
    OneOf,
    OneOrList,
    RealNumber,
    Settings,
    TableOf,
    Text,
    ValueKind,
    WholeNumber,
)
from spillway.job.tables import TABLES
from spillway.job.view import JOINED

PLACE = KeyPlace("[run]", "key")
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]))
NUMBERS = st.floats(-1e6, 1e6)
SIZES = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
KINDS: dict[str, tuple[ValueKind, st.SearchStrategy[Any]]] = {
    "text": (Text(), TEXTS.filter(str.strip)),
    "whole": (WholeNumber(-5, 10**6), st.integers(-5, 10**6)),
    "number": (RealNumber(above=-1e7, maximum=1e6), NUMBERS),
    "flag": (Flag(), st.booleans()),
    "choice": (OneOf(lambda: ("a", "b")), st.sampled_from("ab")),
    "list": (ListOf(WholeNumber(0)), st.lists(st.integers(0, 99)).map(tuple)),
    "table": (TableOf(RealNumber()), st.dictionaries(TEXTS, NUMBERS)),
    "one or list": (OneOrList(Flag(), ListOf(Flag())), st.booleans() | st.lists(st.booleans()).map(tuple)),
}
KEYS = [(table, key) for table in TABLES for key in keys_of(table.config)]
VALUES = st.recursive(
    st.booleans()
    | st.integers(-10, 10**7)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
    | st.sampled_from(
        ["", " ", "even", "none", "delta", "auto", "64MB", "1.5 gb", "-1MB", "10 seconds", "x"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=5,
)


def rendered(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{rendered(key)} = {rendered(entry)}' for key, entry in value.items())} }}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(rendered, value))}]"
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def accepts(kind: ValueKind, value: Any) -> bool:
    try:
        kind.parse(value, PLACE)
    except JobError as error:
        assert str(error).startswith("[run") and "\n" not in str(error)
        return False
    return True


def validator(kind: ValueKind) -> Draft202012Validator:
    return Draft202012Validator({"$defs": {"joined": JOINED}, **kind.schema()})


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_what_is_rendered_is_read_back(name: str, data: st.DataObject) -> None:
    kind, values = KINDS[name]
    value = data.draw(values)
    raw = tomllib.loads(f"key = {rendered(value)}")["key"]
    read = kind.parse(raw, PLACE)
    assert read == value
    assert kind.parse(read, PLACE) == read
    assert validator(kind).is_valid(raw)


@given(st.integers(1, 10**6), st.sampled_from(list(SIZES)))
def test_sizes_are_read_back(number: int, unit: str) -> None:
    assert ByteSize().parse(f"{number}{unit}", PLACE) == number * SIZES[unit]
    assert ByteSize().parse(number, PLACE) == ByteSize().parse(float(number), PLACE) == number
    assert ByteSize().parse(1e17, PLACE) == 10**17
    assert validator(ByteSize()).is_valid(f"{number} {unit.lower()}")


@pytest.mark.parametrize(("table", "key"), KEYS, ids=lambda part: getattr(part, "name", ""))
@given(value=VALUES)
@example(value=1.5)
@example(value=[1.5, 0.5])
def test_the_schema_of_a_key_accepts_what_the_parser_accepts(
    table: Any, key: DeclaredKey, value: Any
) -> None:
    if key.name == "policy":
        return  # the parameters are those of the policy, which another key names
    assert accepts(key.kind, value) == validator(key.kind).is_valid(value)


@pytest.mark.parametrize(("table", "key"), KEYS, ids=lambda part: getattr(part, "name", ""))
def test_a_declaration_is_whole(table: Any, key: DeclaredKey) -> None:
    assert key.help.endswith(".") and (key.help[0].isupper() or key.help[0] == "`")
    if key.is_required:
        raw = tomllib.loads(f"key = {key.example}")["key"]
        assert accepts(key.kind, raw)
    elif not key.unset:
        assert accepts(key.kind, key.default)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (WholeNumber(1, unit="rows"), 0.5, "[run] key = 0.5: must be a whole number of rows, at least 1"),
        (RealNumber(above=0, maximum=1), 2, "[run] key = 2: must be a number, above 0 and at most 1"),
        (RealNumber(), float("nan"), "[run] key = NaN: must be a number"),
        (Flag(), "yes", '[run] key = "yes": must be true or false'),
        (OneOf(("alpha", "beta")), "alpa", 'must be one of alpha, beta; did you mean "alpha"?'),
        (OneOf(("alpha", "beta")), 3, "[run] key = 3: must be one of alpha, beta"),
        (ListOf(Flag()), True, "[run] key = true: must be a list (true or false)"),
        (ListOf(Flag()), [True, 1], "[run] key[1] = 1: must be true or false"),
        (TableOf(Flag()), {"a": 1}, "[run.key] a = 1: must be true or false"),
        (Settings(), 1, '[run] key = 1: must be a table: key = { key = "value" }'),
        (ByteSize(), "0MB", '[run] key = "0MB": must be positive'),
        (Text(), "x" * 0, '[run] key = "": must be a non-empty string'),
    ],
)
def test_a_wrong_value_is_one_line(kind: ValueKind, value: Any, message: str) -> None:
    with pytest.raises(JobError, match=re.escape(message)):
        kind.parse(value, PLACE)


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(JobError) as caught:
        Flag().parse("x" * 500, PLACE)
    assert len(str(caught.value)) < 150


def test_settings_are_strings_under_dotted_names() -> None:
    given_ = {"spark": {"master": "local", "ui": {"enabled": False}}, "a.b": 1}
    read = {"spark.master": "local", "spark.ui.enabled": "false", "a.b": "1"}
    assert Settings().parse(given_, PLACE) == read


def test_paths_are_relative_to_the_job_file() -> None:
    place = KeyPlace("[run]", "key", Path("/jobs"))
    assert FilePath().parse("state", place) == "/jobs/state"
    assert FilePath().parse("/abs", place) == "/abs"
    assert FilePath().parse("s3://bucket/x", place) == "s3://bucket/x"
    assert FilePath().parse(Path("state"), PLACE) == "state"
    taken = FilePath().parse(Expanded("here/x", "${DIR}/x"), place)
    assert (taken, taken.written) == ("/jobs/here/x", "/jobs/${DIR}/x")
    assert FilePath().parse(Expanded("/here/x", "${DIR}/x"), place).written == "${DIR}/x"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (WholeNumber(1), "4", 4),
        (RealNumber(), "0.5", 0.5),
        (Flag(), "True", True),
        (ByteSize(), "64MB", 64 << 20),
        (OneOf(("a", "b")), "a", "a"),
    ],
)
def test_the_environment_gives_numbers_as_text(kind: ValueKind, text: str, value: Any) -> None:
    assert kind.parse(Expanded(text, "${N}"), PLACE) == value
    for wrong in ("what", ""):
        with pytest.raises(JobError, match=r'\[run\] key = "\$\{N\}": '):
            kind.parse(Expanded(wrong, "${N}"), PLACE)
