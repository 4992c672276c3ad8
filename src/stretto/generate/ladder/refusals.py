"""Why an II was refused, worked out from the seats that a plan was left with.

    left with     load @0   mma @9   write?           the work was spent while seats changed hands
    completed     load @0   mma @9   write: 3 to 10   all that is left is seated, nobody pushed out,
                                     held by `load`   until one finds no seat: the refusal is its

What is left is seated in order, the one that failed last first. So a refusal names an operation,
the window that seats which agree with each other leave it, and who holds every start of it. It is
worked out where an II is refused in the end, not with every attempt: that would take as long as the
search does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stretto.deadline import Deadline
from stretto.generate.kernel import Core
from stretto.generate.ladder import overflow_refusal, refusal_for
from stretto.generate.ladder.rings import overflow, tighten
from stretto.generate.seating.partial import Partial
from stretto.lower_bounds.group import group_edges
from stretto.problem import Compiled
from stretto.solution import Refusal

TIME, WORK = "time limit", "work"
"""What ended an attempt that is not looked into: `Refusal.limit` says it."""
_ENDED = {TIME: "the time limit came", WORK: "the work allowed was spent"}
EXPLAINED = 4_000
"""Seats that working out the refusals of one loop may take: those of 40 IIs of 100 operations.
What is refused beyond is looked at beside the seats as they are left."""
TRIED = 4
"""Operations that get a seat there, until one finds none."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """The seats that a plan was left with, by node of a heart."""

    core: Core
    ii: int
    starts: Sequence[int | None]
    failed: int
    """The node that found no seat last; -1: all have a cycle, and some recurrence no stages."""
    rung: str

    @property
    def partial(self) -> Partial:
        """The same as a placement."""
        return Partial.of_core(self.core.problem, self.ii, self.core, self.starts, self.rung)

    @property
    def op(self) -> int:
        """The operation that failed last; where that has a seat by now, the first that has none."""
        node = self.failed
        if node < 0 or self.starts[node] is not None:
            node = next((n for n, start in enumerate(self.starts) if start is None), max(node, 0))
        return self.core.nodes[node][0]

    def refusal(self, limit: str) -> Refusal:
        """Who had no seat when something ended it; nothing more is looked into."""
        problem, i = self.core.problem, self.op
        why = f"`{problem.names[i]}` had no seat when {_ENDED[limit]}"
        return Refusal(self.ii, why, rung=self.rung, op=problem.names[i], limit=limit)

    def completed(self) -> Partial:
        """Seats that agree with each other, and all others in order until one finds none."""
        from stretto.generate.ladder.climb import resumed  # noqa: PLC0415 - where it is asked

        problem, ii = self.core.problem, self.ii
        whole = resumed(problem, self.partial)
        for i in self._order:
            if whole.starts[i] is not None:
                continue
            low, high = whole.window(i)
            seat = None
            if low <= high:
                high = min(high, low + ii - 1)
                seat = whole.table.earliest(problem.vectors[i], low, high)
            if seat is None:
                break
            whole.seat((i,), seat, self.rung)
        return whole

    @property
    def _order(self) -> tuple[int, ...]:
        return (self.op, *self.core.problem.graph.order)

    def worked_out(self) -> Refusal:
        """Who finds no seat beside all others, and what is there."""
        whole, problem, ii, rung = self.completed(), self.core.problem, self.ii, self.rung
        for i in self._order:
            if whole.starts[i] is None:
                return refusal_for(whole, i, rung)
        too_much = overflow(problem, ii, whole.whole())
        if too_much and not whole.fused:
            tighten(whole, rung)
            too_much = overflow(problem, ii, whole.whole())
        return overflow_refusal(ii, too_much, rung) if too_much else self.bare

    def nearby(self) -> Refusal:
        """The same beside the seats as they are left, which need not agree with each other.

        Only those that hold what an operation wants are laid out: a tenth of the work on large
        loops.
        """
        held, free = self.partial, list[int]()
        for i in dict.fromkeys(self._order):
            if held.starts[i] is not None:
                continue
            low, high = held.window(i)
            if low > high:
                return refusal_for(held, i, self.rung)
            if len(free) == TRIED:
                break
            table, wanted = held.beside(i), self.core.problem.vectors[i]
            seat = table.earliest(wanted, low, min(high, low + self.ii - 1))
            if seat is None:
                return refusal_for(held, i, self.rung, table=table)
            held.move(i, seat, self.rung)
            free.append(seat)
        bare = self.bare
        if not free:
            return bare
        others = f", and so {len(free) - 1} others found theirs" if len(free) > 1 else ""
        return replace(bare, reason=f"{bare.reason}; start {free[0]} was free by then{others}")

    @property
    def bare(self) -> Refusal:
        """Who had no seat when the work was spent, and the window that the others left it."""
        i = self.op
        low, high = self.partial.window(i)
        told, uses = self.refusal(WORK), self.core.problem.vectors[i].uses
        return replace(told, uses=uses, window=(low, min(high, low + self.ii - 1)))


def explained(
    refused: Sequence[Refusal], stuck: Mapping[Refusal, Stuck], deadline: Deadline
) -> tuple[Refusal, ...]:
    """Refusals with their reasons worked out, from the smallest II on, while there is time."""
    seats, told = EXPLAINED, list[Refusal]()
    for refusal in refused:
        one = stuck.get(refusal)
        if one is None or deadline.over:
            told.append(refusal)
            continue
        seats -= one.core.problem.size
        told.append(one.worked_out() if seats > 0 or not told else one.nearby())
    return tuple(told)


def group_refusal(problem: Compiled, ii: int, rung: str) -> Refusal | None:
    """That the stages which a group asks for cannot be had at an II; None where they can.

    Members in one stage start less than an II apart, as the group bound has it.
    """
    edges = group_edges(problem)
    nodes = problem.size + len(problem.members)
    late, before = [0] * nodes, [-1] * nodes
    last = -1
    for _ in range(nodes):
        last = -1
        for edge in edges:
            start = late[edge.src] + edge.latency - ii * edge.distance
            if start > late[edge.dst]:
                late[edge.dst], before[edge.dst], last = start, edge.src, edge.dst
        if last < 0:
            return None
    for _ in range(nodes):  # onto the circle
        last = before[last]
    circle = [last]
    while before[circle[-1]] != last:
        circle.append(before[circle[-1]])
    circle.reverse()
    hub = max(range(len(circle)), key=lambda n: circle[n])
    ops = [n for n in (*circle[hub + 1 :], *circle[:hub]) if n < problem.size]
    names = tuple(problem.names[n] for n in ops)
    way = " -> ".join(f"`{name}`" for name in names)
    why = f"{way} take longer than the stages of their group leave at this II"
    first, end = names[0], names[-1]
    return Refusal(ii, why, proved=True, rung=rung, op=end, limit="group", group=(first, end))
