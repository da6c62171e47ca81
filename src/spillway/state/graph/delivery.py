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
class Delivery:
    """What one processor tells another after a level."""

    parcels: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Per join, files with rows for it."""
    reports: Mapping[int, str] = field(default_factory=dict)
    """Of the joins that are done, told by a processor to itself only."""
    input_rows: int = 0
    """Rows of the view's inputs that came, told likewise."""
    seen: frozenset[tuple[int, int, str]] = frozenset()
    """Levels, processors and attempts on which this delivery rests."""

    def to_json(self) -> str:
        return json.dumps(
            {
                "parcels": {str(join): list(names) for join, names in self.parcels.items()},
                "reports": {str(join): report for join, report in self.reports.items()},
                "input_rows": self.input_rows,
                "seen": sorted(self.seen),
            }
        )

    @staticmethod
    def from_json(text: str) -> "Delivery":
        body = json.loads(text)
        return Delivery(
            {int(join): tuple(names) for join, names in body["parcels"].items()},
            {int(join): report for join, report in body["reports"].items()},
            body["input_rows"],
            frozenset((level, processor, attempt) for level, processor, attempt in body["seen"]),
        )


def together(inbox: Iterable[Delivery]) -> Delivery:
    """What a processor was told, by all."""
    parcels: dict[int, tuple[str, ...]] = {}
    reports: dict[int, str] = {}
    input_rows, seen = 0, frozenset[tuple[int, int, str]]()
    for one in inbox:
        for join, names in one.parcels.items():
            parcels[join] = tuple(sorted((*parcels.get(join, ()), *names)))
        reports |= one.reports
        input_rows += one.input_rows
        seen |= one.seen
    return Delivery(parcels, reports, input_rows, seen)


def agreed(tree: Graph, commits: Mapping[int, Delivery]) -> list[Report]:
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


def remove_parcels(state: str) -> None:
    """Delete what was on its way; nothing is when an epoch is over."""
    storage = Storage(state)
    storage.delete(storage.list(f"{DIRECTORY}/"))
