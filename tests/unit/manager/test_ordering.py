"""Which orders processors get."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from spillway.manager.change import Change
from spillway.manager.cleanup_pace import CleanupPace
from spillway.manager.config import EngineConfig
from spillway.manager.ordering import OrderMaker
from spillway.manager.relocation.decision import Relocation
from spillway.manager.spill import Spill
from spillway.state.graph.graph import Graph
from spillway.state.join.operator import JoinOperator
from spillway.state.log.manifest import Manifest
from spillway.state.rows.expiry import Expiry
from spillway.state.rows.run import Run
from spillway.state.step.operator import WireInput


def test_a_receiver_frees_what_is_cleaned_up_while_it_is_loaded(tmp_path: Path) -> None:
    """Groups 0 and 1 go from processor 0 to 1, which has them already; then group 0 is cleaned up."""
    run = Run("r", 0, (1, 0), 1, 20, 2000, 0, live=0b110)
    manifest = Manifest(5, 0, (0, 0, 0, 1), {"r": run})
    moving = Run("r", 0, (1, 0), 1, 20, 2000, 0, live=0b010)
    change = Change(Relocation(manifest=manifest, processors=2, incoming={1: (moving,)}))
    config = EngineConfig(groups=4, processors=2, tier=str(tmp_path))
    inputs = tuple(WireInput(name, (), ()) for name in ("a", "b"))
    join = JoinOperator(inputs, (), None, ((), ()), 4, pa.schema([]))
    maker = OrderMaker(config, None, Graph.of_one(join), str(tmp_path), {}, 1, CleanupPace(10.0))
    expiry = Expiry((), None)
    first, second = maker.orders(change, expiry, None, free=0b0011, ending=False)
    assert (first.free, second.free) == (0b0011, 0b0001)
    spilled = replace(change, spills=(Spill(0, 0b0010, 100, 0, "full"),))
    first, second = maker.orders(spilled, expiry, None, free=0, ending=False)
    assert (second.incoming, second.free) == ((), 0)
    more = replace(
        spilled,
        relocation=replace(change.relocation, incoming={1: (moving, replace(moving, name="s", live=0b110))}),
    )
    first, second = maker.orders(more, expiry, None, free=0, ending=False)
    assert [(run.name, run.live) for run in second.incoming] == [("s", 0b100)]
    assert (first.free, second.free) == (0b0010, 0b0010)
    first, second = maker.orders(
        Change(Relocation(manifest=manifest, processors=2)), expiry, None, free=0b0011, ending=False
    )
    assert (first.free, second.free) == (0b0011, 0)
