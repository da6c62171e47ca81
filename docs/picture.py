"""Draws `images/adapting-run.svg` from the journal of a run: `python docs/picture.py CHECKPOINT`.

The job of the run is on the page "Budgets and spilling". Memory above, results below, one time axis.
"""

import io
import re
import sys
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from spillway.manager.journal import EpochEntry, read_journal
from spillway.report import series

PICTURE = Path(__file__).parent / "images" / "adapting-run.svg"
BLUE, ORANGE, RED, GREY = "#2f6f9f", "#d1793b", "#a02020", "#555555"
STYLE = {
    "font.family": "sans-serif",
    "font.size": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "spillway",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def draw(epochs: tuple[EpochEntry, ...]) -> str:
    """The picture as SVG text."""
    time = series.running_time(epochs)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.2, 4.2), layout="constrained")
        memory, results = figure.subplots(2, 1, sharex=True)
        for line, colour in zip(series.memory(epochs, time), (BLUE, ORANGE), strict=False):
            values = [value / 1e6 for value in line.values]
            memory.plot(line.seconds, values, color=colour, label=line.label)
        spills = series.spill_marks(epochs, time)
        heights = [mark.resident_bytes / 1e6 for mark in spills]
        memory.scatter([mark.seconds for mark in spills], heights, marker="v", s=26, color=RED, label="spill")
        moves = [end for end, epoch in zip(time.ends, epochs, strict=True) if epoch.relocation.switched]
        for number, end in enumerate(moves):
            label = "groups moved" if number == 0 else None
            memory.axvline(end, color=GREY, linewidth=0.8, linestyle="--", label=label)
        last = epochs[-1]
        memory.axhline((last.budget_bytes or 0) / 1e6, color=RED, linewidth=1, label="budget")
        state = (last.state_bytes or 0) / 1e6
        memory.axhline(state, color=RED, linewidth=1, linestyle=":", label="its part for state")
        memory.set_ylabel("state, MB")
        run, cleanup = series.results(epochs, time)
        stacked = [[value / 1e6 for value in line.values] for line in (run, cleanup)]
        labels = ["at run time", "from clean-up"]
        results.stackplot(run.seconds, *stacked, labels=labels, colors=[BLUE, ORANGE], alpha=0.75)
        results.set_ylabel("results, millions")
        results.set_xlabel("seconds")
        for axes in (memory, results):
            axes.set_ylim(bottom=0)
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None}, facecolor="white")
    svg = text.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r"(\d+\.\d)\d+", r"\1", svg[svg.index("<svg") :])
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)


if __name__ == "__main__":
    checkpoint = Path(sys.argv[1])
    PICTURE.write_text(draw(tuple(read_journal(checkpoint / "journal.jsonl"))), encoding="utf-8")
