"""Rau refinement: iterative modulo scheduling, the first rung of the ladder.

    for each plan:  recurrences as blocks ─► the rest by priority, pushing out what is in the way
                    ─► stages ─► fillers as late as pays ─► do the rings fit?

After B. R. Rau, "Iterative modulo scheduling" (MICRO 1994): operations are seated by priority,
one that finds no seat takes one by force, and what it pushes out is seated again, within a budget.
What differs: seats are sought by cycle and stages follow (`packing.py`); recurrences are seated
first, by their longest-path distances (after R. Huff, "Lifetime-sensitive modulo scheduling", PLDI
1993); operations that found no seat come earlier in the next plan; and when rings overflow, their
depths are capped and the capped problem is solved (`rings.py`). All budgets are counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stretto.generate.ladder.attempt import Attempt, overflow_refusal, refusal_for
from stretto.generate.ladder.packing import Packing, Plan
from stretto.generate.ladder.recurrences import recurrences
from stretto.generate.ladder.rings import capped
from stretto.generate.ladder.storage import overflow
from stretto.generate.ladder.tighten import tighten
from stretto.generate.problem import LARGE, Problem
from stretto.generate.seating.partial import Partial
from stretto.problem.paths import earliest, heights, stages
from stretto.resources import ReservationTable
from stretto.solution import Refusal

RUNG = "rau"


def refine(problem: Problem, ii: int, effort: int = 6) -> Attempt:
    """A complete placement at this II whose rings fit, or how far it came.

    `effort`: plans tried with what the ones before have learned, after the first three. The II is
    one at which every operation fits by itself (`never_fits`).
    """
    first = _solve(problem, ii, effort)
    if first.placement is None or first.refusal is None:
        return first
    # Complete, but the rings overflow: hold them to depths that fit and solve that.
    for variant in capped(problem, ii, first.placement.whole()):
        attempt = _solve(variant, ii, effort)
        if attempt.placement is not None and attempt.refusal is None:
            return Attempt(_back(problem, attempt.placement), attempt.partial, None)
    return Attempt(None, first.placement, first.refusal)


def never_fits(problem: Problem, ii: int) -> Refusal | None:
    """An operation that meets itself: its holds, wound around the II, exceed what there is."""
    table = ReservationTable(problem.machine, ii)
    for i, vector in enumerate(problem.vectors):
        problem.deadline.check()
        winds = vector.end > ii or len(vector.uses) > len({use.slot for use in vector.uses})
        conflict = table.conflict(vector, 0, problem.names[i]) if winds else None
        if conflict is not None:
            return Refusal(ii, str(conflict), proved=True, op=problem.names[i], uses=vector.uses)
    return None


def _back(problem: Problem, placement: Partial) -> Partial:
    """A placement of a capped variant, as one of the problem itself."""
    return Partial.adopt(problem, placement.table, placement.starts, RUNG)


def _solve(problem: Problem, ii: int, effort: int) -> Attempt:
    """Try the plans in turn. A complete placement that overflows comes with a refusal."""
    asap = earliest(problem.between, ii, problem.deadline)
    rigid = recurrences(problem, ii)
    blame = [0] * problem.size
    best = Partial(problem, ii)
    refusal: Refusal | None = None
    overflowing: Attempt | None = None
    for plan in _plans(problem, ii, effort):
        packing = Packing.empty(problem, ii, rigid, asap, blame)
        done = packing.run(plan)
        partial, why = _finish(problem, packing, done)
        if partial is not None and why is None:
            return Attempt(partial, partial, None)
        if partial is not None and overflowing is None:
            overflowing = Attempt(partial, partial, why)
        elif not done:
            reached = Partial.adopt(problem, packing.table, packing.starts, RUNG)
            if refusal is None or reached.count > best.count:
                best = reached
                refusal = refusal_for(reached, packing.failed, RUNG)
        elif why is not None and refusal is None:
            refusal = why
    return overflowing or Attempt(None, best, refusal)


def _finish(
    problem: Problem, packing: Packing, done: bool
) -> tuple[Partial | None, Refusal | None]:
    """The placement of finished cycles, and what is wrong with it, if anything."""
    ii = packing.ii
    seated = [start for start in packing.starts if start is not None]
    if not done or len(seated) < problem.size:
        return None, None
    starts = stages(problem.between, ii, seated, problem.deadline)
    if starts is None:
        return None, Refusal(ii, "the cycles of a recurrence ask for a stage too many", rung=RUNG)
    partial = Partial.adopt(problem, packing.table, starts, RUNG)
    broken = _stage_rules(partial)
    if broken is not None:
        return None, broken
    tighten(partial, RUNG)
    too_much = overflow(problem, ii, partial.whole())
    return partial, overflow_refusal(ii, too_much, RUNG) if too_much else None


def _stage_rules(partial: Partial) -> Refusal | None:
    """Depth limits and groups, which cycles alone do not see."""
    problem, ii = partial.problem, partial.ii
    starts = partial.whole()
    for i, last in enumerate(problem.max_stage):
        if last is not None and starts[i] // ii > last:
            name, stage = problem.names[i], starts[i] // ii
            return Refusal(
                ii,
                f"`{name}` came to stage {stage}; stage {last} is its last",
                rung=RUNG,
                op=name,
                uses=problem.vectors[i].uses,
                window=(0, (last + 1) * ii - 1),
                stage=stage,
            )
    for members in problem.members:
        found = {starts[i] // ii for i in members}
        if len(found) > 1:
            names = tuple(problem.names[i] for i in members)
            reason = f"the group {', '.join(names)} came to stages {sorted(found)}"
            late = max(members, key=lambda i: starts[i])
            return Refusal(
                ii,
                reason,
                rung=RUNG,
                op=problem.names[late],
                uses=problem.vectors[late].uses,
                group=names,
                stage=starts[late] // ii,
            )
    return None


def _plans(problem: Problem, ii: int, effort: int) -> Iterator[Plan]:
    """Priorities to try: what waits longest first; what is hardest to fit first; both ways."""
    height = heights(problem.between, problem.completion, ii, problem.deadline)
    hard = _density(problem)
    few, many = min(problem.size + 10, 60), min(4 * problem.size, 400) + 40
    yield Plan("height", height, evictions=few)
    yield Plan("density", hard, evictions=few)
    if problem.size > LARGE:
        return
    yield Plan("tight", hard, tight=True, evictions=few)
    for turn in range(effort):
        yield Plan(
            f"learned {turn}",
            _shaken(height if turn % 2 else hard, turn),
            tight=turn % 3 == 1,
            late=turn % 4 == 2,
            evictions=many,
        )


def _shaken(priority: Sequence[int], turn: int) -> Sequence[int]:
    """Priorities moved by up to a fifth either way, differently each turn and always the same."""
    if turn < 2:
        return priority
    return [
        value * (80 + (i * 2654435761 + turn * 40503) % 65521 % 41) // 100
        for i, value in enumerate(priority)
    ]


def _density(problem: Problem) -> Sequence[int]:
    """How much an operation holds of what is scarce: cycles, weighed by how full the slot is."""
    total: dict[str, int] = {}
    for vector in problem.vectors:
        for use in vector.uses:
            total[use.slot] = total.get(use.slot, 0) + use.duration * use.occupancy
    load: dict[str, int] = {}
    for slot, held in total.items():
        capacity = problem.machine.slot(slot).capacity
        load[slot] = 0 if capacity is None else held // capacity
    fullest = max(load.values(), default=0) or 1
    return [
        sum(use.duration * use.occupancy * 100 * load[use.slot] // fullest for use in vector.uses)
        for vector in problem.vectors
    ]
