"""A driver's death at a named place of one epoch, by its own hand: what the doomed programs share.

    halfway     one task has written its files, the next has not begun (without Spark only)
    staged      the tasks have written all files; the manifest does not know the epoch
    ahead       the same, and the next batch, if there is one, is already in the file log (with Spark only)
    committed   the manifest has the epoch; the sink does not
    sunk        the sink has it; the journal does not

The epoch is a sequence number, or the n-th of its kind in this life: `epoch:3` the third of any, `spill:1`
the first that begins with a spill, `cleanup:2` the second that cleans up, `cleanup-1:1` the first that cleans
up a join of level 1 of a tree, `turn:1` the first in which suspended groups come back, `load:1` the first in
which groups are loaded elsewhere, `switch:1` the first in which they are there, `row:1` the first that begins
inside the results of a row. With ARMED in the environment, a path, none counts before that file is there.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spillway import testing
from spillway.manager.change import Change
from spillway.manager.commit import Committer
from spillway.manager.controller import Controller
from spillway.manager.files.log import DIRECTORY
from spillway.manager.journal.entry import EpochEntry
from spillway.manager.journal.file import Journal
from spillway.manager.ordering import OrderMaker
from spillway.model.groups import group_set, members, placed_on
from spillway.state.graph.graph import Graph
from spillway.state.log.manifest import Manifest
from spillway.state.log.manifest_log import ManifestLog
from spillway.state.orders.orders import Orders


def die(sequence: int) -> None:
    sys.stderr.write(f"\ndoomed in epoch {sequence}\n")
    sys.stderr.flush()
    os.killpg(os.getpgid(0), signal.SIGKILL)


class Doom:
    """Knows the sequence number of the doomed epoch, as soon as its orders are made."""

    def __init__(self, epoch: str) -> None:
        self.kind, _, number = epoch.rpartition(":")
        self.left = int(number) if self.kind else 0
        self.sequence = -1 if self.kind else int(number)

    def see(self, orders: Orders, change: Change, levels: set[int]) -> None:
        """Count the epoch if it is of the doomed kind; `levels` are those of a tree that it cleans up."""
        if not Path(os.environ.get("ARMED", "/")).exists():
            return
        kinds = {f"cleanup-{level}": True for level in levels} | {
            "epoch": True,
            "cleanup": orders.clean,
            "spill": bool(change.spills),
            "turn": any(swap.resumed for swap in change.swaps),
            "load": bool(change.relocation.loads),
            "switch": bool(change.relocation.completed),
            "row": bool(change.relocation.manifest.mid_row_groups),
        }
        if kinds.get(self.kind, False):
            self.left -= 1
            if self.left == 0:
                self.sequence = orders.sequence


def watch_orders(doom: Doom) -> None:
    make: Callable[..., list[Orders]] = OrderMaker.orders

    def orders(self: Any, change: Change, *rest: Any, **named: Any) -> list[Orders]:
        made = make(self, change, *rest, **named)
        graph: Graph = self.graph
        levels = set() if graph.is_one else {graph.levels[one] for one in graph.operators_of(made[0].cleaned)}
        doom.see(made[0], change, levels)
        return made

    OrderMaker.orders = orders  # type: ignore[method-assign]


def force_moves() -> None:
    """Before an epoch, send some groups of one processor to the next one, in turn."""
    decide: Callable[..., Change] = Controller.decide

    def moving(self: Any, manifest: Manifest, **named: Any) -> Change:
        if not self.relocation.moves:
            count = manifest.processor_count
            sender = manifest.sequence % count
            mine = list(members(placed_on(manifest.placement, sender)))
            self.move(manifest, group_set(mine[:: max(1, len(mine) // 5)][:-1]), (sender + 1) % count)
        return decide(self, manifest, **named)

    Controller.decide = moving  # type: ignore[method-assign]


def watch_tasks(doom: Doom) -> None:
    """Die when the second task of the doomed epoch begins."""
    begun: list[int] = []

    def second_is_doomed(run: Callable[..., Any], sequence: Callable[..., int]) -> Callable[..., Any]:
        def watched(*words: Any, **named: Any) -> Any:
            begun.append(sequence(*words))
            if begun.count(doom.sequence) == 2:
                die(doom.sequence)
            return run(*words, **named)

        return watched

    run_step, run_level = testing.run_step, testing.StageStep.run
    testing.run_step = second_is_doomed(run_step, lambda orders, *_: orders.sequence)
    tree_step: Any = testing.StageStep
    tree_step.run = second_is_doomed(run_level, lambda step, *_: step.orders.sequence)


def await_plan(state: str, batch_id: int) -> None:
    """Until the batch after this one is planned; the last has none after it."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if any((Path(state) / DIRECTORY).glob(f"{batch_id + 1:012d}.*")):
            return
        time.sleep(0.01)


def arm(place: str, epoch: str) -> None:
    """From now on this process is doomed."""
    doom = Doom(epoch)
    watch_orders(doom)
    commit, deliver, append = ManifestLog.commit, Committer.deliver, Journal.append

    def staged(self: Any, manifest: Any, record: Any) -> Any:
        if record.sequence == doom.sequence:
            die(doom.sequence)
        return commit(self, manifest, record)

    def ahead(self: Any, manifest: Any, record: Any) -> Any:
        if record.sequence == doom.sequence:
            await_plan(self._storage.root, record.batch_id)
        return staged(self, manifest, record)

    def committed(self: Any) -> None:
        if self.undelivered and self.manifest.sequence == doom.sequence:
            die(doom.sequence)
        deliver(self)

    def sunk(self: Any, entry: EpochEntry) -> None:
        if entry.sequence == doom.sequence:
            die(doom.sequence)
        append(self, entry)

    if place == "halfway":
        watch_tasks(doom)
    elif place == "staged":
        ManifestLog.commit = staged  # type: ignore[method-assign]
    elif place == "ahead":
        ManifestLog.commit = ahead  # type: ignore[method-assign]
    elif place == "committed":
        Committer.deliver = committed  # type: ignore[method-assign]
    elif place == "sunk":
        Journal.append = sunk  # type: ignore[method-assign]
    elif place != "nowhere":
        raise SystemExit(f"unknown place {place}")
