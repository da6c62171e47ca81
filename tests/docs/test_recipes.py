"""The examples of the page "Contributing" work: a spill policy, a placement policy, a sink."""

import json
from pathlib import Path
from random import Random
from typing import Any

from kit.snippets import page, snippets
from spillway.policy.placement.pairwise_memory import PairwiseParameters
from spillway.policy.placement.snapshot import PlacedGroup, PlacementSnapshot, ProcessorStatistics
from spillway.policy.spill.snapshot import GroupStatistics, SpillSnapshot
from spillway.state.storage import Storage


def defined(name: str) -> Any:
    """What an example defines under a name."""
    for snippet in snippets("python", pages=page("docs/contributing.md")):
        if f"def {name}(" in snippet.text or f"class {name}:" in snippet.text:
            space: dict[str, Any] = {}
            exec(compile(snippet.text, snippet.name, "exec"), space)
            return space[name]
    raise AssertionError(f"no example defines {name}")


def test_spill_policy() -> None:
    groups = tuple(GroupStatistics(n, bytes=size, results=1, age_epochs=9, idle_epochs=0)
                   for n, size in enumerate([10, 30, 20]))  # fmt: skip
    assert defined("largest")(SpillSnapshot(groups, wanted_bytes=40), Random(0)) == (1, 2)


def test_placement_policy() -> None:
    processors = tuple(
        ProcessorStatistics(n, resident_bytes=size, state_limit_bytes=100) for n, size in enumerate([60, 10])
    )
    groups = (PlacedGroup(0, 0, bytes=60), PlacedGroup(1, 1, bytes=10))
    snapshot = PlacementSnapshot(100.0, 9, processors, groups)
    (move,) = defined("one_at_a_time")(snapshot, PairwiseParameters()).moves
    assert (move.sender, move.receiver, move.bytes) == (0, 1, 60)


def test_sink(tmp_path: Path, tasks: Any) -> None:
    sink = defined("JsonLinesSink")(Storage(str(tmp_path / "out")))
    sink.prepare(tasks.query_id, tasks.schema)
    epoch = tasks.stage(sink.staging, 3, [[1, 2], [3]])
    sink.commit(epoch)
    sink.commit(epoch)
    assert sink.last_committed(tasks.query_id) == 3
    (file,) = (tmp_path / "out").glob("*.jsonl")
    assert [json.loads(line)["id"] for line in file.read_text().splitlines()] == [1, 2, 3]
    assert sink.sweep(()) == 0
