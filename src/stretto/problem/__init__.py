"""A prepared loop on its machine, compiled once for all that work on it.

    Loop (names, values, storages)  ──►  Compiled: graph, holds, rooms, fusion, limits by number
                                            │
                          bounds ◄──────────┼──────────► generate, exact

Nothing in it depends on an II, nothing is decided, and no part is computed before somebody asks.
The constraint builder has two modes:

    build   loop ──► Compiled      vectors, claims and the block's summary, once for every II
    apply   Compiled + starts ──► ReservationTable      every hold committed, probed first

Building never looks at starts, and applying never looks at the loop again. The same function makes
the table that the arms of the ladder probe and the one that is published with a schedule.
Operations that are fused hold once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stretto.loop import Loop, ResourceVector
from stretto.loop.parts import cached_property
from stretto.machine import Machine
from stretto.problem.fusion import Class, Fusion, FusionClass, fusion_class, join, shape
from stretto.problem.graph import Arc, Arcs, Edge, Graph, dependence_graph, strong_components
from stretto.problem.holds import Claim, Hold, Holds, Room, Rooms
from stretto.problem.registers import Registers
from stretto.resources.table import ReservationTable
from stretto.solution import Schedule

__all__ = [
    "Arc",
    "Claim",
    "Class",
    "Compiled",
    "Edge",
    "Fusion",
    "FusionClass",
    "Graph",
    "Hold",
    "Holds",
    "Registers",
    "Room",
    "Rooms",
    "apply",
    "compile_loop",
    "dependence_graph",
    "fused_vector",
    "fusion_class",
    "strong_components",
]


@dataclass(frozen=True)
class Compiled:
    """A resolved, checked loop by number: operations in program order."""

    loop: Loop
    machine: Machine
    """With the loop's own slots."""
    max_stages: int | None
    graph: Graph
    holds: Holds
    rooms: Rooms
    registers: Registers
    fusion: Fusion

    @property
    def size(self) -> int:
        """How many operations there are."""
        return len(self.graph.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each operation."""
        return self.graph.names

    @property
    def index(self) -> dict[str, int]:
        """Number of each operation."""
        return self.loop.index

    def starts_by_name(self, starts: Sequence[int]) -> dict[str, int]:
        """Starts as the rest of the house wants them."""
        return dict(zip(self.names, starts, strict=True))

    def schedule(
        self, ii: int, starts: Sequence[int], fused: Iterable[Sequence[int]] = ()
    ) -> Schedule:
        """A schedule by number as the rest of the house wants it."""
        groups = tuple(tuple(self.names[i] for i in group) for group in fused)
        return Schedule(ii, self.starts_by_name(starts), groups)

    # Dependences ------------------------------------------------------------------------------

    @cached_property
    def between(self) -> Graph:
        """The dependences between different operations."""
        return self.graph.between

    @cached_property
    def preds(self) -> Arcs:
        """Arcs from other operations."""
        return self.between.preds

    @cached_property
    def succs(self) -> Arcs:
        """Arcs to other operations."""
        return self.between.succs

    @cached_property
    def rank(self) -> tuple[int, ...]:
        """Position in distance-0 topological order."""
        return self.graph.rank

    @cached_property
    def instant_pairs(self) -> tuple[tuple[int, int], ...]:
        """A carried read of no duration and a writer of what it reads: they may tie a knot."""
        found = {
            (i, writer): None
            for room in self.rooms.turning
            for i, distance in room.accessors
            for writer in room.writers
            if distance > 0 and self.completion[i] == 0 and i != writer
        }
        return tuple(found)

    # What is held and stored ------------------------------------------------------------------

    @cached_property
    def completion(self) -> tuple[int, ...]:
        """Cycles after its start when each operation is wholly done."""
        return self.holds.completion

    @cached_property
    def vectors(self) -> tuple[ResourceVector, ...]:
        """What each operation holds and draws."""
        return self.holds.vectors

    @cached_property
    def claims(self) -> tuple[tuple[Claim, ...], ...]:
        """What each operation takes of what is limited."""
        return self.holds.claims

    @cached_property
    def rotating(self) -> tuple[Room, ...]:
        """Rotating storages outside registers."""
        return self.rooms.rotating

    # Stages -----------------------------------------------------------------------------------

    @cached_property
    def depths(self) -> dict[int, int]:
        """The last stage of each operation that has a limit of its own."""
        limits = [op.constraint.max_depth for op in self.loop.ops]
        return {i: limit for i, limit in enumerate(limits) if limit is not None}

    @property
    def pinned(self) -> tuple[int, ...]:
        """Operations that are told where to stand."""
        return self.loop.pinned

    def unmet(self, ii: int, starts: Sequence[int]) -> tuple[int, ...]:
        """Operations that do not stand where they are told to."""
        return tuple(i for i in self.pinned if not self._met(i, ii, starts[i]))

    def _met(self, i: int, ii: int, start: int) -> bool:
        asked = self.loop.ops[i].constraint
        return (
            asked.start in {None, start}
            and asked.stage in {None, start // ii}
            and asked.cycle in {None, start % ii}
        )

    @cached_property
    def max_stage(self) -> tuple[int | None, ...]:
        """Last stage allowed: the operation's own limit or pin, or that of all; None: any."""
        if self.max_stages is None and not self.depths and not self.pinned:
            return (None,) * self.size
        overall = None if self.max_stages is None else self.max_stages - 1
        asked = (op.constraint for op in self.loop.ops)
        return tuple(
            min((s for s in (overall, a.max_depth, a.stage) if s is not None), default=None)
            for a in asked
        )

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """Operations of each leader group, whose stages differ by their offsets."""
        return tuple(tuple(self.index[name] for name in names) for names in self.loop.groups)

    @cached_property
    def group(self) -> tuple[int | None, ...]:
        """The leader group of each operation."""
        found: list[int | None] = [None] * self.size
        for number, members in enumerate(self.members):
            for i in members:
                found[i] = number
        return tuple(found)

    @cached_property
    def ahead(self) -> tuple[int, ...]:
        """Stages that each operation stands before the last of its group; with its own stage, it
        comes to the same for all members.
        """
        found = [0] * self.size
        for members in self.members:
            offsets = [self.loop.ops[i].constraint.stage_offset for i in members]
            for i, offset in zip(members, offsets, strict=True):
                found[i] = max(offsets) - offset
        return tuple(found)

    def scattered(self, ii: int, starts: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Groups whose members stand apart by other than their offsets."""
        for members in self.members:
            if len({starts[i] // ii + self.ahead[i] for i in members}) > 1:
                yield members


def compile_loop(
    loop: Loop, machine: Machine, *, fuse: bool = True, max_stages: int | None = None
) -> Compiled:
    """Compile a resolved, checked loop; a cycle at distance 0 is an InfeasibleError."""
    machine = machine.with_slots(loop.slots)
    return Compiled(
        loop,
        machine,
        max_stages,
        dependence_graph(loop),
        Holds(loop, machine),
        Rooms(loop, machine),
        Registers(loop, machine),
        Fusion(loop, machine, fuse),
    )


# Accepted starts --------------------------------------------------------------------------


def apply(
    compiled: Compiled,
    ii: int,
    starts: Sequence[int | None],
    fused: Iterable[Sequence[int]] = (),
) -> ReservationTable:
    """The table of what is seated; ConflictError where it does not fit.

    Groups of fused operations start together; each holds under the name of its first.
    """
    members = {group[0]: group for group in fused}
    led = {i for group in members.values() for i in group[1:]}
    table = ReservationTable(compiled.machine, ii)
    for i, start in enumerate(starts):
        if start is not None and i not in led:
            vector = fused_vector(compiled, members.get(i, (i,)))
            table.commit(compiled.names[i], vector, start)
    return table


def fused_vector(compiled: Compiled, members: Sequence[int]) -> ResourceVector:
    """What operations hold when fused: each use once, as long as the longest.

    Demands stay with each member, for as long as it would hold its own slots.
    """
    if len(members) == 1:
        return compiled.vectors[members[0]]
    vectors = [compiled.vectors[i] for i in members]
    uses = shape(vectors[0])
    for vector in vectors[1:]:
        uses = join(uses, shape(vector))
    draws = [draw for vector in vectors for draw in vector.draws]
    return ResourceVector(uses, tuple(d for d, _ in draws), tuple(cycles for _, cycles in draws))
