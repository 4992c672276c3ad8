"""The problem in the solver's terms: operations by number, and everything that binds them.

    Loop + Machine + options  ──►  Case: edges, holds per slot, draws per pool, rings, limits

Nothing here depends on an II, and nothing is decided: one case serves every II that is asked about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

from stretto.bounds import compute_bounds
from stretto.bounds.dependence import dependence_bound, depth_limit
from stretto.bounds.graph import Edge, dependence_graph
from stretto.bounds.recurrence import recurrence_bound
from stretto.bounds.resource import fine_bound, fusion_class, resource_bound
from stretto.deadline import NEVER, Deadline
from stretto.loop import Dependence, Loop, Op, Use
from stretto.machine import Machine
from stretto.solution.views import knot
from stretto.vocabulary.spaces import SPACES


@dataclass(frozen=True, slots=True)
class Solution:
    """A start for every operation, counted so that the first stage is 0, and the fused groups."""

    ii: int
    starts: tuple[int, ...]
    fused: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Hold:
    """A resource held from `offset` cycles after an operation's start."""

    op: int
    offset: int
    duration: int
    amount: int
    """Occupancy of a slot, or units of a pool."""


@dataclass(frozen=True, slots=True)
class Ring:
    """A rotating storage: who writes an instance, and who still reads it how much later."""

    name: str
    space: str
    bytes: int
    writers: tuple[int, ...]
    accessors: tuple[tuple[int, int], ...]
    """(operation, distance) of all that write (distance 0) or read an instance."""
    cap: int | None = None
    """Copies at most."""


@dataclass(frozen=True, slots=True)
class Class:
    """Operations of which some may fuse."""

    members: tuple[int, ...]
    """In program order."""
    cap: int
    """Members of one group at most."""
    apart: frozenset[tuple[int, int]]
    """Pairs (lower first) that never share a group: a path or nesting lies between them."""


