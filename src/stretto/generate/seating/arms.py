"""Four ways to propose the next seat.

    permute      seat all that is ready, in many orders; propose the first of the best order
    fuse         let alike operations share one hold; propose them together
    retry        look again at what is dead in the snapshot; propose the first that can live
    cost-based   score every operation at every legal cycle of its window; propose the cheapest

The first three propose side by side, the cheapest proposal wins; the last is asked only when they
all reject. Proposals change no seat: a trial is taken back exactly; only the snapshot remembers
who was revived or found nothing. Work is counted, never timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stretto.generate.seating.cost import CostVector, Scorer
from stretto.generate.seating.evaluators import seating_of
from stretto.generate.seating.fusing import alike_sets
from stretto.generate.seating.gates import Snapshot, seat_window, seek
from stretto.generate.seating.orders import orders
from stretto.generate.seating.partial import Partial
from stretto.problem import fused_vector
from stretto.resources.table import rotate

PERMUTE_ORDERS = 24
"""Orders tried in one step: all of four operations, a sample of more."""
PERMUTE_SEATS = 600
"""Trial seats of the permute arm in one rung; then it proposes the first of the plain order."""
SCORED_CYCLES = 64
"""Seats the cost-based arm scores in one step, over all operations."""
SCORED_SEATS = 512
"""Seats the cost-based arm scores in one rung; then it rejects."""


@dataclass(slots=True)
class Allowance:
    """What is left of the budgets of a rung."""

    trials: int = PERMUTE_SEATS
    scores: int = SCORED_SEATS


@dataclass(slots=True)
class Bench:
    """A placement being made: what the arms look at."""

    partial: Partial
    scorer: Scorer
    snap: Snapshot
    ready: list[int] = field(default_factory=list[int])
    """What may be seated next, most urgent first, pending ones last."""
    veto: bool = False
    """Whether bank caps refuse proposals of all arms, not of the cost-based one alone."""
    work: Allowance = field(default_factory=Allowance)

    @property
    def live(self) -> list[int]:
        """The ready operations that are not dead and that G1 does not hold over."""
        live = [i for i in self.ready if i not in self.snap.dead]
        pending = self.partial.problem.pending
        return [i for i in live if not pending[i]] or live


@dataclass(frozen=True, slots=True)
class Proposal:
    """A seat: an operation, or several fused ones, and a start."""

    arm: str
    members: tuple[int, ...]
    start: int

    def cost(self, bench: Bench) -> CostVector:
        """The cost of the placement with this seat."""
        return bench.scorer.score(seating_of(bench.partial, self.members, self.start))


def propose(bench: Bench, arms: Sequence[str]) -> Proposal | None:
    """The cheapest of what permute, fuse and retry propose; else what the cost-based arm does."""
    found: list[Proposal] = []
    blind = bench.work.trials <= 0
    for arm, make in (("permute", permute), ("fuse", fuse), ("retry", retry)):
        proposal = make(bench) if arm in arms else None
        if proposal is not None and not (bench.veto and _vetoed(bench, proposal)):
            found.append(proposal)
    if blind and any(proposal.arm == "fuse" for proposal in found):
        # Out of trials, permute sees no further than one seat, and one hold saved is worth more.
        found = [proposal for proposal in found if proposal.arm != "permute"]
    if "retry" in arms:  # what it revived may hold over a pending operation proposed before
        live = bench.live
        found = [p for p in found if p.members[0] in live]
    if len(found) > 1:
        return min(found, key=lambda proposal: proposal.cost(bench))  # the first of equals
    if found:
        return found[0]
    return cost_based(bench) if "cost-based" in arms else None


def _vetoed(bench: Bench, proposal: Proposal) -> bool:
    return bench.scorer.vetoed(seating_of(bench.partial, proposal.members, proposal.start))


# Permute ------------------------------------------------------------------------------------


def permute(bench: Bench) -> Proposal | None:
    """The first seat of the order in which all that is ready finds seats, most cheaply.

    Only operations that can be in each other's way are permuted; the others follow. Rejects when
    no order seats them all: then some seat would be the last one's undoing.
    """
    live = bench.live
    if not live:
        return None
    if bench.work.trials <= 0:
        return _first(bench, live[0])
    crowd, rest = _crowd(bench, live)
    partial = bench.partial
    best: tuple[CostVector, Proposal] | None = None
    several = len(crowd) > 1
    trial = _Trial(bench)
    try:
        for order in orders(partial.problem, crowd, PERMUTE_ORDERS, seed=partial.count):
            if not trial.take((*order, *rest)):
                continue
            first = Proposal("permute", (trial.taken[0],), partial.starts[trial.taken[0]] or 0)
            if not several:
                return first
            cost = bench.scorer.score(seating_of(partial))
            if best is None or cost < best[0]:
                best = cost, first
            if bench.work.trials <= 0:
                break
    finally:
        trial.undo()
    return best[1] if best else None


def _first(bench: Bench, i: int) -> Proposal | None:
    """One operation at its earliest seat."""
    verdict = seek(bench.partial, bench.snap, i)
    if not verdict.passed or verdict.start is None:
        return None
    return Proposal("permute", (i,), verdict.start)


class _Trial:
    """Seats of an order, tried on the placement; the next order keeps the beginning it shares."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.taken: list[int] = []
        self.stuck: tuple[int, ...] = ()
        """The beginning of the last order, up to the operation that found no seat."""

    def take(self, order: tuple[int, ...]) -> bool:
        """Seat all of an order, each at its earliest."""
        if self.stuck and order[: len(self.stuck)] == self.stuck:
            return False
        shared = 0
        while shared < len(self.taken) and self.taken[shared] == order[shared]:
            shared += 1
        self.undo(shared)
        bench = self.bench
        for k in range(shared, len(order)):
            bench.partial.problem.deadline.check()
            bench.work.trials -= 1
            verdict = seek(bench.partial, bench.snap, order[k])
            if not verdict.passed or verdict.start is None:
                self.stuck = order[: k + 1]
                return False
            bench.partial.seat((order[k],), verdict.start, "", "permute")
            self.taken.append(order[k])
        return True

    def undo(self, keep: int = 0) -> None:
        """Take back all but the first `keep` seats."""
        while len(self.taken) > keep:
            self.bench.partial.unseat(self.taken.pop())


