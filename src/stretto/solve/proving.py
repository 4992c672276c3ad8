"""From a schedule that was found to one that is proved, or to a better one.

    cost-based: II 449 ──► floors met? ──yes──► proved, no solver
                              │no
                              └──► exact: 441 refuted .. 447 found ──► verified ──► the answer

The solver is loaded only where something is left to decide.
"""

from __future__ import annotations

from dataclasses import replace

from stretto.exact.case import Case, Solution
from stretto.exact.goal import Goal
from stretto.exact.horizon import last_ii
from stretto.exact.interrupts import load_solver
from stretto.exact.objectives.ii import GOAL as II
from stretto.exact.options import Progress, ProofOptions
from stretto.generate.select import EXACT
from stretto.solution import Objective, Proof, Refusal, ScheduleAnalysis
from stretto.solve.job import Job, lower_bound


def proved(
    job: Job,
    at_hand: ScheduleAnalysis,
    last: int,
    options: ProofOptions,
    progress: Progress | None = None,
) -> tuple[ScheduleAnalysis, bool]:
    """The analysis with its proof, improved where the solver can; and whether it was stopped."""
    loop = job.problem.loop
    options_of = job.problem.options
    case = Case(
        loop,
        job.problem.machine,
        options_of.fuse,
        options_of.max_stages,
        deadline=job.search_until,
    )
    hint = solution_of(at_hand, case) if at_hand.success else None
    if hint is None and job.problem.options.max_ii is None:
        last = max(last, last_ii(case))
    before = tuple(r for r in at_hand.refused if r.proved)
    lower, method = lower_bound(job.bounds.mii, before)
    if hint is not None:
        settled = _settled(case, hint, lower, options.goals)
        if settled is not None:
            proof = Proof(True, lower, method, settled)
            return _labelled(job, replace(at_hand, proof=proof)), False
    if case.deadline.over:
        return at_hand if hint is None else _open(case, at_hand, hint, lower, options), False
    load_solver()
    from stretto.exact.search import optimize  # noqa: PLC0415 - needs the solver

    answer = optimize(case, lower, last, hint, options.goals, options.limits, progress)
    refused = (*(r for r in before if r.ii < lower), *answer.refused)
    if answer.solution is None:
        return replace(at_hand, generator=EXACT, refused=refused), answer.stopped
    optimal = answer.lower_bound == answer.solution.ii
    if answer.lower_bound > lower:
        method = "solver"
    proof = Proof(optimal, answer.lower_bound, method if optimal else "none", answer.objectives)
    if answer.solution == hint:
        return _labelled(job, replace(at_hand, proof=proof, refused=refused)), answer.stopped
    return _improved(job, case, at_hand, answer.solution, proof, refused), answer.stopped


def solution_of(analysis: ScheduleAnalysis, case: Case) -> Solution:
    """A schedule in the solver's terms."""
    assert analysis.ii is not None
    starts, index = analysis.starts, case.loop.index
    return Solution(
        analysis.ii,
        tuple(starts[op.name] for op in case.loop.ops),
        tuple(tuple(index[name] for name in group) for group in analysis.fused),
    )


def _settled(
    case: Case, hint: Solution, lower: int, goals: tuple[Goal, ...]
) -> tuple[Objective, ...] | None:
    """The objectives, if a schedule meets the floor of each."""
    rows: list[Objective] = []
    for goal in goals:
        if case.deadline.over:
            return None
        found = goal.value(case, hint)
        if found > (lower if goal is II else goal.floor(case, hint.ii)):
            return None
        rows.append(Objective(goal.name, found, found, optimal=True))
    return tuple(rows)


def _open(
    case: Case, at_hand: ScheduleAnalysis, hint: Solution, lower: int, options: ProofOptions
) -> ScheduleAnalysis:
    """Nothing proved but what the bound says: no time was left to ask the solver."""
    assert at_hand.proof is not None
    rows = [Objective(II.name, hint.ii, lower, hint.ii == lower)]
    for goal in options.goals[1:]:
        rows.append(Objective(goal.name, goal.value(case, hint), 0, optimal=False))
    return replace(at_hand, proof=replace(at_hand.proof, objectives=tuple(rows)))


def _labelled(job: Job, analysis: ScheduleAnalysis) -> ScheduleAnalysis:
    """Under the name that was asked for."""
    return replace(analysis, generator=EXACT) if job.chosen.generator == EXACT else analysis


def _improved(
    job: Job,
    case: Case,
    before: ScheduleAnalysis,
    solution: Solution,
    proof: Proof,
    refused: tuple[Refusal, ...],
) -> ScheduleAnalysis:
    """The solver's schedule, verified."""
    starts, fused = case.named(solution)
    rule = job.chosen.rule
    if job.chosen.generator != EXACT and before.success:
        what = f"II {before.ii}, {before.stage_count} stages"
        rule = f"improves on the {before.generator} schedule ({what})"
    return job.verified(
        replace(job.chosen, generator=EXACT, rule=rule),
        solution.ii,
        starts,
        fused=fused,
        refused=refused,
        proof=proof,
    )
