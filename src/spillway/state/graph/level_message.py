"""What processors of a tree tell each other between levels, and whether their reports fit together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from spillway.errors import StateError
from spillway.model import WrittenAs, from_text
from spillway.state.graph.exchange import DIRECTORY
from spillway.state.graph.graph import Graph
from spillway.state.orders import Report
from spillway.state.storage import Storage

_SEEN = WrittenAs(tuple[tuple[int, int, str], ...], sorted, frozenset)


class TornEpochError(StateError):
    """Parts of an epoch read different attempts of one part; it has to be run again."""


@dataclass(frozen=True, slots=True)
class LevelMessage:
    """What one processor tells another after a level."""

    files: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Per join, files with rows for it."""
    reports: Mapping[int, str] = field(default_factory=dict)
    """Of the joins that are done; a processor tells them only to itself."""
    input_rows: int = 0
    """Rows of the view's inputs that arrived; likewise."""
    seen: Annotated[frozenset[tuple[int, int, str]], _SEEN] = frozenset()
    """Levels, processors and attempts on which this message rests."""


def together(messages: Iterable[LevelMessage]) -> LevelMessage:
    """One message of all that a processor was told."""
    files: dict[int, tuple[str, ...]] = {}
    reports: dict[int, str] = {}
    input_rows, seen = 0, frozenset[tuple[int, int, str]]()
    for message in messages:
        for join, names in message.files.items():
            files[join] = tuple(sorted((*files.get(join, ()), *names)))
        reports |= message.reports
        input_rows += message.input_rows
        seen |= message.seen
    return LevelMessage(files, reports, input_rows, seen)


def consistent_reports(tree: Graph, commits: Mapping[int, LevelMessage]) -> list[Report]:
    """The reports of an epoch, by processor, if all its parts rest on the same attempts."""
    attempts: dict[tuple[int, int], str] = {}
    for commit in commits.values():
        for level, processor, attempt in commit.seen:
            if attempts.setdefault((level, processor), attempt) != attempt:
                raise TornEpochError(
                    f"level {level} of processor {processor} was run twice, and both attempts were read"
                )
    reports = []
    for _, commit in sorted(commits.items()):
        by_join = [from_text(Report, commit.reports[join]) for join in range(len(tree.operators))]
        reports.append(replace(tree.merged_report(by_join), input_rows=commit.input_rows))
    return reports


def remove_exchange(state: str) -> None:
    """Delete what was on its way; nothing is when an epoch is over."""
    storage = Storage(state)
    storage.delete(storage.list(f"{DIRECTORY}/"))
