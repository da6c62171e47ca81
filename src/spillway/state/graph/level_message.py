"""What a processor tells itself from one stage to the next; whether all reports of an epoch fit together."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from spillway.errors import StateError
from spillway.model import WrittenAs, from_text
from spillway.state.graph.graph import Graph
from spillway.state.graph.translation import merged_report
from spillway.state.orders import Report

_SEEN = WrittenAs(tuple[tuple[int, int, str], ...], sorted, frozenset)


class TornEpochError(StateError):
    """Parts of an epoch read different attempts of one part; it has to be run again."""


@dataclass(frozen=True, slots=True)
class LevelMessage:
    reports: Mapping[int, str] = field(default_factory=dict)
    """Of the operators that are done."""
    input_rows: int = 0
    """Rows of the view's inputs that arrived."""
    seen: Annotated[frozenset[tuple[int, int, str]], _SEEN] = frozenset()
    """Stages, tasks and attempts on which the reports rest."""

    @classmethod
    def read(cls, text: str) -> "LevelMessage":
        return from_text(cls, text)


def consistent_reports(graph: Graph, commits: Mapping[int, LevelMessage]) -> list[Report]:
    """The reports of an epoch, by processor, if all its parts rest on the same attempts."""
    attempts: dict[tuple[int, int], str] = {}
    for commit in commits.values():
        for stage, task, attempt in commit.seen:
            if attempts.setdefault((stage, task), attempt) != attempt:
                raise TornEpochError(f"task {task} of stage {stage} ran twice, and both attempts were read")
    reports = []
    for _, commit in sorted(commits.items()):
        by_operator = [from_text(Report, commit.reports[number]) for number in range(len(graph.operators))]
        merged = by_operator[0] if graph.is_one else merged_report(graph, by_operator)
        reports.append(replace(merged, input_rows=commit.input_rows))
    return reports
