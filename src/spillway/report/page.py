"""The page: one HTML text that contains everything; nothing is fetched, and there is no script."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import pairwise

from spillway.manager.journal import EpochEntry
from spillway.model import GroupSet, members
from spillway.report.plots import plots
from spillway.report.series import RunningTime
from spillway.report.svg import draw_svg
from spillway.report.totals import Totals

EVENTS = 1_000
"""The most rows of the table of events; the last ones are kept."""
_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .2rem; }
p.note { color: #666; margin: 0 0 .5rem; }
pre { background: #f4f4f2; padding: .8rem; white-space: pre-wrap; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: .6rem; }
dt { color: #666; font-size: .85rem; } dd { margin: 0; font-size: 1.15rem; }
svg { width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .85rem; width: 100%; }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid #ddd; vertical-align: top; }
th:last-child, td:last-child { text-align: left; }
"""


def page(view: str, epochs: Sequence[EpochEntry], time: RunningTime, totals: Totals) -> str:
    figures = "".join(
        f'<section id="{plot.name}"><h2>{escape(plot.title)}</h2>'
        f'<p class="note">{escape(plot.note)}</p>{draw_svg(plot.name, plot.draw)}</section>\n'
        for plot in plots(epochs, time)
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Spillway report</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>Spillway report</h1>\n<pre>{escape(view)}</pre>\n"
        f"{_head(totals)}{figures}{_events(epochs, time)}</body></html>\n"
    )


def _head(totals: Totals) -> str:
    pairs = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in _facts(totals)
    )
    missing = totals.missing_epochs
    note = f'<p class="note">{missing} committed epochs are not in the journal: a kill cut it short.</p>'
    return f"<dl>{pairs}</dl>\n{note if missing else ''}"


def _facts(totals: Totals) -> Iterable[tuple[str, str]]:
    yield "input rows", f"{totals.input_rows:,}"
    yield "results at run time", f"{totals.results_runtime:,}"
    yield "results in clean-up", f"{totals.results_cleanup:,}"
    yield "epochs", f"{totals.epochs:,}"
    yield "seconds", f"{totals.seconds:,.1f}"
    yield "of these clean-up", f"{totals.cleanup_seconds:,.1f}"
    yield "input rows per second", f"{totals.input_rows / max(totals.seconds, 1e-9):,.0f}"
    yield "budget per processor", "none" if totals.budget_bytes is None else _size(totals.budget_bytes)
    yield "most state in memory", ", ".join(_size(size) for size in totals.resident_bytes_peak)
    yield "spills", f"{totals.spills:,} ({_size(totals.spilled_bytes)})"
    if totals.restarts:
        yield "restarts", f"{totals.restarts:,}"
    if totals.pending_rows:
        yield "pending rows", f"{totals.pending_rows:,}"
    if totals.late_rows or totals.expired_rows:
        yield "late rows", f"{totals.late_rows:,}"
        yield "expired rows", f"{totals.expired_rows:,}"
    if totals.lineage_one_in > 1:
        error = f"standard error {totals.lineage_error:.1%} of a group's count"
        yield "lineage", f"one row in {totals.lineage_one_in:,}, {error}"


def _events(epochs: Sequence[EpochEntry], time: RunningTime) -> str:
    rows = [
        (f"{time.begins[n]:.1f}", f"{epoch.sequence}", *row)
        for n, epoch in enumerate(epochs)
        for row in _rows(epoch)
    ]
    if not rows:
        return '<h2>Events</h2><p class="note">Nothing was spilled.</p>\n'
    left_out = len(rows) - EVENTS
    note = f'<p class="note">The first {left_out:,} events are left out.</p>' if left_out > 0 else ""
    heads = ("seconds", "epoch", "processor", "event", "reason", "freed", "groups")
    body = "".join(f"<tr>{_cells(row, 'td')}</tr>\n" for row in rows[-EVENTS:])
    return (
        f'<section id="events"><h2>Events</h2>{note}<table><thead><tr>{_cells(heads, "th")}</tr></thead>'
        f"<tbody>{body}</tbody></table></section>\n"
    )


def _rows(epoch: EpochEntry) -> Iterator[tuple[str, ...]]:
    """What happened before the epoch: processor, event, reason, bytes, groups."""
    for spill in epoch.spills:
        event = f"spill at {_size(spill.resident_bytes)}"
        groups = _numbers(spill.groups)
        yield f"{spill.processor}", event, spill.reason, _size(spill.bytes), groups
    for swap in epoch.swaps:
        event = f"rotation, {swap.resumed.bit_count()} back with {_size(swap.resumed_bytes)}"
        groups = _numbers(swap.suspended)
        yield f"{swap.processor}", event, swap.reason, _size(swap.suspended_bytes), groups


def _numbers(groups: GroupSet) -> str:
    return f"{groups.bit_count()}: {ranges(tuple(members(groups)))}"


def ranges(groups: Sequence[int]) -> str:
    """Group numbers, neighbours as ranges: 0-3, 7."""
    ordered = sorted(groups)
    starts = [0, *(n + 1 for n, (a, b) in enumerate(pairwise(ordered)) if b != a + 1), len(ordered)]
    parts = [(ordered[lo], ordered[hi - 1]) for lo, hi in pairwise(starts) if lo < hi]
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def _cells(values: Iterable[str], tag: str) -> str:
    return "".join(f"<{tag}>{escape(value)}</{tag}>" for value in values)


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
