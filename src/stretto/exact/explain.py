"""Why not a smaller II: a minimal conflict, then what would resolve it.

explain(case, 14)  ──►  impossible: slot tp_smem_wr; a second unit of it would give II 8
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from stretto.deadline import OverdueError
from stretto.exact import Limits
from stretto.exact.case import Case
from stretto.exact.conflict import find_conflict
from stretto.exact.explanation import Explanation, Relaxation
from stretto.exact.reasons import Reason, of_edge
from stretto.exact.relax import relax
from stretto.exact.solving import Clock
from stretto.solution import BOUND_NAMES, Bounds, Schedule, Witness

FOR_CONFLICT = 0.5
"""Of the work, what the conflict may take; the rest is for what would resolve it."""


def explain(
    case: Case,
    ii: int,
    bounds: Bounds,
    limits: Limits | None = None,
    check: Callable[[Case, Schedule], None] | None = None,
) -> Explanation:
    """Why there is no schedule at this II; `check` is given every schedule that is claimed."""
    limits = limits or Limits()
    clock = Clock(limits, case.deadline).part(FOR_CONFLICT)
    suspects = [_suspects(case, bounds[name]) for name in BOUND_NAMES if bounds[name].bound > ii]
    conflict = find_conflict(case, ii, clock, suspects)
    if check is not None and conflict.solution is not None:
        check(case, case.schedule(conflict.solution))
    if conflict.status != "impossible":
        return Explanation(ii, conflict.status, stopped=clock.stopped)
    clock = clock.renewed(limits, case.deadline)
    found: list[Relaxation] = []
    try:
        for relaxed in relax(case, ii, conflict.reasons, clock):
            if check is not None:
                check(relaxed.case, relaxed.case.schedule(relaxed.solution))
            found.append(relaxed.relaxation)
    except OverdueError:
        pass  # the conflict stands; `complete` says that not every change was tried
    return Explanation(
        ii,
        "impossible",
        conflict.reasons,
        conflict.minimal,
        tuple(sorted(found, key=lambda r: (r.hardware, r.ii, r.reason.kind == "dependence"))),
        complete=not clock.over,
        stopped=clock.stopped,
    )


def _suspects(case: Case, witness: Witness) -> Sequence[Reason]:
    """What a bound above the II says: its witness is a conflict on its own."""
    if witness.kind == "slot":
        return [Reason("slot", witness.limit)]
    if witness.kind == "pool":
        return [Reason("pool", witness.limit)]
    names = [part.ops[0] for part in witness.parts]
    if witness.kind in {"cycle", "group"}:
        steps = set(zip(names, names[1:] + names[:1], strict=True))
        tied = [case.problem.index[part.ops[-1]] for part in witness.parts if len(part.ops) > 1]
        groups = dict.fromkeys(k for i in tied if (k := case.problem.group[i]) is not None)
        return [Reason("group", number=k) for k in groups] + [
            of_edge(case, k) for k, (_, _, d) in enumerate(case.edges) if (d.src, d.dst) in steps
        ]
    steps = set(pairwise(names))
    limits = [Reason("depth", witness.limit), Reason("stages")]
    return limits + [
        of_edge(case, k)
        for k, (_, _, d) in enumerate(case.edges)
        if (d.src, d.dst) in steps and d.distance == 0
    ]
