"""What a bounded run takes as the operating system counts it: anonymous memory and blocks of the tmpfs."""

from pathlib import Path

import pytest

from kit.bounded_plan import BoundedPlan
from kit.memory_watch import is_possible
from kit.watched_run import watched_run
from kit.wide_rows import PAYLOADS
from spillway.manager.journal.entry import EpochKind

SLACK_BYTES = {4: 2 << 20, 8: 1 << 20}
"""What may come on top of small budgets, by their MiB: their reserve is less than what nobody counts."""

EVERYDAY = [
    kind if kind in ("text", "nested") else pytest.param(kind, marks=pytest.mark.nightly)
    for kind in sorted(PAYLOADS)
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not is_possible(), reason="needs Linux with a tmpfs"),
]


@pytest.mark.parametrize("payload", EVERYDAY)
@pytest.mark.parametrize(
    ("shape", "width", "memory_mib", "matches"),
    [
        ("join", 20, 4, 1),
        ("join", 100, 8, 4),
        ("tree", 20, 4, 1),
        ("tree", 100, 8, 4),
        ("tree", 250, 16, 1),
        ("join", 100, 32, 4),
    ],
)
def test_the_operating_system_sees_no_more_than_the_budget(
    tmp_path: Path, shape: str, width: int, memory_mib: int, matches: int, payload: str
) -> None:
    plan = BoundedPlan(shape, payload, width, memory_mib << 20)
    run = watched_run(plan, tmp_path, times_memory=3.0, matches=matches)
    assert run.spills > 0
    slack = SLACK_BYTES.get(memory_mib, 0)
    assert max(run.counted_bytes(phase) for phase in EpochKind) > plan.memory_bytes // 2
    for phase in EpochKind:
        seen, counted = run.peak(phase).bytes, run.counted_bytes(phase)
        print(f"{phase.value}: {counted / 1e6:.1f} MB counted, {seen / 1e6:.1f} seen")
        assert run.results(phase) > 0
        assert counted <= plan.memory_bytes
        assert counted // 2 < seen <= plan.memory_bytes + slack
