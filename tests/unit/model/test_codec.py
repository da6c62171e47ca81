"""What the codec writes, what it reads, and how it refuses what does not fit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, NamedTuple

import pytest

from spillway.errors import StateError
from spillway.model.codec import WrittenAs, from_json, from_text, listed, to_json, to_text


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Place(NamedTuple):
    row: int
    column: int = 0


ORIGIN = Place(0)


@listed()
@dataclass(frozen=True, slots=True)
class Pair:
    left: int
    right: Annotated[int, WrittenAs(str, hex, lambda text: int(text, 16))] = 0


@listed("second first")
@dataclass(frozen=True, slots=True)
class Turned:
    first: str
    second: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Circle:
    radius: float


@dataclass(frozen=True, slots=True)
class Square:
    side: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    number: int
    share: float = 0.0
    text: str = ""
    flag: bool = False
    maybe: int | None = None
    colour: Colour = Colour.RED
    place: Place = ORIGIN
    pairs: tuple[Pair, ...] = ()
    turned: Turned | None = None
    fixed: tuple[int, str] = (0, "")
    shapes: list[Circle | Square] = field(default_factory=list)
    by_number: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    by_name: dict[str, Place] = field(default_factory=dict)


FULL = Everything(
    number=1,
    share=0.5,
    text="ä",
    flag=True,
    maybe=2,
    colour=Colour.BLUE,
    place=Place(3, 4),
    pairs=(Pair(5, 255), Pair(6)),
    turned=Turned("x", (7, 8)),
    fixed=(9, "y"),
    shapes=[Square(1.0), Circle(2.0)],
    by_number={4_000: (1, 2), 3: (4, 5)},
    by_name={"p": Place(1)},
)


def test_a_record_is_an_object_and_what_is_listed_an_array() -> None:
    assert to_json(FULL) == {
        "number": 1,
        "share": 0.5,
        "text": "ä",
        "flag": True,
        "maybe": 2,
        "colour": "blue",
        "place": (3, 4),
        "pairs": [[5, "0xff"], [6, "0x0"]],
        "turned": [[7, 8], "x"],
        "fixed": (9, "y"),
        "shapes": [{"side": 1.0}, {"radius": 2.0}],
        "by_number": {4_000: (1, 2), 3: (4, 5)},
        "by_name": {"p": (1, 0)},
    }
    assert from_text(Everything, to_text(FULL)) == FULL
    assert from_text(Everything, to_text(Everything(number=1))) == Everything(number=1)


def test_what_is_missing_has_its_default_in_any_order() -> None:
    assert read({"text": "x", "number": 3}) == Everything(number=3, text="x")
    assert read({"number": 3, "pairs": [[1]], "place": [2]}) == Everything(
        number=3, pairs=(Pair(1),), place=Place(2)
    )


def read(body: object, **options: Any) -> Everything:
    return from_json(Everything, body, "file x cannot be read", **options)


MANY = [[number, hex(number)] for number in range(20)]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ([], r"it is \[\], not object"),
        ({"text": "x"}, "key 'number' is missing"),
        ({"number": 1, "numbr": 2}, "key 'numbr' is unknown"),
        ({"number": True}, "key 'number' is True, not int"),
        ({"number": 1.0}, "key 'number' is 1.0, not int"),
        ({"number": 1, "share": "x" * 99}, r"key 'share' is 'x{36}\.\.\., not float or int"),
        ({"number": 1, "maybe": "x"}, "key 'maybe' is 'x', not int or null"),
        ({"number": 1, "colour": "green"}, "key 'colour' is 'green', not allowed: 'green' is not a valid"),
        ({"number": 1, "colour": 3}, "key 'colour' is 3, not str"),
        ({"number": 1, "place": []}, r"key 'place' is \[\], not an array of 2"),
        ({"number": 1, "place": [1, 2, 3]}, "not an array of 2"),
        ({"number": 1, "place": [1, None]}, "key 'place.column' is None, not int"),
        ({"number": 1, "pairs": [[1, "0x1"], [1, "zz"]]}, "key 'pairs.right' is 'zz', not allowed: invalid"),
        ({"number": 1, "pairs": [*MANY, [1, "zz"]]}, "key 'pairs.right' is 'zz', not allowed: invalid"),
        ({"number": 1, "pairs": [*MANY, ["x", "0x1"]]}, "key 'pairs.left' is 'x', not int"),
        ({"number": 1, "pairs": [*MANY, 7]}, "key 'pairs' is 7, not array"),
        ({"number": 1, "fixed": [1]}, "not an array of 2"),
        ({"number": 1, "shapes": [{"radius": 1}, {"side": 1}, {}]}, "key 'shapes.side' is missing"),
        ({"number": 1, "by_number": {"x": [1, 2]}}, "key 'by_number' has a key that is not int"),
        ({"number": 1, "by_number": {"1": [1, "2"]}}, "key 'by_number.1' is '2', not int"),
        ({"number": 1, "by_name": {"p": 3}}, "key 'by_name' is 3, not array"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key_in_one_line(body: object, problem: str) -> None:
    for _ in range(2):  # the first time, types are looked at in another way
        with pytest.raises(StateError, match=f"^file x cannot be read: .*{problem}") as caught:
            read(body)
        assert str(caught.value).endswith("; use the version of Spillway that wrote it")
        assert "\n" not in str(caught.value)


def test_values_that_do_not_fit_are_found_where_others_of_their_types_did() -> None:
    read({"number": 1, "pairs": [[1, "0x1"]]})
    with pytest.raises(StateError, match=r"key 'pairs.right' is 'zz'"):
        read({"number": 1, "pairs": [[1, "zz"]]})


def test_many_records_are_read_as_few_are() -> None:
    many = [[number, hex(number)] if number % 3 else [number] for number in range(40)]
    pairs = tuple(Pair(number, number if number % 3 else 0) for number in range(40))
    assert read({"number": 1, "pairs": many}).pairs == pairs
    assert read({"number": 1, "pairs": MANY}).pairs == tuple(Pair(number, number) for number in range(20))


def test_keys_of_a_later_version_are_left_out_if_that_is_wanted() -> None:
    body = {"number": 1, "turned": None, "shapes": [{"side": 1, "new": 2}], "new": {}}
    assert read(body, newer=True) == Everything(number=1, shapes=[Square(1)])
    with pytest.raises(StateError, match=r"key 'new' is unknown; remove it$"):
        read(body, remedy="remove it")


def test_a_message_of_another_version_says_so() -> None:
    with pytest.raises(StateError, match=r"a Circle that another process sent .* one version of Spillway"):
        from_text(Circle, '{"radius": 1.0, "centre": 0}')