def _crowd(bench: Bench, live: Sequence[int]) -> tuple[list[int], list[int]]:
    """The live operations that share a limited slot, a pool, a group or an arc; and the others."""
    problem = bench.partial.problem
    sharers: dict[str | int, int] = {}
    marks: dict[int, list[str | int]] = {}
    for i in live:
        vector = problem.vectors[i]
        own: set[str | int] = {d.pool for d in vector.demands if d.units}
        for use in vector.uses:
            if use.duration and problem.machine.slot(use.slot).capacity is not None:
                own.add(use.slot)
        group = problem.group[i]
        if group is not None:
            own.add(group)
        marks[i] = list(own)
        for mark in own:
            sharers[mark] = sharers.get(mark, 0) + 1
    crowd = {i for i in live if any(sharers[mark] > 1 for mark in marks[i])}
    for i in live:
        others = [arc.other for arc in problem.preds[i] if arc.other in marks]
        if others:
            crowd.update((i, *others))
    return [i for i in live if i in crowd], [i for i in live if i not in crowd]


# Fuse ---------------------------------------------------------------------------------------


def fuse(bench: Bench) -> Proposal | None:
    """Alike operations that share one hold: the set that saves most, then the cheapest."""
    partial, problem = bench.partial, bench.partial.problem
    best: tuple[int, CostVector, Proposal] | None = None
    for members, start in alike_sets(partial, bench.snap, bench.live):
        apart = sum(problem.vectors[i].duration for i in members)
        saved = apart - fused_vector(problem, members).duration
        proposal = Proposal("fuse", members, start)
        cost = proposal.cost(bench)
        if best is None or (-saved, cost) < best[:2]:
            best = -saved, cost, proposal
    return best[2] if best else None


# Retry --------------------------------------------------------------------------------------


def retry(bench: Bench) -> Proposal | None:
    """The first dead operation that has a seat by now, which makes it live again."""
    pending = bench.partial.problem.pending
    alone = all(pending[i] for i in bench.live)
    for i in bench.ready:
        if i in bench.snap.dead:
            verdict = seek(bench.partial, bench.snap, i, alone=alone)
            if verdict.passed and verdict.start is not None:
                bench.snap.dead.discard(i)
                return Proposal("retry", (i,), verdict.start)
    return None


# Cost-based ---------------------------------------------------------------------------------


def cost_based(bench: Bench) -> Proposal | None:
    """The cheapest seat of all; one that leaves another ready operation no seat is infeasible."""
    live = bench.live
    best: tuple[CostVector, Proposal] | None = None
    for i in live:
        starts = cycles(bench, i, max(2, SCORED_CYCLES // len(live)))
        if not starts:  # nor will it have a seat when more are taken
            bench.snap.dead.add(i)
            return None
        for start in starts[: max(0, bench.work.scores)]:
            bench.partial.problem.deadline.check()
            bench.work.scores -= 1
            proposal = Proposal("cost-based", (i,), start)
            if _vetoed(bench, proposal):
                continue
            starved = _starved(bench, i, start, live)
            if starved and best is not None and starved > best[0].feasibility:
                continue
            cost = proposal.cost(bench)._replace(feasibility=starved)
            if best is None or cost < best[0]:
                best = cost, proposal
    return best[1] if best is not None and best[0].feasibility == 0 else None


def _starved(bench: Bench, i: int, start: int, live: Sequence[int]) -> int:
    """How many other live operations have no seat left once this one has its own."""
    partial = bench.partial
    if not partial.problem.wants("cost:feasibility"):
        return 0
    partial.seat((i,), start, "", "cost-based")
    try:
        return sum(not seek(partial, bench.snap, j).passed for j in live if j != i)
    finally:
        partial.unseat(i)


def cycles(bench: Bench, i: int, most: int) -> list[int]:
    """Legal starts of an operation's window; of many, the ends of each run of legal ones first.

    Costs change where something else begins or ends, and so do runs of legal starts; what is left
    of `most` goes to starts spread evenly over the others.
    """
    partial = bench.partial
    low, high = seat_window(partial, bench.snap, i)
    if high < low:
        return []
    legal = partial.table.legal_starts(partial.problem.vectors[i])
    mask = rotate(legal, low % partial.ii, partial.ii) & ((1 << (high - low + 1)) - 1)
    if mask.bit_count() <= most:
        return [low + k for k in _bits(mask)]
    chosen = _bits(mask & ~(mask << 1) | mask & ~(mask >> 1))[:most]
    left = most - len(chosen)
    if left:
        step = -(-(high - low + 1) // left)
        spread = (k for k in range(0, high - low + 1, step) if mask >> k & 1)
        chosen = sorted({*chosen, *spread})
    return [low + k for k in chosen]


def _bits(mask: int) -> list[int]:
    found: list[int] = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
