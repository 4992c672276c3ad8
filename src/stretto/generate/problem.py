"""A loop made ready for search: operations by number, arcs by neighbour, storages by accessor.

    Loop (names, values, storages)  ──►  Problem (0, 1, 2, ...; preds and succs of each)

Made once for a loop and its options; everything here is read-only while generators run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from stretto.bounds import FusionClass, fusion_class
from stretto.bounds.graph import Edge, Graph, components
from stretto.deadline import NEVER, Deadline
from stretto.errors import InfeasibleError
from stretto.loop import Fault, Loop, ResourceVector, topological_order
from stretto.machine import Machine
from stretto.vocabulary.spaces import SPACES

RUNGS = (
    "rau",
    "deepest-depth",
    "initial",
    "cost-based",
    "clear",
    "initial-again",
    "cost-based-again",
)
"""The strategy ladder, in order. `clear` seats nothing itself."""
ARMS = ("permute", "fuse", "retry", "cost-based")
"""The placement arms, in the order that breaks ties."""

LARGE = 200
"""Loops of more operations are searched in coarser steps, by the quickest plans, without arms."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user may ask of the generators."""

    max_ii: int | None = None
    """The last II tried; None: the II of the serial schedule."""
    max_stages: int | None = None
    fuse: bool = True
    serial_threshold: int = 2
    """Loops of fewer operations are scheduled serially."""
    strict: bool = False
    """Fail instead of warning when a constraint cannot be honoured."""
    without: frozenset[str] = field(default_factory=frozenset[str])
    """Rungs (``rau``) and arms (``arm:fuse``) to leave out, to see what they are worth."""
    quick: bool = False
    """Look for an upper end only: somebody else will improve on it."""
    deadline: Deadline = NEVER
    """When to stop looking, whatever is left to try."""


class Arc(NamedTuple):
    """A dependence, seen from one end: the operation at the other, and its numbers."""

    other: int
    latency: int
    distance: int


class Claim(NamedTuple):
    """What an operation takes of one limited slot or pool."""

    column: int
    """Number of the slot or pool, see `Problem.limits`."""
    offset: int
    duration: int
    amount: int


@dataclass(frozen=True, slots=True)
class StorageRoom:
    """A rotating storage by its accessors."""

    name: str
    space: str
    bytes: int
    writers: tuple[int, ...]
    readers: tuple[tuple[int, int], ...]
    """(operation, distance)."""


