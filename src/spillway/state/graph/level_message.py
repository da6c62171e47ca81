"""What processors of a tree tell each other between levels, and whether their reports fit together."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from spillway.errors import StateError
from spillway.state.graph.exchange import DIRECTORY
from spillway.state.graph.graph import Graph
from spillway.state.orders import Report
from spillway.state.storage import Storage


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
    seen: frozenset[tuple[int, int, str]] = frozenset()
    """Levels, processors and attempts on which this message rests."""

    def to_json(self) -> str:
        return json.dumps(
            {
                "files": {str(join): list(names) for join, names in self.files.items()},
                "reports": {str(join): report for join, report in self.reports.items()},
                "input_rows": self.input_rows,
                "seen": sorted(self.seen),
            }
        )

    @staticmethod
    def from_json(text: str) -> "LevelMessage":
        body = json.loads(text)
        return LevelMessage(
            {int(join): tuple(names) for join, names in body["files"].items()},
            {int(join): report for join, report in body["reports"].items()},
            body["input_rows"],
            frozenset((level, processor, attempt) for level, processor, attempt in body["seen"]),
        )


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
        by_join = [Report.from_json(commit.reports[join]) for join in range(len(tree.operators))]
        reports.append(replace(tree.merged_report(by_join), input_rows=commit.input_rows))
    return reports


def remove_exchange(state: str) -> None:
    """Delete what was on its way; nothing is when an epoch is over."""
    storage = Storage(state)
    storage.delete(storage.list(f"{DIRECTORY}/"))
