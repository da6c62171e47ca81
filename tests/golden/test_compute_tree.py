"""The drawing of a join tree as text, before and after it ran."""

from collections.abc import Callable

from spillway.compute.cost import TreeCost
from spillway.compute.explain import draw_text, tree_report
from spillway.compute.join_graph import JoinGraph, JoinKey, Relation
from spillway.compute.trees.choice import choose

ROWS = {"orders": 1e6, "lines": 4e6, "parts": 2e4, "customers": 1e5, "nations": 25.0, "reviews": 3e5}
KEYS = (
    ("orders.id = lines.order", (0, 1), 1e-6),
    ("lines.part = parts.id = reviews.part", (1, 2, 5), 5e-5),
    ("orders.customer = customers.id", (0, 3), 1e-5),
    ("customers.nation = nations.id", (3, 4), 0.04),
)


def test_text(golden: Callable[[str, str], None]) -> None:
    relations = tuple(Relation(name, rows) for name, rows in ROWS.items())
    classes = tuple(
        JoinKey(members, {(a, b): share for a in members for b in members if a < b}, label)
        for label, members, share in KEYS
    )
    model = TreeCost(JoinGraph(relations, classes))
    plan = choose(model, "segmented-bushy")
    measured = {
        number: {
            "seconds": 0.5,
            "step_rows": [1_234 * (1 + step) for step in range(len(segment.builds))],
            "table_bytes": 1_000_000,
            "kept": "cached",
        }
        for number, segment in enumerate(plan.tree.segments())
    }
    before, after = tree_report(model, plan), tree_report(model, plan, measured)
    golden("plans/compute_tree.txt", f"{draw_text(before)}\n\n{draw_text(after)}\n")
