"""Every tree over random graphs: acyclic, with same-key neighbours, cyclic; and what the search promises."""

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.compute.allocate import allocate
from spillway.compute.cardinality import Cardinality
from spillway.compute.cost import HASH_ENTRY_BYTES, ROW_HEADER_BYTES, Machine, TreeCost
from spillway.compute.fuse import kept_segments
from spillway.compute.join_graph import JoinGraph, JoinKey, Relation, mask_of, members_of
from spillway.compute.tree import Segment, mask_of_input, steps
from spillway.compute.trees.choice import ALGORITHMS, NEAR, choose, proposals, propose
from spillway.compute.trees.exhaustive import connected_pairs
from spillway.compute.trees.segmented_bushy import compose, group_size
from spillway.compute.unit_costs import UnitCosts
from spillway.errors import JobError, ViewError

ROWS = (1.0, 10.0, 1e3, 2e4, 3e5)
SHARES = (1e-5, 1e-3, 0.1, 1.0)


@st.composite
def graphs(draw: st.DrawFn, most: int = 8) -> JoinGraph:
    """A random tree of classes, some with further members, and now and then one that closes a cycle."""
    size = draw(st.integers(2, most))
    relations = tuple(Relation(f"r{n}", draw(st.sampled_from(ROWS))) for n in range(size))
    members: list[set[int]] = []
    for right in range(1, size):
        if members and draw(st.integers(0, 3)) == 0:
            draw(st.sampled_from(members)).add(right)
        else:
            members.append({draw(st.integers(0, right - 1)), right})
    pairs = st.sets(st.integers(0, size - 1), min_size=2, max_size=2)
    members += draw(st.lists(pairs, max_size=2))
    classes = tuple(
        JoinKey(
            tuple(sorted(one)),
            {pair: draw(st.sampled_from(SHARES)) for pair in combinations(sorted(one), 2)},
        )
        for one in members
    )
    residual = (0b11,) if draw(st.booleans()) else ()
    return JoinGraph(relations, classes, residual)


def relations_of(tree: Segment) -> list[int]:
    """Every relation that a tree reads, as often as it reads it."""
    found: list[int] = []
    for segment in tree.segments():
        found += [one for one in (segment.probe, *segment.builds) if isinstance(one, int)]
    return sorted(found)


def check_covers(graph: JoinGraph, tree: Segment) -> None:
    """Every relation once; every class by as many equalities as connect its members, and no product."""
    assert relations_of(tree) == list(range(graph.size))
    applied = [0] * len(graph.classes)
    tested = [0] * len(graph.residual)
    for segment in tree.segments():
        for step in steps(graph, segment):
            assert step.classes, "a Cartesian product"
            for number in step.classes:
                applied[number] += 1
            for number, mask in enumerate(graph.residual):
                sides = (step.before, mask_of_input(step.build))
                tested[number] += mask & ~step.after == 0 and all(mask & ~side for side in sides)
    assert applied == [len(one.members) - 1 for one in graph.classes]
    assert tested == [1] * len(graph.residual)


@given(graphs(), st.sampled_from([None, 1e3, 1e6]))
def test_every_tree_covers_the_graph(graph: JoinGraph, memory_bytes: float | None) -> None:
    model = TreeCost(graph, machine=Machine(memory_bytes=memory_bytes))
    for name in ALGORITHMS:
        made = propose(model, name)
        assert made is not None
        check_covers(graph, made.tree)
        check_covers(graph, choose(model, name).tree)


@given(graphs(), st.integers(1, 4), st.sampled_from([0.0, 1e9]))
def test_no_tree_has_less_work_than_the_exact_search(
    graph: JoinGraph, processors: int, replicate_bytes: float
) -> None:
    model = TreeCost(graph, machine=Machine(processors, replicate_bytes=replicate_bytes))
    exact = propose(model, "exhaustive")
    assert exact is not None
    for other in proposals(model):
        assert exact.work <= other.work * (1 + 1e-9)