@dataclass(frozen=True)
class Problem:
    """A resolved, checked loop on a machine, with options."""

    loop: Loop
    machine: Machine
    options: Options
    names: tuple[str, ...]
    vectors: tuple[ResourceVector, ...]
    ready: tuple[int, ...]
    completion: tuple[int, ...]
    preds: tuple[tuple[Arc, ...], ...]
    """Arcs from other operations; those of an operation to itself hold at every II tried."""
    succs: tuple[tuple[Arc, ...], ...]
    rank: tuple[int, ...]
    """Position in distance-0 topological order."""
    max_stage: tuple[int | None, ...]
    """Last stage allowed: the operation's own limit or that of all."""
    pending: tuple[bool, ...]
    group: tuple[int | None, ...]
    members: tuple[tuple[int, ...], ...]
    """Operations of each leader group, which share a stage."""
    rotating: tuple[StorageRoom, ...]
    fixed_bytes: tuple[tuple[str, int], ...]
    """Space and the bytes that its fixed and live-in storages take whatever the schedule."""
    budgets: tuple[tuple[str, int], ...]
    """Space and bytes, where limited."""
    fusion: tuple[FusionClass | None, ...]
    """What an operation may fuse with; all None without fusion."""

    @cached_property
    def instant(self) -> dict[int, frozenset[int]]:
        """Operations that may tie a knot in one cycle, and those they must not share it with.

        One that takes no time and reads what an iteration before wrote, and all who write that.
        """
        found: dict[int, set[int]] = {}
        for i, op in enumerate(self.loop.ops):
            for read in self.loop.reads[op.name]:
                if read.distance and not self.completion[i]:
                    for w, other in enumerate(self.loop.ops):
                        if w != i and read.storage in other.writes:
                            found.setdefault(i, set()).add(w)
                            found.setdefault(w, set()).add(i)
        return {i: frozenset(others) for i, others in found.items()}

    @property
    def size(self) -> int:
        """How many operations there are."""
        return len(self.names)

    @property
    def deadline(self) -> Deadline:
        """When to stop looking: asked at every step that may take long."""
        return self.options.deadline

    @cached_property
    def index(self) -> dict[str, int]:
        """Number of each operation."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def recurrences(self) -> tuple[tuple[int, ...], ...]:
        """Operations that wait for each other around a cycle: strongly connected components."""
        return tuple(c for c in components(self.graph) if len(c) > 1)

    @cached_property
    def graph(self) -> Graph:
        """The dependences between different operations."""
        order = sorted(range(self.size), key=self.rank.__getitem__)
        leaving = tuple(
            tuple(Edge(i, arc.other, arc.latency, arc.distance) for arc in arcs)
            for i, arcs in enumerate(self.succs)
        )
        return Graph(self.names, tuple(order), leaving)

    @cached_property
    def _columns(self) -> dict[tuple[str, str], int]:
        limited = [("slot", s.name) for s in self.machine.slots if s.capacity is not None]
        return {
            key: i
            for i, key in enumerate([*limited, *(("pool", p.name) for p in self.machine.pools)])
        }

    @cached_property
    def limits(self) -> tuple[int, ...]:
        """Capacity of each limited slot, then the cap of each pool."""
        slots = [s.capacity for s in self.machine.slots if s.capacity is not None]
        return (*slots, *(p.cap for p in self.machine.pools))

    @cached_property
    def claims(self) -> tuple[tuple[Claim, ...], ...]:
        """What each operation takes of what is limited."""
        columns = self._columns
        return tuple(
            (
                *(
                    Claim(columns["slot", u.slot], u.offset, u.duration, u.occupancy)
                    for u in vector.uses
                    if u.duration and u.occupancy and ("slot", u.slot) in columns
                ),
                *(
                    Claim(columns["pool", d.pool], 0, vector.duration, d.units)
                    for d in vector.demands
                    if d.units and vector.duration
                ),
            )
            for vector in self.vectors
        )

    @cached_property
    def longest(self) -> tuple[int, ...]:
        """By limited slot or pool: the longest that anyone takes of it."""
        found = [0] * len(self.limits)
        for claims in self.claims:
            for claim in claims:
                found[claim.column] = max(found[claim.column], claim.duration)
        return tuple(found)

    def wants(self, part: str) -> bool:
        """Whether a rung (``rau``) or an arm (``arm:fuse``) is to be used."""
        return part not in self.options.without

    def starts_by_name(self, starts: Sequence[int]) -> dict[str, int]:
        """Starts as the rest of the house wants them."""
        return dict(zip(self.names, starts, strict=True))


def make_problem(loop: Loop, machine: Machine, options: Options) -> Problem:
    """Compile a resolved, checked loop; `machine` has the loop's own slots."""
    order = topological_order(loop)
    if isinstance(order, Fault):
        raise InfeasibleError(order.message)
    rank = [0] * len(loop.ops)
    for position, i in enumerate(order):
        rank[i] = position
    preds: list[list[Arc]] = [[] for _ in loop.ops]
    succs: list[list[Arc]] = [[] for _ in loop.ops]
    for d in loop.dependences:
        src, dst = loop.index[d.src], loop.index[d.dst]
        if src != dst:
            preds[dst].append(Arc(src, d.latency, d.distance))
            succs[src].append(Arc(dst, d.latency, d.distance))
    members = tuple(tuple(loop.index[name] for name in group) for group in loop.groups)
    group_of: list[int | None] = [None] * len(loop.ops)
    for g, ops in enumerate(members):
        for i in ops:
            group_of[i] = g
    last = None if options.max_stages is None else options.max_stages - 1
    rotating, fixed = _storages(loop)
    return Problem(
        loop=loop,
        machine=machine,
        options=options,
        names=tuple(op.name for op in loop.ops),
        vectors=tuple(op.vector for op in loop.ops),
        ready=tuple(op.ready for op in loop.ops),
        completion=tuple(op.completion for op in loop.ops),
        preds=tuple(map(tuple, preds)),
        succs=tuple(map(tuple, succs)),
        rank=tuple(rank),
        max_stage=tuple(_lower(op.constraint.max_depth, last) for op in loop.ops),
        pending=tuple(op.constraint.pending for op in loop.ops),
        group=tuple(group_of),
        members=members,
        rotating=rotating,
        fixed_bytes=fixed,
        budgets=tuple(
            (b.space, b.bytes)
            for b in machine.budgets
            if b.bytes is not None and SPACES[b.space].budgeted
        ),
        fusion=tuple(fusion_class(op, machine) if options.fuse else None for op in loop.ops),
    )


def _lower(a: int | None, b: int | None) -> int | None:
    limits = [x for x in (a, b) if x is not None]
    return min(limits) if limits else None


def _storages(loop: Loop) -> tuple[tuple[StorageRoom, ...], tuple[tuple[str, int], ...]]:
    writers: dict[str, list[int]] = {}
    readers: dict[str, list[tuple[int, int]]] = {}
    for i, op in enumerate(loop.ops):
        for name in op.writes:
            writers.setdefault(name, []).append(i)
        for read in loop.reads[op.name]:
            readers.setdefault(read.storage, []).append((i, read.distance))
    rotating: list[StorageRoom] = []
    fixed: dict[str, int] = {}
    for s in loop.storages:
        if not SPACES[s.space].budgeted:
            continue
        if s.fixed or s.name not in writers:
            fixed[s.space] = fixed.get(s.space, 0) + s.bytes
        else:
            found = (tuple(writers[s.name]), tuple(readers.get(s.name, ())))
            rotating.append(StorageRoom(s.name, s.space, s.bytes, *found))
    return tuple(rotating), tuple(fixed.items())
