"""Engines in turns: the median counts, and one that fails does not end the others."""

from collections import Counter
from functools import partial

import duckdb

from spillway.errors import ComputeError
from spillway.lab.engines.time_limit import TimeIsOverError
from spillway.lab.engines.turns import Turn, take_turns


def test_the_median_and_the_last_answer_count() -> None:
    given = iter([6.0, 1.0, 9.0, 2.0])
    turns = take_turns(
        {"one": lambda: Turn(seconds := next(given), seconds * 2, seconds)}, 4, (duckdb.Error,)
    )
    assert (turns.seconds, turns.cpu_seconds, turns.answers) == ({"one": 2.0}, {"one": 4.0}, {"one": 2.0})
    assert turns.first_seconds == {"one": 6.0}
    assert turns.all_seconds == {"one": [6.0, 1.0, 9.0, 2.0]}
    assert turns.unfinished == {}
    turns.give("one", "same")
    assert turns.seconds == {"one": 2.0, "same": 2.0}


def test_short_ones_have_three_turns_once_they_are_known() -> None:
    turns = take_turns({"short": lambda: Turn(0.5, 0.5, None)}, 3, (duckdb.Error,), often=("short",))
    assert len(turns.all_seconds["short"]) == 2 + 3 + 3


def test_of_two_turns_none_is_left_out() -> None:
    given = iter([6.0, 1.0])
    turns = take_turns({"one": lambda: Turn(next(given), 1.0, None)}, 2, (duckdb.Error,))
    assert turns.seconds == {"one": 3.5}


def test_an_engine_whose_time_is_over_is_stopped() -> None:
    def turn() -> Turn[None]:
        raise TimeIsOverError(7.0)

    turns = take_turns({"slow": turn}, 2, (ComputeError,))
    assert (turns.seconds, turns.stopped) == ({}, {"slow": 7.0})
    assert turns.unfinished == {"slow": "stopped after 7 s"}
    turns.give("slow", "same")
    assert turns.stopped["same"] == 7.0


def test_some_have_two_turns_and_the_order_changes() -> None:
    order: list[str] = []

    def turn(name: str) -> Turn[None]:
        order.append(name)
        return Turn(1.0, 1.0, None)

    names = ("a", "b", "c")
    take_turns({name: partial(turn, name) for name in names}, 4, (duckdb.Error,), often=("b", "z"))
    assert Counter(order) == {"a": 4, "b": 8, "c": 4}
    turns = [tuple(order[start : start + 4]) for start in range(0, 16, 4)]
    assert all(Counter(one) == {"a": 1, "b": 2, "c": 1} for one in turns)
    assert len(set(turns)) > 1


def test_a_slow_engine_has_one_turn() -> None:
    given = iter([20.0, 1.0])
    turns = take_turns({"slow": lambda: Turn(next(given), 1.0, None)}, 2, (duckdb.Error,))
    assert turns.seconds == {"slow": 20.0}


def test_an_engine_that_fails_is_not_finished_and_the_others_go_on() -> None:
    order: list[str] = []

    def query(name: str, sql: str) -> Turn[int]:
        order.append(name)
        with duckdb.connect() as database:
            ((value,),) = database.execute(sql.format(turn=order.count(name))).fetchall()
        return Turn(1.0, 1.0, value)

    turns = take_turns(
        {
            "bad": lambda: query("bad", "SELECT * FROM nowhere"),
            "second": lambda: query("second", "SELECT CASE {turn} WHEN 2 THEN error('late') ELSE 7 END"),
            "good": lambda: query("good", "SELECT {turn}"),
        },
        3,
        (duckdb.Error,),
    )
    assert Counter(order) == {"bad": 1, "second": 2, "good": 3}
    assert turns.seconds == {"good": 1.0}
    assert turns.answers == {"good": 3}
    assert set(turns.unfinished) == {"bad", "second"}
    assert "nowhere" in turns.unfinished["bad"]
    assert "late" in turns.unfinished["second"]
    assert not any("\n" in message for message in turns.unfinished.values())