@given(graphs())
def test_the_choice_has_the_least_estimated_time(graph: JoinGraph) -> None:
    """Or nearly: then no tree that is as near has fewer segments."""
    model = TreeCost(graph)
    chosen = choose(model)
    near = min(one.seconds for one in proposals(model)) * (1 + NEAR)
    assert chosen.seconds <= near
    segments = len(list(chosen.tree.segments()))
    assert all(segments <= len(list(one.tree.segments())) for one in proposals(model) if one.seconds <= near)


@given(graphs(), st.floats(1e4, 1e8))
def test_pieces_fit_into_memory_where_every_relation_does(graph: JoinGraph, memory_bytes: float) -> None:
    model = TreeCost(graph, machine=Machine(memory_bytes=memory_bytes))
    single = max(model.table_bytes(1 << index) for index in range(graph.size))
    zigzag = propose(model, "zigzag")
    assert zigzag is not None
    assert zigzag.fits or single > memory_bytes
    if single <= memory_bytes:
        assert choose(model).fits


@given(graphs(most=6))
def test_pairs_are_all_pairs_of_connected_sets_once(graph: JoinGraph) -> None:
    found = [frozenset(pair) for pair in connected_pairs(graph)]
    connected = [mask for mask in range(1, graph.everything + 1) if graph.is_connected(mask)]
    wanted = {
        frozenset((a, b)) for a in connected for b in connected if a < b and not a & b and graph.links(a, b)
    }
    assert len(found) == len(set(found))
    assert set(found) == wanted


@given(graphs())
def test_rows_do_not_depend_on_how_a_set_came_about(graph: JoinGraph) -> None:
    """Joining two sets multiplies rows by shares of at most one, and single relations have their own rows."""
    cardinality = Cardinality(graph)
    for index, one in enumerate(graph.relations):
        assert cardinality.rows(1 << index) == one.rows
    for left, right in connected_pairs(graph):
        product = cardinality.rows(left) * cardinality.rows(right)
        assert cardinality.rows(left | right) <= product * (1 + 1e-9)


@given(graphs(), st.integers(2, 5))
def test_groups_have_at_most_m_relations_and_the_smallest_probes(graph: JoinGraph, size: int) -> None:
    tree = compose(TreeCost(graph), size)
    check_covers(graph, tree)
    assert isinstance(tree.probe, int)
    for group in tree.children:
        assert 2 <= group.mask.bit_count() <= size
        assert not group.children, "one layer of dependencies only"


def test_number_of_groups_is_the_number_of_large_relations() -> None:
    rows = [100.0, 100.0, 1000.0, 100.0, 900.0, 100.0, 1100.0, 100.0, 100.0]
    classes = tuple(JoinKey((n, n + 1), {(n, n + 1): 0.01}) for n in range(8))
    graph = JoinGraph(tuple(Relation(f"r{n}", one) for n, one in enumerate(rows)), classes)
    assert group_size(TreeCost(graph)) == 3  # nine relations, three of them large


def test_redirection_is_avoided_on_the_same_key() -> None:
    """Partitioned by a key, the next join on it redirects nothing; another key does."""
    shares = {(0, 1): 1e-3, (0, 2): 1e-3, (1, 2): 1e-3}
    relations = tuple(Relation(f"r{n}", 1e5) for n in range(3))
    same = JoinGraph(relations, (JoinKey((0, 1, 2), shares),))
    other = JoinGraph(relations, (JoinKey((0, 1), {(0, 1): 1e-3}), JoinKey((1, 2), {(1, 2): 1e-3})))
    tree = Segment(0, (1, 2))
    machine = Machine(replicate_bytes=0.0)
    assert TreeCost(same, machine=machine).work(tree) < TreeCost(other, machine=machine).work(tree)


