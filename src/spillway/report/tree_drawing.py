"""A join tree as a drawing: relations below, each segment a box with its joins, results flowing upwards."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spillway.errors import JobError, file_reason
from spillway.report.svg import COLOURS, draw_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW = 1.0
_INCHES_PER_COLUMN, _INCHES_PER_ROW = 1.5, 0.55


def draw_tree(report: Mapping[str, Any], path: Path) -> None:
    """Write the tree of a report (of `tree_report`) as SVG."""
    places = _places(report)
    width = 1 + max(column for column, _ in places.values())
    height = 1 + max(row for _, row in places.values())

    def draw(axes: "Axes") -> None:
        axes.set_axis_off()
        axes.set_xlim(-0.6, width - 0.4)
        axes.set_ylim(-0.6, height - 0.2)
        axes.set_title(f"{report['tree']}: estimated {report['estimated_seconds']:.2f} s")
        for segment in report["segments"]:
            _draw_segment(axes, segment, places)

    text = draw_svg(
        "join-tree",
        draw,
        size_inches=(max(5.0, width * _INCHES_PER_COLUMN), max(3.0, height * _INCHES_PER_ROW)),
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise JobError(
            f"drawing {path} cannot be written: {file_reason(error, 'give another path')}"
        ) from None


def _draw_segment(axes: "Axes", segment: Mapping[str, Any], places: Mapping[str, tuple[int, float]]) -> None:
    colour = COLOURS[segment["number"] % len(COLOURS)]
    name = f"segment {segment['number']}"
    below = places[segment["probe"]]
    if not segment["probe"].startswith("segment "):
        _box(axes, below, f"{segment['probe']}\n{segment['probe_rows']:,}", colour, filled=False)
    for number, join in enumerate(segment["joins"]):
        at = places[f"{name}/{number}"]
        build = places[join["build"]]
        axes.plot([below[0], at[0]], [below[1], at[1]], color=colour, linewidth=2, zorder=1)
        axes.plot([build[0], at[0]], [build[1], at[1]], color="#999999", linewidth=1, zorder=1)
        if not join["build"].startswith("segment "):
            _box(axes, build, f"{join['build']}\n{join['build_rows']:,}", "#666666", filled=False)
        found = join.get("measured_rows")
        label = f"{join['estimated_rows']:,}" + ("" if found is None else f"\nmeasured {found:,}")
        _box(axes, at, label, colour, filled=True)
        below = at


def _box(axes: "Axes", at: tuple[int, float], text: str, colour: str, *, filled: bool) -> None:
    axes.text(
        at[0],
        at[1],
        text,
        ha="center",
        va="center",
        fontsize=7,
        zorder=2,
        bbox={"boxstyle": "round", "facecolor": "#eef3f8" if filled else "white", "edgecolor": colour},
    )


def _places(report: Mapping[str, Any]) -> dict[str, tuple[int, float]]:
    """Column and row of every relation and join; a segment's joins are above each other."""
    places: dict[str, tuple[int, float]] = {}
    by_name = {f"segment {segment['number']}": segment for segment in report["segments"]}
    column = 0

    def place(name: str) -> tuple[int, float]:
        nonlocal column
        if name not in by_name:
            places[name] = (column, 0.0)
            column += 1
            return places[name]
        segment = by_name[name]
        at = place(segment["probe"])
        own, row = at
        for number, join in enumerate(segment["joins"]):
            _, other = place(join["build"])
            row = max(row, other) + _ROW
            places[f"{name}/{number}"] = (own, row)
        places[name] = (own, row)
        return places[name]

    place(f"segment {report['segments'][-1]['number']}")
    return places
