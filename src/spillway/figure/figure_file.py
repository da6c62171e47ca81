"""A figure as a file: `figure-NAME.svg` in a directory."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from spillway.errors import JobError
from spillway.report.svg import draw_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def write_figure(name: str, draw: "Callable[[Axes], None]", directory: Path) -> Path:
    """Draw it and write it; returns where."""
    path = directory / f"figure-{name}.svg"
    text = draw_svg(f"figure-{name.replace('.', '-')}", draw, size_inches=(7.0, 4.6))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise JobError(f"figure {path} cannot be written: {error.strerror}") from None
    return path
