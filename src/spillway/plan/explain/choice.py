"""Why a view is joined as it is: expected sizes of its joins, and of the next best tree."""

from __future__ import annotations

from collections.abc import Iterator

from spillway.plan.explain.report import PlanReport, SizedTreeReport
from spillway.plan.operators import SizedTree, TreeChoice, shape_text


def with_choice(report: PlanReport, choice: TreeChoice | None) -> PlanReport:
    """The report with why its plan has its tree, unless only one was possible."""
    if choice is None:
        return report
    names = [input_["name"] for input_ in report["inputs"]] if choice.input_rows else []
    report["choice"] = {
        "why": choice.why,
        "chosen": _sized(choice.chosen),
        "runner_up": _sized(choice.runner_up),
        "input_rows": dict(zip(names, map(round, choice.input_rows), strict=True)),
    }
    return report


def choice_lines(report: PlanReport) -> Iterator[str]:
    """The same for a reader."""
    choice = report.get("choice")
    if choice is None:
        return
    yield f"  tree       {choice['why']}"
    for name, tree in (("expected", choice["chosen"]), ("runner-up", choice["runner_up"])):
        if tree is not None:
            yield f"  {name:9}  {tree['tree']}: {_work(tree)}"
    if choice["input_rows"]:
        rows = ", ".join(f"{name} {rows:,}" for name, rows in choice["input_rows"].items())
        yield f"  rows       {rows}"


def size_lines(report: PlanReport, join: int) -> Iterator[str]:
    """What one join of a tree is expected to do."""
    choice = report.get("choice")
    if choice is not None and choice["chosen"] is not None:
        size = choice["chosen"]["joins"][join]
        yield f"  expected   {size['candidates']:,} candidates, {size['results']:,} results"


def _work(tree: SizedTreeReport) -> str:
    return f"{tree['candidates']:,} candidates, {tree['kept_rows']:,} rows kept between joins"


def _sized(tree: SizedTree | None) -> SizedTreeReport | None:
    if tree is None:
        return None
    return {
        "tree": shape_text(tree.shape),
        "candidates": round(tree.candidates),
        "kept_rows": round(tree.kept_rows),
        "joins": [
            {"candidates": round(join.candidates), "results": round(join.results)} for join in tree.joins
        ],
    }