@dataclass(frozen=True)
class Case:
    """A resolved loop on its machine, as the exact solver sees it."""

    loop: Loop
    machine: Machine
    """With the loop's own slots."""
    fuse: bool = True
    max_stages: int | None = None
    latencies: tuple[tuple[int, int], ...] = ()
    """(number of a dependence, latency) to ask what another latency would change."""
    spaced: bool = False
    """Whether a carried read of no duration shares no cycle with those who write what it reads:
    stricter than legal, but no operations of one cycle then wait for each other."""
    deadline: Deadline = NEVER
    """When to stop making models of it and solving them."""

    @property
    def size(self) -> int:
        """Operations."""
        return len(self.loop.ops)

    @cached_property
    def dependences(self) -> tuple[Dependence, ...]:
        """Those that hold however deep rings are, then those that capped rings add."""
        known = set(self._free)
        return (*self._free, *(d for d in self.loop.dependences if d not in known))

    @cached_property
    def _free(self) -> tuple[Dependence, ...]:
        """What the loop asks for without caps on its rings."""
        if not any(s.depth for s in self.loop.storages):
            return self.loop.dependences
        deep = tuple(replace(s, depth=None) for s in self.loop.storages)
        return replace(self.loop, storages=deep).dependences

    @cached_property
    def edges(self) -> tuple[tuple[int, int, Dependence], ...]:
        """(source, destination, dependence), by number."""
        index, changed = self.loop.index, dict(self.latencies)
        return tuple(
            (index[d.src], index[d.dst], replace(d, latency=changed.get(k, d.latency)))
            for k, d in enumerate(self.dependences)
        )

    @cached_property
    def bundles(self) -> tuple[int | None, ...]:
        """By number of a dependence, the one that stands for it; None: a capped ring asks for it.

        Those of the same two operations at the same distance are one: what flows between them,
        and what a storage asks of them. The longest stands for all.
        """
        longest: dict[tuple[str, str, int], int] = {}
        for k, d in enumerate(self._free):
            best = longest.setdefault((d.src, d.dst, d.distance), k)
            if self._free[best].latency < d.latency:
                longest[d.src, d.dst, d.distance] = k
        return tuple(
            longest[d.src, d.dst, d.distance] if k < len(self._free) else None
            for k, d in enumerate(self.dependences)
        )

    def knotted(self, solution: Solution) -> bool:
        """Whether operations that take no time wait for each other in one cycle."""
        return bool(knot(self.loop, solution.ii, self.named(solution)[0]))

    def named(self, solution: Solution) -> tuple[dict[str, int], tuple[tuple[str, ...], ...]]:
        """Starts and fused groups of a solution, by the names of operations."""
        names = [op.name for op in self.loop.ops]
        fused = tuple(tuple(names[i] for i in group) for group in solution.fused)
        return dict(zip(names, solution.starts, strict=True)), fused

    @property
    def mii(self) -> int:
        """The largest of the four lower bounds."""
        if not self.latencies:
            fuse, stages = self.fuse, self.max_stages
            return compute_bounds(self.loop, self.machine, fuse=fuse, max_stages=stages).mii
        counts = resource_bound(self.loop, self.machine, fuse=self.fuse).bound
        counts = max(counts, fine_bound(self.loop, self.machine).bound)
        graph = dependence_graph(self.loop)
        leaving: list[list[Edge]] = [[] for _ in self.loop.ops]
        for src, dst, d in self.edges:
            leaving[src].append(Edge(src, dst, d.latency, d.distance))
        graph = replace(graph, leaving=tuple(map(tuple, leaving)))
        depth = dependence_bound(self.loop, graph, max_stages=self.max_stages).bound
        return max(counts, recurrence_bound(graph).bound, depth)

    @cached_property
    def completion(self) -> tuple[int, ...]:
        """Cycles after its start when each operation is wholly done."""
        return tuple(op.completion for op in self.loop.ops)

    @cached_property
    def depths(self) -> dict[int, int]:
        """The last stage of each operation that has a limit of its own."""
        limits = {i: depth_limit(op, None) for i, op in enumerate(self.loop.ops)}
        return {i: limit for i, limit in limits.items() if limit is not None}

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Operations that share a stage."""
        return tuple(tuple(self.loop.index[n] for n in names) for names in self.loop.groups)

    # Slots and pools --------------------------------------------------------------------------

    @cached_property
    def slots(self) -> dict[str, tuple[int, tuple[Hold, ...]]]:
        """Slot to its capacity and holds; slots that are unlimited or never full are left out.

        Operations of a fusion class hold nothing here: what they hold depends on who joins them.
        """
        held: dict[str, list[Hold]] = {}
        fusing = {i for c in self.classes for i in c.members}
        busy = self._most_held(fusing)
        for i, op in enumerate(self.loop.ops):
            for use in op.vector.uses:
                if use.slot in busy:
                    mine = held.setdefault(use.slot, [])
                    if use.duration and i not in fusing:
                        mine.append(Hold(i, use.offset, use.duration, use.occupancy))
        return {slot: (busy[slot], tuple(holds)) for slot, holds in held.items()}

    def _most_held(self, fusing: set[int]) -> dict[str, int]:
        """Slots whose holders could exceed the capacity, and that capacity."""
        most: dict[str, int] = {}
        longest: dict[str, int] = {}
        for i, op in enumerate(self.loop.ops):
            for use in op.vector.uses:
                if use.duration:
                    most[use.slot] = most.get(use.slot, 0) + use.occupancy
                    # What fused operations hold together may be longer than each of them.
                    lasts = use.end + 1 if i in fusing else use.duration
                    longest[use.slot] = max(longest.get(use.slot, 0), lasts)
        found: dict[str, int] = {}
        for slot, total in most.items():
            capacity = self.machine.slot(slot).capacity
            # A hold of more than one II counts more than once, so length alone can fill a slot.
            if capacity is not None and (total > capacity or longest[slot] > 1):
                found[slot] = capacity
        return found

    @cached_property
    def pools(self) -> dict[str, tuple[int, tuple[Hold, ...]]]:
        """Pool to its cap and what is drawn from it."""
        drawn: dict[str, list[Hold]] = {}
        for i, op in enumerate(self.loop.ops):
            lasts = op.vector.duration
            for demand in op.demands:
                if demand.units and lasts:
                    drawn.setdefault(demand.pool, []).append(Hold(i, 0, lasts, demand.units))
        return {name: (self.machine.pool(name).cap, tuple(holds)) for name, holds in drawn.items()}

    # Storage ----------------------------------------------------------------------------------

    @cached_property
    def rings(self) -> tuple[Ring, ...]:
        """Rotating storages outside registers that some operation writes."""
        return tuple(ring for ring in self._turning if SPACES[ring.space].budgeted)

    @cached_property
    def bound_rings(self) -> tuple[Ring, ...]:
        """Rings that are limited: by a budget they share, or by a cap."""
        return tuple(r for r in self._turning if SPACES[r.space].budgeted or r.cap is not None)

    @cached_property
    def instant_pairs(self) -> tuple[tuple[int, int], ...]:
        """A carried read of no duration and a writer of what it reads."""
        found = {
            (i, writer): None
            for ring in self._turning
            for i, distance in ring.accessors
            for writer in ring.writers
            if distance > 0 and self.completion[i] == 0 and i != writer
        }
        return tuple(found)

    @cached_property
    def _turning(self) -> tuple[Ring, ...]:
        found: list[Ring] = []
        for s in self.loop.storages:
            writers = tuple(i for i, op in enumerate(self.loop.ops) if s.name in op.writes)
            if s.fixed or not writers:
                continue
            readers = [
                (i, read.distance)
                for i, op in enumerate(self.loop.ops)
                for read in self.loop.reads[op.name]
                if read.storage == s.name
            ]
            accessors = tuple(dict.fromkeys([*((w, 0) for w in writers), *readers]))
            found.append(Ring(s.name, s.space, s.bytes, writers, accessors, s.depth))
        return tuple(found)

    @cached_property
    def single_bytes(self) -> dict[str, int]:
        """Space to the bytes of storages that have one copy whatever the schedule."""
        turning = {ring.name for ring in self.rings}
        found: dict[str, int] = {}
        for s in self.loop.storages:
            if SPACES[s.space].budgeted and s.name not in turning:
                found[s.space] = found.get(s.space, 0) + s.bytes
        return found

    @cached_property
    def budgets(self) -> dict[str, int]:
        """Space to its bytes, where the loop uses a space that is limited."""
        used = {ring.space for ring in self.rings} | set(self.single_bytes)
        return {
            b.space: b.bytes
            for b in self.machine.budgets
            if b.bytes is not None and b.space in used
        }

    # Fusion -----------------------------------------------------------------------------------

    @cached_property
    def classes(self) -> tuple[Class, ...]:
        """Sets of at least two operations that agree in kind, slots and bank."""
        if not self.fuse:
            return ()
        alike: dict[object, list[int]] = {}
        for i, op in enumerate(self.loop.ops):
            key = fusion_class(op, self.machine)
            if key is not None:
                alike.setdefault(key, []).append(i)
        found: list[Class] = []
        for members in alike.values():
            if len(members) > 1:
                held = shape(self.loop.ops[members[0]])
                cap = min(self.machine.slot(use.slot).fusion_cap for use in held)
                apart = frozenset(
                    pair for pair in combinations(members, 2) if self._kept_apart(*pair)
                )
                found.append(Class(tuple(members), cap, apart))
        return tuple(found)

    def _kept_apart(self, a: int, b: int) -> bool:
        self.deadline.check()
        if b in self._reached[a] or a in self._reached[b]:
            return True
        return a in self._enclosing(b) or b in self._enclosing(a)

    def _enclosing(self, i: int) -> Iterator[int]:
        seen = {i}
        above = self.loop.ops[i].parent
        while above is not None and self.loop.index[above] not in seen:
            yield self.loop.index[above]
            seen.add(self.loop.index[above])
            above = self.loop.op(above).parent

    @cached_property
    def _reached(self) -> tuple[frozenset[int], ...]:
        """What each operation leads to by dependences of distance 0."""
        after: list[list[int]] = [[] for _ in self.loop.ops]
        for src, dst, d in self.edges:
            if d.distance == 0:
                after[src].append(dst)
        found: list[frozenset[int]] = []
        for i in range(self.size):
            self.deadline.check()
            seen: set[int] = set()
            front = [i]
            while front:
                for j in after[front.pop()]:
                    if j not in seen:
                        seen.add(j)
                        front.append(j)
            found.append(frozenset(seen))
        return tuple(found)


def shape(op: Op) -> tuple[Use, ...]:
    """What an operation holds, slot by slot in order of time."""
    held = [use for use in op.vector.uses if use.duration]
    return tuple(sorted(held, key=lambda use: (use.slot, use.offset)))
