"""From a schedule that was found to one that is proved, or to a better one.

    cost-based: II 449 ──► floors met? ──yes──► proved, no solver
                              │no
                              └──► exact: 441 refuted .. 447 found ──► verified ──► the answer

The solver is loaded only where something is left to decide.
"""

from __future__ import annotations

from dataclasses import replace

from stretto.exact import II, Progress, ProofOptions
from stretto.exact.case import Case
from stretto.exact.goal import Goal
from stretto.exact.horizon import last_ii
from stretto.exact.interrupts import load_solver
from stretto.generate import EXACT
from stretto.loop import Note, Place
from stretto.solution import Objective, Proof, Refusal, Schedule, ScheduleAnalysis, spilling
from stretto.solve.job import Job, lower_bound


def proved(
    job: Job,
    at_hand: ScheduleAnalysis,
    last: int,
    options: ProofOptions,
    progress: Progress | None = None,
) -> tuple[ScheduleAnalysis, bool]:
    """The analysis with its proof, improved where the solver can; and whether it was stopped."""
    case = Case(job.problem, deadline=job.search_until)
    hint = at_hand.schedule if at_hand.success else None
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
    if answer.schedule is None:
        return replace(at_hand, generator=EXACT, refused=refused), answer.stopped
    optimal = answer.lower_bound == answer.schedule.ii
    if answer.lower_bound > lower:
        method = "solver"
    proof = Proof(optimal, answer.lower_bound, method if optimal else "none", answer.objectives)
    if answer.schedule == hint:
        return _labelled(job, replace(at_hand, proof=proof, refused=refused)), answer.stopped
    return _improved(job, at_hand, answer.schedule, proof, refused), answer.stopped


def _settled(
    case: Case, hint: Schedule, lower: int, goals: tuple[Goal, ...]
) -> tuple[Objective, ...] | None:
    """The objectives, if a schedule meets the floor of each."""
    rows: list[Objective] = []
    for goal in goals:
        if case.deadline.over:
            return None
        found = goal.value(case, hint)
        if found > (lower if goal.name == II else goal.floor(case, hint.ii)):
            return None
        rows.append(Objective(goal.name, found, found, optimal=True))
    return tuple(rows)


def _open(
    case: Case, at_hand: ScheduleAnalysis, hint: Schedule, lower: int, options: ProofOptions
) -> ScheduleAnalysis:
    """Nothing proved but what the bound says: no time was left to ask the solver."""
    assert at_hand.proof is not None
    rows = [Objective(II, hint.ii, lower, hint.ii == lower)]
    for goal in options.goals[1:]:
        rows.append(Objective(goal.name, goal.value(case, hint), 0, optimal=False))
    return replace(at_hand, proof=replace(at_hand.proof, objectives=tuple(rows)))


def _labelled(job: Job, analysis: ScheduleAnalysis) -> ScheduleAnalysis:
    """Under the name that was asked for."""
    return replace(analysis, generator=EXACT) if job.chosen.generator == EXACT else analysis


def _improved(
    job: Job,
    before: ScheduleAnalysis,
    schedule: Schedule,
    proof: Proof,
    refused: tuple[Refusal, ...],
) -> ScheduleAnalysis:
    """The solver's schedule, verified."""
    rule = job.chosen.rule
    if job.chosen.generator != EXACT and before.success:
        what = f"II {before.ii}, {before.stage_count} stages"
        rule = f"improves on the {before.generator} schedule ({what})"
    after = job.verified(
        replace(job.chosen, generator=EXACT, rule=rule),
        schedule,
        refused=refused,
        proof=proof,
    )
    return after if not before.success else told_of_growth(before, after)


def told_of_growth(before: ScheduleAnalysis, after: ScheduleAnalysis) -> ScheduleAnalysis:
    """What a proof pays for fewer stages or a smaller II is said."""
    grown = [
        f"{new.used:,} bytes of {new.space} instead of {old.used:,}"
        for old, new in zip(before.memory, after.memory, strict=True)
        if new.used > old.used
    ]
    if spilling(after) and not spilling(before):
        grown.append(spilling(after))
    if not grown:
        return after
    told = f"the {before.generator} schedule took less: now {', and '.join(grown)}"
    return replace(after, warnings=(*after.warnings, Note(Place(after.loop), told)))
