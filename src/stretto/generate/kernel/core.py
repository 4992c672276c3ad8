"""The heart of a problem: the operations that hold something, and what lies between them.

    load ─8─► view ─0─► cast ─2─► mma        load ─10─► mma         no holds: latency
    read0 ┐
    read1 ├ fused ─► mma                     read0 ─► mma           one hold: one node

Search runs on the heart; `Core.expand` puts the rest back: fused operations where their leader is,
and what holds nothing as early as those it waits for allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from stretto.generate.problem import TIES, Problem
from stretto.loop.parts import cached_property
from stretto.problem import Claim, fused_vector, strong_components
from stretto.problem.contract import Contracted, contracted, idle
from stretto.resources import wind

Step = tuple[int, int, int]
"""(other node, latency, distance)."""
Segment = tuple[int, int, int, int]
"""(column, offset, length, amount) around the II."""

DONE, FAILED, MORE = 0, 1, 2
"""What a run of steps came to."""


@dataclass(frozen=True)
class Core:
    """A problem by node, for the seating loops; nothing in it depends on an II."""

    problem: Problem
    nodes: tuple[tuple[int, ...], ...]
    """By node: the operations it stands for; several if they are fused."""
    claims: tuple[tuple[Claim, ...], ...]
    limits: tuple[int, ...]
    order: tuple[int, ...]
    """Nodes in distance-0 topological order."""
    succs: tuple[tuple[Step, ...], ...]
    completion: tuple[int, ...]
    lead: tuple[tuple[tuple[int, int], ...], ...]
    """By node: (latency, distance) of paths to it that begin with what holds nothing."""
    rest: Contracted
    """What was folded away."""
    tied: bool = False
    """Whether members of a group wait for each other: so they move as a whole."""

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self.nodes)

    @cached_property
    def preds(self) -> tuple[tuple[Step, ...], ...]:
        """The dependences by their destination."""
        found: list[list[Step]] = [[] for _ in self.nodes]
        for node, steps in enumerate(self.succs):
            for other, latency, distance in steps:
                found[other].append((node, latency, distance))
        return tuple(map(tuple, found))

    @cached_property
    def recurrences(self) -> tuple[tuple[int, ...], ...]:
        """Nodes that wait for each other around a cycle, each set in topological order."""
        nodes = self._turning
        if not nodes:
            return ()
        rank = {node: position for position, node in enumerate(self.order)}
        local = {node: k for k, node in enumerate(nodes)}
        between = [[local[s[0]] for s in self.succs[node] if s[0] in local] for node in nodes]
        found = [
            tuple(sorted([nodes[k] for k in members], key=rank.__getitem__))
            for members in strong_components(between)
            if len(members) > 1
        ]
        return tuple(sorted(found, key=lambda members: rank[members[0]]))

    @property
    def _turning(self) -> Sequence[int]:
        """Nodes that a cycle may lead through: one of the loop, or one that fusing has closed."""
        if self.size < self.problem.size - len(self.rest.gone) or self.tied:
            return range(self.size)
        around = {i for c in self.problem.graph.components if len(c) > 1 for i in c}
        return [node for node, ops in enumerate(self.nodes) if ops[0] in around]

    @cached_property
    def max_stage(self) -> tuple[int | None, ...]:
        """Last stage allowed."""
        limits = self.problem.max_stage
        if not self.problem.staged:
            return (None,) * self.size
        return tuple(
            min((stage for i in ops if (stage := limits[i]) is not None), default=None)
            for ops in self.nodes
        )

    @cached_property
    def group(self) -> tuple[int | None, ...]:
        """The leader group of each node."""
        found: list[int | None] = [None] * self.size
        for number, members in enumerate(self.members):
            for node in members:
                found[node] = number
        return tuple(found)

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """Nodes of each leader group; groups that share a fused node are one."""
        return tuple(tuple(sorted(nodes)) for nodes in self._joined)

    @cached_property
    def ahead(self) -> tuple[int, ...]:
        """Stages that each node stands before others of its group."""
        found = [0] * self.size
        for nodes in self._joined:
            for node, stages in nodes.items():
                found[node] = stages
        return tuple(found)

    @cached_property
    def _joined(self) -> list[dict[int, int]]:
        """By group: node to the stages that it stands ahead.

        Of a node that would have to stand in two stages one counts: no placement will do.
        """
        home = {i: node for node, ops in enumerate(self.nodes) for i in ops}
        joined: list[dict[int, int]] = []
        for members in self.problem.members:
            nodes = {home[i]: self.problem.ahead[i] for i in members}
            for other in [group for group in joined if group.keys() & nodes.keys()]:
                joined.remove(other)
                shared = next(node for node in other if node in nodes)
                later = other[shared] - nodes[shared]
                nodes = {node: stages + later for node, stages in nodes.items()} | other
            joined.append(nodes)
        return joined

    @cached_property
    def pending(self) -> tuple[bool, ...]:
        """Whether a node is to be seated last."""
        if not any(self.problem.pending):
            return (False,) * self.size
        return tuple(any(self.problem.pending[i] for i in ops) for ops in self.nodes)

    @cached_property
    def density(self) -> tuple[int, ...]:
        """How much a node holds of what is scarce: cycles, weighed by how full the column is."""
        held = [0] * len(self.limits)
        for claims in self.claims:
            for column, _, duration, amount in claims:
                held[column] += duration * amount
        load = [
            total // limit if limit else total
            for total, limit in zip(held, self.limits, strict=True)
        ]
        fullest = max(load, default=0) or 1
        return tuple(
            sum(
                duration * amount * 100 * load[column] // fullest
                for column, _, duration, amount in claims
            )
            for claims in self.claims
        )

    @cached_property
    def _plain(self) -> tuple[int, tuple[tuple[Segment, ...], ...]]:
        """The claims as they are, and the first II at which they need no winding; 0: none."""
        enough = 1
        for claims in self.claims:
            if len(claims) > 1 and len({claim[0] for claim in claims}) < len(claims):
                return 0, ()
            for _, offset, duration, _ in claims:
                enough = max(enough, offset + 1, duration)
        return enough, self.claims

    def segments(self, ii: int) -> tuple[tuple[Segment, ...], ...]:
        """What each node takes in each modulo cycle, in pieces that do not overlap."""
        enough, plain = self._plain
        if enough and ii >= enough:
            return plain
        return tuple(tuple(wound(claims, ii)) for claims in self.claims)

    def turns(self, ii: int) -> bool:
        """Whether what waits for itself by way of what was folded, or of a fused one, may."""
        return self.rest.turns_at(ii)

    def floors(self, ii: int) -> list[int]:
        """The first start that what was folded away leaves each node; none is below 0."""
        if not any(self.lead):
            return [0] * self.size
        return [
            max([0, *(latency - ii * distance for latency, distance in paths)])
            for paths in self.lead
        ]

    def expand(self, ii: int, starts: Sequence[int]) -> list[int]:
        """Starts of all operations from those of the nodes."""
        found = [0] * self.problem.size
        for ops, start in zip(self.nodes, starts, strict=True):
            for i in ops:
                found[i] = start
        self.rest.place(ii, found)
        return found

    def fused(self) -> list[tuple[int, ...]]:
        """The operations that share a hold."""
        return [ops for ops in self.nodes if len(ops) > 1]


def whole_of(problem: Problem) -> Core:
    """Every operation of a problem a node, as a textbook has it: a height ends with a start."""
    core = core_of(problem, fold=False, tie=False)
    return replace(core, completion=(0,) * core.size)


def core_of(
    problem: Problem,
    fused: Iterable[Sequence[int]] = (),
    *,
    fold: bool = True,
    tie: bool = True,
) -> Core:
    """The heart of a problem, with some sets of operations fused.

    `tie`: members of a group, which start less than an II apart, wait for each other.
    """
    leader = list(range(problem.size))
    together = {members[0]: tuple(members) for members in fused}
    for members in together.values():
        for i in members:
            leader[i] = members[0]
    arcs = contracted(problem, leader)
    shared = {i for members in together.values() for i in members}
    if fold:
        arcs.fold((i for i in idle(problem) if i not in shared), problem.deadline)
    kept = [i for i in problem.graph.order if leader[i] == i and i not in arcs.gone]
    kept = _topological(kept, arcs) if together else kept
    ordered = sorted(kept)
    number = {i: k for k, i in enumerate(ordered)}
    nodes = tuple([together.get(i, (i,)) for i in ordered])
    succs = tuple(
        [
            tuple(
                [
                    (number[other], latency, distance)
                    for other, pairs in arcs.out[i].items()
                    for latency, distance in pairs
                ]
            )
            for i in ordered
        ]
    )
    tied = tie and bool(problem.members) and problem.wants(TIES)
    if tied:
        succs = _tied(problem, succs, {i: number[leader[i]] for m in problem.members for i in m})
    return Core(
        problem,
        nodes,
        tuple([_claims(problem, ops) for ops in nodes]),
        problem.holds.limits,
        tuple([number[i] for i in kept]),
        succs,
        tuple([arcs.tail[i] for i in ordered]),
        tuple([tuple(arcs.lead.get(i, ())) for i in ordered]),
        arcs,
        tied,
    )


def _tied(
    problem: Problem, succs: Sequence[tuple[Step, ...]], home: Mapping[int, int]
) -> tuple[tuple[Step, ...], ...]:
    """Dependences, with those between members of a group: less than an II apart, and in order."""
    found = [list(steps) for steps in succs]
    for members in problem.members:
        for i in members:
            for j in members:
                if home[i] != home[j]:
                    stages = problem.ahead[j] - problem.ahead[i]
                    found[home[i]].append((home[j], 1, 1 + stages))
    return tuple(map(tuple, found))


def _topological(kept: Sequence[int], arcs: Contracted) -> list[int]:
    """Nodes in distance-0 topological order, as near to the order given as it allows."""
    inside = {
        i: [dst for dst, pairs in arcs.out[i].items() if any(not d for _, d in pairs)] for i in kept
    }
    waiting = dict.fromkeys(kept, 0)
    for targets in inside.values():
        for dst in targets:
            waiting[dst] += 1
    order: list[int] = []
    ready = [i for i in reversed(kept) if not waiting[i]]
    while ready:
        i = ready.pop()
        order.append(i)
        for dst in inside[i]:
            waiting[dst] -= 1
            if not waiting[dst]:
                ready.append(dst)
    assert len(order) == len(kept), "fusing closed a cycle inside an iteration"
    return order


def _claims(problem: Problem, ops: Sequence[int]) -> tuple[Claim, ...]:
    if len(ops) == 1:
        return problem.claims[ops[0]]
    return problem.holds.claims_of(fused_vector(problem, ops))


def wound(claims: Sequence[Claim], ii: int) -> Iterable[Segment]:
    """Claims wound around the II, column by column."""
    by_column: dict[int, list[tuple[int, int, int]]] = {}
    for column, offset, duration, amount in claims:
        by_column.setdefault(column, []).append((offset, duration, amount))
    for column, holds in by_column.items():
        for offset, length, amount in wind(holds, ii):
            yield column, offset, length, amount
