"""Engines take turns on one query, so disturbances of the machine affect all of them alike.

The median time of each counts, without its first turn, in which code is compiled; that is reported
separately. The order is random each time, because what one engine leaves behind (garbage, running compilers)
slows down the next. An engine that fails gets no further turn and has no time: it is unfinished, and its
message says why. A slow engine is not repeated. The others continue.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import Generic, TypeVar

from spillway.lab.engines.time_limit import TimeIsOverError

MESSAGE_LENGTH = 300
SLOW_SECONDS = 15.0
"""A run that takes longer is not repeated: disturbances are small in comparison."""
ENOUGH_TURNS = 3
SHORT_SECONDS, SHORT_TURNS, LONG_TURNS = 1.0, 3, 2
"""A run below the first limit is short and repeated more often: disturbances are large in comparison."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Turn(Generic[T]):
    """One run of one engine."""

    seconds: float
    cpu_seconds: float
    answer: T


@dataclass(frozen=True, slots=True)
class Turns(Generic[T]):
    """By engine: the last answer of each that finished."""

    seconds: dict[str, float] = field(default_factory=dict)
    first_seconds: dict[str, float] = field(default_factory=dict)
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    answers: dict[str, T] = field(default_factory=dict)
    unfinished: dict[str, str] = field(default_factory=dict)
    """Why an engine did not finish."""
    stopped: dict[str, float] = field(default_factory=dict)
    """Those of them that exceeded the time limit, and the limit."""
    all_seconds: dict[str, list[float]] = field(default_factory=dict)
    """The time of every turn."""

    def give(self, owner: str, other: str) -> None:
        """The results of `owner` also count for `other`."""
        for found in (self.seconds, self.first_seconds, self.cpu_seconds, self.stopped):
            if owner in found:
                found[other] = found[owner]
        if owner in self.answers:
            self.answers[other] = self.answers[owner]
        if owner in self.unfinished:
            self.unfinished[other] = self.unfinished[owner]


def take_turns(
    actions: Mapping[str, Callable[[], Turn[T]]],
    repeats: int,
    failures: tuple[type[Exception], ...],
    often: Collection[str] = (),
    seed: int = 0,
) -> Turns[T]:
    """Run every action `repeats` times, in turns, and those of `often` twice as often, or three times if
    they are short; `failures` are the errors that an engine may end with, `seed` decides the order."""
    taken: dict[str, list[Turn[T]]] = {name: [] for name in actions}
    unfinished: dict[str, str] = {}
    stopped: dict[str, float] = {}
    random = Random(seed)  # noqa: S311 - an order, not a secret
    for _ in range(repeats):
        names = [name for name in actions for _ in range(_turns(taken[name]) if name in often else 1)]
        random.shuffle(names)
        for name in names:
            if name in unfinished or any(turn.seconds > SLOW_SECONDS for turn in taken[name]):
                continue
            try:
                taken[name].append(actions[name]())
            except failures as error:
                unfinished[name] = reason(error)
                if isinstance(error, TimeIsOverError):
                    stopped[name] = error.limit_seconds
    finished = {name: found for name, found in taken.items() if found and name not in unfinished}
    return Turns(
        {name: median(turn.seconds for turn in _warm(found)) for name, found in finished.items()},
        {name: found[0].seconds for name, found in finished.items()},
        {name: median(turn.cpu_seconds for turn in _warm(found)) for name, found in finished.items()},
        {name: found[-1].answer for name, found in finished.items()},
        unfinished,
        stopped,
        {name: [turn.seconds for turn in found] for name, found in finished.items()},
    )


def _turns(taken: list[Turn[T]]) -> int:
    """Turns in one round of an engine whose differences from others matter."""
    return SHORT_TURNS if taken and taken[-1].seconds < SHORT_SECONDS else LONG_TURNS


def _warm(found: list[Turn[T]]) -> list[Turn[T]]:
    """All turns but the first, if there are enough."""
    return found[1:] if len(found) >= ENOUGH_TURNS else found


def reason(error: Exception) -> str:
    """The first line of an error's message: Spark appends a plan and a stack trace."""
    text = str(error).strip()
    return text.splitlines()[0][:MESSAGE_LENGTH] if text else type(error).__name__
