"""A plot as SVG text that can stand beside others in one HTML page.

matplotlib is imported when a plot is drawn, so that commands which draw none do not pay for it.
Identifiers inside an SVG are shared by the whole page, so each plot's carry its name.
"""

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#2f6f9f", "#d1793b", "#4d9a63", "#b0485e", "#7a68b3", "#8a7a4e", "#3d9ea8", "#6b6b6b")
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "svg.fonttype": "none",  # text stays text: small, searchable, in the reader's own font
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
}
Draw = Callable[["Axes"], None]


def figure(draw: Draw, *, size_inches: tuple[float, float] = (9.0, 3.2)) -> "Figure":
    """One plot; not registered with pyplot, so nothing has to be closed."""
    import matplotlib
    from cycler import cycler
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**_STYLE, "axes.prop_cycle": cycler(color=COLOURS)}):
        made = Figure(figsize=size_inches, layout="constrained")
        draw(made.add_subplot())
        made.canvas.draw()
    return made


def draw_svg(name: str, draw: Draw, *, size_inches: tuple[float, float] = (9.0, 3.2)) -> str:
    """The `<svg>` element of a plot; the same numbers give the same text."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure(draw, size_inches=size_inches).savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
