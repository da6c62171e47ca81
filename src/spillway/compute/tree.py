"""A join tree as pipelined segments: the normal form of every tree shape.

A segment is a right-deep chain: the rows of `probe` go through the hash tables of `builds`, one after the
other, and nothing in between is kept. A build is a relation or the result of another segment; a probe is a
relation or the result of a segment that is kept (that is a cut). So a right-deep tree is one segment, a
left-deep tree a segment per join, and in a segmented bushy tree the final segment begins with the group that
probes and builds the results of the other groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from spillway.compute.join_graph import JoinGraph


@dataclass(frozen=True, slots=True)
class Segment:
    probe: Input
    builds: tuple[Input, ...]

    @property
    def mask(self) -> int:
        found = mask_of_input(self.probe)
        for build in self.builds:
            found |= mask_of_input(build)
        return found

    @property
    def children(self) -> tuple[Segment, ...]:
        """The segments whose results this one needs, the probing one first."""
        return tuple(side for side in (self.probe, *self.builds) if isinstance(side, Segment))

    def segments(self) -> Iterator[Segment]:
        """All segments, each after those that it needs."""
        for child in self.children:
            yield from child.segments()
        yield self


Input: TypeAlias = int | Segment


@dataclass(frozen=True, slots=True)
class Join:
    """A binary tree, as searches build it: `build` is hashed, the rows of `probe` look it up."""

    build: Node
    probe: Node


Node: TypeAlias = int | Join


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """One join of a segment: the set that has been joined so far meets one build on some key classes."""

    before: int
    build: Input
    classes: tuple[int, ...]

    @property
    def after(self) -> int:
        return self.before | mask_of_input(self.build)


def mask_of_input(side: Input) -> int:
    return 1 << side if isinstance(side, int) else side.mask


def steps(graph: JoinGraph, segment: Segment) -> tuple[ProbeStep, ...]:
    """The joins of one segment, in order, without those of the segments that it needs."""
    made: list[ProbeStep] = []
    before = mask_of_input(segment.probe)
    for build in segment.builds:
        added = mask_of_input(build)
        made.append(ProbeStep(before, build, graph.links(before, added)))
        before |= added
    return tuple(made)


def to_segments(node: Join) -> Segment:
    """The normal form of a binary tree: chains of probes become segments."""
    builds: list[Input] = []
    current: Node = node
    while isinstance(current, Join):
        build = current.build
        builds.append(build if isinstance(build, int) else to_segments(build))
        current = current.probe
    return Segment(current, tuple(reversed(builds)))


def describe(tree: Input, graph: JoinGraph) -> str:
    """A tree on one line: the probe, then what it probes."""
    if isinstance(tree, int):
        return graph.relations[tree].name
    inner = ", ".join(describe(build, graph) for build in tree.builds)
    return f"({describe(tree.probe, graph)} > {inner})"