def test_a_table_is_a_page_that_doubles() -> None:
    relations = tuple(Relation(f"r{n}", rows, 10.0) for n, rows in enumerate((10.0, 1_000.0)))
    graph = JoinGraph(relations, (JoinKey((0, 1), {(0, 1): 1e-3}),))
    model = TreeCost(graph, machine=Machine(table_page_bytes=4_096.0))
    assert model.table_bytes(0b01) == 4_096 + 64 * 8  # 40 slots
    assert model.table_bytes(0b10) == 32_768 + 4_096 * 8  # 26,000 bytes of rows with their headers
    assert TreeCost(graph).table_bytes(0b10) == 1_000 * (10 + ROW_HEADER_BYTES + HASH_ENTRY_BYTES)


@given(graphs(), st.sampled_from([None, 1e4, 1e6]))
def test_segments_of_one_statement_fit_together(graph: JoinGraph, memory_bytes: float | None) -> None:
    model = TreeCost(graph, machine=Machine(memory_bytes=memory_bytes))
    for name in ("left-deep", "segmented-bushy", "greedy"):
        tree = choose(model, name).tree
        kept = kept_segments(model, tree)
        assert tree not in kept
        for root in (tree, *kept):
            inside, waiting = list[Segment](), [root]
            while waiting:
                inside.append(waiting.pop())
                waiting += [child for child in inside[-1].children if child not in kept]
            sizes = [model.memory_bytes(one) for one in inside]
            assert memory_bytes is None or sum(sizes) <= memory_bytes * (1 + 1e-9) or len(inside) == 1
        assert memory_bytes is not None or not kept


def test_one_file_that_probes_a_lot_is_spread() -> None:
    def spreads(rows: float, tasks: int) -> bool:
        relations = (Relation("a", rows, tasks=tasks), Relation("b", 10.0), Relation("c", 10.0))
        shares = {(0, 1): 1.0, (0, 2): 0.1, (1, 2): 1.0}
        model = TreeCost(JoinGraph(relations, (JoinKey((0, 1, 2), shares),)), machine=Machine(4))
        spread = model.spreads(Segment(0, (1, 2)))
        alone = model.seconds(Segment(0, (1, 2)))
        many = TreeCost(JoinGraph((replace(relations[0], tasks=4), *relations[1:]), model.graph.classes))
        assert alone >= TreeCost(many.graph, machine=Machine(4)).seconds(Segment(0, (1, 2)))
        return spread

    assert spreads(1e7, 1)
    assert not spreads(1e7, 4)
    assert not spreads(1e7, 0)
    assert not spreads(100.0, 1)


def test_contention_grows_with_processors() -> None:
    units = UnitCosts(contention=0.5)
    assert [units.contention_factor(k) for k in (1, 2, 3)] == [1.0, 1.5, 2.0]


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=6), st.integers(1, 20))
def test_processors_are_all_given_out(sizes: list[float], processors: int) -> None:
    shares = allocate(sizes, processors)
    assert all(share >= 1 for share in shares)
    assert sum(shares) == max(processors, len(sizes))
    pairs = list(zip(sizes, shares, strict=True))
    assert all(one <= other for size, one in pairs for larger, other in pairs if size < larger)


def test_a_graph_in_two_parts_is_refused() -> None:
    relations = tuple(Relation(name, 10.0) for name in "abcd")
    pairs = (JoinKey((0, 1), {(0, 1): 0.1}), JoinKey((2, 3), {(2, 3): 0.1}))
    with pytest.raises(ViewError, match="equi-join between a, b and c, d"):
        JoinGraph(relations, pairs)


def test_an_unknown_tree_is_refused() -> None:
    graph = JoinGraph((Relation("a", 1.0), Relation("b", 1.0)), (JoinKey((0, 1), {(0, 1): 1.0}),))
    with pytest.raises(JobError, match="must be one of chosen, left-deep"):
        choose(TreeCost(graph), "wide")


def test_masks_and_members_are_inverse() -> None:
    assert list(members_of(mask_of([5, 0, 3]))) == [0, 3, 5]
