"""Engines take turns on one query, so that what disturbs the machine disturbs all of them alike.

The least time of each counts. An engine that fails gets no further turn and has no time: it did not finish,
and its message says why. What the others do goes on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

MESSAGE_LENGTH = 300
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Turn(Generic[T]):
    """One run of one engine."""

    seconds: float
    cpu_seconds: float
    answer: T


@dataclass(frozen=True, slots=True)
class Turns(Generic[T]):
    """By engine; the last answer of each that finished."""

    seconds: dict[str, float] = field(default_factory=dict)
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    answers: dict[str, T] = field(default_factory=dict)
    unfinished: dict[str, str] = field(default_factory=dict)
    """Why an engine did not finish."""


def take_turns(
    actions: Mapping[str, Callable[[], Turn[T]]], repeats: int, failures: tuple[type[Exception], ...]
) -> Turns[T]:
    """Run every action `repeats` times, in turns; `failures` are the errors that engines end with."""
    turns: Turns[T] = Turns()
    for _ in range(repeats):
        for name, action in actions.items():
            if name in turns.unfinished:
                continue
            try:
                turn = action()
            except failures as error:
                turns.unfinished[name] = reason(error)
                for found in (turns.seconds, turns.cpu_seconds, turns.answers):
                    found.pop(name, None)
                continue
            turns.seconds[name] = min(turn.seconds, turns.seconds.get(name, turn.seconds))
            turns.cpu_seconds[name] = min(turn.cpu_seconds, turns.cpu_seconds.get(name, turn.cpu_seconds))
            turns.answers[name] = turn.answer
    return turns


def reason(error: Exception) -> str:
    """The first line of an error's message: Spark's go on with a plan and a stack."""
    text = str(error).strip()
    return text.splitlines()[0][:MESSAGE_LENGTH] if text else type(error).__name__
