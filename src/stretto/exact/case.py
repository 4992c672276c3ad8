"""The problem in the solver's terms: what is compiled, and what only a model or a reason asks for.

    Compiled  ──►  Case: dependences one by one, slots that can be full, rings that are limited

Nothing here depends on an II, and nothing is decided: one case serves every II that is asked about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stretto.deadline import NEVER, Deadline
from stretto.loop import Dependence, Loop
from stretto.loop.parts import cached_property
from stretto.lower_bounds import bounds_of
from stretto.machine import Machine
from stretto.ops.spaces import SPACES
from stretto.problem import Class, Compiled, Edge, Hold, Room, compile_loop
from stretto.problem.contract import Contracted, contracted, idle
from stretto.solution import Schedule
from stretto.solution.views import knot


@dataclass(frozen=True, slots=True)
class Solution:
    """A schedule by number, while the solver works on it; its first stage is 0."""

    ii: int
    starts: tuple[int, ...]
    fused: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Case:
    """A resolved loop on its machine, as the exact solver sees it."""

    problem: Compiled
    latencies: tuple[tuple[int, int], ...] = ()
    """(number of a dependence, latency) to ask what another latency would change."""
    spaced: bool = False
    """Whether a carried read of no duration shares no cycle with those who write what it reads:
    stricter than legal, but no operations of one cycle then wait for each other."""
    deadline: Deadline = NEVER
    """When to stop making models of it and solving them."""

    @property
    def loop(self) -> Loop:
        """The loop."""
        return self.problem.loop

    @property
    def machine(self) -> Machine:
        """Its machine, with the loop's own slots."""
        return self.problem.machine

    @property
    def max_stages(self) -> int | None:
        """Stages at most."""
        return self.problem.max_stages

    @property
    def size(self) -> int:
        """Operations."""
        return self.problem.size

    def changed(
        self,
        *,
        loop: Loop | None = None,
        machine: Machine | None = None,
        max_stages: int | None = None,
    ) -> Case:
        """The case of another loop, machine or limit on stages: to ask what a change is worth."""
        problem = compile_loop(
            loop or self.loop,
            machine or self.machine,
            fuse=self.problem.fusion.wanted,
            max_stages=max_stages or self.max_stages,
        )
        return replace(self, problem=problem)

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

    @cached_property
    def rest(self) -> Contracted:
        """The dependences with what holds nothing folded away; see `heart`."""
        found = contracted(self.problem)
        if (
            not self.problem.depths and not self.problem.pinned
        ):  # limits count from the first start, whoever has it
            found.fold(idle(self.problem), self.deadline)
        return found

    @property
    def contractible(self) -> bool:
        """Whether there is anything to fold away, and no question about a latency."""
        return not self.latencies and bool(self.rest.gone)

    @property
    def heart(self) -> Iterator[tuple[int, int, int, int]]:
        """(source, destination, latency, distance) between those that hold something."""
        for src, steps in enumerate(self.rest.out):
            for dst, pairs in steps.items():
                for latency, distance in pairs:
                    yield src, dst, latency, distance

    def filled(self, ii: int, starts: Sequence[int]) -> list[int]:
        """Starts of those that hold something, and of the rest."""
        lead = self.rest.lead
        needed = [
            latency - ii * distance - starts[i]
            for i, paths in lead.items()
            for latency, distance in paths
        ]
        shift = -(-max([0, *needed]) // ii) * ii
        found = [start + shift for start in starts]
        self.rest.place(ii, found)
        return found

    def knotted(self, solution: Solution) -> bool:
        """Whether operations that take no time wait for each other in one cycle."""
        return bool(knot(self.loop, solution.ii, self.schedule(solution).starts))

    def schedule(self, solution: Solution) -> Schedule:
        """A solution as it is handed over."""
        return self.problem.schedule(solution.ii, solution.starts, solution.fused)

    def solution(self, schedule: Schedule) -> Solution:
        """A schedule from elsewhere in the solver's terms."""
        index = self.problem.index
        return Solution(
            schedule.ii,
            tuple(schedule.starts[name] for name in self.problem.names),
            tuple(tuple(index[name] for name in group) for group in schedule.fused),
        )

    @property
    def mii(self) -> int:
        """The largest of the lower bounds."""
        if not self.latencies:
            return bounds_of(self.problem).mii
        edges = tuple(Edge(src, dst, d.latency, d.distance) for src, dst, d in self.edges)
        graph = replace(self.problem.graph, edges=edges)
        return bounds_of(replace(self.problem, graph=graph)).mii

    # Slots and pools --------------------------------------------------------------------------

    @cached_property
    def slots(self) -> dict[str, tuple[int, tuple[Hold, ...]]]:
        """Slot to its capacity and holds; slots that are unlimited or never full are left out.

        Operations of a fusion class hold nothing here: what they hold depends on who joins them.
        """
        fusing = {i for c in self.classes for i in c.members}
        return {
            slot: (capacity, tuple(hold for hold in holds if hold.op not in fusing))
            for slot, (capacity, holds) in self.problem.holds.on("slot").items()
            if _may_fill(capacity, holds, fusing)
        }

    @cached_property
    def pools(self) -> dict[str, tuple[int, tuple[Hold, ...]]]:
        """Pool to its cap and what is drawn from it."""
        return self.problem.holds.on("pool")

    # Storage ----------------------------------------------------------------------------------

    @cached_property
    def bound_rings(self) -> tuple[Room, ...]:
        """Rings that are limited: by a budget they share, or by a cap."""
        rooms = self.problem.rooms.turning
        return tuple(r for r in rooms if SPACES[r.space].budgeted or r.cap is not None)

    # Fusion -----------------------------------------------------------------------------------

    @cached_property
    def classes(self) -> tuple[Class, ...]:
        """Sets of at least two operations that agree in kind, slots and bank."""
        return self.problem.fusion.classes(self.problem.graph, self.deadline)


def make_case(
    loop: Loop,
    machine: Machine,
    fuse: bool = True,
    max_stages: int | None = None,
    deadline: Deadline = NEVER,
) -> Case:
    """Compile a resolved, checked loop for the solver."""
    compiled = compile_loop(loop, machine, fuse=fuse, max_stages=max_stages)
    return Case(compiled, deadline=deadline)


def _may_fill(capacity: int, holds: tuple[Hold, ...], fusing: set[int]) -> bool:
    """Whether the holders of a slot could exceed its capacity.

    A hold of more than one II counts more than once, so length alone can fill a slot; and what
    fused operations hold together may be longer than each of them.
    """
    if sum(hold.amount for hold in holds) > capacity:
        return True
    return any(hold.op in fusing or hold.duration > 1 for hold in holds)
